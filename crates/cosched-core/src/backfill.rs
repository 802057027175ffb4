//! EASY backfilling, for one kind of resource (Lifka 1995; Mu'alem & Feitelson 2001): the first job that cannot start has a
//! reservation, and a later job may start now if it ends before the reservation begins, or needs no more than is left over then.

/// The amount of the resource for later jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The amount that is free now.
    pub free: u64,
    /// The part of it that the reservation leaves over when it begins.
    pub extra: u64,
    /// The time until then, in the unit of the limits.
    pub time: u64,
}

impl Hole {
    /// What the first job that cannot start leaves to the others: it wants `wanted`, and its reservation begins as soon as that is free.
    /// `ends` are the ends of what runs, in order, with the amount that each gives back.
    pub fn beside(wanted: u64, free: u64, now: u64, ends: impl Iterator<Item = (u64, u64)>) -> Hole {
        let (mut left, mut begin) = (free, now);
        for (end, given_back) in ends {
            if left >= wanted && end > begin {
                break;
            }
            (begin, left) = (end, left + given_back);
        }
        Hole { free, extra: left.saturating_sub(wanted), time: begin - now }
    }

    /// Whether a job that wants this amount, and ends after `time`, may start; `None`: its end is unknown.
    pub fn takes(&self, wanted: u64, time: Option<u64>) -> bool {
        wanted <= self.most(time)
    }

    /// The largest amount for a job that ends after `time`.
    pub fn most(&self, time: Option<u64>) -> u64 {
        if self.outlasts(time) { self.free.min(self.extra) } else { self.free }
    }

    /// Subtracts a job that has started.
    pub fn start(&mut self, wanted: u64, time: Option<u64>) {
        self.free -= wanted;
        if self.outlasts(time) {
            self.extra -= wanted;
        }
    }

    fn outlasts(&self, time: Option<u64>) -> bool {
        time.is_none_or(|time| time > self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_job_ends_before_or_uses_what_is_left_over() {
        let hole = Hole { free: 8, extra: 2, time: 10 };
        let table = [(8, Some(10), true), (9, Some(1), false), (3, Some(11), false), (2, Some(11), true)];
        for (wanted, time, takes) in table.into_iter().chain([(2, None, true), (3, None, false)]) {
            assert_eq!(hole.takes(wanted, time), takes, "{wanted} for {time:?}");
            assert_eq!(wanted <= hole.most(time), takes, "{wanted} for {time:?}");
        }
    }
    #[test]
    fn a_reservation_begins_when_enough_has_ended_and_shrinks_by_what_outlasts_it() {
        let mut hole = Hole::beside(6, 3, 100, [(110, 2), (120, 2), (120, 4), (130, 1)].into_iter());
        assert_eq!(hole, Hole { free: 3, extra: 5, time: 20 });
        hole.start(1, Some(20));
        hole.start(2, None);
        assert_eq!(hole, Hole { free: 0, extra: 3, time: 20 });
    }
}
