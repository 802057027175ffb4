//! Nodes that join, change and leave, and the resources in use on each.

use super::input::{Action, Refusal};
use super::layout::{Layout, Span};
use super::planner::{BadState, Gang, Planner};
use super::row::Row;
use super::state::{Capacity, Cells, NodeRecord, OnNodeLoss, Part, Place, Stage};
use crate::id::{JobId, NodeId};
use crate::reason::Reason;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The resources of a node that jobs use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    /// Memory of jobs that are not held.
    pub(super) memory_bytes: u64,
    /// Disk space of all jobs.
    pub(super) disk_bytes: u64,
    /// CPUs at the same time of jobs that are not held.
    pub(super) threads: u64,
    /// The number of jobs that have started here.
    pub(super) jobs: u32,
    /// The number of these that have the node for themselves: at most 1.
    pub(super) exclusive: u32,
}

impl Planner {
    /// Recomputes columns, rows and uses from the state.
    pub(super) fn derive(&mut self) -> Result<(), BadState> {
        let nodes = self.state.nodes.iter().map(|(id, node)| (*id, node.capacity.cpus));
        self.layout = Arc::new(Layout::new(nodes));
        self.rows.clear();
        self.gangs.clear();
        self.parts.clear();
        self.waiting.clear();
        self.uses = alloc::vec![Use::default(); self.layout.nodes().len()];
        let ids: Vec<JobId> = self.state.jobs.keys().copied().collect();
        for id in ids {
            self.derive_job(id).ok_or(BadState::Cells(id))?;
        }
        Ok(())
    }

    /// Returns `None` when the job's cells contradict the state.
    fn derive_job(&mut self, id: JobId) -> Option<()> {
        let job = &self.state.jobs[&id];
        if matches!(job.stage, Stage::Waiting(_)) {
            self.waiting.insert((job.spec.queue, job.order, id));
        }
        let Some(place) = &job.place else { return Some(()) };
        let parts: Arc<[Part]> = place.parts.as_slice().into();
        if parts.iter().any(|part| self.layout.index_of(part.node).is_none()) {
            return None;
        }
        if let Some((row, cells)) = &place.home {
            let (row, spans) = (*row as usize, self.spans_of(cells)?);
            // A corrupt row number must not create an unlimited number of rows.
            if row >= self.state.jobs.len() {
                return None;
            }
            while self.rows.len() <= row {
                self.rows.push(Row::empty(&self.layout));
            }
            let cpus = self.layout.cpus_of(&spans);
            let whole = parts.len() == cpus.len()
                && parts.iter().zip(&cpus).all(|(part, (node, count))| {
                    self.layout.nodes()[*node as usize].id == part.node && part.cpus == *count
                });
            if !whole || !self.rows[row].free.contains(&spans) {
                return None;
            }
            self.rows[row].put(id, &spans, &cpus);
            self.versions += 1;
            let version = self.versions;
            self.gangs.insert(id, Gang { row: row as u32, version, spans: spans.into(), cpus: cpus.into() });
        }
        self.parts.insert(id, parts);
        self.count(id, true);
        Some(())
    }

    /// Cells as columns; `None` when they are not ascending or not within their nodes.
    fn spans_of(&self, cells: &[Cells]) -> Option<Vec<Span>> {
        let mut spans = Vec::new();
        let mut end = 0;
        for Cells { node, cpus } in cells {
            let laid = &self.layout.nodes()[self.layout.index_of(*node)?];
            let first = laid.span.first.checked_add(cpus.first)?;
            let within = first >= end && cpus.first.checked_add(cpus.count)? <= laid.span.count;
            if !within || cpus.count == 0 {
                return None;
            }
            super::layout::append(&mut spans, Span { first, count: cpus.count });
            end = first + cpus.count;
        }
        Some(spans)
    }

    /// Columns as cells.
    pub(super) fn cells_of(&self, spans: &[Span]) -> Vec<Cells> {
        let mut cells = Vec::new();
        for span in spans {
            for (node, count) in self.layout.cpus_of(&[*span]) {
                let laid = &self.layout.nodes()[node as usize];
                let first = span.first.max(laid.span.first) - laid.span.first;
                cells.push(Cells { node: laid.id, cpus: Span { first, count } });
            }
        }
        cells
    }

