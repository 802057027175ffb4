//! The wire types, version 1. JSON objects; readers ignore unknown fields, requests with unknown fields are refused.
//!
//! Times are milliseconds since the Unix epoch (`_unix_ms`); the names of durations end with their unit. Fields whose value a daemon cannot
//! know are absent, never zero.

use crate::adopt::{Adopt, Adopted};
use crate::job_state::{Decision, JobState};
use crate::machine::{ClassShares, Clock, ClusterStatus, Load, NodeStatus, Packing, Period};
use crate::policy::{Policy, Sharing};
use crate::resources::{JobUse, NodeResources, OutOfMemory};
use crate::waiting::{Boosting, Chosen, JobWaiting, Waiting};
use crate::wire::wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

wire! {
    /// A job's class, from the most to the least urgent (LLNL, "Gang Scheduler Design").
    pub enum Class {
        /// Mission critical; administrators only.
        Express,
        /// Rapid response.
        Interactive,
        /// Throughput.
        Batch,
        /// Takes what others leave.
        Standby,
    }
}

impl Class {
    /// Every class, from the most to the least urgent.
    pub const ALL: [Class; 4] = [Class::Express, Class::Interactive, Class::Batch, Class::Standby];
}

wire! {
    /// What becomes of a job of a cluster one of whose nodes is lost.
    pub enum OnNodeLoss {
        /// Its other processes are ended.
        Kill,
        /// Its other processes continue.
        Keep,
        /// Its other processes are ended, and it is started again.
        Requeue,
    }

    /// How the main process of a job ended; one of the two fields is present.
    #[derive(Copy, Eq)]
    pub struct ExitStatus {
        /// Its exit code.
        pub code: Option<i32>,
        /// The number of the signal that ended it.
        pub signal: Option<i32>,
    }

    /// `POST /v1/jobs`: register a job and put its first process into its cgroups.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct JobRequest {
        /// The program and its arguments, for display.
        pub command: Vec<String>,
        /// The process that will execute the command. It must belong to the caller and be the calling process or a
        /// child of it, and should be waiting: it is in the job's cgroups when the answer arrives. 0: none yet; the job's
        /// processes are added later (`POST /v1/jobs/{id}/processes`), the first within 60 s.
        pub pid: i32,
        /// A name for display; the program's base name by default.
        pub name: Option<String>,
        /// `interactive` by default, `batch` when detached.
        pub class: Option<Class>,
        /// The CPUs that the job uses at a time; all of the machine's by default.
        pub cpus: Option<u32>,
        /// The memory that the job is expected to use, in bytes: it starts when that is free. It is no limit.
        pub mem_bytes: Option<u64>,
        /// The job's own policy; the machine's by default, also when that changes.
        pub policy: Option<Policy>,
        /// The part of the time that it has at most, in whole slots, 0.001 to 1; then it is a gang, whatever its policy.
        pub share_max: Option<f64>,
        /// Its share is the quota of CPU time that the owner of the adopted cgroup has set, which is lifted while that share holds, and put back.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub share_from_quota: bool,
        /// How its processes wait. Present when the caller loads the wait library into them: the answer then names the
        /// job's page, for their `COSCHED_WAIT_PAGE`.
        pub waiting: Option<Waiting>,
        /// The working directory, for display.
        pub cwd: Option<String>,
        /// No `cosched run` waits for it.
        #[serde(default)]
        pub detached: bool,
        /// The file that takes its output, when detached.
        pub log_path: Option<String>,
        /// What it wants of each of its nodes, instead of `cpus` and `mem_bytes`.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub nodes: Vec<NodeResources>,
        /// Its queue, in a cluster; the first one by default.
        pub queue: Option<String>,
        /// What becomes of it when one of its nodes is lost; `kill` by default.
        pub on_node_loss: Option<OnNodeLoss>,
        /// The environment of its program, for a job that a daemon may start again (`on_node_loss`: `requeue`).
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub environment: Vec<(String, String)>,
        /// The user to whom the job will belong; the caller by default. Another user: administrators only, and only with
        /// `pid` 0, since processes that are added later must run as the owner. For launchers that act for users (Slurm).
        pub owner_uid: Option<u32>,
        /// For launchers that each start a part of a job on their own node: the first one's request makes it, and the others
        /// get the same job, if it lives and has the owner, the name and the nodes that they give. Only with `pid` 0. On
        /// several nodes such a job has no main process: it ends when it is empty on all of them.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub once: bool,
        /// It runs no longer than this, not counting the time for which it is suspended. Then its processes get SIGTERM, and SIGKILL after
        /// the grace time.
        pub time_ms_max: Option<u64>,
        /// The grace time: 10 s by default, an hour at most; in a queue with a time limit never more than 10 s.
        pub grace_ms: Option<u64>,
        /// It starts no earlier.
        pub begin_unix_ms: Option<u64>,
        /// It starts when these jobs have ended, which are the caller's (an administrator's: anybody's).
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub after: Vec<After>,
        /// Its processes on a node use no more memory than this there, in bytes: the kernel sees to it.
        pub mem_bytes_max: Option<u64>,
        /// It has as many whole cores as CPUs, one CPU of each, and their other CPUs (siblings) stay empty in its slots. Jobs of one node.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub exclusive_cores: bool,
        /// What exists already and is to become this job, on the daemon's node; then `pid` is 0, and the job is over when it is empty, has
        /// gone, or is released (`POST /v1/jobs/{id}/release`). Users adopt what is theirs alone.
        pub adopt: Option<Adopt>,
        /// `pid` waits, and will be the job's keeper: it executes `KEEPER keep CGROUP LEFTOVERS LD_PRELOAD PROGRAM ARGV0 ARGS…`, with `keeper` of the status and
        /// `cgroup` of the job. Required of a daemon that has a keeper.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub keeper: bool,
    }

    /// A job that another one comes after.
    #[derive(Copy, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct After {
        /// Its number.
        pub job: u64,
        /// Only if it ends by itself with exit code 0; if it ends otherwise, the later job is ended.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub ok: bool,
    }

    /// A job as the daemon sees it.
    pub struct Job {
        /// Unique for ever in one state directory.
        pub id: u64,
        /// For display.
        pub name: String,
        /// Its owner.
        pub uid: u32,
        /// Its owner's name, or the number where it has none.
        pub user: String,
        /// Its class.
        pub class: Class,
        /// The policy in force for it.
        pub policy: Policy,
        /// Its own policy, if it does not follow the machine's.
        pub own_policy: Option<Policy>,
        /// CPUs at a time.
        pub cpus: u32,
        /// Its place: the CPUs of the daemon's node that its processes may use, as the kernel lists them ("0-3,8"); none when these are all.
        pub places: Option<String>,
        /// Declared memory, on all its nodes together.
        pub mem_bytes: Option<u64>,
        /// Where it is in its life.
        pub state: JobState,
        /// The program and its arguments; empty where they are not the caller's to see (`private_data`). A list has the first 512 bytes,
        /// and neither `cwd` nor `log_path`.
        pub command: Vec<String>,
        /// The working directory.
        pub cwd: Option<String>,
        /// The first process.
        pub pid: i32,
        /// Registration.
        pub submitted_unix_ms: u64,
        /// When it last started: it has CPUs since then. Absent while it waits, and where this node does not know.
        pub started_unix_ms: Option<u64>,
        /// While it waits, and has a reservation: when it starts at the latest, if those before it run no longer than their time limits.
        pub expected_start_unix_ms: Option<u64>,
        /// A signal has stopped its first process (Ctrl-Z); scheduling did not.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub stopped: bool,
        /// The end of its last process.
        pub ended_unix_ms: Option<u64>,
        /// How the main process ended; absent while it runs, and when its end was not observed.
        pub exit: Option<ExitStatus>,
        /// Processes in its cgroup now.
        pub processes: Option<u32>,
        /// CPU time used so far.
        pub cpu_time_ms: u64,
        /// CPU use over the last seconds, in percent of one CPU.
        pub cpu_percent: Option<f64>,
        /// Memory in use now.
        pub memory_bytes: Option<u64>,
        /// The most memory it used.
        pub memory_peak_bytes: Option<u64>,
        /// No `cosched run` waits for it.
        pub detached: bool,
        /// An administrator registered it.
        #[serde(default)]
        pub by_admin: bool,
        /// What administrators have decided about it: its owner cannot change that.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub decided: Vec<Decision>,
        /// Where its output is, when detached.
        pub log_path: Option<String>,
        /// Its home row of the matrix, while it has one.
        pub row: Option<u32>,
        /// The part of the time in which it owns its CPUs, 0 to 1, while it is a gang with slots.
        pub share: Option<f64>,
        /// The part of the time that it has at most, 0 to 1, if it has a share.
        pub share_max: Option<f64>,
        /// Its cgroup in the v2 hierarchy, relative to the mount; without cgroups its directory.
        pub cgroup: String,
        /// How its processes wait, when the wait library was to be loaded into them.
        pub waiting: Option<JobWaiting>,
        /// What `auto` has chosen for it, while that is its policy.
        pub chosen: Option<Chosen>,
        /// How often it was raised because a message waited for it.
        pub boosts: Option<u64>,
        /// What it was given of each of its nodes, when it asked node by node, or is in a cluster.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub nodes: Vec<NodeResources>,
        /// Its queue, in a cluster.
        pub queue: Option<String>,
        /// In a cluster, of a job that lives and has other nodes than the daemon's: on which nodes that which is told
        /// of its use (CPU time, memory, processes, shares) was measured. None of it is known of the others here, nor of any
        /// where the list is empty. Absent where it is the whole job's.
        pub use_of_nodes: Option<Vec<String>>,
        /// Why it ends or has ended, unless it ended by itself: the user that killed it, a time limit, a lost node.
        pub ended_why: Option<String>,
        /// What the kernel has killed of it for lack of memory.
        pub out_of_memory: Option<OutOfMemory>,
        /// What it waits for, while its state is `waiting`.
        pub waits_for: Option<String>,
        /// It runs no longer than this, not counting the time for which it is suspended.
        pub time_ms_max: Option<u64>,
        /// For how long it has been suspended since it started, if it has.
        pub suspended_ms: Option<u64>,
        /// It starts no earlier.
        pub begin_unix_ms: Option<u64>,
        /// The most memory that its processes may use on a node, in bytes.
        pub mem_bytes_max: Option<u64>,
        /// The other CPUs of its cores stay empty in its slots.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub exclusive_cores: bool,
        /// How often it was restarted.
        #[serde(skip_serializing_if = "is_zero", default)]
        pub restarts: u32,
        /// The resources that it uses, or has used when it has ended.
        pub r#use: Option<JobUse>,
        /// The part of the machine's CPU time that the plan gave it over the last 10 s or so, 0 to 1.
        pub share_due: Option<f64>,
        /// The part of the machine's CPU time that it used meanwhile, 0 to 1.
        pub share_received: Option<f64>,
        /// CPU time that it used outside of its slots as a gang: on idle CPUs, or astray.
        pub outside_ms: Option<u64>,
        /// Where it comes from, if it existed before it was a job.
        pub adopted: Option<Adopted>,
        /// Adopted cgroups on the daemon's node that are parts of it beside its own (`POST /v1/jobs/{id}/cgroups`).
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub cgroups: Vec<String>,
    }

    /// `POST /v1/jobs/{id}/exit`: the launcher saw the main process end.
    #[serde(deny_unknown_fields)]
    pub struct ExitReport {
        /// How.
        pub exit: ExitStatus,
    }

    /// `POST /v1/jobs/{id}/kill`.
    #[serde(deny_unknown_fields)]
    pub struct KillRequest {
        /// The signal for every process of the job; 15 (SIGTERM) by default. 9 ends all at once.
        #[serde(default = "default_signal")]
        pub signal: i32,
        /// After a signal that ends programs (1, 2, 3, 15): kill -9 what is left after this time. Never, when absent.
        pub grace_ms: Option<u64>,
        /// In a cluster, for a job that has other nodes too: only what is on the node of the daemon that is asked. After a
        /// signal that ends programs the job's part there is over as soon as it is empty; the other parts continue.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub here: bool,
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn default_signal() -> i32 {
    15
}

wire! {
    /// `POST /v1/jobs/{id}/class`.
    #[serde(deny_unknown_fields)]
    pub struct ClassRequest {
        /// The new class; users only downwards.
        pub class: Class,
    }

    /// `POST /v1/jobs/{id}/share`.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct ShareRequest {
        /// The part of the time that the job has at most, in whole slots, 0.001 to 1; absent: as much as it gets.
        pub share_max: Option<f64>,
    }

    /// `POST /v1/jobs/{id}/policy`, and `PUT /v1/policy` for the machine.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct PolicyRequest {
        /// For a job: absent means "follow the machine's".
        pub policy: Option<Policy>,
        /// For the machine only.
        pub sharing: Option<Sharing>,
        /// For the machine only: the length of a slot in ms, 10 to 30000.
        pub slot_length_ms: Option<u64>,
        /// For a cluster only: the most CPU time of a node that gangs that span nodes may have together, 0.01 to 1.
        pub ceiling: Option<f64>,
        /// For a cluster only: a node that is silent for this long is dead; 0: only an operator declares it dead.
        pub node_dead_after_ms: Option<u64>,
        /// For a cluster only: where new gangs that span nodes go.
        pub packing: Option<Packing>,
        /// For a cluster only: the most rows of the matrix, 1 to 1000.
        pub rows_max: Option<u32>,
        /// For a cluster only: what the classes are worth in working hours.
        pub shares: Option<ClassShares>,
        /// For a cluster only: what they are worth in off-hours.
        pub off_hours: Option<ClassShares>,
    }

    /// `GET /v1/jobs`.
    pub struct JobList {
        /// By id.
        pub jobs: Vec<Job>,
    }

    /// One row of the Ousterhout matrix.
    pub struct Row {
        /// Its number, from 0.
        pub index: u32,
        /// One entry per column: the job that owns the CPU, if any.
        pub cells: Vec<Option<u64>>,
        /// Jobs that also run in this row: alternates, and single CPU jobs that fill it (some of its slots).
        pub also: Vec<u64>,
        /// Slots of this row in a cycle.
        pub slots: u32,
    }

    /// The Ousterhout matrix and where the clock stands in it.
    pub struct Matrix {
        /// The columns' names: `cpu0`, `cpu1`, …
        pub columns: Vec<String>,
        /// The rows; none while no gang has slots.
        pub rows: Vec<Row>,
        /// The same as text, a line a row.
        pub text: String,
        /// The current slot's number since the Unix epoch.
        pub slot: u64,
        /// The current row, while there is one.
        pub current_row: Option<u32>,
        /// The jobs that own CPUs now.
        pub current: Vec<u64>,
        /// Slots in a cycle.
        pub cycle_slots: u32,
        /// The row of each slot of the cycle: slot k since the Unix epoch has entry k modulo their number. So a reader
        /// of an old answer knows the row of any moment, while the plan holds.
        #[serde(default)]
        pub turns: Vec<u32>,
    }

    /// A distribution of times, in microseconds.
    pub struct Distribution {
        /// How many.
        pub count: u64,
        /// Median.
        pub p50_us: f64,
        /// 99th percentile.
        pub p99_us: f64,
        /// The largest.
        pub max_us: f64,
    }

    /// What the slot thread did.
    pub struct Switches {
        /// Boundaries at which the row changed.
        pub count: u64,
        /// From the boundary until the slot thread ran.
        pub wake: Distribution,
        /// From the boundary until the last write of the switch was done.
        pub done: Distribution,
        /// Boundaries that came more than a tenth of a slot late.
        pub late: u64,
        /// Writes that failed.
        pub errors: u64,
    }

    /// Something that is wrong or less good than it could be.
    pub struct Warning {
        /// What.
        pub what: String,
        /// Why.
        pub why: String,
        /// What to do.
        pub hint: String,
    }

    /// What keeps jobs from staying stopped when the daemon dies.
    pub struct Safety {
        /// The guard's process, while it lives.
        pub guard_pid: Option<i32>,
        /// The longest that a frozen job stays frozen after the daemon stops beating.
        pub lease_ms: u64,
        /// Whether the kernel itself thaws the jobs when daemon and guard are both gone.
        pub kernel_agent: bool,
    }

    /// `GET /v1/status`.
    pub struct Status {
        /// The daemon's version.
        pub version: String,
        /// Its process.
        pub pid: i32,
        /// Its user.
        pub uid: u32,
        /// Since when.
        pub started_unix_ms: u64,
        /// Whether it was started on demand and ends when it is not needed.
        pub embedded: bool,
        /// Its socket.
        pub socket: String,
        /// The node's name.
        pub node: String,
        /// The CPUs in use, by number.
        pub cpus: Vec<u32>,
        /// The machine's memory.
        pub memory_bytes: u64,
        /// The machine's policy.
        pub policy: Policy,
        /// Soft or strict gangs.
        pub sharing: Sharing,
        /// The length of a slot.
        pub slot_length_ms: u64,
        /// The part of the CPU time that is kept for processes that are not registered now, 0 to 1.
        pub reserve: f64,
        /// Whether that is what plain Linux would give them (`reserve = "fair"`); absent from older daemons.
        #[serialize_always]
        pub reserve_fair: Option<bool>,
        /// The cgroup layout that was found.
        pub layout: String,
        /// The mechanism of a switch that was chosen.
        pub mechanism: String,
        /// Every mechanism and why it was or was not chosen.
        pub mechanisms: BTreeMap<String, String>,
        /// Where there are no cgroups: the program that stops and continues a job by signals (see `keeper` of a new job).
        pub keeper: Option<String>,
        /// The real-time priority of the slot thread; absent where it could not be had.
        pub realtime_priority: Option<i32>,
        /// The plan's generation.
        pub generation: u64,
        /// The matrix.
        pub matrix: Matrix,
        /// The switches since the daemon started.
        pub switches: Switches,
        /// What was done for jobs under pb and dcs.
        #[serde(default)]
        pub boosting: Boosting,
        /// Jobs by state, the ended ones that are still remembered included.
        pub jobs: BTreeMap<JobState, u32>,
        /// The guard.
        pub safety: Safety,
        /// What is wrong.
        pub warnings: Vec<Warning>,
        /// How busy the machine is.
        pub load: Option<Load>,
        /// The wall clock.
        pub clock: Option<Clock>,
        /// Whose shares of the classes hold; absent where they always are the same.
        pub period: Option<Period>,
        /// How often a daemon was started on this state, this one included.
        pub starts: Option<u64>,
        /// The nodes of the cluster; absent on a machine of its own.
        pub nodes: Option<Vec<NodeStatus>>,
        /// The cluster, for a node of one.
        pub cluster: Option<ClusterStatus>,
    }
}

