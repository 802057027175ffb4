//! The results of a simulated pipeline.

use cosched_core::stage::autotune::Reason;
use cosched_core::stage::{Bound, Change, Limit, Resource, Setting};

/// A change that a rule requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Simulated time.
    pub time_ns: u64,
    /// The stage.
    pub stage: usize,
    /// The requested change.
    pub change: Change,
    /// The reason, if autotune requested it.
    pub why: Option<Reason>,
    /// The user may not do that: nothing was changed.
    pub refused: bool,
}

/// The totals of a stage, over all its threads.
#[derive(Clone, Debug, PartialEq)]
pub struct StageOutcome {
    /// Its name.
    pub name: String,
    /// The resource that it mostly uses.
    pub resource: Resource,
    /// Its threads at the end.
    pub incarnations: u32,
    /// Rounds.
    pub rounds: u64,
    /// Time with a buffer.
    pub busy_ns: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// Time ready to run without a CPU.
    pub delay_ns: u64,
    /// Time without a buffer.
    pub wait_in_ns: u64,
    /// Time of the first stage without an empty buffer.
    pub wait_out_ns: u64,
    /// Mean number of buffers that waited before it.
    pub queue_mean: f64,
    /// How it was scheduled at the end.
    pub setting: Setting,
}

/// The results of the whole pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineOutcome {
    /// From the beginning of the first round to the end of the last one.
    pub elapsed_ns: u64,
    /// Rounds.
    pub rounds: u64,
    /// The stages in the order of flow.
    pub stages: Vec<StageOutcome>,
    /// CPU time of the hogs.
    pub hogs_ns: u64,
    /// How often a CPU changed from one thread to another.
    pub switches: u64,
    /// The number of changes of a stage or a thread, by any rule.
    pub changes: u64,
    /// The actions of autotune, and the refused changes of any rule.
    pub told: Vec<Told>,
    /// The lower bound of the time for the work.
    pub bound: Bound,
    /// The limiting resource of the whole run.
    pub limit: Limit,
    /// The number of events that were handled.
    pub events: u64,
}

impl PipelineOutcome {
    /// Rounds per second.
    pub fn rate(&self) -> f64 {
        self.rounds as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}
