//! The measurements of a program.

use serde::Serialize;

/// All measurements. CPU shares are shares of all CPUs, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Facts {
    pub cpus: usize,
    /// Whether it ended by itself within the time limit; if not, it was cut off, and its times are meaningless.
    pub is_whole: bool,
    /// The median time alone under plain Linux, or the time at which it was cut off.
    pub alone_s: f64,
    pub cpu_share: f64,
    /// CPU time of one run alone.
    pub cpu_s: f64,
    pub memory_bytes: u64,
    pub memory_available_bytes: Option<u64>,
    /// How often per second one of its processes yielded its CPU to wait.
    pub voluntary_per_s: f64,
    /// How its processes were seen to wait for messages; None if that could not be seen (not MPI, or no wait library).
    pub waits: Option<Waits>,
    pub company: Vec<Company>,
    /// The share of the CPUs that other processes used.
    pub others_cpu_share: f64,
}

/// How its processes wait for messages, as counted by the wait library.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waits {
    /// Polls for messages per second of its CPU time, when alone.
    pub polls_per_cpu_s: f64,
    /// Waits per second of one job of two under `auto`; None if that was not tried, or no wait was long enough to be seen.
    pub per_s: Option<f64>,
}

/// Two jobs of the program at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Company {
    pub policy: String,
    /// The number of usable runs.
    pub runs: usize,
    /// t_2 / t_1; for a program that was cut off, derived from the CPU time that both got.
    pub slowdown: Option<f64>,
    /// The jobs had not ended: the slowdown is a lower bound.
    pub is_bound: bool,
    pub cpu_share: Option<f64>,
    /// CPU time of a job relative to that alone (in the same time, if it was cut off).
    pub cpu_growth: Option<f64>,
    /// Why there is no slowdown.
    pub why: Option<String>,
}
