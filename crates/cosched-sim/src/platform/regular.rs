//! The wires of regular clusters: stars, fat trees, tori and dragonflies. Which links a way takes is arithmetic.

use super::PlatformError;
use super::limits::{HOSTS_MAX, LINKS_MAX, WAY_MAX};

const SIZE_MAX: u32 = 60_000;
const SIZES_MAX: usize = 48;

/// Cables: a link each, or one for each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cables {
    /// The first link.
    pub(super) first: u32,
    /// Two links, up and down.
    pub(super) split: bool,
}

impl Cables {
    /// The link of a cable away from what has it: a leaf, a lower level, a lower number.
    pub(super) fn up(self, cable: u32) -> u32 {
        self.first + if self.split { 2 * cable } else { cable }
    }

    pub(super) fn down(self, cable: u32) -> u32 {
        self.up(cable) + u32::from(self.split)
    }

    fn of(self, cable: u32, up: bool) -> u32 {
        if up { self.up(cable) } else { self.down(cable) }
    }
}

/// A cluster's shape. Sizes are checked, so that products fit 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A cable each to one switch.
    Star,
    /// From the leaves up: children of a switch, parents of a node, cables between the two.
    FatTree(Vec<[u32; 3]>),
    /// The sizes of the dimensions; the first varies fastest.
    Torus(Vec<u32>),
    /// Groups and cables between two; chassis of a group and cables; routers of a chassis and cables; nodes of a router.
    Dragonfly { groups: [u32; 2], chassis: [u32; 2], routers: [u32; 2], nodes: u32 },
}

/// The cable between two of `count`, all being connected; whether it is used upwards.
fn pair(from: u32, to: u32, count: u32) -> (u32, bool) {
    let (low, high) = (from.min(to), from.max(to));
    (low * (2 * count - low - 1) / 2 + high - low - 1, from < to)
}

fn pairs(count: u32) -> u64 {
    u64::from(count) * u64::from(count.saturating_sub(1)) / 2
}

fn product(sizes: impl Iterator<Item = u32>) -> u64 {
    sizes.fold(1, |all, size| all.saturating_mul(size.into()))
}

impl Shape {
    /// The number of nodes it has; `None`: any.
    pub(super) fn nodes(&self) -> Option<u64> {
        match self {
            Shape::Star => None,
            Shape::FatTree(levels) => Some(product(levels.iter().map(|[children, ..]| *children))),
            Shape::Torus(sizes) => Some(product(sizes.iter().copied())),
            Shape::Dragonfly { groups, chassis, routers, nodes } => {
                Some(product([groups[0], chassis[0], routers[0], *nodes].into_iter()))
            }
        }
    }

    /// The most links between two nodes.
    pub(super) fn longest(&self) -> usize {
        match self {
            Shape::Star => 2,
            Shape::FatTree(levels) => 2 * levels.len(),
            Shape::Torus(sizes) => sizes.iter().map(|size| *size as usize / 2).sum(),
            // Up; across and along a group, to another group, across and along that one; down.
            Shape::Dragonfly { .. } => 7,
        }
    }

    /// Whether all its sizes are possible, so that products of them fit 32 bits, and none of its ways is too long.
    pub(super) fn check(&self) -> Result<(), PlatformError> {
        let sizes: Vec<u32> = match self {
            Shape::Star => vec![],
            Shape::FatTree(levels) => levels.iter().flatten().copied().collect(),
            Shape::Torus(sizes) => sizes.clone(),
            Shape::Dragonfly { groups, chassis, routers, nodes } => {
                [groups, chassis, routers].into_iter().flatten().copied().chain([*nodes]).collect()
            }
        };
        let possible = sizes.iter().all(|size| (1..=SIZE_MAX).contains(size)) && sizes.len() <= SIZES_MAX;
        let some = *self == Shape::Star || !sizes.is_empty();
        let nodes = self.nodes().unwrap_or(0);
        if possible && some && nodes <= HOSTS_MAX && self.cables(nodes as u32).iter().all(|of| of.0 <= LINKS_MAX) {
            let longest = self.longest();
            return if longest <= WAY_MAX { Ok(()) } else { Err(too_long(longest)) };
        }
        Err(PlatformError::new(
            "a topology has a size that cannot be",
            format!("each is 1 to {SIZE_MAX}, all hosts at most {HOSTS_MAX}, cables at most {LINKS_MAX}"),
            "make it smaller",
        ))
    }

