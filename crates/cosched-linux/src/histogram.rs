//! A histogram of times that one thread fills without locks and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of buckets for each power of two: a value is known to 1/8.
const STEPS: usize = 8;
/// Values up to 2^40 ns (18 minutes).
const OCTAVES: usize = 40;

/// A histogram of nanoseconds with log-linear buckets. One thread adds, any thread reads.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    max_ns: AtomicU64,
    sum_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let buckets = (0..OCTAVES * STEPS).map(|_| AtomicU64::new(0)).collect();
        Histogram { buckets, max_ns: AtomicU64::new(0), sum_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts one value. Does not allocate.
    pub fn add(&self, value_ns: u64) {
        self.buckets[bucket(value_ns)].fetch_add(1, Relaxed);
        self.max_ns.fetch_max(value_ns, Relaxed);
        self.sum_ns.fetch_add(value_ns, Relaxed);
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

    /// The whole distribution, with a bucket for each octave.
    pub fn buckets(&self) -> Buckets {
        let octave = |index: usize| {
            let counts = &self.buckets[index * STEPS..(index + 1) * STEPS];
            ((2 * STEPS as u64) << index, counts.iter().map(|count| count.load(Relaxed)).sum())
        };
        Buckets { sum_ns: self.sum_ns.load(Relaxed), counts: (0..OCTAVES).map(octave).collect() }
    }

    pub(crate) fn reset(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
        self.max_ns.store(0, Relaxed);
        self.sum_ns.store(0, Relaxed);
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

/// Quantiles and the maximum of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quantiles {
    /// The number of values.
    pub count: u64,
    /// Median, in microseconds, to 1/16.
    pub p50_us: f64,
    /// 99th percentile, in microseconds, to 1/16.
    pub p99_us: f64,
    /// Maximum, in microseconds.
    pub max_us: f64,
}

/// A distribution with a bucket for each power of two.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Buckets {
    /// The sum of all values, in nanoseconds.
    pub sum_ns: u64,
    /// For each bucket its exclusive upper bound in nanoseconds, and the number of its values. Ascending, without gaps.
    pub counts: Vec<(u64, u64)>,
}

impl Buckets {
    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
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
    fn buckets_hold_every_value_below_their_bound() {
        let histogram = Histogram::default();
        let values = [3u64, 15, 16, 17, 1000, 1024, 70_000, 1 << 39];
        values.iter().for_each(|&value| histogram.add(value));
        let found = histogram.buckets();
        assert_eq!((found.sum_ns, found.count()), (values.iter().sum(), values.len() as u64));
        let mut below = 0;
        for (bound_ns, count) in found.counts {
            below += count;
            assert_eq!(below, values.iter().filter(|&&value| value < bound_ns).count() as u64, "below {bound_ns}");
        }
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        assert_eq!(Histogram::default().quantiles(), Quantiles::default());
        assert_eq!((Histogram::default().buckets().count(), Histogram::default().buckets().sum_ns), (0, 0));
    }
}
