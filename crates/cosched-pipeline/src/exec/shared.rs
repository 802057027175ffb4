//! What all threads of a running graph see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use cosched_core::stage::Resource;

use super::seconds_since;
use super::thread::{Lane, Unit};
use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::error::{Cause, GraphError};
use crate::graph::{Graph, Kind, PathId, Stage, StageId, Work};
use crate::queue::{Inbox, Join};
use crate::report::{Report, StageReport};

/// Where a buffer goes from a stage, on one path.
#[derive(Clone, Copy)]
enum Next {
    Stage(usize),
    /// The pool of the path, which is with its source.
    Pool(usize),
    /// The stage is not on this path.
    Nowhere,
}

/// A stage of a running graph.
pub(crate) struct StageState {
    pub(crate) name: String,
    resource: Resource,
    kind: Kind,
    incarnations: usize,
    /// What its predecessors conveyed.
    pub(crate) incoming: Inbox,
    /// The pools of the paths that it begins.
    pub(crate) empty: Inbox,
    /// The paths that it is on, and those of them that it begins.
    pub(crate) paths: Vec<PathId>,
    pub(crate) begins: Vec<PathId>,
    next: Vec<Next>,
    joins: Vec<Option<Join>>,
    pub(crate) counters: Counters,
}

impl StageState {
    fn new(graph: &Graph, id: StageId, stage: &Stage) -> StageState {
        let paths: Vec<PathId> =
            (0..graph.paths.len()).map(PathId).filter(|p| graph.paths[p.0].stages.contains(&id)).collect();
        let begins: Vec<PathId> = paths.iter().copied().filter(|p| graph.paths[p.0].stages[0] == id).collect();
        let comes: Vec<PathId> = paths.iter().copied().filter(|p| !begins.contains(p)).collect();
        let next = graph.paths.iter().map(|path| next(&path.stages, id)).collect();
        let join = || (stage.incarnations() > 1).then(|| Join::new(stage.ordered));
        StageState {
            name: stage.name.clone(),
            resource: stage.resource,
            kind: stage.kind,
            incarnations: stage.incarnations(),
            incoming: Inbox::new(comes),
            empty: Inbox::new(begins.clone()),
            paths,
            begins,
            next,
            joins: graph.paths.iter().map(|_| join()).collect(),
            counters: Counters::default(),
        }
    }

    /// Whether it begins all its paths.
    pub(crate) fn is_source(&self) -> bool {
        self.begins.len() == self.paths.len()
    }

    fn report(&self) -> StageReport {
        let seconds = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / 1e9;
        let counters = &self.counters;
        StageReport {
            name: self.name.clone(),
            resource: self.resource.name().into(),
            kind: match self.kind {
                Kind::Thread => "thread",
                Kind::Worker => "worker",
            }
            .into(),
            incarnations: self.incarnations,
            rounds: counters.rounds.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            busy_s: seconds(&counters.busy_ns),
            wait_in_s: seconds(&counters.wait_in_ns),
            wait_out_s: seconds(&counters.wait_out_ns),
            queue: self.incoming.len(),
        }
    }
}

fn next(stages: &[StageId], id: StageId) -> Next {
    match stages.iter().position(|stage| *stage == id) {
        None => Next::Nowhere,
        Some(place) => stages.get(place + 1).map_or(Next::Pool(stages[0].0), |next| Next::Stage(next.0)),
    }
}

/// A running graph.
pub(crate) struct Shared {
    name: String,
    pub(crate) stages: Vec<StageState>,
    path_names: Vec<String>,
    /// Rounds that each path's source has conveyed.
    rounds: Vec<AtomicU64>,
    memory_bytes: u64,
    started: Instant,
    stopping: AtomicBool,
    failure: Mutex<Option<(Option<usize>, Cause)>>,
}

/// Makes the queues, fills the pools, and says which thread does what.
pub(crate) fn build(graph: Graph) -> Result<(Shared, Vec<Lane>), GraphError> {
    let memory_bytes = graph.memory_bytes();
    let stages: Vec<StageState> =
        graph.stages.iter().enumerate().map(|(i, stage)| StageState::new(&graph, StageId(i), stage)).collect();
    for (index, path) in graph.paths.iter().enumerate() {
        for _ in 0..path.buffers {
            let buffer = Buffer::new(PathId(index), path.size_bytes).map_err(|error| GraphError::Memory {
                path: path.name.clone(),
                buffers: path.buffers,
                size_bytes: path.size_bytes,
                why: error.to_string(),
            })?;
            stages[path.stages[0].0].empty.put(buffer);
        }
    }
    let shared = Shared {
        name: graph.name,
        stages,
        rounds: graph.paths.iter().map(|_| AtomicU64::new(0)).collect(),
        path_names: graph.paths.into_iter().map(|path| path.name).collect(),
        memory_bytes,
        started: Instant::now(),
        stopping: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    Ok((shared, lanes(graph.stages)))
}

/// One lane per incarnation, and one for all stages that share a thread.
fn lanes(stages: Vec<Stage>) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for (index, stage) in stages.into_iter().enumerate() {
        match stage.work {
            Work::Body(body) => lanes.push(Lane::body(stage.name, index, body)),
            Work::Each(all) => {
                for each in all {
                    let unit = Unit::new(index, each, stage.repeat);
                    let lane = lanes.iter_mut().find(|lane| stage.thread.is_some() && lane.shared == stage.thread);
                    match lane {
                        Some(lane) => lane.add(unit),
                        None => lanes.push(Lane::units(stage.name.clone(), stage.thread.clone(), unit)),
                    }
                }
            }
        }
    }
    lanes
}

impl Shared {
    /// A buffer leaves a stage.
    pub(crate) fn convey(&self, stage: usize, mut buffer: Buffer) {
        let state = &self.stages[stage];
        let path = buffer.path();
        if state.begins.contains(&path) {
            buffer.set_round(self.rounds[path.0].fetch_add(1, Ordering::Relaxed));
            if buffer.is_last() {
                state.empty.close(path);
            }
        }
        match &state.joins[path.0] {
            Some(join) => join.pass(buffer, |buffer| self.send(stage, buffer)),
            None => self.send(stage, buffer),
        }
    }

    fn send(&self, stage: usize, mut buffer: Buffer) {
        match self.stages[stage].next[buffer.path().0] {
            Next::Stage(next) => self.stages[next].incoming.put(buffer),
            Next::Pool(source) => {
                buffer.recycle();
                self.stages[source].empty.put(buffer);
            }
            Next::Nowhere => unreachable!("a buffer leaves a stage on the path on which it came"),
        }
    }

    /// The name of a path.
    pub(crate) fn path_name(&self, path: PathId) -> &str {
        &self.path_names[path.0]
    }

    /// Ends everything. The first reason counts.
    pub(crate) fn fail(&self, stage: Option<usize>, cause: Cause) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((stage, cause));
        self.stopping.store(true, Ordering::Release);
        for stage in &self.stages {
            stage.incoming.stop();
            stage.empty.stop();
        }
    }

    /// Whether everything is to end.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Why it ended before its end, if so.
    pub(crate) fn take_failure(&self) -> Option<(Option<String>, Cause)> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map(|(stage, cause)| (stage.map(|index| self.stages[index].name.clone()), cause))
    }

    /// What has been done so far.
    pub(crate) fn report(&self) -> Report {
        Report {
            format: Report::FORMAT.into(),
            name: self.name.clone(),
            elapsed_s: seconds_since(self.started),
            memory_bytes: self.memory_bytes,
            stages: self.stages.iter().map(StageState::report).collect(),
        }
    }
}
