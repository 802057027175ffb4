//! What can go wrong: a graph that cannot run, a stage that fails.

use crate::report::Report;

/// What a stage may return as its error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a graph cannot run. Found before any thread starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("the pipeline '{0}' has no path: add one with Graph::path, or stages with Pipeline::stage")]
    Empty(String),
    #[error("two stages are called '{0}': reports and errors name stages, so each needs a name of its own")]
    SameName(String),
    #[error("stage '{0}' is on no path: it has no predecessor and no successor; add it to a path or leave it out")]
    Unused(String),
    #[error(
        "path '{path}' comes to stage '{stage}' twice: a cycle; buffers go back to the pool by themselves at its end"
    )]
    Cycle { path: String, stage: String },
    #[error("path '{0}' goes through no stage: name them with Path::through")]
    NoStages(String),
    #[error(
        "path '{0}' has no buffers: nothing could move; 2 let neighbours overlap, stages + 1 keep all of them busy"
    )]
    NoBuffers(String),
    #[error("path '{0}' has buffers of 0 bytes: they could carry nothing")]
    NoBytes(String),
    #[error(
        "stage '{0}' begins a path and has several incarnations: let one stage number the blocks and replicate the next"
    )]
    ReplicatedSource(String),
    #[error("stage '{0}' has 0 incarnations: its buffers would never be processed")]
    NoIncarnations(String),
    #[error(
        "stage '{0}' begins a path and is in the middle of another: only a Body can tell its empty buffers from the others"
    )]
    MixedSource(String),
    #[error("stage '{stage}' cannot share the thread '{thread}': {why}")]
    SharedThread { stage: String, thread: String, why: &'static str },
    #[error(
        "a stage on thread '{thread}' does {repeat} buffers in its turn, but path '{path}' has only {buffers}: a whole turn \
         would never come"
    )]
    RepeatNeedsBuffers { thread: String, repeat: usize, path: String, buffers: usize },
    #[error("the buffers of path '{path}' ({buffers} of {size_bytes} bytes) cannot be allocated: {why}")]
    Memory { path: String, buffers: usize, size_bytes: usize, why: String },
    #[error("0 workers: stages that compute would never run; leave the number out for one per CPU")]
    NoWorkers,
    #[error("stage '{stage}' requests {error}")]
    Settings { stage: String, error: crate::priority::SettingsError },
    #[error("the CPUs that this process may use cannot be read: {0}")]
    Cpus(String),
    #[error("a thread cannot be started: {0}")]
    Thread(String),
    #[error(
        "path '{path}' goes through stage number {number}, but the graph has {stages}: stages belong to the graph they were added to"
    )]
    Foreign { path: String, number: usize, stages: usize },
    #[error("path '{path}' has {buffers} buffers; at most {max}: larger ones carry more with less")]
    TooManyBuffers { path: String, buffers: usize, max: usize },
    #[error(
        "stage '{0}' repeats, but shares no thread: repeating is the order of the stages on one thread; name it with on_thread"
    )]
    RepeatAlone(String),
    #[error(
        "stage '{0}' may have more incarnations as it runs, but only Stage::replicated can make them: replicated(name, 1, …)"
    )]
    NotReplicable(String),
    #[error(
        "stages on path '{path}' hold up to {held} buffers while they wait for the next, and the path has {buffers}: \
         they would wait forever; give it at least {}",
        held + 1
    )]
    HoldsAll { path: String, held: usize, buffers: usize },
}

/// Why a pipeline ended early.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The graph was refused; nothing ran.
    #[error("{0}")]
    Graph(#[from] GraphError),
    /// A stage returned an error.
    #[error("{0}")]
    Stage(BoxError),
    /// A stage panicked.
    #[error("it panicked: {0}")]
    Panic(String),
    /// [`Running::stop`](crate::Running::stop) was called.
    #[error("it was stopped")]
    Stopped,
    /// A stage held a buffer for longer than [`Options::stall_limit`](crate::Options::stall_limit). Its thread may still be in
    /// the stage's code: a thread cannot be ended from outside, so it is left behind with all that it holds.
    #[error("{0}")]
    Stalled(String),
    /// A stage broke the rules of the framework.
    #[error("{0}")]
    Misuse(String),
}

/// A run that failed, with a report of what it had done until then.
#[derive(Debug)]
pub struct Failure {
    /// The stage that caused the failure, if a single one did.
    pub stage: Option<String>,
    /// Why the run failed.
    pub cause: Cause,
    /// What the stages had done until the failure. Empty if the graph never ran.
    pub report: Box<Report>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.stage {
            Some(stage) => write!(f, "pipeline '{}': stage '{stage}': {}", self.report.name, self.cause),
            None => write!(f, "pipeline '{}': {}", self.report.name, self.cause),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
