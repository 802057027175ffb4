//! When processors become free or are reserved, as far as estimates tell: the plan of EASY and of conservative backfilling.

use std::collections::BTreeMap;

/// When a job is to start, and when it was first to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    pub(super) at_us: u64,
    pub(super) first_us: u64,
}

/// Changes of the number of free processors, by time. Neither the processors that are free now nor the past are part of it.
#[derive(Debug, Default)]
pub(super) struct Profile {
    changes: BTreeMap<u64, i64>,
}

impl Profile {
    /// Adds free processors from a time on.
    pub(super) fn give(&mut self, time_us: u64, size: u32) {
        self.change(time_us, i64::from(size));
    }

    /// Takes processors away from a time on.
    pub(super) fn take(&mut self, time_us: u64, size: u32) {
        self.change(time_us, -i64::from(size));
    }

    fn change(&mut self, time_us: u64, by: i64) {
        let change = self.changes.entry(time_us).or_default();
        *change += by;
        if *change == 0 {
            self.changes.remove(&time_us);
        }
    }

    /// The ends of running jobs with what each time gives back; for a profile without reservations.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.changes.iter().map(|(time, size)| (*time, size.unsigned_abs()))
    }

    /// The first time from `now` on at which a job of this size fits for as long as it is estimated to run, with `free`
    /// processors free now. The job must fit on the machine.
    pub(super) fn earliest(&self, now: u64, free: u32, size: u32, estimate_us: u64) -> u64 {
        let size = i64::from(size);
        let mut left = i64::from(free);
        let mut begin = (left >= size).then_some(now);
        for (time, change) in &self.changes {
            if begin.is_some_and(|begin| begin.saturating_add(estimate_us) <= *time) {
                break;
            }
            left += change;
            begin = begin.filter(|_| left >= size).or((left >= size).then_some(*time));
        }
        begin.unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_fits_between_reservations_only_if_it_ends_before_the_next() {
        let mut profile = Profile::default();
        // Of 4 processors 3 run until 10; all are reserved from 20 to 30.
        profile.give(10, 3);
        profile.take(20, 4);
        profile.give(30, 4);
        let table = [(1, 20, 0), (1, 21, 30), (2, 10, 10), (2, 11, 30), (4, 10, 10), (4, 50, 30)];
        for (size, estimate_us, expected) in table {
            assert_eq!(profile.earliest(0, 1, size, estimate_us), expected, "{size} for {estimate_us}");
        }
        profile.give(20, 4);
        profile.take(30, 4);
        assert_eq!(profile.ends().collect::<Vec<_>>(), [(10, 3)], "a reservation that is gone leaves nothing");
    }
}
