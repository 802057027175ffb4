//! The jobs that are over, and which of their records are kept.

use super::types::Settings;
use crate::wire::Job;
use cosched_core::Time;
use std::collections::BTreeMap;

/// One user's jobs that are over.
#[derive(Debug, Default)]
struct OfUser {
    /// What the store holds of each, in bytes, by the time of its end and its number.
    records: BTreeMap<(u64, u64), u64>,
    bytes: u64,
}

/// Jobs that are over, by user, so that one user's do not push out another's.
#[derive(Debug, Default)]
pub(super) struct Ended {
    users: BTreeMap<u32, OfUser>,
}

impl Ended {
    /// Counts a record, if its job is over; `bytes` is its size in the store.
    pub(super) fn insert(&mut self, job: &Job, bytes: u64) {
        let Some(end) = &job.end else { return };
        let of = self.users.entry(job.owner.uid).or_default();
        let before = of.records.insert((end.at_ns, job.id), bytes);
        of.bytes = of.bytes - before.unwrap_or(0) + bytes;
    }

    /// The record is gone, or another takes its place.
    pub(super) fn remove(&mut self, job: &Job) {
        let (Some(end), Some(of)) = (&job.end, self.users.get_mut(&job.owner.uid)) else { return };
        of.bytes -= of.records.remove(&(end.at_ns, job.id)).unwrap_or(0);
        if of.records.is_empty() {
            self.users.remove(&job.owner.uid);
        }
    }

    /// When the first of them ended, since the Unix epoch.
    pub(super) fn first_ns(&self) -> Option<u64> {
        self.users.values().filter_map(|of| Some(of.records.first_key_value()?.0.0)).min()
    }

    /// Whether some user has more of them than are kept of each.
    pub(super) fn are_too_many(&self, settings: &Settings) -> bool {
        self.users.values().any(|of| of.is_over(settings, 0, 0))
    }

    /// Those of which nothing is kept any longer, each user's oldest first.
    pub(super) fn old(&self, settings: &Settings, wall: Time) -> impl Iterator<Item = u64> {
        self.users.values().flat_map(move |of| of.old(settings, wall))
    }
}

impl OfUser {
    /// Whether there are still too many without the oldest `gone`, which have `gone_bytes`.
    fn is_over(&self, settings: &Settings, gone: usize, gone_bytes: u64) -> bool {
        self.records.len() - gone > settings.keep_ended_max || self.bytes - gone_bytes > settings.keep_ended_bytes
    }

    fn old(&self, settings: &Settings, wall: Time) -> impl Iterator<Item = u64> {
        let mut gone_bytes = 0;
        let is_old = move |(gone, ((ended_ns, _), bytes)): &(usize, (&(u64, u64), &u64))| {
            let over = self.is_over(settings, *gone, gone_bytes);
            gone_bytes += **bytes;
            over || Time(*ended_ns) + settings.keep_ended_ns <= wall
        };
        self.records.iter().enumerate().take_while(is_old).map(|(_, ((_, id), _))| *id)
    }
}
