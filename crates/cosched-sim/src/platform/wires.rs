//! Zones and the ways through them.

use super::error::too_many;
use super::limits::WAY_MAX;
use super::regular::{Cables, Shape};
use super::{Platform, PlatformError, Point};
use std::collections::{BTreeMap, BinaryHeap, HashMap};

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
    /// Appends the links between two places. Ends, because each part of a way is within a zone further down.
    pub(super) fn join(&self, from: u32, to: u32, way: &mut Vec<u32>) -> Result<(), PlatformError> {
        if from == to {
            return Ok(());
        }
        let (a, b) = (self.points[from as usize], self.points[to as usize]);
        let (zone, first, second) = self.meet(a, b);
        if first == second {
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
                        shape.way(*cables, first, second, way);
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
                self.hop(&mut at, hop, way)?;
            }
            Wires::Shortest { hops, before } => {
                let mut chain = Vec::new();
                let mut last = second;
                while last != first {
                    let previous = *before.get(&(first, last)).ok_or_else(|| self.no_way(zone))?;
                    chain.extend(hops.get(&(previous, last)));
                    last = previous;
                }
                for hop in chain.into_iter().rev() {
                    self.hop(&mut at, hop, way)?;
                }
            }
        }
        self.join(at, to, way)
    }

    fn hop(&self, at: &mut u32, hop: &Hop, way: &mut Vec<u32>) -> Result<(), PlatformError> {
        self.join(*at, hop.from, way)?;
        way.extend(&hop.links);
        if way.len() > WAY_MAX {
            return Err(too_many("links on a way", WAY_MAX as u64));
        }
        *at = hop.to;
        Ok(())
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
        let mut waiting = BinaryHeap::from([std::cmp::Reverse((0, start, start))]);
        while let Some(std::cmp::Reverse((cost, before, member))) = waiting.pop() {
            if std::mem::replace(&mut found[member as usize], true) {
                continue;
            }
            if member != start {
                all.insert((start, member), before);
            }
            for (next, links) in from.get(&member).into_iter().flatten() {
                waiting.push(std::cmp::Reverse((cost + links, member, *next)));
            }
        }
    }
    all
}
