//! Inspecting running pipelines from outside: `cosched pipeline list` and `show`.
//!
//! A run with [`Options::serve`](crate::Options::serve) has a Unix socket in a directory of its user. A client of the same user or
//! root that connects gets one line of JSON, a [`Snapshot`]. A process that was killed leaves its socket behind: it is recognised
//! by having no listener, and the next listing removes it.

mod directory;
mod list;
mod serve;

use serde::{Deserialize, Serialize};

use crate::report::Report;

pub use list::{Listed, Silence, list};
pub(crate) use serve::Served;

/// Environment variable with a directory to use instead of the user's own, for containers and tests.
pub const DIRECTORY_VARIABLE: &str = "COSCHED_PIPELINE_DIR";

/// A running pipeline at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Snapshot {
    /// "cosched-pipeline-live-1".
    pub format: String,
    /// The process ID.
    pub pid: u32,
    /// The user ID of the process.
    pub uid: u32,
    /// The command line of the process.
    pub command: String,
    /// What it has done so far.
    pub report: Report,
}

impl Snapshot {
    /// The value of `format`.
    pub const FORMAT: &'static str = "cosched-pipeline-live-1";
}
