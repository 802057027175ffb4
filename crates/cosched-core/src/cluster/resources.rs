//! Changes of a job's requested resources.
//!
//! Problem: users learn what their programs need while these run ("modify resource requirements": LLNL, "Gang Scheduler
//! Design"), and processes cannot move.
//! Rule. A job that has not started continues to wait at its position in its queue, with its new request. A job that has started
//! keeps its nodes. What it gives back is free at once. What it requests in addition it gets at once, or the change is refused with
//! the lacking resource as the reason: a running job is not stopped because of its request. Memory and disk space for which an earlier
//! job waits are not available to it. For more or fewer CPUs it gets other cells, in its row if that has room.
//! Memory that it was observed to use stays counted, whatever it requests.

use super::admit::key_of;
use super::input::Refusal;
use super::place::Wanted;
use super::planner::Planner;
use super::reserve::Reserved;
use super::state::{JobRecord, Part, Place, Stage, Want};
use crate::id::{JobId, NodeId};
use crate::job::Policy;
use crate::time::Time;
use alloc::vec::Vec;

impl Want {
    /// The memory that a job with this number of CPUs on a node requests there, in bytes.
    pub fn memory_bytes(&self, node: NodeId, cpus: u32) -> u64 {
        match self {
            Want::PerNode(wants) => wants.iter().find(|want| want.node == node).map_or(0, |want| want.memory_bytes),
            Want::Total { memory_per_cpu_bytes, .. } => memory_per_cpu_bytes.saturating_mul(u64::from(cpus)),
        }
    }
}

impl Planner {
    /// Replaces a job's request.
    pub(super) fn change_resources(&mut self, now: Time, id: JobId, mut want: Want) -> Result<(), Refusal> {
        want.sort();
        let job = self.state.jobs.get(&id).ok_or(Refusal::UnknownJob(id))?;
        if matches!(job.stage, Stage::Clearing | Stage::Ending(_)) {
            return Err(Refusal::Stage(id));
        }
        self.check_want(job.spec.queue, &want)?;
        let parts = match &job.place {
            None => None,
            Some(place) => {
                let parts = self.parts_of(id, job, place, &want)?;
                self.check_room(now, id, job, place, &parts)?;
                Some(parts)
            }
        };
        self.refit(id, want, parts);
        Ok(())
    }

    /// The parts of a job that has started, according to its new request.
    fn parts_of(&self, id: JobId, job: &JobRecord, place: &Place, want: &Want) -> Result<Vec<Part>, Refusal> {
        let had = &place.parts;
        let (cpus, disk): (Vec<u32>, Vec<u64>) = match want {
            Want::PerNode(wants) => {
                if !wants.iter().map(|want| want.node).eq(had.iter().map(|part| part.node)) {
                    return Err(Refusal::KeepsNodes(id));
                }
                wants.iter().map(|want| (want.cpus.min(self.cpus_of(want.node)), want.disk_bytes)).unzip()
            }
            Want::Total { cpus, disk_bytes, .. } => {
                self.spread(had, *cpus)?.into_iter().map(|cpus| (cpus, *disk_bytes)).unzip()
            }
        };
        let part = |((old, cpus), disk_bytes): ((&Part, u32), u64)| {
            let declared = job.spec.want.memory_bytes(old.node, old.cpus);
            let seen = if old.memory_bytes > declared { old.memory_bytes } else { 0 };
            let memory_bytes = want.memory_bytes(old.node, cpus).max(seen);
            Part { node: old.node, cpus, memory_bytes, disk_bytes }
        };
        Ok(had.iter().zip(cpus).zip(disk).map(part).collect())
    }

