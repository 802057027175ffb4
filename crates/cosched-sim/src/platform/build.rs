//! Puts a platform together, for both readers; refuses what cannot be.

use super::error::too_many;
use super::limits::{
    CORES_MAX, DEPTH_MAX, HOSTS_MAX, LINKS_MAX, MEMBERS_MAX, SPEEDS_MAX, TRIED_MAX, WAY_MAX, WAYS_LINKS_MAX,
};
use super::regular::{Cables, Shape};
use super::units::shown;
use super::wires::{Hop, Wires, Zone, shortest};
use super::{Host, Link, NetworkModel, Platform, PlatformError, Point};
use std::collections::HashMap;

type Built<T = ()> = Result<T, PlatformError>;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
enum Named {
    Host(u32),
    Router(u32),
    Zone(u32),
}

/// A cluster of equal hosts.
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) hosts: Vec<String>,
    pub(super) router: String,
    pub(super) flops: f64,
    pub(super) cores: u32,
    pub(super) shape: Shape,
    pub(super) cable: (f64, f64),
    /// Each cable has two directions, which do not share.
    pub(super) split: bool,
    pub(super) fat: bool,
    /// Bandwidth, latency, and whether each flow may have all of it.
    pub(super) backbone: Option<(f64, f64, bool)>,
    pub(super) loopback: Option<(f64, f64)>,
}

pub(super) struct Builder {
    platform: Platform,
    names: HashMap<String, Named>,
    /// Links by name: the first, and whether there is one for each direction.
    links: HashMap<String, (u32, bool)>,
    ways_links: usize,
}

impl Builder {
    pub(super) fn new() -> Builder {
        let network = NetworkModel::LV08;
        let platform = Platform { hosts: vec![], links: vec![], points: vec![], zones: vec![], network };
        Builder { platform, names: HashMap::new(), links: HashMap::new(), ways_links: 0 }
    }

    pub(super) fn network(&mut self) -> &mut NetworkModel {
        &mut self.platform.network
    }

    /// A zone whose ways are given by [`Builder::way`]; `composed`: a way may be composed of several.
    pub(super) fn zone(&mut self, name: &str, parent: Option<u32>, composed: bool) -> Built<u32> {
        let wires = match composed {
            true => Wires::Shortest { hops: HashMap::new(), before: HashMap::new() },
            false => Wires::Table(HashMap::new()),
        };
        self.add_zone(name, parent, wires)
    }

    fn add_zone(&mut self, name: &str, parent: Option<u32>, wires: Wires) -> Built<u32> {
        let (rank, depth) = match parent {
            Some(parent) => (self.member(parent)?, self.platform.zones[parent as usize].depth + 1),
            None => (0, 0),
        };
        if depth > DEPTH_MAX {
            let why = format!("at most {DEPTH_MAX} zones may be within each other");
            return Err(PlatformError::new(format!("zone {} is too deep", shown(name)), why, "nest them less"));
        }
        let number = self.platform.zones.len() as u32;
        self.name(name, Named::Zone(number))?;
        self.platform.zones.push(Zone { name: shown(name), parent, rank, depth, members: 0, wires });
        Ok(number)
    }

    /// A new member's rank in a zone with a table.
    fn member(&mut self, zone: u32) -> Built<u32> {
        let zone = &mut self.platform.zones[zone as usize];
        if zone.members >= MEMBERS_MAX {
            let what = format!("zone {} has more than {MEMBERS_MAX} members", zone.name);
            return Err(PlatformError::new(what, "it needs a way between each two", "make clusters of equal hosts"));
        }
        zone.members += 1;
        Ok(zone.members - 1)
    }