    /// The cables in the order of their numbers: how many, and how many times the bandwidth each has.
    pub(super) fn cables(&self, nodes: u32) -> Vec<(u64, u32)> {
        match self {
            Shape::Star => vec![(nodes.into(), 1)],
            Shape::FatTree(levels) => {
                let on = |level: usize| {
                    let [_, parents, parallel] = levels[level];
                    (tree_nodes(levels, level).saturating_mul(u64::from(parents) * u64::from(parallel)), 1)
                };
                (0..levels.len()).map(on).collect()
            }
            Shape::Torus(sizes) => vec![(u64::from(nodes) * sizes.len() as u64, 1)],
            Shape::Dragonfly { groups, chassis, routers, .. } => {
                let of_groups = u64::from(groups[0]);
                vec![
                    (nodes.into(), 1),
                    ((of_groups * u64::from(chassis[0])).saturating_mul(pairs(routers[0])), routers[1]),
                    ((of_groups * u64::from(routers[0])).saturating_mul(pairs(chassis[0])), chassis[1]),
                    (pairs(groups[0]), groups[1]),
                ]
            }
        }
    }

    /// Appends the links from one node to another.
    pub(super) fn way(&self, cables: Cables, from: u32, to: u32, way: &mut Vec<u32>) {
        match self {
            Shape::Star => way.extend([cables.up(from), cables.down(to)]),
            Shape::FatTree(levels) => tree_way(levels, cables, from, to, way),
            Shape::Torus(sizes) => torus_way(sizes, cables, from, to, way),
            Shape::Dragonfly { groups, chassis, routers, nodes } => {
                let sizes = [groups[0], chassis[0], routers[0], *nodes];
                dragonfly_way(sizes, cables, from, to, way);
            }
        }
    }
}

fn too_long(longest: usize) -> PlatformError {
    let what = format!("a torus has ways of {longest} links");
    PlatformError::new(what, format!("at most {WAY_MAX} on a way are simulated"), "give it more dimensions")
}

/// The nodes of a tree's level; 0 are the leaves.
fn tree_nodes(levels: &[[u32; 3]], level: usize) -> u64 {
    let size =
        |(at, [children, parents, _]): (usize, &[u32; 3])| u64::from(if at < level { *parents } else { *children });
    levels.iter().enumerate().map(size).fold(1, u64::saturating_mul)
}

/// Up to the lowest common switch, then down. A node of level l is known by its digits: those below l say which of the parents was
/// taken, the others to which part of the tree it belongs. The parent is chosen by the destination (D-mod-k, Zahavi 2010), the cable down
/// among parallel ones by the source.
fn tree_way(levels: &[[u32; 3]], cables: Cables, from: u32, to: u32, way: &mut Vec<u32>) {
    // What a digit counts for in the number of a node, by its level.
    let place = |level: usize, digit: usize| tree_part(levels, level, digit);
    let mut first = 0;
    let mut firsts = Vec::with_capacity(levels.len());
    for (level, [_, parents, parallel]) in levels.iter().enumerate() {
        firsts.push(first);
        first += tree_nodes(levels, level) as u32 * parents * parallel;
    }
    let digit_of = |node: u32, level: usize, digit: usize| node / place(level, digit) % size(levels, level, digit);
    let (mut level, mut at) = (0, from);
    while (level..levels.len()).any(|digit| digit_of(at, level, digit) != digit_of(to, 0, digit)) {
        let [_, parents, parallel] = levels[level];
        let chosen = to / place(level + 1, level) % (parents * parallel);
        way.push(cables.up(firsts[level] + at * parents * parallel + chosen));
        at = renumbered(levels, at, level, level + 1, chosen % parents);
        level += 1;
    }
    while level > 0 {
        let [_, parents, parallel] = levels[level - 1];
        let parent = digit_of(at, level, level - 1);
        at = renumbered(levels, at, level, level - 1, digit_of(to, 0, level - 1));
        level -= 1;
        way.push(cables.down(firsts[level] + at * parents * parallel + parent + from % parallel * parents));
    }
}

