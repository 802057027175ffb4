//! What was measured of a program.

use serde::Serialize;

/// All of it. CPU shares are parts of all CPUs, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Facts {
    pub cpus: usize,
    /// Whether it ended by itself in its time; if not, it was cut, and times say nothing about it.
    pub is_whole: bool,
    /// The median time alone under plain Linux, or when it was cut.
    pub alone_s: f64,
    pub cpu_share: f64,
    /// CPU time of one run alone.
    pub cpu_s: f64,
    pub memory_bytes: u64,
    pub memory_available_bytes: Option<u64>,
    /// Times a second that one of its processes gave its CPU away to wait.
    pub voluntary_per_s: f64,
    /// What its processes were seen to wait for messages; none where it was not seen (not MPI, or no wait library).
    pub waits: Option<Waits>,
    pub company: Vec<Company>,
    /// The part of the CPUs that other processes used.
    pub others_cpu_share: f64,
}

/// How its processes wait for messages, as the wait library counts it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waits {
    /// Times that it asks for a message without waiting, for each second of its CPU time, alone.
    pub polls_per_cpu_s: f64,
    /// Waits a second of one job of two under `auto`; none where that was not tried, or no wait was long enough to be seen.
    pub per_s: Option<f64>,
}

/// Two of it at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Company {
    pub policy: String,
    /// Runs that say something.
    pub runs: usize,
    /// t_2 / t_1; for a program that was cut, what the CPU time that both got says about it.
    pub slowdown: Option<f64>,
    /// They had not ended: the slowdown is at least this.
    pub is_bound: bool,
    pub cpu_share: Option<f64>,
    /// CPU time of a job against alone (in the same time, if it was cut).
    pub cpu_growth: Option<f64>,
    /// Why there is no number.
    pub why: Option<String>,
}
