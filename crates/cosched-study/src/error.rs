//! Why a study has no result.

use cosched_sim::SimError;

/// What is wrong, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  why: {why}\n  hint: {hint}")]
pub struct Reason {
    /// What is wrong.
    pub what: String,
    /// Why it cannot be.
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
    /// Nothing follows from what is studied: a program, a profile, a machine.
    #[error(transparent)]
    Subject(Reason),
    /// A document that was given does not say what is needed.
    #[error(transparent)]
    Document(Reason),
    /// The simulator refuses it, or cannot end it.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl Error {
    pub(crate) fn subject(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Subject(Reason::new(what, why, hint))
    }
}
