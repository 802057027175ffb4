//! The plan of a pipeline, before it runs.

use ::cosched_pipeline::{Graph, Kind, Options, Path, Resource, Settings, Stage, StageId};

use super::stage::{Callbacks, Incarnation, Work};
use crate::error::cosched_error;

/// A pipeline that is being built.
pub(crate) struct Plan {
    name: String,
    id: u64,
    pub(crate) stages: Vec<StagePlan>,
    pub(crate) paths: Vec<PathPlan>,
    pub(crate) options: Options,
    /// The first error.
    pub(crate) wrong: Option<cosched_error>,
}

/// A stage and how to run it.
pub(crate) struct StagePlan {
    pub(crate) name: String,
    pub(crate) resource: Resource,
    pub(crate) calls: Callbacks,
    pub(crate) kind: Option<Kind>,
    pub(crate) incarnations: usize,
    pub(crate) ordered: bool,
    pub(crate) thread: Option<String>,
    pub(crate) repeat: usize,
    /// The maximum number of incarnations that autotune may create; 0 for no additional ones.
    pub(crate) replicable: usize,
    /// The number of buffers of a path that a body may hold while it waits for another one.
    pub(crate) holds: Option<usize>,
    pub(crate) settings: Settings,
}

/// A pool and the stages that its buffers pass through.
pub(crate) struct PathPlan {
    pub(crate) name: String,
    pub(crate) buffers: usize,
    pub(crate) size_bytes: usize,
    pub(crate) stages: Vec<usize>,
}

impl Plan {
    pub(crate) fn new(name: &str, id: u64) -> Plan {
        let options = Options::default();
        Plan { name: name.to_owned(), id, stages: Vec::new(), paths: Vec::new(), options, wrong: None }
    }

    /// The stage with a number from C.
    pub(crate) fn stage(&mut self, number: i32) -> Result<&mut StagePlan, String> {
        let there = self.stages.len();
        let stage = usize::try_from(number).ok().and_then(|index| self.stages.get_mut(index));
        stage.ok_or_else(|| format!("there is no stage {number}; the pipeline has {there} stages, numbered from 0"))
    }

    /// The memory of all buffers in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.paths.iter().map(|path| (path.buffers as u64).saturating_mul(path.size_bytes as u64)).sum()
    }

    /// Builds the graph. The plan is kept, so that it can be checked first and then corrected.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.name.clone());
        let ids: Vec<StageId> = self.stages.iter().map(|stage| graph.stage(stage.stage(self.id))).collect();
        for path in &self.paths {
            let through = path.stages.iter().map(|index| ids[*index]);
            graph.path(Path::new(path.name.clone()).buffers(path.buffers, path.size_bytes).through(through));
        }
        graph
    }
}

impl StagePlan {
    /// Refuses settings that only apply to stages that work on one buffer at a time.
    pub(crate) fn refuse_body(&self) -> Result<(), String> {
        match self.calls.work {
            Work::Body(_) => Err(format!("stage '{}' is a body; only one of it runs", self.name)),
            Work::Round(_) => Ok(()),
        }
    }

    fn stage(&self, pipeline: u64) -> Stage {
        let calls = self.calls.clone();
        let incarnation = move |number| Incarnation::new(calls.clone(), pipeline, number);
        let mut stage = match self.calls.work {
            Work::Body(_) => Stage::body(&self.name, self.resource, incarnation(0)),
            Work::Round(_) => Stage::replicated(&self.name, self.incarnations, self.resource, incarnation),
        };
        stage = stage.ordered(self.ordered).repeat(self.repeat);
        if let Some(kind) = self.kind {
            stage = stage.kind(kind);
        }
        if self.replicable > self.incarnations {
            stage = stage.replicable(self.replicable);
        }
        if let Some(holds) = self.holds {
            stage = stage.holds(holds);
        }
        stage = stage.with(self.settings.clone());
        match &self.thread {
            Some(thread) => stage.on_thread(thread),
            None => stage,
        }
    }
}
