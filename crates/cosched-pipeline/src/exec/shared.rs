//! The state that all threads of a running graph share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cosched_core::stage::Resource;

use super::worker::Crew;
use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::error::Cause;
use crate::graph::{Kind, PathId};
use crate::monitor::Watch;
use crate::queue::{Awake, Gate, Inbox, Join, Working};
use crate::report::{Report, StageReport};

/// Where a stage sends a buffer.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Stage(usize),
    /// The pool of the path, which belongs to its source.
    Pool(usize),
    /// A stage that runs on workers, or the pool of a path that begins with one: the station's index.
    Workers(u32),
}

/// A stage on one of its paths.
pub(super) struct Hop {
    pub(super) next: Next,
    /// Whether the stage is the first of the path.
    pub(super) begins: bool,
    /// Whether the stage numbers the buffers that it conveys: at the beginning of the path, and where a body may have changed
    /// their order.
    pub(super) counts: bool,
    pub(super) conveyed: AtomicU64,
    pub(super) join: Option<Join>,
}

/// A stage of a running graph.
pub(crate) struct StageState {
    pub(crate) name: String,
    pub(super) resource: Resource,
    pub(super) kind: Kind,
    pub(super) incarnations: usize,
    /// How many of the incarnations are active.
    pub(super) working: Working,
    /// Whether that may change while the graph runs.
    pub(super) has_reserve: bool,
    /// Buffers that its predecessors conveyed.
    pub(crate) incoming: Inbox,
    /// The pools of the paths that the stage begins.
    pub(crate) empty: Inbox,
    /// The paths that the stage is on; `begins` has those of them of which it is the first stage.
    pub(crate) paths: Vec<PathId>,
    pub(crate) begins: Vec<PathId>,
    /// Whether the stage is the first of all its paths.
    pub(crate) source: bool,
    /// By path; None for paths that the stage is not on.
    pub(super) hops: Vec<Option<Hop>>,
    pub(crate) counters: Arc<Counters>,
}

impl StageState {
    /// The queue from which an [`Each`](crate::Each) takes its buffers.
    #[inline]
    pub(crate) fn input(&self) -> &Inbox {
        if self.source { &self.empty } else { &self.incoming }
    }

    /// Nothing more will be taken from this path.
    pub(crate) fn close(&self, path: PathId) {
        let inbox = self.input();
        inbox.close(path);
        if self.has_reserve && !inbox.is_open() {
            self.working.release();
        }
    }

    /// Sets the number of active incarnations, at most as many as the graph has. Returns the number that was set.
    pub(crate) fn set_incarnations(&self, count: usize) -> usize {
        let count = count.clamp(1, self.incarnations);
        if self.has_reserve && self.incoming.is_open() {
            self.working.set(count);
        }
        count
    }

    fn report(&self) -> StageReport {
        let counters = &self.counters;
        StageReport {
            name: self.name.clone(),
            resource: self.resource.name().into(),
            kind: match self.kind {
                Kind::Thread => "thread",
                Kind::Worker => "worker",
            }
            .into(),
            incarnations: self.working.count().min(self.incarnations),
            rounds: counters.rounds(),
            bytes: counters.bytes(),
            ..StageReport::default()
        }
    }
}

/// A running graph.
pub(crate) struct Shared {
    pub(super) name: String,
    pub(crate) stages: Vec<StageState>,
    pub(super) path_names: Vec<String>,
    pub(super) memory_bytes: u64,
    pub(crate) watch: Watch,
    pub(super) stopping: AtomicBool,
    pub(super) failure: Mutex<Option<(Option<usize>, Cause)>>,
    /// Where the threads meet before the first buffer moves.
    pub(super) gate: Gate,
    /// The workers and the stages that run on them.
    pub(crate) crew: Crew,
    /// How many threads are awake, that is, want a CPU.
    pub(crate) awake: Arc<Awake>,
}

