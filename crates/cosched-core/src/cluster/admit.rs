//! Admission: queues in their order, and never more memory than there is.
//!
//! Problem: when the jobs that take turns on a node together need more memory than it has, they page each other out at
//! every switch, and none makes progress (Strazdins & Uhlmann 2004, sections 4.2 and 6; Batat & Feitelson 2000).
//! Rule. A job becomes ready when every one of its nodes has its memory and disk space beside all ready jobs there;
//! otherwise it waits. More urgent queues come first, and in a queue earlier jobs, or the order is by fair share (`fair.rs`). A job
//! beyond its user's limit in a queue waits for the user's own jobs. A later job may start before one that waits, as far as
//! the reservation of the latter permits (`reserve.rs`), so that a large job is neither overtaken for ever nor blocks all others.
//! When jobs turn out to use more than they requested, the last ones on that node are held until the others leave room; a
//! held job keeps its place and its disk space, and does not run.

use super::input::{Action, Refusal};
use super::planner::Planner;
use super::reserve::Reserved;
use super::state::{JobRecord, JobSpec, Part, Place, Stage};
use crate::id::{JobId, NodeId};
use crate::reason::Reason;
use crate::time::Time;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The number and memory of started jobs, by (queue, user).
type Started = BTreeMap<(u32, u32), (u32, u64)>;

/// The order in which jobs are served: queue, order, id.
pub(super) type Key = (u32, u64, JobId);

pub(super) fn key_of(id: JobId, job: &JobRecord) -> Key {
    (job.spec.queue, job.order, id)
}

impl Planner {
    /// Starts all waiting jobs that can start.
    pub(super) fn admit(&mut self, now: Time) {
        let mut reserved = Reserved::new(now);
        let waiting = self.in_order(now);
        let mut started = if waiting.is_empty() { Started::new() } else { self.started() };
        for id in waiting {
            if let Some(reason) = self.not_yet(id, now) {
                self.wait(id, reason);
                continue;
            }
            let job = &self.state.jobs[&id];
            let more = job.spec.want.memory_in_all();
            let of_user = started.entry((job.spec.queue, job.spec.owner)).or_default();
            let rights = &self.state.config.queues[job.spec.queue as usize].rights;
            if job.place.is_none() && !rights.leave_room(*of_user, more) {
                // It waits for its owner's own jobs, and blocks no other job.
                self.wait(id, Reason::UserLimit);
                continue;
            }
            let (held, guest) = (job.place.is_some(), self.guest(job, now));
            let found = if held { self.room_for_held(id) } else { self.find(job, &reserved).map(Some) };
            match found {
                Ok(parts) => {
                    self.start(now, id, parts);
                    let place = self.state.jobs[&id].place.as_ref();
                    let at = |part: &Part| {
                        Some((self.layout.index_of(part.node)? as u32, part.memory_bytes, part.disk_bytes))
                    };
                    let parts: Vec<_> = place.iter().flat_map(|place| &place.parts).filter_map(at).collect();
                    reserved.start(&guest, &parts);
                    if !held {
                        *of_user = (of_user.0 + 1, of_user.1.saturating_add(more));
                    }
                }
                Err(reason) => {
                    let never = !held && self.is_too_large(&job.spec);
                    self.wait(id, if never { Reason::TooLarge } else { reason });
                    self.reserve(id, &mut reserved);
                }
            }
        }
    }

    /// The started jobs of each user, in queues that limit them.
    fn started(&self) -> Started {
        let mut started = Started::new();
        let queues = &self.state.config.queues;
        for job in self.state.jobs.values() {
            let rights = &queues[job.spec.queue as usize].rights;
            let limited = rights.jobs_max.is_some() || rights.memory_bytes_max.is_some();
            if let Some(place) = job.place.as_ref().filter(|_| limited) {
                let (jobs, memory) = started.entry((job.spec.queue, job.spec.owner)).or_default();
                *jobs += 1;
                *memory = place.parts.iter().fold(*memory, |sum, part| sum.saturating_add(part.memory_bytes));
            }
        }
        started
    }

    /// Whether the nodes that take part could not hold a job even if they were empty. A job that lists a node that is away waits
    /// for that node.
    fn is_too_large(&self, spec: &JobSpec) -> bool {
        let refusal = self.check_want(spec.queue, &spec.want).err();
        refusal.is_some_and(|refusal| {
            matches!(
                refusal,
                Refusal::FewCpus { .. }
                    | Refusal::LittleMemory { .. }
                    | Refusal::LittleDisk { .. }
                    | Refusal::NeverFits { .. }
            )
        })
    }

