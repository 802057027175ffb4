//! Zones and the ways through them.

use super::limits::WAY_MAX;
use super::regular::{Cables, Shape};
use super::{Host, Platform, PlatformError, Point};
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

/// A zone: a part of the platform with wires of one kind.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) name: String,
    /// The zone around it.
    pub(super) parent: Option<u32>,
    pub(super) rank: u32,
    pub(super) depth: u32,
    /// Hosts, routers and zones directly in it.
    pub(super) members: u32,
    pub(super) wires: Wires,
}

#[derive(Clone, Debug)]
pub(super) enum Wires {
    /// What the file says: between each two members a way of their own.
    Table(HashMap<(u32, u32), Hop>),
    /// The same, of which ways are composed: the fewest links. For each pair the member before the last.
    Shortest { hops: HashMap<(u32, u32), Hop>, before: HashMap<(u32, u32), u32> },
    /// A cluster, and the link between all cables of a star.
    Regular { shape: Shape, cables: Cables, backbone: Option<u32>, nodes: u32 },
}

/// A way between two members of a zone: from which place in the first to which in the second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) links: Vec<u32>,
}

impl Platform {
    /// Appends the links between two places. Ends, because each part of a way is within a zone further down. `any`: the first, the last
    /// place stands for all hosts of its cluster, and the way is as long as the longest of theirs.
    pub(super) fn join(&self, from: u32, to: u32, any: [bool; 2], way: &mut Vec<u32>) -> Result<(), PlatformError> {
        if from == to && any == [false; 2] {
            return Ok(());
        }
        let (a, b) = (self.points[from as usize], self.points[to as usize]);
        let (zone, first, second) = self.meet(a, b);
        if first == second && from != to {
            // Gateways of one member: can only be the same place.
            return Err(PlatformError::new(
                "two places meet nowhere",
                "a gateway is outside its zone",
                "name one inside",
            ));
        }
        let mut at = from;
        match &self.zones[zone as usize].wires {
            Wires::Regular { shape, cables, backbone, nodes } => {
                // The last member is the router: in a star behind the backbone, elsewhere beside all nodes.
                let star = *shape == Shape::Star;
                match (first < *nodes, second < *nodes) {
                    (true, true) => {
                        let begin = way.len();
                        match any {
                            [false, false] => shape.way(*cables, first, second, way),
                            _ => way.extend(std::iter::repeat_n(cables.up(0), shape.longest())),
                        }
                        if let Some(backbone) = backbone {
                            way.insert(begin + 1, *backbone);
                        }
                    }
                    (true, false) if star => way.extend([cables.up(first)].into_iter().chain(*backbone)),
                    (false, true) if star => way.extend(backbone.iter().copied().chain([cables.down(second)])),
                    _ => {}
                }
                return Ok(());
            }
            Wires::Table(hops) => {
                let hop = hops.get(&(first, second)).ok_or_else(|| self.no_way(zone))?;
                self.hop(&mut at, hop, any[0], way)?;
            }
            Wires::Shortest { hops, before } => {
                let mut chain = Vec::new();
                let mut last = second;
                while last != first {
                    let previous = *before.get(&(first, last)).ok_or_else(|| self.no_way(zone))?;
                    chain.extend(hops.get(&(previous, last)));
                    last = previous;
                }
                let mut any_first = any[0];
                for hop in chain.into_iter().rev() {
                    self.hop(&mut at, hop, std::mem::take(&mut any_first), way)?;
                }
            }
        }
        self.join(at, to, [false, any[1]], way)?;
        too_long(way)
    }

    fn hop(&self, at: &mut u32, hop: &Hop, any: bool, way: &mut Vec<u32>) -> Result<(), PlatformError> {
        self.join(*at, hop.from, [any, false], way)?;
        way.extend(&hop.links);
        *at = hop.to;
        too_long(way)
    }

