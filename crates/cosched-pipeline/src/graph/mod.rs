//! The parts of a pipeline: stages, paths through them, and the graph of all of them. `exec` runs it.

mod check;
mod kinds;
mod path;
mod split;
mod stage;

use crate::error::GraphError;

pub use kinds::{Flow, Kind, PathId, StageId};
pub use path::Path;
pub use split::Part;
pub(crate) use stage::Work;
pub use stage::{Body, Each, Stage};

/// Stages and the paths of buffers through them. Paths that share no stage are disjoint pipelines in one program; a stage
/// on several paths is where they intersect (a [`Body`]), or one thread that serves the same stage of all of them (an
/// [`Each`]: FG 2's virtual stage).
pub struct Graph {
    pub(crate) name: String,
    pub(crate) stages: Vec<Stage>,
    pub(crate) paths: Vec<Path>,
}

impl Graph {
    /// A graph without stages. The name appears in reports.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), stages: Vec::new(), paths: Vec::new() }
    }

    /// Adds a stage.
    pub fn stage(&mut self, stage: Stage) -> StageId {
        self.stages.push(stage);
        StageId(self.stages.len() - 1)
    }

    /// Adds several stages, such as those that [`Stage::split`] makes.
    pub fn stages(&mut self, stages: impl IntoIterator<Item = Stage>) -> Vec<StageId> {
        stages.into_iter().map(|stage| self.stage(stage)).collect()
    }

    /// Adds a path through stages that have been added.
    pub fn path(&mut self, path: Path) -> PathId {
        self.paths.push(path);
        PathId(self.paths.len() - 1)
    }

    /// The memory of all buffers in bytes: known before the run, and not exceeded in it.
    pub fn memory_bytes(&self) -> u64 {
        let of = |path: &Path| (path.buffers as u64).saturating_mul(path.size_bytes as u64);
        self.paths.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Checks whether the graph can run.
    ///
    /// # Errors
    /// The first problem that was found.
    pub fn check(&self) -> Result<(), GraphError> {
        check::check(self)
    }
}

/// The common case: a single path, stage after stage.
pub struct Pipeline {
    graph: Graph,
    path: Path,
    stages: Vec<StageId>,
}

impl Pipeline {
    /// A pipeline without stages and buffers.
    pub fn new(name: impl Into<String>) -> Pipeline {
        let name = name.into();
        Pipeline { path: Path::new(name.clone()), graph: Graph::new(name), stages: Vec::new() }
    }

    /// Sets the number of buffers, and their size in bytes.
    pub fn buffers(mut self, count: usize, size_bytes: usize) -> Pipeline {
        self.path = self.path.buffers(count, size_bytes);
        self
    }

    /// Adds the next stage. The first one is the source.
    pub fn stage(mut self, stage: Stage) -> Pipeline {
        self.stages.push(self.graph.stage(stage));
        self
    }

    /// Adds the next stages, such as those that [`Stage::split`] makes.
    pub fn stages(self, stages: impl IntoIterator<Item = Stage>) -> Pipeline {
        stages.into_iter().fold(self, Pipeline::stage)
    }

    /// Converts the pipeline to a graph.
    pub fn into_graph(mut self) -> Graph {
        if !self.stages.is_empty() {
            self.graph.path(self.path.through(self.stages));
        }
        self.graph
    }
}