    /// Adds a job's resources to the use of its nodes (`on`), or subtracts them. To be called before and after a change of its stage
    /// or place.
    pub(super) fn count(&mut self, id: JobId, on: bool) {
        let Some(job) = self.state.jobs.get(&id) else { return };
        let Some(place) = &job.place else { return };
        let held = matches!(job.stage, Stage::Waiting(_));
        let exclusive = self.state.config.queues[job.spec.queue as usize].exclusive;
        for part in &place.parts {
            let Some(at) = self.layout.index_of(part.node) else { continue };
            let used = &mut self.uses[at];
            let add = |sum: &mut u64, amount: u64| *sum = if on { *sum + amount } else { *sum - amount };
            add(&mut used.disk_bytes, part.disk_bytes);
            if !held {
                add(&mut used.memory_bytes, part.memory_bytes);
                add(&mut used.threads, u64::from(part.cpus));
            }
            used.jobs = if on { used.jobs + 1 } else { used.jobs - 1 };
            if exclusive {
                used.exclusive = if on { used.exclusive + 1 } else { used.exclusive - 1 };
            }
        }
    }

    pub(super) fn join(&mut self, id: NodeId, capacity: Capacity) -> Result<(), Refusal> {
        if capacity.cpus == 0 {
            return Err(Refusal::NoCpus);
        }
        if self.state.nodes.contains_key(&id) {
            return Err(Refusal::DuplicateNode(id));
        }
        let drains = self.state.drained_away.remove(&id);
        let record = NodeRecord { capacity, drains, other_threads_seen: 0, other_threads: 0 };
        self.state.nodes.insert(id, record);
        let kept = self.state.kept.remove(&id).unwrap_or_default();
        let sum = |of: fn(&Part) -> u64| kept.values().map(of).fold(0, u64::saturating_add);
        // The node may have less than it had before.
        let fits = sum(|part| part.memory_bytes) <= capacity.memory_bytes
            && sum(|part| part.disk_bytes) <= capacity.disk_bytes
            && kept.values().all(|part| part.cpus <= capacity.cpus);
        for (job, part) in kept.into_iter().filter(|_| fits) {
            self.take_back(job, part);
        }
        self.rebuild();
        Ok(())
    }

    /// A job that continues without a dead node gets its part there back when its processes turn out to be alive.
    fn take_back(&mut self, id: JobId, part: Part) {
        let Some(job) = self.state.jobs.get_mut(&id) else { return };
        let Some(place) = job.place.as_mut().filter(|_| !matches!(job.stage, Stage::Clearing | Stage::Ending(_)))
        else {
            return;
        };
        if let Err(at) = place.parts.binary_search_by_key(&part.node, |part| part.node) {
            place.parts.insert(at, part);
            // Its cells are those of fewer nodes.
            place.home = None;
        }
    }

    pub(super) fn forget_kept(&mut self, job: JobId) {
        self.state.kept.retain(|_, kept| {
            kept.remove(&job);
            !kept.is_empty()
        });
    }

    pub(super) fn set_silent(&mut self, id: NodeId, since: Option<Time>) -> Result<(), Refusal> {
        if !self.state.nodes.contains_key(&id) {
            return Err(Refusal::UnknownNode(id));
        }
        match since {
            Some(since) => self.state.silent.insert(id, since),
            None => self.state.silent.remove(&id),
        };
        Ok(())
    }

    /// A node's capacity changes. Its jobs stay: gangs get other cells, and jobs for which there is no longer enough memory
    /// are held.
    pub(super) fn resize(&mut self, id: NodeId, capacity: Capacity) -> Result<(), Refusal> {
        if capacity.cpus == 0 {
            return Err(Refusal::NoCpus);
        }
        self.state.nodes.get_mut(&id).ok_or(Refusal::UnknownNode(id))?.capacity = capacity;
        for place in self.state.jobs.values_mut().filter_map(|job| job.place.as_mut()) {
            if let Some(part) = place.parts.iter_mut().find(|part| part.node == id) {
                part.cpus = part.cpus.min(capacity.cpus);
                place.home = None;
            }
        }
        self.rebuild();
        self.hold_back(id);
        Ok(())
    }

    /// Whether a node gets new jobs: it is not silent, and not drained.
    pub(super) fn takes_new(&self, id: NodeId) -> bool {
        self.state.nodes.get(&id).is_some_and(|node| !node.drains) && !self.state.silent.contains_key(&id)
    }

