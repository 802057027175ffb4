//! Decides which waits of a thread are timed, and estimates the others.
//!
//! Problem: if a thread that yields only for a moment reads the clock before and after, these reads cost more than the rest
//! of a short hand-off. Rule, as for the short rounds of workers: of the waits that end without a sleep, one per 100 µs is
//! timed, together with the work before it. The total of the time in between is exact; it is divided into work and waits in
//! the proportion that was timed. A sleep is always timed. After a sleep, and after a time that was longer than expected, the
//! rule starts again: every wait is timed at first, and after some short ones fewer and fewer are. So the error that a change
//! of behaviour can cause is bounded by what was seen before it.

/// One wait per this period is timed.
const PERIOD_NS: u64 = 100_000;
/// At most this number of waits in a row are not timed.
const UNTIMED_MAX: u64 = 63;
/// At first this number of short waits are all timed. After that, the number of untimed ones between two timed ones is one,
/// three, seven …
const ALL_TIMED: u32 = 4;
/// A time without a clock read that was longer than this number of periods was unexpected.
const LONG_PERIODS: u64 = 4;

/// The state of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Number of waits that need not be timed before the next timed one.
    left: u32,
    /// Whether there were any since the last clock read.
    is_mixed: bool,
    /// Number of consecutive short waits that were timed, with the work before them.
    short: u32,
    /// Means of the timed work and waits; 0 before the first.
    work_ns: u64,
    wait_ns: u64,
    /// The work before the wait that is being timed, if that time was work only.
    before_ns: Option<u64>,
}

impl Pace {
    /// Called when a wait begins. Returns whether it has to be timed.
    #[inline]
    pub(super) fn times_next(&mut self) -> bool {
        if self.left == 0 {
            return true;
        }
        self.left -= 1;
        self.is_mixed = true;
        false
    }

    /// Called when the clock is read `time_ns` after the last read, after a time of work. Returns how much of that time was
    /// waits.
    pub(super) fn divide(&mut self, time_ns: u64) -> u64 {
        if !std::mem::take(&mut self.is_mixed) {
            self.before_ns = Some(time_ns);
            return 0;
        }
        self.before_ns = None;
        let both_ns = u128::from(self.work_ns + self.wait_ns).max(1);
        // At most the whole time.
        let waits_ns = (u128::from(time_ns) * u128::from(self.wait_ns) / both_ns) as u64;
        if time_ns > LONG_PERIODS * PERIOD_NS {
            self.restart();
        }
        waits_ns
    }

    /// Called when a timed wait has ended without a sleep.
    pub(super) fn waited(&mut self, wait_ns: u64) {
        // After a mixed time the next piece of work is timed too.
        let Some(work_ns) = self.before_ns.take() else { return };
        self.work_ns = mean(self.work_ns, work_ns);
        self.wait_ns = mean(self.wait_ns, wait_ns);
        if work_ns + wait_ns >= PERIOD_NS {
            return self.restart();
        }
        self.short += 1;
        let most = (1 << self.short.saturating_sub(ALL_TIMED).min(UNTIMED_MAX.ilog2() + 1)) - 1;
        self.left = (PERIOD_NS / (work_ns + wait_ns).max(1)).min(most) as u32;
    }

    /// Discards what was seen, because it tells nothing about the future: the thread has slept, or everything takes longer
    /// now.
    pub(super) fn restart(&mut self) {
        (self.left, self.short, self.work_ns, self.wait_ns) = (0, 0, 0, 0);
    }
}

fn mean(before_ns: u64, now_ns: u64) -> u64 {
    if before_ns == 0 { now_ns } else { (7 * before_ns + now_ns) / 8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that works and waits in turn. Returns the number of timed waits, and the times that were counted as work and
    /// as waits.
    fn run(cycles: impl Iterator<Item = (u64, u64)>) -> (u32, u64, u64) {
        let (mut pace, mut timed, mut since_ns) = (Pace::default(), 0, 0);
        let (mut work_sum_ns, mut wait_sum_ns) = (0, 0);
        for (work_ns, wait_ns) in cycles {
            since_ns += work_ns;
            if pace.times_next() {
                timed += 1;
                let waits_ns = pace.divide(since_ns);
                work_sum_ns += since_ns - waits_ns;
                wait_sum_ns += waits_ns + wait_ns;
                pace.waited(wait_ns);
                since_ns = 0;
            } else {
                since_ns += wait_ns;
            }
        }
        (timed, work_sum_ns, wait_sum_ns)
    }

    #[test]
    fn short_waits_are_seldom_timed_and_long_ones_each() {
        let (timed, work_ns, wait_ns) = run((0..6500).map(|_| (300, 700)));
        assert!((200..220).contains(&timed), "two of 65: {timed}");
        assert!(work_ns.abs_diff(300 * 6500) < 65_000 && wait_ns.abs_diff(700 * 6500) < 65_000, "{work_ns} {wait_ns}");
        assert_eq!(run((0..100).map(|_| (100_000, 1_000))), (100, 10_000_000, 100_000));
    }

    #[test]
    fn a_short_beginning_does_not_hide_what_follows() {
        let (timed, work_ns, wait_ns) = run((0..100).map(|i| if i < 5 { (0, 20_000) } else { (1_000_000, 4_000_000) }));
        assert!(timed >= 98, "{timed}");
        assert!(work_ns > 90_000_000 && wait_ns > 360_000_000, "{work_ns} {wait_ns}");
    }

    #[test]
    fn what_changes_is_followed_and_nothing_is_lost() {
        let cycles =
            || (0..20_000u64).map(|i| (100 + i % 1_000, 50 + (i * 7) % 3_000 + if i > 10_000 { 4_000 } else { 0 }));
        let (work, wait): (u64, u64) = cycles().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let (timed, work_ns, wait_ns) = run(cycles());
        assert!(timed < 4_000, "{timed}");
        assert!((work_ns + wait_ns).abs_diff(work + wait) < 500_000, "all but the last time");
        assert!(
            work_ns.abs_diff(work) < work / 5 && wait_ns.abs_diff(wait) < wait / 5,
            "{work_ns} of {work}, {wait_ns} of {wait}"
        );
    }
}