/// The name of the format of [`StatusFile`].
pub const STATUS_FILE_FORMAT: &str = "cosched-status-1";

wire! {
    /// The status file: what the API shows to everybody, for readers that do not talk to the daemon.
    pub struct StatusFile {
        /// [`STATUS_FILE_FORMAT`]; another one is another format.
        pub format: String,
        /// What this is, for people.
        pub about: String,
        /// When it was written.
        pub written_unix_ms: u64,
        /// The machine.
        pub status: Status,
        /// The jobs that have not ended.
        pub jobs: Vec<Job>,
    }

    /// Why a request was refused; also the key for the client's exit code.
    pub enum ErrorCode {
        /// The request is malformed or a value is out of range.
        Invalid,
        /// No such job.
        NotFound,
        /// Not the caller's right.
        Forbidden,
        /// Not in the job's present state.
        Conflict,
        /// The caller has as much as one user may have (`[limits]`).
        Limit,
        /// The machine cannot do it.
        Unsupported,
        /// The daemon failed.
        Internal,
    }

    /// The body of every answer that is not 2xx.
    pub struct ErrorBody {
        /// For programs.
        pub code: ErrorCode,
        /// What happened.
        pub what: String,
        /// Why.
        pub why: String,
        /// What to do.
        pub hint: String,
    }
}
