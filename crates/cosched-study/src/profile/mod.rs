//! Profiles: what each task of a program computes, sends and waits for, as recorded by `cosched record`.
//!
//! A profile is JSON, `"format":"cosched-profile-1"`. It has totals for each task and, for MPI programs, the ordered
//! operations with repetitions written as loops. Times of operations are sums over all iterations of their loops, in
//! whole nanoseconds, so that writing a program in a shorter form loses none of its computation: only the variation
//! from one iteration of a loop to the next. docs/record.md describes the format.

mod build;
mod check;
mod collectives;
mod convert;
#[doc(hidden)]
pub mod fuzz;
mod network;
mod observed;
mod rank_file;
mod repeats;
mod steps;

pub use build::{Run, from_rank_files};
pub use observed::{Observed, from_observation};
pub use steps::{Call, Step, iterations, length};

use serde::{Deserialize, Serialize};

/// The format and its version.
pub const FORMAT: &str = "cosched-profile-1";

/// More tasks than any simulation will have.
const TASKS_MAX: u32 = 1 << 20;

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Profile {
    pub format: String,
    /// How it was recorded.
    pub by: By,
    /// The version of cosched that recorded it.
    pub cosched: String,
    pub command: Vec<String>,
    /// The time of the recording, in RFC 3339 format.
    pub recorded: String,
    pub host: String,
    /// The MPI library.
    #[serde(default)]
    pub library: Option<String>,
    pub tasks: u32,
    /// For MPI programs from the return of `MPI_Init` to the call of `MPI_Finalize`, for the slowest task.
    pub elapsed_s: f64,
    /// Whether all tasks were recorded to their end, and nothing was left out.
    pub complete: bool,
    /// The command's exit code, as in a shell.
    pub exit: u8,
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The cost of messages.
    #[serde(default)]
    pub network: Option<Network>,
    /// Groups of tasks, to which operations refer by index; the first group is all tasks.
    #[serde(default)]
    pub groups: Vec<Vec<u32>>,
    pub each: Vec<Task>,
}

/// How a profile was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// With the MPI profiling interface.
    Mpi,
    /// By observing the processes from outside: no messages.
    Observation,
}

/// The cost of messages that the recording shows: one of n words of 8 bytes takes alpha + beta n.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Network {
    pub alpha_us: f64,
    pub beta_us_per_word: f64,
    /// The number of messages and collectives on which this is based.
    pub samples: u64,
}

/// The totals of a task. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Task {
    pub task: u32,
    /// CPU time outside MPI.
    pub compute_s: f64,
    /// In MPI calls, including waiting.
    pub message_s: f64,
    /// Of that, on the CPU.
    pub message_cpu_s: f64,
    /// Not on the CPU outside MPI, without waiting for a CPU, and in MPI's file functions.
    pub io_s: f64,
    /// Ready to run, but without a CPU, outside MPI.
    pub wait_s: f64,
    /// Point-to-point messages sent, and their bytes.
    pub messages: u64,
    pub bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
    /// Number of calls of each function.
    #[serde(default)]
    pub functions: Vec<Function>,
    #[serde(default)]
    pub operations: Vec<Step>,
}

/// The number of calls of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Function {
    pub name: String,
    pub calls: u64,
}

/// An event of an operation; `G` is the type that identifies a group of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub enum Event<G> {
    /// Sends a message.
    Send { to: u32, bytes: u64 },
    /// Has received a message.
    Receive { from: u32, bytes: u64 },
    /// Takes part in a collective.
    Together(Collective<G>),
    /// Begins a nonblocking collective.
    Begin(Collective<G>),
    /// Has completed a nonblocking collective.
    End(Collective<G>),
    /// Has moved bytes from or to a file.
    File { bytes: u64 },
    /// An operation of which only the time is known.
    Unknown,
}

/// A collective operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Collective<G> {
    pub what: What,
    pub among: G,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<u32>,
    /// The size of this task's part.
    pub bytes: u64,
}

/// Kinds of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "MPI says what each means")]
pub enum What {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    ReduceScatter,
    Scan,
}

impl What {
    /// The collective of the MPI function with this name; creating a communicator counts as a barrier of all tasks in
    /// the old one.
    fn of(function: &str) -> Option<What> {
        let name = function.strip_prefix("MPI_")?;
        let name = name.strip_prefix('I').unwrap_or(name);
        Some(match name.to_ascii_lowercase().as_str() {
            "barrier"
            | "comm_split"
            | "comm_split_type"
            | "comm_dup"
            | "comm_dup_with_info"
            | "comm_create"
            | "cart_create"
            | "cart_sub"
            | "dist_graph_create_adjacent" => What::Barrier,
            "bcast" => What::Bcast,
            "reduce" => What::Reduce,
            "allreduce" => What::Allreduce,
            "gather" | "gatherv" => What::Gather,
            "scatter" | "scatterv" => What::Scatter,
            "allgather" | "allgatherv" => What::Allgather,
            "alltoall" | "alltoallv" | "alltoallw" => What::Alltoall,
            "reduce_scatter" | "reduce_scatter_block" => What::ReduceScatter,
            "scan" | "exscan" => What::Scan,
            _ => return None,
        })
    }
}

/// Sums and means over the tasks of a profile, as needed by a model. Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Totals {
    pub tasks: u32,
    pub elapsed_s: f64,
    pub compute_s_mean: f64,
    pub compute_s_max: f64,
    pub io_s_mean: f64,
    pub message_s_mean: f64,
    pub message_cpu_s_mean: f64,
    /// The messages that a task sends and their bytes, with collectives expanded as in the simulator.
    pub messages_mean: f64,
    pub bytes_mean: f64,
}

impl Profile {
    /// Totals over the tasks. Messages include those of collectives; for an observed program there are none.
    pub fn totals(&self) -> Totals {
        let count = f64::from(self.tasks.max(1));
        let mean = |of: fn(&Task) -> f64| self.each.iter().map(of).sum::<f64>() / count;
        let (messages, bytes) = convert::messages(self);
        Totals {
            tasks: self.tasks,
            elapsed_s: self.elapsed_s,
            compute_s_mean: mean(|task| task.compute_s),
            compute_s_max: self.each.iter().map(|task| task.compute_s).fold(0.0, f64::max),
            io_s_mean: mean(|task| task.io_s),
            message_s_mean: mean(|task| task.message_s),
            message_cpu_s_mean: mean(|task| task.message_cpu_s),
            messages_mean: messages as f64 / count,
            bytes_mean: bytes as f64 / count,
        }
    }

    /// Parses the text of a profile and checks it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn parse(text: &str) -> Result<Profile, String> {
        #[derive(Deserialize)]
        struct Version {
            format: Option<String>,
        }
        let version: Version = serde_json::from_str(text).map_err(|e| format!("it is not JSON of a profile: {e}"))?;
        match version.format.as_deref() {
            Some(FORMAT) => {}
            Some(other) if other.starts_with("cosched-profile-") => {
                return Err(format!("it has the format {other}, and this cosched reads {FORMAT}"));
            }
            _ => return Err(format!("it does not say \"format\":\"{FORMAT}\"")),
        }
        let profile: Profile = serde_json::from_str(text).map_err(|e| e.to_string())?;
        profile.check()?;
        Ok(profile)
    }
}
