//! Why a platform is refused.

use std::fmt;

/// A text that is no platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}\n  why: {why}\n  hint: {hint}", At(*line))]
pub struct PlatformError {
    /// The line, from 1, if it is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// Why it is impossible.
    pub why: String,
    /// What to do.
    pub hint: String,
}

impl PlatformError {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> PlatformError {
        PlatformError { line: None, what: what.into(), why: why.into(), hint: hint.into() }
    }

    /// The same, at this line unless a line is known.
    pub(super) fn at(mut self, line: usize) -> PlatformError {
        self.line.get_or_insert(line);
        self
    }
}

pub(super) fn too_many(what: &str, most: u64) -> PlatformError {
    PlatformError::new(
        format!("too many {what}"),
        format!("at most {most} can be simulated"),
        "make a smaller platform",
    )
}

struct At(Option<usize>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, "line {line}: "))
    }
}