    /// Whether a held job may continue where it is.
    fn room_for_held(&self, id: JobId) -> Result<Option<Vec<Part>>, Reason> {
        let parts = self.state.jobs[&id].place.as_ref().map_or(&[][..], |place| &place.parts);
        let room = |part: &Part| {
            let Some(at) = self.layout.index_of(part.node) else { return false };
            let has = self.state.nodes[&part.node].capacity.memory_bytes;
            // A job that exceeds the memory even by itself continues when it is alone.
            let used = self.uses[at].memory_bytes;
            used == 0 || used.saturating_add(part.memory_bytes) <= has
        };
        if parts.iter().all(room) { Ok(None) } else { Err(Reason::WaitsForMemory) }
    }

    /// A waiting job becomes ready, in these parts or in those that it has.
    fn start(&mut self, now: Time, id: JobId, parts: Option<Vec<Part>>) {
        if let (Some(parts), Some(job)) = (parts, self.state.jobs.get_mut(&id)) {
            self.parts.insert(id, parts.as_slice().into());
            (job.place, job.ready_since) = (Some(Place { parts, home: None }), now);
            job.suspended.ns = 0;
            // `set_stage` below subtracts the job first.
            self.count(id, true);
        }
        self.set_stage(id, Stage::Ready);
        if self.has_slots(&self.state.jobs[&id]) {
            let wanted = self.wanted(id);
            let row = self.row_for(&wanted).unwrap_or_else(|| self.new_row());
            self.house(id, row, &wanted);
        }
        self.actions.push_back(Action::Start(id));
    }

    fn wait(&mut self, id: JobId, reason: Reason) {
        let Some(job) = self.state.jobs.get_mut(&id) else { return };
        if job.stage != Stage::Waiting(reason) {
            job.stage = Stage::Waiting(reason);
            self.actions.push_back(Action::Wait(id, reason));
        }
    }

    /// Changes a job's stage, and counts its use of resources again.
    pub(super) fn set_stage(&mut self, id: JobId, stage: Stage) {
        self.count(id, false);
        if let Some(job) = self.state.jobs.get_mut(&id) {
            let key = key_of(id, job);
            job.stage = stage;
            match stage {
                Stage::Waiting(_) => self.waiting.insert(key),
                _ => self.waiting.remove(&key),
            };
        }
        self.count(id, true);
    }

    /// Kills all processes of a job; it is over afterwards.
    pub(super) fn end(&mut self, id: JobId, reason: Reason) {
        self.set_stage(id, Stage::Ending(reason));
        self.actions.push_back(Action::Kill(id, reason));
    }

    /// A job was observed to use this much memory on a node. Holds the last jobs there while the total is too much.
    pub(super) fn note_memory(&mut self, id: JobId, node: NodeId, bytes: u64) {
        self.count(id, false);
        let place = self.state.jobs.get_mut(&id).and_then(|job| job.place.as_mut());
        if let Some(part) = place.and_then(|place| place.parts.iter_mut().find(|part| part.node == node)) {
            part.memory_bytes = part.memory_bytes.max(bytes);
        }
        self.count(id, true);
        if let Some(place) = &self.state.jobs[&id].place {
            self.parts.insert(id, place.parts.as_slice().into());
        }
        self.hold_back(node);
    }

    /// Holds the last jobs on a node while they need more memory than it has.
    pub(super) fn hold_back(&mut self, node: NodeId) {
        let Some(at) = self.layout.index_of(node) else { return };
        while self.uses[at].memory_bytes > self.state.nodes[&node].capacity.memory_bytes {
            let Some(last) = self.last_of_several(node) else { return };
            self.set_stage(last, Stage::Waiting(Reason::WaitsForMemory));
            self.actions.push_back(Action::Wait(last, Reason::WaitsForMemory));
        }
    }

    /// The ready job of a node that would be served last, unless it is the only one that counts there.
    fn last_of_several(&self, node: NodeId) -> Option<JobId> {
        let here = |(_, job): &(&JobId, &JobRecord)| {
            let counts = !matches!(job.stage, Stage::Waiting(_));
            let parts = job.place.as_ref().map_or(&[][..], |place| &place.parts);
            counts && parts.binary_search_by_key(&node, |part| part.node).is_ok()
        };
        let mut counted: Vec<_> = self.state.jobs.iter().filter(here).collect();
        counted.sort_by_key(|(_, job)| (job.spec.queue, job.order));
        let last = counted.iter().rposition(|(_, job)| job.stage == Stage::Ready)?;
        (counted.len() > 1).then_some(*counted[last].0)
    }
}
