//! What is measured and what is made of it, as the JSON document `cosched-slowdown-1` (docs/bench.md has its fields).

use super::mix::MixJob;
use serde::{Deserialize, Serialize};

/// The document's name and version.
pub const FORMAT: &str = "cosched-slowdown-1";

/// What was asked for, and where: the document's beginning, and the journal's first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Head {
    pub format: String,
    pub host: String,
    /// CPUs that the jobs may use.
    pub cpus: usize,
    /// The version of cosched.
    pub cosched: String,
    /// RFC 3339.
    pub started: String,
    /// Empty for a mix.
    pub command: Vec<String>,
    pub jobs: Vec<u32>,
    pub policies: Vec<String>,
    pub repeat: u32,
    /// None: 30 t_1 for each job, at least 60 s.
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
    /// Of a mix: each job of it under each policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixRow>,
}

/// The time with which all are compared.
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
    /// As the document has it.
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

/// A set of jobs that ran at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Run {
    pub policy: String,
    pub jobs: u32,
    pub repetition: u32,
    pub outcome: Ended,
    /// Why it was not done.
    pub why: Option<String>,
    /// Until all had ended; to the limit if they had not.
    pub elapsed_s: f64,
    pub others_cpu_share: Option<f64>,
    pub each: Vec<Each>,
    /// A job of the mix that ran alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<usize>,
}

/// A job of a run. Times are from the beginning of the set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Each {
    pub job: usize,
    /// Its place in the list of commands.
    pub command: usize,
    pub start_s: f64,
    pub end_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub max_memory_bytes: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    pub phase_s: Option<f64>,
    /// The exit code; 128 + N after signal N; none when nobody knows.
    pub exit: Option<i32>,
}

impl Each {
    /// From its own start to its end.
    pub fn turnaround_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    /// Of user and system.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// One job alone, with which the others are compared.
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

/// A policy with a number of jobs: medians over the runs that were done, unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Row {
    pub policy: String,
    pub jobs: u32,
    /// Those that were done.
    pub runs: usize,
    pub time_s: Option<f64>,
    pub time_mean_s: Option<f64>,
    pub time_stderr_s: Option<f64>,
    pub time_min_s: Option<f64>,
    pub time_max_s: Option<f64>,
    /// The slowest job's main phase.
    pub phase_s: Option<f64>,
    pub slowdown: Option<f64>,
    pub slowdown_stderr: Option<f64>,
    pub cpu_share: Option<f64>,
    /// Jain's index of the jobs' turnarounds.
    pub jain: Option<f64>,
    pub first_end_s: Option<f64>,
    pub last_end_s: Option<f64>,
    /// Of all jobs together.
    pub voluntary: Option<f64>,
    pub involuntary: Option<f64>,
    pub not_done: usize,
    /// The outcome of the first that was not done.
    pub not_done_outcome: Option<Ended>,
    pub not_done_why: Option<String>,
    /// The largest memory of one job that was seen.
    pub job_memory_bytes: u64,
}

/// A job of a mix under a policy: medians over the runs that were done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct MixRow {
    pub policy: String,
    pub command: usize,
    pub name: String,
    pub runs: usize,
    /// From its own start to its end; over all copies.
    pub turnaround_s: Option<f64>,
    pub turnaround_stderr_s: Option<f64>,
    /// Alone under plain Linux.
    pub alone_s: Option<f64>,
    pub slowdown: Option<f64>,
    pub slowdown_stderr: Option<f64>,
}
