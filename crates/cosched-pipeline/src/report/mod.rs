//! The results of a run as data, as text ([`Report::text`]), and as a Chrome trace ([`Report::chrome_trace`]).

mod file;
mod text;
mod trace;

use serde::{Deserialize, Serialize};

pub use file::ReportError;

/// A run of a graph, complete or so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// "cosched-pipeline-report-1".
    pub format: String,
    /// The graph's name.
    pub name: String,
    /// Wall-clock time from the start, seconds.
    pub elapsed_s: f64,
    /// Memory of all buffers, bytes.
    pub memory_bytes: u64,
    /// The number of CPUs that the process could use.
    #[serde(default)]
    pub cpus: u32,
    /// How priorities were chosen: a name of [`Priorities`](crate::Priorities).
    #[serde(default)]
    pub priorities: String,
    /// Blocks that reached the ends of all paths.
    #[serde(default)]
    pub rounds: u64,
    /// The stages, in the order in which they were made.
    pub stages: Vec<StageReport>,
    /// The lower bound of the running time of this work.
    #[serde(default)]
    pub bound: Bound,
    /// Numbers of waiting buffers, over time.
    #[serde(default)]
    pub occupancy: Occupancy,
    /// Stages that were seen to hold a buffer for too long.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// Notes for the reader: settings that were refused, and the like.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The trace, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

impl Report {
    /// The value of `format`.
    pub const FORMAT: &'static str = "cosched-pipeline-report-1";

    /// Bound divided by elapsed time: 1 is the best possible for this work on this machine; 0 if nothing was done.
    pub fn efficiency(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.bound.s() / self.elapsed_s } else { 0.0 }
    }
}

/// What one stage did. Times are seconds, summed over its incarnations.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// What it mostly uses: "compute", "communicate" or "io".
    pub resource: String,
    /// "thread" or "worker".
    pub kind: String,
    /// The number of incarnations that ran concurrently.
    pub incarnations: usize,
    /// The number of buffers processed.
    pub rounds: u64,
    /// Bytes in these buffers, as the stage left them.
    pub bytes: u64,
    /// Time at work on a buffer; includes waiting for a device, for the network or for a CPU.
    pub busy_s: f64,
    /// CPU time. For threads that several stages share, divided in proportion to their times at work.
    #[serde(default)]
    pub cpu_s: f64,
    /// Time ready to run but without a CPU (the kernel's run-queue delay).
    #[serde(default)]
    pub delay_s: f64,
    /// Time waiting for a buffer of its predecessor.
    pub wait_in_s: f64,
    /// Time waiting for an empty buffer, because its successors hold them.
    pub wait_out_s: f64,
    /// How often its threads left a CPU because they waited.
    #[serde(default)]
    pub switches_voluntary: u64,
    /// How often they were preempted.
    #[serde(default)]
    pub switches_involuntary: u64,
    /// The number of buffers that wait for it now.
    pub queue: usize,
    /// The mean of that number over the run.
    #[serde(default)]
    pub queue_mean: f64,
    /// The maximum of that number that was seen.
    #[serde(default)]
    pub queue_max: usize,
    /// The kernel's IDs of its existing threads.
    #[serde(default)]
    pub tids: Vec<i32>,
    /// Its scheduling, as far as it was changed: "nice 10, slice 0.1 ms".
    #[serde(default)]
    pub settings: String,
    /// Changes to its scheduling that were made or attempted; the first [`StageReport::ACTIONS_MAX`].
    #[serde(default)]
    pub actions: Vec<Action>,
    /// The total number of actions.
    #[serde(default)]
    pub actions_count: u64,
}

impl StageReport {
    /// The maximum number of actions that are kept: an adjusting rule may act on every buffer.
    pub const ACTIONS_MAX: usize = 64;
}

/// A change of a stage's scheduling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// When, in seconds from the start.
    pub at_s: f64,
    /// What requested it: "stage", or a name of [`Priorities`](crate::Priorities).
    pub by: String,
    /// The requested change: "nice 10", "slice 0.1 ms", "class batch", "CPU 0", "2 threads".
    pub change: String,
    /// Why, in words.
    pub why: String,
    /// Why the system refused it; None if it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The lower bound of the running time, by resource (Roysden 2004, section 1). Seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// CPU time divided by the number of CPUs, or the time of the busiest stage that computes divided by the number of its
    /// threads.
    pub compute_s: f64,
    /// The time of the busiest stage that communicates.
    pub communicate_s: f64,
    /// The time of the busiest stage that does I/O.
    pub io_s: f64,
    /// The resource with the largest of the three times: "compute", "communicate" or "io".
    pub limiting: String,
    /// The bottleneck stage, if one stands out.
    #[serde(default)]
    pub stage: Option<String>,
}

impl Bound {
    /// max(compute, communicate, I/O).
    pub fn s(&self) -> f64 {
        self.compute_s.max(self.communicate_s).max(self.io_s)
    }
}

/// The numbers of buffers that waited for each stage: samples over time, each the mean until its instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Instants, in seconds from the start.
    pub at_s: Vec<f64>,
    /// For each instant one number per stage.
    pub waiting: Vec<Vec<f32>>,
}

/// A stage that held a buffer for too long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// The stage.
    pub stage: String,
    /// The kernel's ID of its thread.
    pub tid: i32,
    /// "works on block 17", or another description.
    pub what: String,
    /// Since when, in seconds from the start.
    pub since_s: f64,
    /// How long it has lasted, or did last, in seconds.
    pub held_s: f64,
    /// Whether the stage has continued since.
    pub over: bool,
}

/// The times of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// By thread.
    pub spans: Vec<Span>,
    /// The number of rounds that were dropped for lack of room.
    pub dropped: u64,
}

/// One round of one stage: (index of the stage in the report, thread ID, block, start in µs, length in µs), from the
/// graph's start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span(pub u32, pub i32, pub u64, pub f64, pub f64);