    /// Whether a job has a part on this node.
    pub fn has_parts(&self, id: NodeId) -> bool {
        self.layout.index_of(id).is_some_and(|at| self.uses[at].jobs > 0)
    }

    /// Everything that ran on a node is certainly gone, including the parts that were kept for it.
    pub(super) fn restarted(&mut self, id: NodeId) {
        // It may have left before.
        let _ = self.leave(id);
        self.state.kept.remove(&id);
    }

    /// A node is dead or has left: what ran on it is lost.
    pub(super) fn leave(&mut self, id: NodeId) -> Result<(), Refusal> {
        let Some(node) = self.state.nodes.remove(&id) else { return Err(Refusal::UnknownNode(id)) };
        self.state.silent.remove(&id);
        if node.drains {
            self.state.drained_away.insert(id);
        }
        let parts = |place: &Option<Place>| place.as_ref().is_some_and(|p| p.parts.iter().any(|part| part.node == id));
        let hit: Vec<JobId> =
            self.state.jobs.iter().filter(|(_, job)| parts(&job.place)).map(|(job, _)| *job).collect();
        for job in hit {
            self.lose_part(job, id);
        }
        self.rebuild();
        Ok(())
    }

    /// A job loses its part on a node that is lost, and its rule for that is applied.
    pub(super) fn lose_part(&mut self, id: JobId, node: NodeId) {
        let Some(job) = self.state.jobs.get_mut(&id) else { return };
        let Some(place) = &mut job.place else { return };
        let lost = place.parts.iter().position(|part| part.node == node).map(|at| place.parts.remove(at));
        if let Some((_, cells)) = &mut place.home {
            cells.retain(|cells| cells.node != node);
        }
        if place.parts.len() < 2 {
            place.home = None;
        }
        let alone = place.parts.is_empty();
        let started = !matches!(job.stage, Stage::Clearing | Stage::Ending(_));
        match job.spec.on_node_loss {
            _ if !started => (),
            OnNodeLoss::Keep if !alone => {
                if let Some(part) = lost {
                    self.state.kept.entry(node).or_default().insert(id, part);
                }
                self.actions.push_back(Action::GoOnWithout(id, node));
            }
            OnNodeLoss::Requeue => {
                job.stage = Stage::Clearing;
                place.home = None;
                self.actions.push_back(Action::Requeue(id, Reason::NodeLost));
            }
            OnNodeLoss::Keep | OnNodeLoss::Kill => {
                job.stage = Stage::Ending(Reason::NodeLost);
                place.home = None;
                self.actions.push_back(Action::Kill(id, Reason::NodeLost));
            }
        }
    }

    /// The main process of a job was on a node that is lost, and no part of the job was. A job that waits would start without it.
    pub(super) fn lose_main(&mut self, id: JobId) -> Result<(), Refusal> {
        let job = self.state.jobs.get(&id).ok_or(Refusal::UnknownJob(id))?;
        let begun = job.place.is_some();
        match (job.stage, job.spec.on_node_loss) {
            (Stage::Clearing | Stage::Ending(_), _) => (),
            (_, OnNodeLoss::Keep) if begun => (),
            (_, OnNodeLoss::Requeue) => {
                self.set_stage(id, Stage::Clearing);
                self.actions.push_back(Action::Requeue(id, Reason::NodeLost));
            }
            (_, OnNodeLoss::Keep | OnNodeLoss::Kill) => self.end(id, Reason::NodeLost),
        }
        Ok(())
    }

    /// Drains a node or undoes that. The caller has checked that the node is known, whether it takes part now or not.
    pub(super) fn drain(&mut self, id: NodeId, drains: bool) {
        match self.state.nodes.get_mut(&id) {
            Some(node) => node.drains = drains,
            None if drains => drop(self.state.drained_away.insert(id)),
            None => drop(self.state.drained_away.remove(&id)),
        }
    }

    /// Recomputes everything after the numbers of columns or queues have changed; the jobs' cells stay on their nodes and CPUs.
    pub(super) fn rebuild(&mut self) {
        let sound = self.derive();
        debug_assert!(sound.is_ok(), "the planner's own state holds: {sound:?}");
        self.look_at_rows();
    }
}