    /// Spreads this number of CPUs over a job's nodes, as evenly as they have room; leaves them as they are if their total is the same.
    fn spread(&self, parts: &[Part], cpus: u32) -> Result<Vec<u32>, Refusal> {
        if parts.iter().map(|part| u64::from(part.cpus)).sum::<u64>() == u64::from(cpus) {
            return Ok(parts.iter().map(|part| part.cpus).collect());
        }
        let has: Vec<u32> = parts.iter().map(|part| self.cpus_of(part.node)).collect();
        let most = has.iter().map(|has| u64::from(*has)).sum::<u64>();
        if (cpus as usize) < parts.len() {
            return Err(Refusal::FewerThanNodes { wanted: cpus, nodes: parts.len() as u32 });
        }
        if u64::from(cpus) > most {
            return Err(Refusal::NeverFits { wanted: cpus, most });
        }
        let up_to = |level: u32| has.iter().map(|has| u64::from(level.min(*has))).sum::<u64>();
        // The highest level to which all nodes can be filled.
        let (mut low, mut high) = (1, cpus);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if up_to(middle) <= u64::from(cpus) { low = middle } else { high = middle - 1 }
        }
        let mut rest = u64::from(cpus) - up_to(low);
        let fill = |has: u32| {
            let more = u32::from(rest > 0 && has > low);
            rest -= u64::from(more);
            low.min(has) + more
        };
        Ok(has.into_iter().map(fill).collect())
    }

    fn cpus_of(&self, node: NodeId) -> u32 {
        self.state.nodes.get(&node).map_or(0, |node| node.capacity.cpus)
    }

    /// Whether there is room now for what a job that has started requests in addition.
    fn check_room(&self, now: Time, id: JobId, job: &JobRecord, place: &Place, parts: &[Part]) -> Result<(), Refusal> {
        let held = matches!(job.stage, Stage::Waiting(_));
        let guest = self.guest(job, now);
        let mut before: Option<Reserved> = None;
        for (old, new) in place.parts.iter().zip(parts) {
            let Some(at) = self.layout.index_of(new.node) else { continue };
            let (node, has, used) = (new.node, self.state.nodes[&new.node].capacity, &self.uses[at]);
            // A held job's memory is not counted; it continues to wait until there is room.
            let more_memory = !held && new.memory_bytes > old.memory_bytes;
            let more_disk = new.disk_bytes > old.disk_bytes;
            if more_memory {
                let left = has.memory_bytes.saturating_sub(used.memory_bytes - old.memory_bytes);
                if new.memory_bytes > left {
                    return Err(Refusal::NoMemoryNow { node, wanted: new.memory_bytes, left });
                }
            }
            if more_disk {
                let left = has.disk_bytes.saturating_sub(used.disk_bytes - old.disk_bytes);
                if new.disk_bytes > left {
                    return Err(Refusal::NoDiskNow { node, wanted: new.disk_bytes, left });
                }
            }
            if more_memory || more_disk {
                let before = before.get_or_insert_with(|| self.reserved_before(now, id));
                let memory = if more_memory { new.memory_bytes - old.memory_bytes } else { 0 };
                let disk = new.disk_bytes.saturating_sub(old.disk_bytes);
                if before.left(at as u32, &guest, memory, disk) != Some((memory, disk)) {
                    return Err(Refusal::OthersWait(node));
                }
            }
        }
        self.check_cells(id, job, parts)
    }

    /// The reservations of the waiting jobs that come before a job.
    fn reserved_before(&self, now: Time, id: JobId) -> Reserved {
        let mut reserved = Reserved::new(now);
        let key = key_of(id, &self.state.jobs[&id]);
        self.waiting.range(..key).for_each(|(.., id)| _ = self.reserve(*id, &mut reserved));
        reserved
    }

    /// Whether a row has room for a gang's cells, with its present cells counted as free.
    fn check_cells(&self, id: JobId, job: &JobRecord, parts: &[Part]) -> Result<(), Refusal> {
        if parts.len() < 2 || self.policy(job) != Policy::Gang || self.may_add_row() {
            return Ok(());
        }
        let own = self.gangs.get(&id);
        let own_of = |row: usize, node: u32| {
            let of = own.filter(|own| own.row as usize == row).map_or(&[][..], |own| &own.cpus);
            of.iter().find(|(at, _)| *at == node).map_or(0, |(_, cpus)| *cpus)
        };
        let wanted: Wanted =
            parts.iter().filter_map(|part| Some((self.layout.index_of(part.node)? as u32, part.cpus))).collect();
        let has_room = |row: usize| {
            wanted.iter().all(|(node, cpus)| self.rows[row].free_of[*node as usize] + own_of(row, *node) >= *cpus)
        };
        if own.is_none() || (0..self.rows.len()).any(has_room) { Ok(()) } else { Err(Refusal::RowsFull) }
    }

    fn refit(&mut self, id: JobId, want: Want, parts: Option<Vec<Part>>) {
        self.count(id, false);
        let Some(job) = self.state.jobs.get_mut(&id) else { return };
        job.spec.want = want;
        let mut other_cells = false;
        if let (Some(place), Some(parts)) = (&mut job.place, parts) {
            let cpus = |parts: &[Part]| parts.iter().map(|part| part.cpus).collect::<Vec<_>>();
            other_cells = cpus(&place.parts) != cpus(&parts);
            self.parts.insert(id, parts.as_slice().into());
            place.parts = parts;
        }
        self.count(id, true);
        // A gang that gets no cells here gets them in `settle`.
        if let Some(row) = self.gangs.get(&id).map(|gang| gang.row as usize).filter(|_| other_cells) {
            self.evict(id);
            let wanted = self.wanted(id);
            if self.rows[row].has_room(&wanted) {
                self.house(id, row, &wanted);
            }
        }
    }
}
