//! The jobs that are over, and which of their records are kept.

use super::types::Settings;
use crate::wire::Job;
use cosched_core::Time;
use std::collections::BTreeMap;

/// One user's jobs that are over.
#[derive(Debug, Default)]
struct OfUser {
    /// The size of each record in the store, in bytes, by (time of the end, job number).
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

    /// The record was deleted, or is replaced.
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

    /// Whether some user has more of them than are kept.
    pub(super) fn are_too_many(&self, settings: &Settings) -> bool {
        self.users.values().any(|of| of.is_over(settings, 0, 0))
    }

    /// The jobs whose records are no longer kept, each user's oldest first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::tests::{USER, job, settings};
    use crate::wire::{By, End, Why};

    /// A job of a user that ended at this time.
    fn over(id: u64, uid: u32, at_ns: u64) -> Job {
        let mut job = Job::new(id, By { uid, ..USER }, job("a", 1), 0);
        job.end = Some(End {
            at_ns,
            why: Why::Finished,
            exit: None,
            cpu_time_ns: 0,
            memory_peak_bytes: 0,
            out_of_memory: None,
        });
        job
    }

    fn keeps(max: usize, bytes: u64) -> Settings {
        Settings { keep_ended_max: max, keep_ended_bytes: bytes, keep_ended_ns: 1000, ..settings("n0", 1) }
    }

    /// Six jobs of user 1, a second apart, and an older one of user 2; 10 bytes each.
    fn some() -> Ended {
        let mut ended = Ended::default();
        (1..=6).for_each(|id| ended.insert(&over(id, 1, 100 + id), 10));
        ended.insert(&over(9, 2, 5), 10);
        ended
    }

    #[test]
    fn of_each_user_the_oldest_go_when_there_are_too_many() {
        let old = |settings: &Settings, wall| some().old(settings, Time(wall)).collect::<Vec<_>>();
        assert_eq!(old(&keeps(4, 1000), 200), [1, 2], "and nobody pushes out another's");
        assert_eq!(old(&keeps(100, 30), 200), [1, 2, 3]);
        assert!(some().are_too_many(&keeps(4, 1000)) && some().are_too_many(&keeps(100, 30)));
        assert!(!some().are_too_many(&keeps(6, 60)));
    }

    #[test]
    fn what_ended_long_ago_goes() {
        let old = |wall| some().old(&keeps(100, 1000), Time(wall)).collect::<Vec<_>>();
        assert_eq!(old(1004), [0; 0]);
        assert_eq!(old(1005), [9]);
        assert_eq!(old(1103), [1, 2, 3, 9]);
        assert_eq!(some().first_ns(), Some(5));
    }

    #[test]
    fn a_record_that_is_written_again_counts_once_and_one_that_is_gone_no_more() {
        let mut ended = some();
        ended.insert(&over(6, 1, 106), 20);
        assert_eq!(ended.users[&1].bytes, 70);
        ended.remove(&over(6, 1, 106));
        assert_eq!((ended.users[&1].bytes, ended.users[&1].records.len()), (50, 5));
        ended.remove(&over(9, 2, 5));
        assert!(!ended.users.contains_key(&2));
        ended.insert(&Job::new(7, USER, job("a", 1), 0), 10);
        assert!(!ended.users.contains_key(&USER.uid), "it has not ended");
        assert_eq!(Ended::default().first_ns(), None);
    }
}
