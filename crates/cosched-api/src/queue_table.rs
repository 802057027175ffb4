//! A queue as people write it: a table `[[queue]]` of cosched.toml, and of the file that `cosched queues set` reads.

use crate::Queue;
use crate::parse::{ParseError, duration, size_bytes};
use serde::Deserialize;

/// A table `[[queue]]`. A limit that is absent is none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    name: String,
    #[serde(default)]
    exclusive: bool,
    memory_max: Option<String>,
    disk_max: Option<String>,
    time_max: Option<String>,
}

/// A limit that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("queue {queue}: {key}: {why}")]
pub struct QueueTableError {
    /// The queue's name.
    pub queue: String,
    /// The limit's key.
    pub key: &'static str,
    /// What is wrong with it.
    pub why: ParseError,
}

impl QueueTable {
    /// The queue that is meant.
    ///
    /// # Errors
    /// A limit is no size or no duration.
    pub fn read(&self) -> Result<Queue, QueueTableError> {
        Ok(Queue {
            name: self.name.clone(),
            exclusive: self.exclusive,
            memory_bytes_max: self.limit("memory_max", self.memory_max.as_deref(), size_bytes)?,
            disk_bytes_max: self.limit("disk_max", self.disk_max.as_deref(), size_bytes)?,
            time_ms_max: self.limit("time_max", self.time_max.as_deref(), |text| {
                duration(text).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
            })?,
        })
    }

    fn limit(
        &self,
        key: &'static str,
        text: Option<&str>,
        parse: impl Fn(&str) -> Result<u64, ParseError>,
    ) -> Result<Option<u64>, QueueTableError> {
        text.map(|text| parse(text).map_err(|why| QueueTableError { queue: self.name.clone(), key, why })).transpose()
    }
}
