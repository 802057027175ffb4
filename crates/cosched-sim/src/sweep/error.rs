//! Errors of sweeps.

/// Why a sweep is not possible.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Its description is wrong.
    #[error("{what}\n  why: {why}\n  hint: {hint}")]
    Description {
        /// What is wrong.
        what: String,
        /// Why it is impossible.
        why: String,
        /// What to do.
        hint: String,
    },
    /// A job list could not be created.
    #[error("no jobs for {workload}\n  why: {reason}")]
    Jobs {
        /// The workload.
        workload: String,
        /// The reason, with a hint.
        reason: String,
    },
    /// A result could not be saved.
    #[error(
        "the journal cannot be written\n  why: {0}\n  hint: make room; the cells that are in it are not computed again"
    )]
    Journal(std::io::Error),
}

impl SweepError {
    pub(super) fn description(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> SweepError {
        SweepError::Description { what: what.into(), why: why.into(), hint: hint.into() }
    }
}
