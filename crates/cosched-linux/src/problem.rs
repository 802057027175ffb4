//! A complete error message: what happened, why, and what to do about it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

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

/// An error of our cgroups.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The kernel refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, such as "create".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Something is missing, with what to do about it.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The job has no cgroup.
    #[error("job {0} has no cgroup")]
    NoSuchJob(u64),
}

impl TreeError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TreeError {
        move |source| TreeError::Io { action, path: path.into(), source }
    }
}
