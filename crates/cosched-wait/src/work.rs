//! Tells a thread that waits from an event loop with tasks that are ready, which asks in each turn for events that came meanwhile: the loop does some
//! work between most of its calls.

use core::cell::Cell;

/// A gap between two calls with more than this is work, in ns. A thread that waits needs less than 300; the fastest turn of an event loop in Python
/// takes 2,500.
const WORK_NS: u64 = 2_000;
/// One such gap weighs as many others: a thread that waits is interrupted at times.
const WEIGHT: u8 = 4;
const SURE: u8 = 8;
const MAX: u8 = 16;

/// How much the last gaps of a thread look like work.
#[derive(Default)]
pub(crate) struct Work(Cell<u8>);

impl Work {
    /// Whether the thread has work, after a further gap of this length.
    pub(crate) fn after(&self, gap_ns: u64) -> bool {
        let before = self.0.get();
        let now = if gap_ns > WORK_NS { (before + WEIGHT).min(MAX) } else { before.saturating_sub(1) };
        self.0.set(now);
        now > SURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_loop_is_known_after_three_turns_and_one_that_waits_is_interrupted() {
        let work = Work::default();
        assert_eq!([3_000; 4].map(|gap_ns| work.after(gap_ns)), [false, false, true, true]);
        assert_eq!([200; 16].map(|gap_ns| work.after(gap_ns)).iter().filter(|works| **works).count(), 7);
        for _ in 0..100 {
            assert!(!work.after(50_000), "an interrupt");
            assert!([200; 4].iter().all(|gap_ns| !work.after(*gap_ns)));
        }
    }
}