impl Shared {
    /// Passes a buffer on from a stage.
    ///
    /// # Panics
    /// If the stage is not on the buffer's path.
    #[inline]
    pub(crate) fn convey(&self, stage: usize, mut buffer: Buffer) {
        let state = &self.stages[stage];
        let path = buffer.path();
        let Some(Some(hop)) = state.hops.get(path.0) else {
            panic!("it conveyed a buffer of path {}, which it is not on", path.0)
        };
        if hop.counts {
            // Only one thread at a time conveys for the stage, so this needs no atomic addition.
            let number = hop.conveyed.load(Ordering::Relaxed);
            hop.conveyed.store(number + 1, Ordering::Relaxed);
            buffer.token_mut().number = number;
        }
        if hop.begins {
            buffer.set_round(buffer.token().number);
            if buffer.is_last() {
                state.empty.close(path);
            }
        }
        let inbox = match hop.next {
            Next::Stage(next) => &self.stages[next].incoming,
            Next::Pool(source) => &self.stages[source].empty,
            Next::Workers(station) => return self.convey_to_workers(hop, station, buffer),
        };
        match &hop.join {
            None => inbox.put(buffer),
            Some(join) => {
                let gone = join.pass(buffer, |buffer| inbox.put_quietly(buffer));
                inbox.announce(path, gone);
            }
        }
    }

    fn convey_to_workers(&self, hop: &Hop, station: u32, buffer: Buffer) {
        let enter = |buffer| self.crew.enter(&self.awake, station, buffer);
        match &hop.join {
            None => enter(buffer),
            Some(join) => {
                join.pass(buffer, enter);
            }
        }
    }

    /// The number of buffers that wait for the next stage on a path; None for the path's last stage.
    pub(crate) fn output_len(&self, stage: usize, path: PathId) -> Option<usize> {
        match self.stages[stage].hops.get(path.0)?.as_ref()?.next {
            Next::Stage(next) => Some(self.stages[next].incoming.len_of(path)),
            Next::Pool(_) => None,
            Next::Workers(station) => self.crew.waiting_at(station),
        }
    }

    /// The name of a path.
    pub(crate) fn path_name(&self, path: PathId) -> &str {
        &self.path_names[path.0]
    }

    /// Stops the graph. The first cause is the one that is reported.
    pub(crate) fn fail(&self, stage: Option<usize>, cause: Cause) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((stage, cause));
        self.stopping.store(true, Ordering::Release);
        self.gate.open();
        for stage in &self.stages {
            stage.incoming.bell().ring_all(&self.awake);
            stage.empty.bell().ring_all(&self.awake);
            stage.working.release();
        }
        self.crew.release();
    }

    /// Sets the number of active incarnations of a stage, at most as many as the graph has. Returns the number that was set.
    pub(crate) fn set_incarnations(&self, stage: usize, count: usize) -> usize {
        let count = self.stages[stage].set_incarnations(count);
        self.crew.set_incarnations(&self.awake, stage, count);
        count
    }

    /// Whether the graph is stopping.
    #[inline]
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Why the graph ended early, if it did, with the name of the stage.
    pub(crate) fn take_failure(&self) -> Option<(Option<String>, Cause)> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map(|(stage, cause)| (stage.map(|index| self.stages[index].name.clone()), cause))
    }

    /// A report of what has been done so far.
    pub(crate) fn report(&self) -> Report {
        let mut report = Report {
            format: Report::FORMAT.into(),
            name: self.name.clone(),
            memory_bytes: self.memory_bytes,
            stages: self.stages.iter().enumerate().map(|(index, stage)| self.stage_report(index, stage)).collect(),
            ..Report::default()
        };
        self.watch.complete(&mut report);
        report
    }

    fn stage_report(&self, index: usize, stage: &StageState) -> StageReport {
        StageReport { queue: self.queue_len(index), ..stage.report() }
    }

    /// The number of buffers that wait for a stage.
    pub(super) fn queue_len(&self, stage: usize) -> usize {
        self.stages[stage].incoming.len() + self.crew.waiting(stage)
    }
}
