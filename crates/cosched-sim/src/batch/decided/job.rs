//! What becomes of jobs.

use crate::batch::intervals::Places;
use crate::metrics::SUCCESSFUL;

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// By itself.
    Successful,
    /// Its walltime was over.
    WalltimeReached,
    /// The scheduler killed it.
    Killed,
    /// The scheduler rejected it: it never started.
    Rejected,
}

impl JobEnd {
    /// Batsim's word.
    pub fn name(self) -> &'static str {
        match self {
            JobEnd::Successful => SUCCESSFUL,
            JobEnd::WalltimeReached => "COMPLETED_WALLTIME_REACHED",
            JobEnd::Killed => "COMPLETED_KILLED",
            JobEnd::Rejected => "REJECTED",
        }
    }
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedJob {
    /// When it started, µs; when it was rejected.
    pub start_us: u64,
    /// When it ended, µs.
    pub end_us: u64,
    /// How.
    pub end: JobEnd,
    /// Its hosts.
    pub places: Places,
}
