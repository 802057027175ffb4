//! A simulation that has run.

use cosched_sim::Outcome;
use cosched_sim::paper::Sampled;

/// A simulation's outcome and the wall-clock time of its event loop.
pub(crate) struct Timed {
    pub(crate) outcome: Outcome,
    pub(crate) wall_s: f64,
    /// What was skipped, if the run was sampled.
    pub(crate) sampled: Option<Sampled>,
}
