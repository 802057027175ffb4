//! What a run was like, as data.

use serde::{Deserialize, Serialize};

/// A run of a graph, whole or so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// "cosched-pipeline-report-1".
    pub format: String,
    /// The graph's name.
    pub name: String,
    /// Wall-clock time from the start, seconds.
    pub elapsed_s: f64,
    /// Memory of all buffers, bytes.
    pub memory_bytes: u64,
    /// The stages, in the order in which they were made.
    pub stages: Vec<StageReport>,
}

impl Report {
    /// The value of `format`.
    pub const FORMAT: &'static str = "cosched-pipeline-report-1";
}

/// What one stage did. Times are seconds, summed over its incarnations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// What it mostly uses: "compute", "communicate" or "io".
    pub resource: String,
    /// "thread" or "worker".
    pub kind: String,
    /// How many of it ran at once.
    pub incarnations: usize,
    /// Buffers done.
    pub rounds: u64,
    /// Bytes in these buffers, as the stage left them.
    pub bytes: u64,
    /// In its own code.
    pub busy_s: f64,
    /// Without a buffer of its predecessor.
    pub wait_in_s: f64,
    /// Without an empty buffer, because its successors hold them.
    pub wait_out_s: f64,
    /// Buffers that wait before it now.
    pub queue: usize,
}