    fn name(&mut self, name: &str, is: Named) -> Built {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(PlatformError::new(
                "a name is empty or has control characters",
                "it is shown",
                "name it plainly",
            ));
        }
        if self.names.insert(name.to_owned(), is).is_some() {
            let what = format!("{} exists twice", shown(name));
            return Err(PlatformError::new(what, "hosts, routers and zones share their names", "rename one"));
        }
        Ok(())
    }

    pub(super) fn host(&mut self, zone: u32, name: &str, flops: f64, cores: u32) -> Built {
        let rank = self.member(zone)?;
        let loopback = self.add_link(LOOPBACK, true)?;
        self.add_host(Point { zone, rank }, name, (flops, cores), loopback)
    }

    fn add_host(&mut self, point: Point, name: &str, (flops, cores): (f64, u32), loopback: u32) -> Built {
        if self.platform.hosts.len() as u64 >= HOSTS_MAX {
            return Err(too_many("hosts", HOSTS_MAX));
        }
        if !(1..=CORES_MAX).contains(&cores) {
            let what = format!("host {} has {cores} cores", shown(name));
            return Err(PlatformError::new(what, format!("1 to {CORES_MAX} can be simulated"), "change the number"));
        }
        self.name(name, Named::Host(self.platform.points.len() as u32))?;
        let number = self.point(point);
        self.platform.hosts.push(Host { name: name.to_owned(), flops, cores, point: number, loopback });
        Ok(())
    }

    fn point(&mut self, point: Point) -> u32 {
        self.platform.points.push(point);
        self.platform.points.len() as u32 - 1
    }

    pub(super) fn router(&mut self, zone: u32, name: &str) -> Built {
        let rank = self.member(zone)?;
        self.name(name, Named::Router(self.platform.points.len() as u32))?;
        self.point(Point { zone, rank });
        Ok(())
    }

    fn add_link(&mut self, (bytes_per_s, latency_s): (f64, f64), fat: bool) -> Built<u32> {
        if self.platform.links.len() as u64 >= LINKS_MAX {
            return Err(too_many("links", LINKS_MAX));
        }
        self.platform.links.push(Link { bytes_per_s, latency_s, fat });
        Ok(self.platform.links.len() as u32 - 1)
    }

    /// A link with a name; `split`: one for each direction.
    pub(super) fn link(&mut self, name: &str, costs: (f64, f64), fat: bool, split: bool) -> Built {
        let first = self.add_link(costs, fat)?;
        if split {
            self.add_link(costs, fat)?;
        }
        if name.is_empty() || self.links.insert(name.to_owned(), (first, split)).is_some() {
            let what = format!("link `{}` exists twice, or has no name", shown(name));
            return Err(PlatformError::new(what, "routes name links", "rename one"));
        }
        Ok(())
    }

    /// A link of this name; `down`: its other direction.
    pub(super) fn find_link(&self, name: &str, down: bool) -> Built<u32> {
        let found = self.links.get(name).copied();
        let (first, split) = found.ok_or_else(|| unknown("link", name))?;
        Ok(first + u32::from(split && down))
    }

    pub(super) fn cluster(&mut self, parent: Option<u32>, cluster: &Cluster) -> Built {
        let count = cluster.hosts.len() as u64;
        if let Some(wanted) = cluster.shape.nodes().filter(|wanted| *wanted != count) {
            let what = format!("cluster {} has {count} hosts", shown(&cluster.name));
            let why = format!("its topology has places for {wanted}");
            return Err(PlatformError::new(what, why, "make the two agree"));
        }
        if count == 0 || self.platform.hosts.len() as u64 + count > HOSTS_MAX {
            return Err(too_many("hosts, or none", HOSTS_MAX));
        }
        if let Shape::Dragonfly { groups, routers, .. } = &cluster.shape
            && groups[0] > routers[0]
        {
            let what = format!("a dragonfly has {} groups, but {} routers in a chassis", groups[0], routers[0]);
            let why = "the routers of a group's first chassis have the cables to the other groups, one each";
            return Err(PlatformError::new(what, why, "give at most as many groups as routers"));
        }
        let nodes = count as u32;
        let cables = cluster.shape.cables(nodes);
        let links = cables.iter().fold(0_u64, |all, (count, _)| all.saturating_add(*count));
        if links.saturating_mul(1 + u64::from(cluster.split)) + self.platform.links.len() as u64 > LINKS_MAX {
            return Err(too_many("links", LINKS_MAX));
        }
        let first = self.platform.links.len() as u32;
        for (count, times) in cables {
            for _ in 0..count * (1 + u64::from(cluster.split)) {
                self.add_link((cluster.cable.0 * f64::from(times), cluster.cable.1), cluster.fat)?;
            }
        }
        let backbone = cluster.backbone.map(|(rate, latency, fat)| self.add_link((rate, latency), fat)).transpose()?;
        let cables = Cables { first, split: cluster.split };
        let wires = Wires::Regular { shape: cluster.shape.clone(), cables, backbone, nodes };
        let zone = self.add_zone(&cluster.name, parent, wires)?;
        self.platform.zones[zone as usize].members = nodes + 1;
        for (rank, name) in (0..).zip(&cluster.hosts) {
            let loopback = self.add_link(cluster.loopback.unwrap_or(LOOPBACK), true)?;
            self.add_host(Point { zone, rank }, name, (cluster.flops, cluster.cores), loopback)?;
        }
        self.name(&cluster.router, Named::Router(self.platform.points.len() as u32))?;
        self.point(Point { zone, rank: nodes });
        Ok(())
    }

    /// A way between two members of a zone. For zones `gateways` names the places where it begins and ends.
    pub(super) fn way(
        &mut self,
        zone: u32,
        ends: [&str; 2],
        gateways: Option<[&str; 2]>,
        (links, symmetrical): (Vec<(&str, bool)>, bool),
    ) -> Built {
        if links.len() > WAY_MAX || self.ways_links + links.len() > WAYS_LINKS_MAX {
            return Err(too_many("links on ways", WAYS_LINKS_MAX as u64));
        }
        self.ways_links += links.len();
        let members = [self.end(zone, ends[0])?, self.end(zone, ends[1])?];
        let [from, to] = match gateways {
            Some(gateways) => {
                [self.gateway(zone, members[0].0, gateways[0])?, self.gateway(zone, members[1].0, gateways[1])?]
            }
            None => {
                let place = |(_, place): (u32, Option<u32>), name: &str| {
                    place.ok_or_else(|| {
                        let what = format!("{} is a zone", shown(name));
                        PlatformError::new(
                            what,
                            "a route is between hosts or routers",
                            "use a route of zones, with gateways",
                        )
                    })
                };
                [place(members[0], ends[0])?, place(members[1], ends[1])?]
            }
        };
        let numbers = |back: bool| links.iter().map(move |(name, down)| (name, *down != back));
        let there: Vec<u32> = numbers(false).map(|(name, down)| self.find_link(name, down)).collect::<Built<_>>()?;
        let mut back: Vec<u32> = numbers(true).map(|(name, down)| self.find_link(name, down)).collect::<Built<_>>()?;
        back.reverse();
        let [(first, _), (second, _)] = members;
        if first == second {
            return self.loop_back(from, &there);
        }
        self.add_hop(zone, (first, second), Hop { from, to, links: there })?;
        if symmetrical {
            self.add_hop(zone, (second, first), Hop { from: to, to: from, links: back })?;
        }
        Ok(())
    }

    /// A way from a host to itself: one link.
    fn loop_back(&mut self, point: u32, links: &[u32]) -> Built {
        let host = self.platform.hosts.iter_mut().find(|host| host.point == point);
        match (host, links) {
            (Some(host), [link]) => {
                host.loopback = *link;
                Ok(())
            }
            _ => Err(PlatformError::new(
                "a way leads from something to itself",
                "only hosts have one, of one link: their loopback",
                "remove it, or give it one link",
            )),
        }
    }

    fn add_hop(&mut self, zone: u32, ends: (u32, u32), hop: Hop) -> Built {
        let zone = &mut self.platform.zones[zone as usize];
        let hops = match &mut zone.wires {
            Wires::Table(hops) | Wires::Shortest { hops, .. } => hops,
            Wires::Regular { .. } => {
                return Err(PlatformError::new("a cluster has a route", "its topology says all of them", "remove it"));
            }
        };
        if hops.insert(ends, hop).is_some() {
            let what = format!("zone {} has two ways between the same members", zone.name);
            return Err(PlatformError::new(
                what,
                "a way leads there and back",
                "remove one, or make it symmetrical=\"NO\"",
            ));
        }
        Ok(())
    }

    /// A member of a zone: its rank, and its place unless it is a zone.
    fn end(&self, zone: u32, name: &str) -> Built<(u32, Option<u32>)> {
        let found = match self.names.get(name).copied().ok_or_else(|| unknown("host, router or zone", name))? {
            Named::Host(place) | Named::Router(place) => (self.platform.points[place as usize], Some(place)),
            Named::Zone(inner) => {
                let inner = &self.platform.zones[inner as usize];
                (Point { zone: inner.parent.unwrap_or(u32::MAX), rank: inner.rank }, None)
            }
        };
        if found.0.zone != zone {
            let what = format!("{} is not directly in zone {}", shown(name), self.platform.zones[zone as usize].name);
            return Err(PlatformError::new(
                what,
                "a way is between members of its zone",
                "put the route into that zone",
            ));
        }
        Ok((found.0.rank, found.1))
    }

    fn gateway(&self, zone: u32, rank: u32, name: &str) -> Built<u32> {
        let place = match self.names.get(name) {
            Some(Named::Host(place) | Named::Router(place)) => *place,
            _ => return Err(unknown("gateway", name)),
        };
        if self.platform.inside(place, zone, rank) {
            return Ok(place);
        }
        let what = format!("gateway {} is outside the zone whose gateway it is", shown(name));
        Err(PlatformError::new(what, "a way begins and ends in the zones that it connects", "name one inside"))
    }

    /// Tries all ways.
    pub(super) fn finish(mut self) -> Built<Platform> {
        for zone in &mut self.platform.zones {
            if let Wires::Shortest { hops, before } = &mut zone.wires {
                *before = shortest(zone.members, hops);
            }
        }
        let platform = self.platform;
        if platform.hosts.is_empty() {
            return Err(PlatformError::new("the platform has no hosts", "nothing can run there", "give it one"));
        }
        let slowest = platform.hosts.iter().map(|host| host.flops).fold(f64::INFINITY, f64::min);
        if let Some(fast) = platform.hosts.iter().find(|host| host.flops > slowest * SPEEDS_MAX) {
            let what = format!("host {} is more than {SPEEDS_MAX} times as fast as another", shown(&fast.name));
            return Err(PlatformError::new(what, "that is surely a wrong unit", "check the speeds"));
        }
        let stands = platform.stands(platform.hosts.len());
        if stands.len() as u64 > TRIED_MAX {
            return Err(too_many("clusters, and hosts outside of clusters", TRIED_MAX));
        }
        for a in &stands {
            for b in &stands {
                platform.longest(*a, *b).map_err(|error| PlatformError {
                    what: format!("no way from {} to {}: {}", shown(&a.0.name), shown(&b.0.name), error.what),
                    ..error
                })?;
            }
        }
        Ok(platform)
    }
}

/// A host's way to itself, unless the file has one: the speed of memory.
const LOOPBACK: (f64, f64) = (1e10, 0.0);

fn unknown(kind: &str, name: &str) -> PlatformError {
    let what = format!("there is no {kind} `{}`", shown(name));
    PlatformError::new(what, "names are used after they are given", "check the name, and the order of the file")
}
