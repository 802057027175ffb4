//! EASY backfilling, for one kind of resource (Lifka 1995; Mu'alem & Feitelson 2001): the first job that cannot start has a
//! reservation, and a later one may start now if it ends before that, or needs no more than is left over then.

/// What there is for a later job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// What is free now.
    pub free: u64,
    /// What of it the reservation leaves over when it begins.
    pub extra: u64,
    /// How long it is until then, in the unit of the limits.
    pub time: u64,
}

impl Hole {
    /// Whether a job that wants so much, and ends after so long, may start; `None`: nobody knows when it ends.
    pub fn takes(&self, wanted: u64, time: Option<u64>) -> bool {
        let ends_before = time.is_some_and(|time| time <= self.time);
        wanted <= self.free && (ends_before || wanted <= self.extra)
    }

    /// The most that a job may have that ends after so long.
    pub fn most(&self, time: Option<u64>) -> u64 {
        if time.is_some_and(|time| time <= self.time) { self.free } else { self.free.min(self.extra) }
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
}