    /// Hosts that stand for the first `count`: those outside of clusters, and the first of each cluster for all of it (true).
    pub(super) fn stands(&self, count: usize) -> Vec<(&Host, bool)> {
        let mut seen = HashSet::new();
        let mut stands = Vec::new();
        for host in self.hosts.iter().take(count) {
            let zone = self.points[host.point as usize].zone;
            let regular = matches!(self.zones[zone as usize].wires, Wires::Regular { .. });
            if !regular || seen.insert(zone) {
                stands.push((host, regular));
            }
        }
        stands
    }

    /// The longest way between hosts for which these two stand.
    pub(super) fn longest(&self, from: (&Host, bool), to: (&Host, bool)) -> Result<Vec<u32>, PlatformError> {
        let mut way = Vec::new();
        self.join(from.0.point, to.0.point, [from.1, to.1], &mut way)?;
        Ok(way)
    }

    fn no_way(&self, zone: u32) -> PlatformError {
        let what = format!("zone {} has no way between two of its members", self.zones[zone as usize].name);
        PlatformError::new(what, "all hosts can send messages to each other", "add a route between them")
    }

    /// The lowest zone that has both places, and its members in which they are.
    fn meet(&self, mut a: Point, mut b: Point) -> (u32, u32, u32) {
        let up = |point: &mut Point| {
            let zone = &self.zones[point.zone as usize];
            *point = Point { zone: zone.parent.unwrap_or(0), rank: zone.rank };
        };
        while a.zone != b.zone {
            let (depth_a, depth_b) = (self.zones[a.zone as usize].depth, self.zones[b.zone as usize].depth);
            if depth_a >= depth_b {
                up(&mut a);
            }
            if depth_b >= depth_a {
                up(&mut b);
            }
        }
        (a.zone, a.rank, b.rank)
    }

    /// Whether a place is in this member of this zone.
    pub(super) fn inside(&self, place: u32, zone: u32, rank: u32) -> bool {
        let mut point = self.points[place as usize];
        loop {
            if (point.zone, point.rank) == (zone, rank) {
                return true;
            }
            let outer = &self.zones[point.zone as usize];
            let Some(parent) = outer.parent else { return false };
            point = Point { zone: parent, rank: outer.rank };
        }
    }
}

/// Refuses ways beyond the bound: their number of links is multiplied by zones within zones.
fn too_long(way: &[u32]) -> Result<(), PlatformError> {
    if way.len() <= WAY_MAX {
        return Ok(());
    }
    let what = format!("between some of the hosts there or in their clusters it has more than {WAY_MAX} links");
    let hint = "give a torus more dimensions, or name gateways that are nearer";
    Err(PlatformError::new(what, "messages on longer ways are not simulated", hint))
}

/// For each pair of members the one before the last on the way with the fewest links; among equals the lowest number.
pub(super) fn shortest(members: u32, hops: &HashMap<(u32, u32), Hop>) -> HashMap<(u32, u32), u32> {
    let mut from: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for ((first, second), hop) in hops {
        from.entry(*first).or_default().push((*second, hop.links.len() as u64));
    }
    from.values_mut().for_each(|to| to.sort_unstable());
    let mut all = HashMap::new();
    for start in 0..members {
        let mut found = vec![false; members as usize];
        // The links of the best way so far, and its member before the last.
        let mut best = vec![(u64::MAX, u32::MAX); members as usize];
        let mut waiting = BinaryHeap::from([std::cmp::Reverse((0, start, start))]);
        while let Some(std::cmp::Reverse((cost, before, member))) = waiting.pop() {
            if std::mem::replace(&mut found[member as usize], true) {
                continue;
            }
            if member != start {
                all.insert((start, member), before);
            }
            for (next, links) in from.get(&member).into_iter().flatten() {
                let way = (cost + links, member);
                if !found[*next as usize] && way < best[*next as usize] {
                    best[*next as usize] = way;
                    waiting.push(std::cmp::Reverse((way.0, way.1, *next)));
                }
            }
        }
    }
    all
}
