//! The wire types of a machine's state: load, clock, and the nodes of a cluster.

use crate::wire::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// How busy one CPU is.
    pub struct CpuLoad {
        /// Its number.
        pub cpu: u32,
        /// The part of the last second or so in which it was not idle, 0 to 1.
        pub busy: f64,
    }

    /// How busy the machine is.
    #[derive(Default)]
    pub struct Load {
        /// The CPUs in use; none until there was time to measure.
        pub cpus: Vec<CpuLoad>,
        /// Processes that run or want to, the mean over a minute.
        pub average: Option<f64>,
        /// Memory that could be had without swapping.
        pub memory_available_bytes: Option<u64>,
    }

    /// The time of the day, as far as the shares of the classes depend on it.
    pub enum Period {
        /// Working hours: interactive jobs are the more urgent ones.
        Working,
        /// Off-hours: batch jobs are.
        Off,
    }

    /// What is known of the wall clock.
    #[derive(Default)]
    pub struct Clock {
        /// Whether a time daemon keeps it, by the kernel's word; absent where the kernel does not tell.
        pub synchronised: Option<bool>,
        /// Its estimated error.
        pub error_estimated_us: Option<u64>,
        /// The bound of its error.
        pub error_us_max: Option<u64>,
        /// Whether gangs have slots only while it is synchronised.
        pub required: bool,
        /// Why gangs have no slots now, when that is the clock's doing.
        pub holds_slots: Option<String>,
        /// How often it was set since the daemon started.
        pub steps: u64,
        /// By how much the last time, forwards or (below 0) back.
        pub last_step_ms: Option<i64>,
        /// When that was, by the clock as it was set.
        pub last_step_unix_ms: Option<u64>,
    }

    /// A node of a cluster, as its members see it.
    pub struct NodeStatus {
        /// Its name.
        pub name: String,
        /// Its CPUs; 0 of one that is gone.
        pub cpus: u32,
        /// Its memory for jobs.
        pub memory_bytes: Option<u64>,
        /// Processes that run or want to, the mean over a minute.
        pub load: Option<f64>,
        /// Its clock.
        pub clock: Option<Clock>,
        /// The plan that it follows; known of the node that is asked.
        pub plan_generation: Option<u64>,
        /// Whether its lease holds.
        pub alive: bool,
        /// When it left, if it is gone; nodes are shown so for a week.
        pub gone_since_unix_ms: Option<u64>,
        /// Since when it has been silent. Its jobs count as running there.
        pub silent_since_unix_ms: Option<u64>,
        /// Whether it gets no new jobs.
        #[serde(default)]
        pub drains: bool,
        /// The version of its daemon.
        pub version: Option<String>,
    }

    /// A cluster, as one of its nodes sees it; a machine by itself is a cluster of one.
    pub struct ClusterStatus {
        /// Its name.
        pub name: String,
        /// It is one machine: the ceiling is that of all its gangs, and there will be no other node.
        #[serde(default)]
        pub alone: bool,
        /// Whether its store answers.
        pub store_answers: bool,
        /// Its newest plan that is known here.
        pub plan_generation: u64,
        /// The plan that this node runs; none while it runs no gang slots.
        pub plan_in_use: Option<u64>,
        /// The most CPU time of a node that gangs that span nodes may have together (on one machine: all gangs), 0 to 1.
        pub ceiling: f64,
        /// A node that is silent for this long is dead; absent: only an operator declares it dead.
        pub node_dead_after_ms: Option<u64>,
        /// The queues, the most urgent first.
        pub queues: Vec<QueueStatus>,
        /// Where new gangs that span nodes go.
        pub packing: Option<Packing>,
        /// The most rows of the matrix.
        pub rows_max: Option<u32>,
        /// How usage counts in the order of a queue; absent when it does not.
        pub fair_share: Option<FairShare>,
        /// What the classes are worth in working hours.
        pub shares: Option<ClassShares>,
        /// What they are worth in off-hours.
        pub off_hours: Option<ClassShares>,
    }

    /// Where a gang that spans nodes goes.
    pub enum Packing {
        /// Into the first row of the matrix with room.
        FirstFit,
        /// Into the row that has the least room left.
        BestFit,
        /// Onto a block of 2^k neighbouring nodes.
        Buddy,
    }
}

