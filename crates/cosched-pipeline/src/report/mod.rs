//! What a run was like, as data; as text ([`Report::text`]) and as a Chrome trace ([`Report::chrome_trace`]).

mod file;
mod text;
mod trace;

use serde::{Deserialize, Serialize};

pub use file::ReportError;

/// A run of a graph, whole or so far.
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
    /// How many threads of the process could run at once.
    #[serde(default)]
    pub cpus: u32,
    /// How priorities were chosen: a name of [`Priorities`](crate::Priorities).
    #[serde(default)]
    pub priorities: String,
    /// Blocks that came out at the ends of all paths.
    #[serde(default)]
    pub rounds: u64,
    /// The stages, in the order in which they were made.
    pub stages: Vec<StageReport>,
    /// The time that the work needs at least.
    #[serde(default)]
    pub bound: Bound,
    /// Buffers that waited, over time.
    #[serde(default)]
    pub occupancy: Occupancy,
    /// Stages that were seen to hold a buffer for long.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// What a reader should know: settings that could not be had, and the like.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

impl Report {
    /// The value of `format`.
    pub const FORMAT: &'static str = "cosched-pipeline-report-1";

    /// Bound over elapsed time: 1 is the best that this work could have had here; 0 if nothing was done.
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
    /// How many of it ran at once.
    pub incarnations: usize,
    /// Buffers done.
    pub rounds: u64,
    /// Bytes in these buffers, as the stage left them.
    pub bytes: u64,
    /// With a buffer, at work on it; this includes waits for a device, for the network or for a CPU.
    pub busy_s: f64,
    /// CPU time. Of threads that several stages share, as they shared the time at work.
    #[serde(default)]
    pub cpu_s: f64,
    /// Ready to run, without a CPU (the kernel's run-queue delay).
    #[serde(default)]
    pub delay_s: f64,
    /// Without a buffer of its predecessor.
    pub wait_in_s: f64,
    /// Without an empty buffer, because its successors hold them.
    pub wait_out_s: f64,
    /// Times that its threads left a CPU because they waited.
    #[serde(default)]
    pub switches_voluntary: u64,
    /// Times that they left it because another was put in their place.
    #[serde(default)]
    pub switches_involuntary: u64,
    /// Buffers that wait before it now.
    pub queue: usize,
    /// The mean of that over the run.
    #[serde(default)]
    pub queue_mean: f64,
    /// The most that was seen.
    #[serde(default)]
    pub queue_max: usize,
    /// Its threads that live, by the kernel's numbers.
    #[serde(default)]
    pub tids: Vec<i32>,
    /// How it is scheduled, as far as that was changed: "nice 10, slice 0.1 ms".
    #[serde(default)]
    pub settings: String,
    /// What was done to its scheduling, or would have been; the first [`StageReport::ACTIONS_MAX`].
    #[serde(default)]
    pub actions: Vec<Action>,
    /// How many actions there were.
    #[serde(default)]
    pub actions_count: u64,
}

impl StageReport {
    /// Actions that are kept: an adjusting rule may act at every buffer.
    pub const ACTIONS_MAX: usize = 64;
}

/// A change of a stage's scheduling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// When, in seconds from the start.
    pub at_s: f64,
    /// Who asked: "stage", a name of [`Priorities`](crate::Priorities).
    pub by: String,
    /// What for: "nice 10", "slice 0.1 ms", "class batch", "CPU 0", "2 threads".
    pub change: String,
    /// Why, in words.
    pub why: String,
    /// Why the system refused it; none if it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The time that the work needs at least, by resource (Roysden 2004, section 1). Seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// CPU time over CPUs, or of the busiest stage that computes over its threads.
    pub compute_s: f64,
    /// Of the busiest stage that communicates.
    pub communicate_s: f64,
    /// Of the busiest stage that does I/O.
    pub io_s: f64,
    /// The resource of the three that needs most: "compute", "communicate" or "io".
    pub limiting: String,
    /// The stage that the others wait for, if one stands out.
    #[serde(default)]
    pub stage: Option<String>,
}

impl Bound {
    /// max(compute, communicate, I/O).
    pub fn s(&self) -> f64 {
        self.compute_s.max(self.communicate_s).max(self.io_s)
    }
}

/// Buffers that waited before each stage: samples over time, each the mean until its instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Instants, in seconds from the start.
    pub at_s: Vec<f64>,
    /// For each instant one number per stage.
    pub waiting: Vec<Vec<f32>>,
}

/// A stage that held a buffer for long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// The stage.
    pub stage: String,
    /// Its thread.
    pub tid: i32,
    /// "works on block 17", or what else it does.
    pub what: String,
    /// Since when, in seconds from the start.
    pub since_s: f64,
    /// How long it has been, or was, seconds.
    pub held_s: f64,
    /// It has gone on since.
    pub over: bool,
}

/// Rounds as they were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// By thread.
    pub spans: Vec<Span>,
    /// Rounds that found no room.
    pub dropped: u64,
}

/// One round of one stage: (stage by its place in the report, thread, block, begin µs, length µs), from the graph's start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span(pub u32, pub i32, pub u64, pub f64, pub f64);
