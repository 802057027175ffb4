//! The best set of nodes for a job, and the row for a gang.
//!
//! Rule. A job that lists its nodes gets those or none. A job that requests a number of CPUs gets one node if one has enough;
//! otherwise several, all or nothing. Of the nodes that have memory and disk space for it, the least loaded ones come first
//! (threads per CPU, registered or not), then those with the most memory left ("selected the best set of nodes for a
//! new job, based on load and memory considerations": Strazdins & Uhlmann 2004, section 6), then those of lower ids.
//! A gang that spans nodes goes into the first row with room (first fit) or the fullest one (best fit); for buddies see
//! `buddy.rs`. If no row has room, a new one is made, up to the maximum number of rows.

use super::planner::Planner;
use super::reserve::Reserved;
use super::row::Row;
use super::state::{JobRecord, NodeWant, Packing, Part, Want};
use crate::id::JobId;
use crate::job::Policy;
use crate::reason::Reason;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// What a node can offer to a new job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Its index in the layout.
    pub(super) node: u32,
    /// The number of CPUs for which it has memory and disk space.
    pub(super) cpus: u32,
    /// Threads and CPUs of the node; their quotient is its load.
    pub(super) threads: u64,
    pub(super) of_cpus: u32,
    memory_left: u64,
}

impl Offer {
    /// The sort key: lower is better.
    fn rank(&self) -> (u64, Reverse<u64>, u32) {
        (load(self.threads, u64::from(self.of_cpus)), Reverse(self.memory_left), self.node)
    }
}

/// Threads per CPU, in 1/65536.
pub(super) fn load(threads: u64, cpus: u64) -> u64 {
    threads * 65_536 / cpus.max(1)
}

/// (Node's index in the layout, CPUs there), ascending.
pub(super) type Wanted = Vec<(u32, u32)>;

impl Planner {
    /// The CPUs of a job's parts.
    pub(super) fn wanted(&self, id: JobId) -> Wanted {
        let place = self.state.jobs.get(&id).and_then(|job| job.place.as_ref());
        let parts = place.map_or(&[][..], |place| &place.parts);
        parts.iter().filter_map(|part| Some((self.layout.index_of(part.node)? as u32, part.cpus))).collect()
    }

    /// The row that the packing chooses among those with room.
    pub(super) fn row_for(&self, wanted: &[(u32, u32)]) -> Option<usize> {
        let mut fit = (0..self.rows.len()).filter(|row| self.rows[*row].has_room(wanted));
        match self.state.config.packing {
            Packing::FirstFit | Packing::Buddy => fit.next(),
            Packing::BestFit => fit.min_by_key(|row| (self.rows[*row].free_total, *row)),
        }
    }

    /// Whether one more row may be made.
    pub(super) fn may_add_row(&self) -> bool {
        self.rows_left() > 0
    }

    /// The number of rows that may still be made.
    fn rows_left(&self) -> u32 {
        self.state.config.rows_max.max(1).saturating_sub(self.rows.len() as u32)
    }

    /// The CPUs that a job would get on a node that it lists.
    pub(super) fn cpus_wanted(&self, job: &JobRecord, at: u32) -> u32 {
        let node = self.layout.nodes()[at as usize].id;
        let Want::PerNode(wants) = &job.spec.want else { return 0 };
        let want = wants.iter().find(|want| want.node == node);
        want.map_or(0, |want| want.cpus.min(self.state.nodes[&node].capacity.cpus))
    }

    /// The parts of a job that is to start, or why it cannot.
    pub(super) fn find(&self, job: &JobRecord, reserved: &Reserved) -> Result<Vec<Part>, Reason> {
        match &job.spec.want {
            Want::PerNode(wants) => self.named_nodes(job, wants, reserved),
            Want::Total { cpus, memory_per_cpu_bytes, disk_bytes } => {
                let wanted = self.best_nodes(job, *cpus, *memory_per_cpu_bytes, *disk_bytes, reserved)?;
                let part = |(node, cpus): (u32, u32)| Part {
                    node: self.layout.nodes()[node as usize].id,
                    cpus,
                    memory_bytes: memory_per_cpu_bytes * u64::from(cpus),
                    disk_bytes: *disk_bytes,
                };
                Ok(wanted.into_iter().map(part).collect())
            }
        }
    }

    fn named_nodes(&self, job: &JobRecord, wants: &[NodeWant], reserved: &Reserved) -> Result<Vec<Part>, Reason> {
        let guest = self.guest(job, reserved.now);
        let mut parts = Vec::with_capacity(wants.len());
        let mut wanted = Wanted::new();
        for want in wants {
            let at = self.layout.index_of(want.node).ok_or(Reason::WaitsForNode)?;
            let (node, used) = (&self.state.nodes[&want.node], &self.uses[at]);
            if !self.takes_new(want.node) || node.capacity.cpus < want.cpus_min {
                return Err(Reason::WaitsForNode);
            }
            if self.is_taken(job, at) {
                return Err(Reason::WaitsForExclusive);
            }
            if used.memory_bytes.saturating_add(want.memory_bytes) > node.capacity.memory_bytes {
                return Err(Reason::WaitsForMemory);
            }
            if used.disk_bytes.saturating_add(want.disk_bytes) > node.capacity.disk_bytes {
                return Err(Reason::WaitsForDisk);
            }
            let left = reserved.left(at as u32, &guest, want.memory_bytes, want.disk_bytes);
            if left != Some((want.memory_bytes, want.disk_bytes)) {
                return Err(Reason::BehindOthers);
            }
            let NodeWant { node: id, memory_bytes, disk_bytes, .. } = *want;
            let cpus = want.cpus.min(node.capacity.cpus);
            parts.push(Part { node: id, cpus, memory_bytes, disk_bytes });
            wanted.push((at as u32, cpus));
        }
        let gang = wants.len() > 1 && self.policy(job) == Policy::Gang;
        if gang && self.row_for(&wanted).is_none() && !self.may_add_row() {
            return Err(Reason::RowsFull);
        }
        if gang && wanted.iter().any(|(at, _)| !reserved.leaves_row(*at, &guest, self.rows_left())) {
            return Err(Reason::BehindOthers);
        }
        Ok(parts)
    }

