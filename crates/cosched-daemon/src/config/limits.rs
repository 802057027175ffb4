//! `[limits]`: the daemon's resources that one user may take. The defaults are more than a user of a laboratory needs.

use super::{ConfigError, choice, range, set_duration, size};
use serde::Deserialize;
use std::time::Duration;

/// The largest request must fit, with the memory needed to parse it.
const BUFFERED_BYTES_MIN: u64 = 16 << 20;

/// How the limits of the caller's cgroup are treated, that is, the cgroup that a job's first process comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerCgroup {
    /// A process whose cgroup has limits is refused.
    Refuse,
    /// Each job gets the same limits.
    PerJob,
}

/// Limits for each user who is not an administrator, and for all users together (`_all`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Jobs that have not ended.
    pub(crate) jobs: u64,
    /// The number of these that may wait in a queue.
    pub(crate) waiting_jobs: u64,
    /// Processes that were registered into running jobs, on one node.
    pub(crate) processes: u64,
    /// Memory that the jobs declare in total; `None`: no limit.
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes of the records of jobs that have not ended; beyond it, records of ended jobs are removed.
    pub(crate) record_bytes: u64,
    /// Concurrent connections.
    pub(crate) connections: u64,
    /// Concurrent connections of all users.
    pub(crate) connections_all: u64,
    /// Bytes of requests and long answers that are buffered at a time.
    pub(crate) buffered_bytes: u64,
    /// Bytes that are buffered for all users.
    pub(crate) buffered_bytes_all: u64,
    /// The limit for receiving a request's head, for its body, and for the client to read a part of an answer; an idle connection is closed after it,
    /// too.
    pub(crate) request_time: Duration,
    /// Processes and threads of a job on one node; applies to administrators' jobs, too.
    pub(crate) tasks_per_job: u64,
    /// Applies to every user.
    pub(crate) caller_cgroup: CallerCgroup,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            jobs: 5000,
            waiting_jobs: 1000,
            processes: 20_000,
            memory_bytes: None,
            record_bytes: 32 << 20,
            connections: 512,
            connections_all: 4096,
            buffered_bytes: 32 << 20,
            buffered_bytes_all: 256 << 20,
            request_time: Duration::from_secs(30),
            tasks_per_job: tasks_default(),
            caller_cgroup: CallerCgroup::Refuse,
        }
    }
}

/// The table as it is written in the file.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct FileLimits {
    jobs: Option<u64>,
    waiting_jobs: Option<u64>,
    processes: Option<u64>,
    memory: Option<String>,
    record_bytes: Option<String>,
    connections: Option<u64>,
    connections_all: Option<u64>,
    buffered_bytes: Option<String>,
    buffered_bytes_all: Option<String>,
    request_time: Option<String>,
    tasks_per_job: Option<u64>,
    caller_cgroup: Option<String>,
}

/// A seventh of the machine's limit, also of a small machine: never more than systemd gives a service (15 %), because a service or session with a
/// lower limit would be refused.
fn tasks_default() -> u64 {
    (cosched_linux::observe::tasks_max() / 7).max(1)
}

impl FileLimits {
    /// Keys that are not set have their defaults.
    pub(super) fn read(self) -> Result<Limits, ConfigError> {
        let memory_bytes = self.memory.map(|text| size("limits.memory", &text)).transpose()?;
        let mut limits = Limits { memory_bytes, ..Limits::default() };
        if let Some(text) = self.record_bytes {
            limits.record_bytes = size("limits.record_bytes", &text)?;
        }
        for (to, value, key) in [
            (&mut limits.jobs, self.jobs, "limits.jobs"),
            (&mut limits.waiting_jobs, self.waiting_jobs, "limits.waiting_jobs"),
            (&mut limits.processes, self.processes, "limits.processes"),
            (&mut limits.tasks_per_job, self.tasks_per_job, "limits.tasks_per_job"),
            (&mut limits.connections, self.connections, "limits.connections"),
            (&mut limits.connections_all, self.connections_all, "limits.connections_all"),
        ] {
            *to = value.unwrap_or(*to);
            if *to == 0 {
                return Err(range(key, "0", "1 and more"));
            }
        }
        for (to, text, key) in [
            (&mut limits.buffered_bytes, self.buffered_bytes, "limits.buffered_bytes"),
            (&mut limits.buffered_bytes_all, self.buffered_bytes_all, "limits.buffered_bytes_all"),
        ] {
            let Some(text) = text else { continue };
            *to = size(key, &text)?;
            if *to < BUFFERED_BYTES_MIN {
                return Err(range(key, &format!("\"{text}\""), "\"16M\" and more"));
            }
        }
        set_duration(&mut limits.request_time, "limits.request_time", self.request_time)?;
        if limits.request_time < Duration::from_millis(100) {
            return Err(range("limits.request_time", &format!("{:?}", limits.request_time), "\"100ms\" or more"));
        }
        if let Some(text) = self.caller_cgroup {
            let words = [("refuse", CallerCgroup::Refuse), ("per-job", CallerCgroup::PerJob)];
            limits.caller_cgroup = choice("limits.caller_cgroup", &text, &words)?;
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn limits(text: &str) -> Result<Limits, String> {
        Config::parse(&format!("[limits]\n{text}")).map(|config| config.limits).map_err(|e| e.to_string())
    }

    #[test]
    fn each_key_sets_what_it_names_and_nothing_else() {
        let same = Limits::default();
        for (text, expected) in [
            ("", same.clone()),
            ("jobs = 7", Limits { jobs: 7, ..same.clone() }),
            ("waiting_jobs = 7", Limits { waiting_jobs: 7, ..same.clone() }),
            ("processes = 7", Limits { processes: 7, ..same.clone() }),
            ("tasks_per_job = 7", Limits { tasks_per_job: 7, ..same.clone() }),
            ("connections = 7", Limits { connections: 7, ..same.clone() }),
            ("connections_all = 7", Limits { connections_all: 7, ..same.clone() }),
            ("memory = \"7G\"", Limits { memory_bytes: Some(7 << 30), ..same.clone() }),
            ("record_bytes = \"7M\"", Limits { record_bytes: 7 << 20, ..same.clone() }),
            ("buffered_bytes = \"70M\"", Limits { buffered_bytes: 70 << 20, ..same.clone() }),
            ("buffered_bytes_all = \"70M\"", Limits { buffered_bytes_all: 70 << 20, ..same.clone() }),
            ("caller_cgroup = \"per-job\"", Limits { caller_cgroup: CallerCgroup::PerJob, ..same.clone() }),
        ] {
            assert_eq!(limits(text), Ok(expected), "{text}");
        }
        assert_eq!(same.caller_cgroup, CallerCgroup::Refuse, "limits of a caller are never lifted unasked");
    }

    #[test]
    fn a_limit_of_nothing_would_lock_everybody_out() {
        for key in ["jobs", "waiting_jobs", "processes", "tasks_per_job", "connections", "connections_all"] {
            let e = limits(&format!("{key} = 0")).unwrap_err();
            assert!(e.contains(&format!("limits.{key} = 0")) && e.contains("1 and more"), "{e}");
        }
        for key in ["buffered_bytes", "buffered_bytes_all"] {
            let e = limits(&format!("{key} = \"15M\"")).unwrap_err();
            assert!(e.contains(key) && e.contains("16M"), "{e}: the largest request has to fit");
        }
    }
}
