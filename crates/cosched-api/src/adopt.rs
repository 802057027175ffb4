//! Jobs made from existing cgroups or processes.

use crate::wire::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// What is to become a job as it is: a cgroup, or a process with its descendants. One of the two.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct Adopt {
        /// A cgroup of the v2 hierarchy, as in /proc/PID/cgroup, or its path in the file system. It stays where it is, with its limits.
        pub cgroup: Option<String>,
        /// A process. Where it has a cgroup with its descendants alone, that is adopted; else they are moved into cgroups of the job, and back when the
        /// job is released.
        pub pid: Option<i32>,
        /// What people call it, such as `unit llama.service`; for display.
        pub from: Option<String>,
    }

    /// `POST` and `DELETE /v1/jobs/{id}/cgroups`: a cgroup becomes a part of the job beside its own, where it is, or is none any more.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct CgroupRequest {
        /// A cgroup of the v2 hierarchy on the daemon's node, as in /proc/PID/cgroup, or its path in the file system. It leaves another job of which it
        /// is such a part.
        pub cgroup: String,
    }

    /// Where an adopted job comes from.
    pub struct Adopted {
        /// Its cgroup, outside of the daemon's subtree; absent where its processes were moved.
        pub cgroup: Option<String>,
        /// Its unit, container or path, as the user named it.
        pub from: Option<String>,
        /// The limits that its owner had set when it was adopted. They stay in force, except a quota that was turned into a share.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub limits: Vec<String>,
        /// The quota of CPU time that was turned into a share, 0 to 1 of its CPUs' time: it is lifted while the job has no more than that, and put
        /// back otherwise, when the job is released, and when no daemon runs.
        pub quota: Option<f64>,
        /// It was released: its processes continue, and are no longer a job.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        pub released: bool,
    }
}
