//! Why a sweep cannot be.

/// Why a sweep cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Its description is wrong.
    #[error("{what}\n  why: {why}\n  hint: {hint}")]
    Description {
        /// What is wrong.
        what: String,
        /// Why it cannot be.
        why: String,
        /// What to do.
        hint: String,
    },
    /// A job list could not be made.
    #[error("no jobs for {workload}\n  why: {reason}")]
    Jobs {
        /// Which workload.
        workload: String,
        /// Why, with a hint.
        reason: String,
    },
    /// A result could not be written down.
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