    /// Whether the node belongs to another job alone, or this job needs it alone and it is not empty.
    fn is_taken(&self, job: &JobRecord, at: usize) -> bool {
        let alone = self.state.config.queues[job.spec.queue as usize].exclusive;
        self.uses[at].exclusive > 0 || alone && self.uses[at].jobs > 0
    }

    fn best_nodes(
        &self,
        job: &JobRecord,
        cpus: u32,
        memory: u64,
        disk: u64,
        reserved: &Reserved,
    ) -> Result<Wanted, Reason> {
        let mut offers = self.offers(job, memory, disk, reserved);
        if let Some(one) = offers.iter().filter(|offer| offer.cpus >= cpus).min_by_key(|offer| offer.rank()) {
            return Ok(alloc::vec![(one.node, cpus)]);
        }
        if offers.iter().map(|offer| u64::from(offer.cpus)).sum::<u64>() < u64::from(cpus) {
            return Err(self.why_not(job, (cpus, memory, disk), reserved));
        }
        if self.policy(job) == Policy::Gang {
            let guest = self.guest(job, reserved.now);
            offers.retain(|offer| reserved.leaves_row(offer.node, &guest, self.rows_left()));
            if offers.iter().map(|offer| u64::from(offer.cpus)).sum::<u64>() < u64::from(cpus) {
                return Err(Reason::BehindOthers);
            }
            let found = match self.state.config.packing {
                Packing::Buddy => self.buddy(&offers, cpus).or_else(|| self.in_some_row(offers, cpus)),
                Packing::FirstFit | Packing::BestFit => self.in_some_row(offers, cpus),
            };
            return found.ok_or(Reason::RowsFull);
        }
        Ok(take(&ranked(offers), cpus, |offer| offer.cpus).unwrap_or_default())
    }

    /// The offers of those nodes that may take the job, in the nodes' order.
    fn offers(&self, job: &JobRecord, memory: u64, disk: u64, reserved: &Reserved) -> Vec<Offer> {
        let guest = self.guest(job, reserved.now);
        let offer = |(at, (node, used)): (usize, (&super::state::NodeRecord, &super::nodes::Use))| {
            let memory_left = node.capacity.memory_bytes.saturating_sub(used.memory_bytes);
            let disk_left = node.capacity.disk_bytes.saturating_sub(used.disk_bytes);
            let (memory_left, disk_left) = reserved.left(at as u32, &guest, memory_left, disk_left)?;
            let fit = memory_left.checked_div(memory).unwrap_or(u64::MAX);
            let cpus = u64::from(node.capacity.cpus).min(fit) as u32;
            let no =
                !self.takes_new(self.layout.nodes()[at].id) || cpus == 0 || disk_left < disk || self.is_taken(job, at);
            let threads = used.threads + u64::from(node.other_threads);
            (!no).then_some(Offer { node: at as u32, cpus, threads, of_cpus: node.capacity.cpus, memory_left })
        };
        self.state.nodes.values().zip(&self.uses).enumerate().filter_map(offer).collect()
    }

    /// The first resource that is lacking for a job that requests a number of CPUs.
    fn why_not(&self, job: &JobRecord, (cpus, memory, disk): (u32, u64, u64), reserved: &Reserved) -> Reason {
        let unreserved = Reserved::new(reserved.now);
        let has = |memory, disk| {
            let offers = self.offers(job, memory, disk, &unreserved);
            offers.iter().map(|offer| u64::from(offer.cpus)).sum::<u64>() >= u64::from(cpus)
        };
        if has(memory, disk) {
            return Reason::BehindOthers;
        }
        if has(0, disk) {
            return Reason::WaitsForMemory;
        }
        if has(0, 0) {
            return Reason::WaitsForDisk;
        }
        let taken = (0..self.uses.len()).any(|at| self.is_taken(job, at));
        if taken { Reason::WaitsForExclusive } else { Reason::WaitsForNode }
    }

    /// The best nodes in the row that the packing chooses, or in a new one.
    fn in_some_row(&self, offers: Vec<Offer>, cpus: u32) -> Option<Wanted> {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.free_total >= cpus).collect();
        if self.state.config.packing == Packing::BestFit {
            rows.sort_by_key(|row| row.free_total);
        }
        let offers = ranked(offers);
        let within = |row: &&Row| take(&offers, cpus, |offer| offer.cpus.min(row.free_of[offer.node as usize]));
        let found = rows.iter().find_map(within);
        found.or_else(|| self.may_add_row().then(|| take(&offers, cpus, |offer| offer.cpus)).flatten())
    }
}

fn ranked(mut offers: Vec<Offer>) -> Vec<Offer> {
    offers.sort_by_cached_key(Offer::rank);
    offers
}

/// Takes `cpus` CPUs from the first offers, up to `of(offer)` of each; `None` if these are not enough.
pub(super) fn take(offers: &[Offer], cpus: u32, of: impl Fn(&Offer) -> u32) -> Option<Wanted> {
    let mut left = cpus;
    let mut wanted = Wanted::new();
    for offer in offers {
        let some = of(offer).min(left);
        if some > 0 {
            wanted.push((offer.node, some));
            left -= some;
        }
        if left == 0 {
            wanted.sort_unstable();
            return Some(wanted);
        }
    }
    None
}
