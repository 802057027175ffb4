//! What the slot thread measures of itself, without locks.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Each power of two has this many buckets, so a value is known to 1/8.
const STEPS: usize = 8;
/// Values up to 2^40 ns (18 minutes).
const OCTAVES: usize = 40;

/// A histogram of nanoseconds with log-linear buckets. One thread adds, any thread reads.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    max_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let buckets = (0..OCTAVES * STEPS).map(|_| AtomicU64::new(0)).collect();
        Histogram { buckets, max_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts one value. Does not allocate.
    pub fn add(&self, value_ns: u64) {
        self.buckets[bucket(value_ns)].fetch_add(1, Relaxed);
        self.max_ns.fetch_max(value_ns, Relaxed);
    }

    /// Median, 99th percentile and maximum so far.
    pub fn quantiles(&self) -> Quantiles {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let max_us = self.max_ns.load(Relaxed) as f64 / 1000.0;
        let at = |share: f64| {
            let wanted = ((count as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            let found = counts.iter().position(|&n| {
                seen += n;
                seen >= wanted
            });
            found.map_or(0.0, |index| (middle_ns(index) / 1000.0).min(max_us))
        };
        Quantiles { count, p50_us: at(0.50), p99_us: at(0.99), max_us }
    }

    fn reset(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
        self.max_ns.store(0, Relaxed);
    }
}

/// Values below 2·STEPS have a bucket each; above, each octave has STEPS.
fn bucket(value: u64) -> usize {
    let value = value.max(STEPS as u64);
    let octave = value.ilog2() as usize - STEPS.ilog2() as usize;
    let step = (value >> octave) as usize - STEPS;
    (octave * STEPS + step).min(OCTAVES * STEPS - 1)
}

fn middle_ns(index: usize) -> f64 {
    let (octave, step) = (index / STEPS, index % STEPS);
    (STEPS as f64 + step as f64 + 0.5) * (octave as f64).exp2()
}

/// A summary of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quantiles {
    /// How many values.
    pub count: u64,
    /// Median, in microseconds, to 1/16.
    pub p50_us: f64,
    /// 99th percentile, in microseconds, to 1/16.
    pub p99_us: f64,
    /// Maximum, in microseconds.
    pub max_us: f64,
}

/// The slot thread's counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) switches: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) errno: AtomicI32,
    pub(crate) installs: AtomicU64,
    pub(crate) resyncs: AtomicU64,
    pub(crate) fills: AtomicU64,
    pub(crate) looks: AtomicU64,
    pub(crate) look_ns: AtomicU64,
    pub(crate) boosts: AtomicU64,
    pub(crate) rings: AtomicU64,
    pub(crate) wake: Histogram,
    pub(crate) done: Histogram,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> SwitchStats {
        SwitchStats {
            count: self.switches.load(Relaxed),
            late: self.late.load(Relaxed),
            missed: self.missed.load(Relaxed),
            errors: self.errors.load(Relaxed),
            last_error: Some(self.errno.load(Relaxed)).filter(|&n| n != 0),
            installs: self.installs.load(Relaxed),
            resyncs: self.resyncs.load(Relaxed),
            fills: self.fills.load(Relaxed),
            looks: self.looks.load(Relaxed),
            look_ns: self.look_ns.load(Relaxed),
            boosts: self.boosts.load(Relaxed),
            rings: self.rings.load(Relaxed),
            wake: self.wake.quantiles(),
            done: self.done.quantiles(),
        }
    }

    pub(crate) fn reset(&self) {
        let switching = [&self.switches, &self.late, &self.missed, &self.errors, &self.resyncs, &self.fills];
        let boosting = [&self.looks, &self.look_ns, &self.boosts, &self.rings];
        for counter in switching.into_iter().chain(boosting) {
            counter.store(0, Relaxed);
        }
        self.errno.store(0, Relaxed);
        self.wake.reset();
        self.done.reset();
    }
}

/// What the slot thread has done since it started (or since the last reset).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwitchStats {
    /// Switches at slot boundaries.
    pub count: u64,
    /// Switches that came later than a tenth of a slot.
    pub late: u64,
    /// Boundaries with a switch that were passed over altogether.
    pub missed: u64,
    /// Writes that the kernel refused.
    pub errors: u64,
    /// The last refusal, as an errno.
    pub last_error: Option<i32>,
    /// Tables taken over.
    pub installs: u64,
    /// Times that all states were written anew, because the guard had thawed or the thread had stood still.
    pub resyncs: u64,
    /// Times that a gang in the background was let run on idle CPUs.
    pub fills: u64,
    /// Looks at who has a message waiting.
    pub looks: u64,
    /// The time that they took, with the boosts, in nanoseconds.
    pub look_ns: u64,
    /// Times that another job was boosted.
    pub boosts: u64,
    /// Times that the bell of arriving messages woke the thread.
    pub rings: u64,
    /// From the boundary until the thread runs.
    pub wake: Quantiles,
    /// From the boundary until the last write of the switch.
    pub done: Quantiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_with_the_values_and_hold_them() {
        let mut last = 0;
        for value in (0..10_000u64).chain([1 << 20, 1 << 30, 1 << 39, u64::MAX]) {
            let index = bucket(value);
            assert!(index >= last && index < OCTAVES * STEPS, "{value}");
            last = index;
            if (16..1 << 39).contains(&value) {
                let error = (middle_ns(index) - value as f64).abs() / value as f64;
                assert!(error <= 1.0 / 16.0 + 1e-9, "{value}: {error}");
            }
        }
    }

    #[test]
    fn quantiles_of_a_known_sample() {
        let histogram = Histogram::default();
        for value_us in 1..=1000u64 {
            histogram.add(value_us * 1000);
        }
        let found = histogram.quantiles();
        assert_eq!(found.count, 1000);
        assert!((found.p50_us - 500.0).abs() < 500.0 / 8.0, "{found:?}");
        assert!((found.p99_us - 990.0).abs() < 990.0 / 8.0, "{found:?}");
        assert_eq!(found.max_us, 1000.0);
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        assert_eq!(Histogram::default().quantiles(), Quantiles::default());
    }
}
