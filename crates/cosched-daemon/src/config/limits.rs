//! `[limits]`: what one user may take of the daemon. The defaults are more than a user of a laboratory needs.

use super::{ConfigError, range, set_duration, size};
use serde::Deserialize;
use std::time::Duration;

/// The keys of the table.
pub(super) const KEYS: [&str; 9] = [
    "jobs",
    "waiting_jobs",
    "processes",
    "record_bytes",
    "connections",
    "connections_all",
    "buffered_bytes",
    "buffered_bytes_all",
    "request_time",
];

/// The largest request, with what it takes when it is read, has to fit.
const BUFFERED_BYTES_MIN: u64 = 16 << 20;

/// Limits of each user but administrators, and of all users together (`_all`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Jobs that have not ended.
    pub(crate) jobs: u64,
    /// Of them those that wait for their turn.
    pub(crate) waiting_jobs: u64,
    /// Processes that were registered into running jobs, on one node.
    pub(crate) processes: u64,
    /// Memory that the jobs declare together; none is no limit.
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes of the records of jobs that have not ended; ended ones are forgotten beyond it.
    pub(crate) record_bytes: u64,
    /// Connections at a time.
    pub(crate) connections: u64,
    /// Connections of all users.
    pub(crate) connections_all: u64,
    /// Bytes of requests and long answers that are held at a time.
    pub(crate) buffered_bytes: u64,
    /// Bytes that are held for all users.
    pub(crate) buffered_bytes_all: u64,
    /// So long a head, a body, and reading something of an answer may take; an idle connection is closed after it, too.
    pub(crate) request_time: Duration,
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
        }
    }
}

/// The table as it is written.
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
}

impl FileLimits {
    /// What is not set has its default.
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
            return Err(range("limits.request_time", &format!("{:?}", limits.request_time), "\"100ms\" and more"));
        }
        Ok(limits)
    }
}
