//! The configuration of a queue: a table `[[queue]]` of cosched.toml, and of the file that `cosched queues set`
//! reads.

use crate::parse::{ParseError, duration, size_bytes};
use crate::{FairShare, Queue};
use serde::Deserialize;

/// A table `[[queue]]`. An absent limit means no limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    name: String,
    #[serde(default)]
    exclusive: bool,
    memory_max: Option<String>,
    disk_max: Option<String>,
    time_max: Option<String>,
    #[serde(default)]
    users: Vec<Id>,
    #[serde(default)]
    groups: Vec<Id>,
    memory_max_per_user: Option<String>,
    jobs_max_per_user: Option<u32>,
}

/// A user or group, by name or number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Id {
    Name(String),
    Number(u32),
}

fn texts(ids: &[Id]) -> Vec<String> {
    let text = |id: &Id| match id {
        Id::Name(name) => name.clone(),
        Id::Number(number) => number.to_string(),
    };
    ids.iter().map(text).collect()
}

/// The table `[fair_share]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FairShareTable {
    half_life: String,
    weight: String,
}

impl FairShareTable {
    /// Converts it to the wire type.
    ///
    /// # Errors
    /// If one of the two values is not a duration.
    pub fn read(&self) -> Result<FairShare, ParseError> {
        let ms = |text: &str| duration(text).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        Ok(FairShare { half_life_ms: ms(&self.half_life)?, weight_ms: ms(&self.weight)? })
    }
}

/// A limit that cannot be parsed.
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
    /// Converts it to the wire type.
    ///
    /// # Errors
    /// If a limit is not a size or not a duration.
    pub fn read(&self) -> Result<Queue, QueueTableError> {
        Ok(Queue {
            name: self.name.clone(),
            exclusive: self.exclusive,
            memory_bytes_max: self.limit("memory_max", self.memory_max.as_deref(), size_bytes)?,
            disk_bytes_max: self.limit("disk_max", self.disk_max.as_deref(), size_bytes)?,
            users: texts(&self.users),
            groups: texts(&self.groups),
            memory_bytes_max_per_user: self.limit(
                "memory_max_per_user",
                self.memory_max_per_user.as_deref(),
                size_bytes,
            )?,
            jobs_max_per_user: self.jobs_max_per_user,
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
