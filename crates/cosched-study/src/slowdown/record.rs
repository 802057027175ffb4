//! The measurements and their evaluation, as the JSON document `cosched-slowdown-1` (docs/bench.md has its fields).

use super::mix::MixJob;
use serde::{Deserialize, Serialize};

/// The document's format and version.
pub const FORMAT: &str = "cosched-slowdown-1";

/// What was requested, and on which machine: the first part of the document, and the journal's first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Head {
    pub format: String,
    pub host: String,
    /// The number of CPUs that the jobs may use.
    pub cpus: usize,
    /// The version of cosched.
    pub cosched: String,
    /// The start time in RFC 3339 format.
    pub started: String,
    /// Empty for a mix.
    pub command: Vec<String>,
    pub jobs: Vec<u32>,
    pub policies: Vec<String>,
    pub repeat: u32,
    /// The time limit of a run; None: 30 t_1 for each job, at least 60 s.
    pub limit_s: Option<f64>,
    #[serde(default)]
    pub baseline: Baseline,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_regex: Option<String>,
    /// The jobs of a mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<MixJob>,
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Document {
    #[serde(flatten)]
    pub head: Head,
    pub runs: Vec<Run>,
    pub single: Option<Single>,
    pub results: Vec<Row>,
    /// For a mix: each job of it under each policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixRow>,
}

/// The time with which all others are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// One job alone under plain Linux
    #[default]
    Linux,
    /// One job alone under the same policy
    Own,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub enum Ended {
    /// All its jobs ended successfully.
    Done,
    Failed,
    /// The time limit was exceeded.
    Limit,
    /// It did not fit into memory.
    Memory,
    Interrupted,
}

impl Ended {
    /// The name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Done => "done",
            Ended::Failed => "failed",
            Ended::Limit => "limit",
            Ended::Memory => "memory",
            Ended::Interrupted => "interrupted",
        }
    }
}

/// A run of a set of concurrent jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Run {
    pub policy: String,
    pub jobs: u32,
    pub repetition: u32,
    pub outcome: Ended,
    /// Why it was not completed.
    pub why: Option<String>,
    /// The time until all jobs had ended; the time limit if they had not.
    pub elapsed_s: f64,
    pub others_cpu_share: Option<f64>,
    pub each: Vec<Each>,
    /// The index of a job of the mix that ran alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<usize>,
}

/// A job of a run. Times are relative to the start of the set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Each {
    pub job: usize,
    /// Its index in the list of commands.
    pub command: usize,
    pub start_s: f64,
    pub end_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub max_memory_bytes: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    pub phase_s: Option<f64>,
    /// The exit code; 128 + N after signal N; None if it is unknown.
    pub exit: Option<i32>,
}

impl Each {
    /// The time from its own start to its end.
    pub fn turnaround_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    /// CPU time: user and system.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// One job alone, the baseline for the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Single {
    pub policy: String,
    pub time_s: f64,
    pub time_stderr_s: Option<f64>,
    pub phase_s: Option<f64>,
    pub cpu_share: f64,
    pub peak_memory_bytes: u64,
    pub voluntary: f64,
    pub involuntary: f64,
}

/// A policy with a number of jobs: medians over the runs that were completed, unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Row {
    pub policy: String,
    pub jobs: u32,
    /// The number of runs that were completed.
    pub runs: usize,
    pub time_s: Option<f64>,
    pub time_mean_s: Option<f64>,
    pub time_stderr_s: Option<f64>,
    pub time_min_s: Option<f64>,
    pub time_max_s: Option<f64>,
    /// The main phase of the slowest job.
    pub phase_s: Option<f64>,
    pub slowdown: Option<f64>,
    pub slowdown_stderr: Option<f64>,
    pub cpu_share: Option<f64>,
    /// Jain's fairness index of the jobs' turnaround times.
    pub jain: Option<f64>,
    pub first_end_s: Option<f64>,
    pub last_end_s: Option<f64>,
    /// Context switches of all jobs together.
    pub voluntary: Option<f64>,
    pub involuntary: Option<f64>,
    pub not_done: usize,
    /// The outcome of the first run that was not completed.
    pub not_done_outcome: Option<Ended>,
    pub not_done_why: Option<String>,
    /// The largest memory use of one job that was seen.
    pub job_memory_bytes: u64,
}

/// A job of a mix under a policy: medians over the runs that were completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct MixRow {
    pub policy: String,
    pub command: usize,
    pub name: String,
    pub runs: usize,
    /// The time from its own start to its end; over all copies.
    pub turnaround_s: Option<f64>,
    pub turnaround_stderr_s: Option<f64>,
    /// The time alone under plain Linux.
    pub alone_s: Option<f64>,
    pub slowdown: Option<f64>,
    pub slowdown_stderr: Option<f64>,
}
