//! Errors of a study.

use cosched_sim::SimError;

/// What is wrong, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  why: {why}\n  hint: {hint}")]
pub struct Reason {
    /// What is wrong.
    pub what: String,
    /// Why it is wrong.
    pub why: String,
    /// What to do.
    pub hint: String,
}

impl Reason {
    /// From its three parts.
    pub fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Reason {
        Reason { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

/// Why a study has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The subject of the study (a program, a profile or a machine) is unusable.
    #[error(transparent)]
    Subject(Reason),
    /// A given document lacks required data.
    #[error(transparent)]
    Document(Reason),
    /// The simulator refuses the input, or cannot complete the simulation.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl Error {
    pub(crate) fn subject(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Subject(Reason::new(what, why, hint))
    }
}
