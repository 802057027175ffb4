//! What is measured and what is made of it, as the JSON document `cosched-slowdown-1` (docs/bench.md has its fields).

use super::args::Baseline;
use super::mix::MixJob;
use serde::{Deserialize, Serialize};

/// The document's name and version.
pub(crate) const FORMAT: &str = "cosched-slowdown-1";

/// What was asked for, and where: the document's beginning, and the journal's first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) format: String,
    pub(crate) host: String,
    /// CPUs that the jobs may use.
    pub(crate) cpus: usize,
    /// The version of cosched.
    pub(crate) cosched: String,
    /// RFC 3339.
    pub(crate) started: String,
    /// Empty for a mix.
    pub(crate) command: Vec<String>,
    pub(crate) jobs: Vec<u32>,
    pub(crate) policies: Vec<String>,
    pub(crate) repeat: u32,
    /// None: 30 t_1 for each job, at least 60 s.
    pub(crate) limit_s: Option<f64>,
    #[serde(default)]
    pub(crate) baseline: Baseline,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase_regex: Option<String>,
    /// The jobs of a mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) commands: Vec<MixJob>,
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) runs: Vec<Run>,
    pub(crate) single: Option<Single>,
    pub(crate) results: Vec<Row>,
    /// Of a mix: each job of it under each policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) mix: Vec<MixRow>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// All its jobs ended with success.
    Done,
    Failed,
    /// The time limit came first.
    Limit,
    /// It did not fit into memory.
    Memory,
    Interrupted,
}

impl Ended {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ended::Done => "done",
            Ended::Failed => "failed",
            Ended::Limit => "limit",
            Ended::Memory => "memory",
            Ended::Interrupted => "interrupted",
        }
    }
}

/// A set of jobs that ran at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) policy: String,
    pub(crate) jobs: u32,
    pub(crate) repetition: u32,
    pub(crate) outcome: Ended,
    /// Why it was not done.
    pub(crate) why: Option<String>,
    /// Until all had ended; to the limit if they had not.
    pub(crate) elapsed_s: f64,
    pub(crate) others_cpu_share: Option<f64>,
    pub(crate) each: Vec<Each>,
    /// A job of the mix that ran alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alone: Option<usize>,
}

/// A job of a run. Times are from the beginning of the set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Each {
    pub(crate) job: usize,
    /// Its place in the list of commands.
    pub(crate) command: usize,
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) max_memory_bytes: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) phase_s: Option<f64>,
    /// The exit code; 128 + N after signal N; none when nobody knows.
    pub(crate) exit: Option<i32>,
}

impl Each {
    pub(crate) fn turnaround_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    pub(crate) fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// One job alone, with which the others are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Single {
    pub(crate) policy: String,
    pub(crate) time_s: f64,
    pub(crate) time_stderr_s: Option<f64>,
    pub(crate) phase_s: Option<f64>,
    pub(crate) cpu_share: f64,
    pub(crate) peak_memory_bytes: u64,
    pub(crate) voluntary: f64,
    pub(crate) involuntary: f64,
}

/// A policy with a number of jobs: medians over the runs that were done, unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) policy: String,
    pub(crate) jobs: u32,
    /// Those that were done.
    pub(crate) runs: usize,
    pub(crate) time_s: Option<f64>,
    pub(crate) time_mean_s: Option<f64>,
    pub(crate) time_stderr_s: Option<f64>,
    pub(crate) time_min_s: Option<f64>,
    pub(crate) time_max_s: Option<f64>,
    /// The slowest job's main phase.
    pub(crate) phase_s: Option<f64>,
    pub(crate) slowdown: Option<f64>,
    pub(crate) slowdown_stderr: Option<f64>,
    pub(crate) cpu_share: Option<f64>,
    /// Jain's index of the jobs' turnarounds.
    pub(crate) jain: Option<f64>,
    pub(crate) first_end_s: Option<f64>,
    pub(crate) last_end_s: Option<f64>,
    /// Of all jobs together.
    pub(crate) voluntary: Option<f64>,
    pub(crate) involuntary: Option<f64>,
    pub(crate) not_done: usize,
    /// The outcome of the first that was not done.
    pub(crate) not_done_outcome: Option<Ended>,
    pub(crate) not_done_why: Option<String>,
    /// The largest memory of one job that was seen.
    pub(crate) job_memory_bytes: u64,
}

/// A job of a mix under a policy: medians over the runs that were done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MixRow {
    pub(crate) policy: String,
    pub(crate) command: usize,
    pub(crate) name: String,
    pub(crate) runs: usize,
    /// From its own start to its end; over all copies.
    pub(crate) turnaround_s: Option<f64>,
    pub(crate) turnaround_stderr_s: Option<f64>,
    /// Alone under plain Linux.
    pub(crate) alone_s: Option<f64>,
    pub(crate) slowdown: Option<f64>,
    pub(crate) slowdown_stderr: Option<f64>,
}
