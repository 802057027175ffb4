//! A complete error message: what happened, why, and what to do about it.

use std::fmt;

/// What happened, why, and what to do. Every message that reaches a user has these three parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What failed.
    pub what: String,
    /// The reason, as far as it is known.
    pub why: String,
    /// What the user or the administrator can do.
    pub hint: String,
}

impl Problem {
    /// A problem from its three parts.
    pub fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.what, self.why, self.hint)
    }
}

impl std::error::Error for Problem {}
