//! The wire types of the resources that jobs request and use, and of a node's load.

use crate::wire::wire;
use serde::{Deserialize, Serialize};
use std::fmt;

wire! {
    /// What a job wants of one node (LLNL, "Gang Scheduler Design": desired processor count, minimum processor count,
    /// desired real memory space, and desired disk space), or what it was given there.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct NodeResources {
        /// The node's name; empty for the node of the daemon that is asked.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        pub name: String,
        /// CPUs at a time: wanted, or given. All of the node's when absent.
        pub cpus: Option<u32>,
        /// The job also takes fewer CPUs, but not fewer than this; as many as it wants when absent.
        pub cpus_min: Option<u32>,
        /// The memory that it says it needs there.
        pub memory_bytes: Option<u64>,
        /// The disk space that it says it needs there.
        pub disk_bytes: Option<u64>,
    }

    /// `POST /v1/jobs/{id}/resources`: what the job wants from now on. A job that has started keeps its nodes, and gets at
    /// once what it wants more, or is refused.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct ResourcesRequest {
        /// Of each of its nodes, instead of `cpus` and `mem_bytes`: this replaces all that was said before.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub nodes: Vec<NodeResources>,
        /// CPUs at a time in all, of a job of one node or one that asked for a number of CPUs; as before when absent.
        pub cpus: Option<u32>,
        /// Memory in all, likewise.
        pub mem_bytes: Option<u64>,
    }

    /// `POST` and `DELETE /v1/jobs/{id}/processes`: a process enters the job, or leaves it.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct ProcessRequest {
        /// The process, with all its threads. Its present children stay where they are.
        pub pid: i32,
        /// When it started, in clock ticks since boot (field 22 of /proc/PID/stat). When present, a process that was given
        /// the number of one that has ended is refused.
        pub start_ticks: Option<u64>,
    }

    /// What the kernel has killed of a job because there was no memory for it.
    #[derive(Copy, Eq)]
    pub struct OutOfMemory {
        /// The number of processes, on all its nodes.
        pub killed: u64,
        /// The memory limit of its cgroup, or of one above it; absent when the machine itself had no more, or a cgroup that the job
        /// made.
        pub limit_bytes: Option<u64>,
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = if self.killed == 1 { "process" } else { "processes" };
        write!(f, "out of memory: the kernel killed {} {processes}", self.killed)?;
        let Some(bytes) = self.limit_bytes else { return Ok(()) };
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        // In the largest unit that divides it.
        match units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift) {
            Some((shift, unit)) => write!(f, ", limit {} {unit}", bytes >> shift),
            None => write!(f, ", limit {bytes} bytes"),
        }
    }
}

wire! {
    /// The resources that a job uses, from its cgroups.
    #[derive(Default, Copy, Eq)]
    pub struct JobUse {
        /// CPU time so far, of all its processes, those that have ended or left included.
        pub cpu_time_us: u64,
        /// Memory in use now.
        pub memory_bytes: Option<u64>,
        /// The most memory that it used.
        pub memory_peak_bytes: Option<u64>,
        /// Processes in its cgroup now.
        pub processes: Option<u32>,
    }

    /// `GET /v1/load`: how busy a node is.
    #[derive(Default)]
    pub struct NodeLoad {
        /// The node's name.
        pub name: String,
        /// The CPUs that it gives to jobs.
        pub cpus: u32,
        /// Threads that run or wait for a CPU now, those of jobs that are not registered included.
        pub runnable: u32,
        /// The same on average over 1 minute.
        pub load_1min: f64,
        /// Over 5 minutes.
        pub load_5min: f64,
        /// Over 15 minutes.
        pub load_15min: f64,
        /// Jobs that are neither ended nor suspended.
        pub jobs: u32,
        /// The CPUs that these jobs want at a time, together.
        pub job_cpus: u32,
        /// The node's memory.
        pub memory_bytes: u64,
        /// Memory that new programs could have without swapping.
        pub memory_available_bytes: u64,
        /// The memory that the jobs declare, together.
        pub memory_declared_bytes: u64,
        /// When that was measured: present for another node than the daemon's. A node reports again, within half a minute, when
        /// one of its load averages has changed by half a thread and an eighth, or its memory by a sixteenth.
        pub measured_unix_ms: Option<u64>,
    }

    /// `GET /v1/loads`.
    pub struct LoadList {
        /// The nodes that have said how busy they are, by name.
        pub nodes: Vec<NodeLoad>,
    }

    /// `GET /v1/version`: the program, and the version of the interface.
    pub struct Version {
        /// The version of the interface, "MAJOR.MINOR".
        pub api: String,
        /// The daemon's.
        pub version: String,
        /// The node's name.
        pub node: String,
    }
}