/// The number of values of a digit of the nodes of a level.
fn size(levels: &[[u32; 3]], level: usize, digit: usize) -> u32 {
    levels[digit][usize::from(digit < level)]
}

fn tree_part(levels: &[[u32; 3]], level: usize, digit: usize) -> u32 {
    (0..digit).map(|lower| size(levels, level, lower)).product()
}

/// The neighbour of a node on another level, which has `value` in the digit between them.
fn renumbered(levels: &[[u32; 3]], node: u32, level: usize, other: usize, value: u32) -> u32 {
    let changed = level.min(other);
    let digit = |digit: usize| match digit == changed {
        true => value,
        false => node / tree_part(levels, level, digit) % size(levels, level, digit),
    };
    (0..levels.len()).map(|at| digit(at) * tree_part(levels, other, at)).sum()
}

/// One dimension after the other, the shorter way round.
fn torus_way(sizes: &[u32], cables: Cables, from: u32, to: u32, way: &mut Vec<u32>) {
    let (mut at, mut step) = (from, 1);
    for (dimension, size) in sizes.iter().enumerate() {
        let (mine, target) = (at / step % size, to / step % size);
        let up = (target + size - mine) % size;
        // Ties go up, but for the middle: so a dimension of 2 has one cable.
        let is_up = up < size - up || (up == size - up && mine != size / 2);
        for _ in 0..up.min(size - up) {
            let here = at / step % size;
            let next = if is_up { (here + 1) % size } else { (here + size - 1) % size };
            let other = at - here * step + next * step;
            let owner = if is_up { at } else { other };
            way.push(cables.of(owner * sizes.len() as u32 + dimension as u32, is_up));
            at = other;
        }
        step *= size;
    }
}

/// Minimal: to the router of the own group that has the cable to the other group, there to the right column, then to the right chassis.
fn dragonfly_way([groups, chassis, routers, nodes]: [u32; 4], cables: Cables, from: u32, to: u32, way: &mut Vec<u32>) {
    let all = groups * chassis * routers * nodes;
    let black = all + groups * chassis * pairs(routers) as u32;
    let blue = black + groups * routers * pairs(chassis) as u32;
    let place = |node: u32| {
        let router = node / nodes;
        (router / (chassis * routers), router / routers % chassis, router % routers)
    };
    let ((mut group, mut row, mut column), target) = (place(from), place(to));
    way.push(cables.up(from));
    let across = |way: &mut Vec<u32>, group: u32, row: u32, column: &mut u32, other: u32| {
        if *column != other {
            let (cable, up) = pair(*column, other, routers);
            way.push(cables.of(all + (group * chassis + row) * pairs(routers) as u32 + cable, up));
            *column = other;
        }
    };
    let along = |way: &mut Vec<u32>, group: u32, row: &mut u32, column: u32, other: u32| {
        if *row != other {
            let (cable, up) = pair(*row, other, chassis);
            way.push(cables.of(black + (group * routers + column) * pairs(chassis) as u32 + cable, up));
            *row = other;
        }
    };
    if group != target.0 {
        across(way, group, row, &mut column, target.0);
        along(way, group, &mut row, column, 0);
        let (cable, up) = pair(group, target.0, groups);
        way.push(cables.of(blue + cable, up));
        (group, column) = (target.0, group);
    }
    across(way, group, row, &mut column, target.2);
    along(way, group, &mut row, column, target.1);
    way.push(cables.down(to));
}