impl Packing {
    /// Every packing.
    pub const ALL: [Packing; 3] = [Packing::FirstFit, Packing::BestFit, Packing::Buddy];
}

wire! {
    /// What the classes are worth: CPU time under contention is in proportion to it. 1 to 1000 each.
    #[derive(Copy, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct ClassShares {
        /// Of express jobs.
        pub express: u32,
        /// Of interactive jobs.
        pub interactive: u32,
        /// Of batch jobs.
        pub batch: u32,
        /// Of standby jobs.
        pub standby: u32,
    }

    /// A queue, as it is to be. A limit that is absent is none.
    #[derive(Eq, Default)]
    #[serde(deny_unknown_fields)]
    pub struct Queue {
        /// Its name: letters, digits, `.`, `-` and `_`.
        pub name: String,
        /// Whether its jobs have their nodes for themselves.
        #[serde(default)]
        pub exclusive: bool,
        /// The most memory that a job may ask for, on all its nodes together.
        pub memory_bytes_max: Option<u64>,
        /// The most disk space on one node that a job may ask for.
        pub disk_bytes_max: Option<u64>,
        /// The longest time from when a job is made ready until it has ended.
        pub time_ms_max: Option<u64>,
        /// The users who may use it, by name or number; with neither users nor groups every user may.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub users: Vec<String>,
        /// The groups whose members may use it, by name or number.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub groups: Vec<String>,
        /// The most memory of the jobs that one user has started in it, on all nodes together.
        pub memory_bytes_max_per_user: Option<u64>,
        /// The most jobs that one user has started in it.
        pub jobs_max_per_user: Option<u32>,
    }

    /// `PUT /v1/queues`: the queues of the cluster. Jobs stay in the queue of the same name: one that has jobs cannot be left
    /// out. Limits of memory and disk space hold for jobs that come later, those of time for all.
    #[serde(deny_unknown_fields)]
    pub struct QueuesRequest {
        /// All of them, the most urgent first.
        pub queues: Vec<Queue>,
        /// How usage counts in the order of a queue; absent: as before, a weight of 0: not at all.
        pub fair_share: Option<FairShare>,
    }

    /// How usage counts in the order of a queue: users with little usage come first.
    #[derive(Copy, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct FairShare {
        /// Usage halves in this time.
        pub half_life_ms: u64,
        /// How much later a job counts as submitted when its owner has all of the usage.
        pub weight_ms: u64,
    }

    /// A queue of a cluster. A limit that is absent is none.
    pub struct QueueStatus {
        /// Its name.
        pub name: String,
        /// Whether its jobs have their nodes for themselves.
        pub exclusive: bool,
        /// The most memory that a job may ask for, on all its nodes together.
        pub memory_bytes_max: Option<u64>,
        /// The most disk space on one node that a job may ask for.
        pub disk_bytes_max: Option<u64>,
        /// The longest time from when a job is made ready until it has ended.
        pub time_ms_max: Option<u64>,
        /// The users who may use it, by name or number; with neither users nor groups every user may.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub users: Vec<String>,
        /// The groups whose members may use it, by name or number.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub groups: Vec<String>,
        /// The most memory of the jobs that one user has started in it, on all nodes together.
        pub memory_bytes_max_per_user: Option<u64>,
        /// The most jobs that one user has started in it.
        pub jobs_max_per_user: Option<u32>,
        /// Its jobs that wait.
        pub waiting: u32,
        /// Its jobs that have started.
        #[serde(default)]
        pub running: u32,
    }

    /// `PUT /v1/nodes/{name}`.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct NodeRequest {
        /// Whether the node gets no new jobs; its present jobs continue. Absent: unchanged.
        pub drains: Option<bool>,
        /// The node is silent, and the caller vouches that nothing runs there any more: the cluster does not wait for its jobs.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub dead: bool,
    }
}
