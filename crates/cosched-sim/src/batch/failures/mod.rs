//! Nodes that fail and are repaired, and what that does to jobs (docs/workloads.md, Failures).
//!
//! Outages depend on their own seed alone, so all policies meet the same ones. A job on a node that fails loses what it has done since its
//! last checkpoint, and waits again at its old place in the queue. The queue knows when repairs end, as it knows estimates.

mod checkpoint;
mod machine;
mod nodes;
mod outages;
#[cfg(test)]
mod tests;

pub use checkpoint::Checkpoint;
pub use machine::simulate_failing;
pub(super) use nodes::Nodes;
pub use outages::{Drawn, Source};

use serde::Serialize;

/// The most outages of a run.
pub const OUTAGES_MAX: u64 = 10_000_000;

/// How nodes fail, and what follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    /// Processors of a node, at least 1; the last node has what is left.
    pub node_procs: u32,
    /// When nodes are down.
    pub source: Source,
    /// What jobs keep.
    pub checkpoint: Option<Checkpoint>,
    /// How often a job is started again; then it is given up.
    pub restarts_max: u32,
}

/// What failures did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureReport {
    /// Outages until the last job ended.
    pub outages: u64,
    /// Jobs that were started again, each as often as that happened.
    pub restarts: u64,
    /// Jobs that were given up, by their place; they ended then.
    #[serde(skip)]
    pub given_up: Vec<bool>,
    /// What was done in vain, processors times seconds.
    pub lost_processor_s: f64,
    /// The part of the machine's time in which its processors were up.
    pub availability: f64,
}
