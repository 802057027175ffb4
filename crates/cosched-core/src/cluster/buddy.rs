//! Buddy allocation of nodes: distributed hierarchical control as in SCore.
//!
//! Problem: gangs packed anywhere block each other: their cells overlap a little with many others', and few can run in
//! other rows too. Rule (distributed hierarchical control, Feitelson & Rudolph 1990): the nodes, in their order, are the
//! leaves of a binary tree. A gang belongs to a controller at the lowest level whose block of 2^k nodes is large enough
//! for it; of the blocks there it gets the least loaded one, and in that block the first CPUs in order, so that
//! neighbouring processes share a node (Strazdins & Uhlmann 2004, figure 1). What the gang leaves of its block is for
//! smaller gangs, and alternate scheduling lets it run whenever its own cells are free; for that reason Feitelson (1996) found
//! buddies to be among the best packings.
//!
//! SCore has the buddies without the distributed controllers (Strazdins & Uhlmann 2004, section 3: "a buddy-based gang
//! scheduler with centralised control"), and places a job elsewhere when no block is available; so does this planner
//! when the maximum number of rows is reached.

use super::place::{Offer, Wanted, load, take};
use super::planner::Planner;
use alloc::vec;
use alloc::vec::Vec;

impl Planner {
    /// Nodes for this number of CPUs, more than any node has; `offers` is ascending by node. `None` when no block is available.
    pub(super) fn buddy(&self, offers: &[Offer], cpus: u32) -> Option<Wanted> {
        let sums = sums(offers, self.layout.nodes().len());
        for (first, end) in self.blocks(&sums, cpus)? {
            let first = offers.partition_point(|offer| (offer.node as usize) < first);
            let end = offers.partition_point(|offer| (offer.node as usize) < end);
            let wanted = take(&offers[first..end], cpus, |offer| offer.cpus);
            let room = |wanted: &Wanted| self.may_add_row() || self.row_for(wanted).is_some();
            if wanted.as_ref().is_some_and(room) {
                return wanted;
            }
        }
        None
    }

    /// The blocks of the lowest level with a block of enough CPUs, the least loaded first, as (first node, end).
    fn blocks(&self, sums: &[Sum], cpus: u32) -> Option<Vec<(usize, usize)>> {
        let nodes = self.layout.nodes().len();
        let mut size = 1;
        loop {
            let of_level = (0..nodes.div_ceil(size)).map(|block| (block * size, ((block + 1) * size).min(nodes)));
            let between = |(first, end): &(usize, usize)| sums[*end].minus(&sums[*first]);
            let mut fit: Vec<(usize, usize)> =
                of_level.filter(|block| between(block).offered >= u64::from(cpus)).collect();
            if !fit.is_empty() {
                fit.sort_by_cached_key(|block| (load(between(block).threads, between(block).cpus), block.0));
                return Some(fit);
            }
            if size >= nodes {
                return None;
            }
            size *= 2;
        }
    }
}

/// Sums over the first nodes in order.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    offered: u64,
    threads: u64,
    cpus: u64,
}

impl Sum {
    fn minus(&self, other: &Sum) -> Sum {
        Sum {
            offered: self.offered - other.offered,
            threads: self.threads - other.threads,
            cpus: self.cpus - other.cpus,
        }
    }
}

/// For each n from 0 to `nodes`, the sums over the first n nodes. Nodes without an offer count as 0.
fn sums(offers: &[Offer], nodes: usize) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); nodes + 1];
    for offer in offers {
        let of = &mut sums[offer.node as usize + 1];
        *of = Sum { offered: offer.cpus.into(), threads: offer.threads, cpus: offer.of_cpus.into() };
    }
    for at in 1..sums.len() {
        let Sum { offered, threads, cpus } = sums[at - 1];
        let of = &mut sums[at];
        *of = Sum { offered: of.offered + offered, threads: of.threads + threads, cpus: of.cpus + cpus };
    }
    sums
}
