//! The number of buffers that wait for each stage, over time, in bounded memory.

use crate::report::Occupancy;

/// The maximum number of samples that are kept; beyond that, each two neighbours are replaced by
/// their mean.
const KEPT_MAX: usize = 512;

/// Samples of all queues; their resolution is halved whenever there are too many.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    at_s: Vec<f64>,
    /// One row per sample, one column per stage.
    lengths: Vec<Vec<f32>>,
    /// Number of polls per sample.
    per_sample: u32,
    pending: Vec<f32>,
    pending_count: u32,
    /// Over all polls: their number, and for each stage the sum and the maximum of the queue
    /// length.
    pub(super) looks: u64,
    pub(super) sums: Vec<f64>,
    pub(super) max: Vec<usize>,
}

impl Samples {
    pub(super) fn new(stages: usize) -> Samples {
        Samples {
            per_sample: 1,
            pending: vec![0.0; stages],
            sums: vec![0.0; stages],
            max: vec![0; stages],
            ..Samples::default()
        }
    }

    /// Adds one poll of all queues.
    pub(super) fn look(&mut self, at_s: f64, lengths: impl Iterator<Item = usize>) {
        for (stage, length) in lengths.enumerate() {
            self.pending[stage] += length as f32;
            self.sums[stage] += length as f64;
            self.max[stage] = self.max[stage].max(length);
        }
        self.looks += 1;
        self.pending_count += 1;
        if self.pending_count < self.per_sample {
            return;
        }
        let count = self.pending_count as f32;
        self.lengths.push(self.pending.iter().map(|sum| sum / count).collect());
        self.at_s.push(at_s);
        self.pending.fill(0.0);
        self.pending_count = 0;
        if self.lengths.len() == KEPT_MAX {
            self.halve();
        }
    }

    /// A sample covers the time until its instant, so the later instant of each pair is kept.
    fn halve(&mut self) {
        let mean = |pair: &[Vec<f32>]| pair[0].iter().zip(&pair[1]).map(|(a, b)| (a + b) / 2.0).collect();
        self.lengths = self.lengths.chunks_exact(2).map(mean).collect();
        self.at_s = self.at_s.chunks_exact(2).map(|pair| pair[1]).collect();
        self.per_sample *= 2;
    }

    /// Mean queue length of a stage.
    pub(super) fn mean(&self, stage: usize) -> f64 {
        if self.looks == 0 { 0.0 } else { self.sums[stage] / self.looks as f64 }
    }

    /// In the form that reports have.
    pub(super) fn report(&self) -> Occupancy {
        let rounded = |row: &Vec<f32>| row.iter().map(|length| (length * 100.0).round() / 100.0).collect();
        Occupancy {
            at_s: self.at_s.iter().map(|at| (at * 1e6).round() / 1e6).collect(),
            waiting: self.lengths.iter().map(rounded).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_means_are_kept() {
        let mut samples = Samples::new(2);
        for look in 0..10_000_usize {
            samples.look(look as f64, [look % 2, 4].into_iter());
        }
        let report = samples.report();
        assert!(report.at_s.len() < KEPT_MAX && report.at_s.len() >= KEPT_MAX / 4, "{}", report.at_s.len());
        assert!(report.waiting.iter().all(|row| *row == [0.5, 4.0]));
        assert!(report.at_s.windows(2).all(|pair| pair[0] < pair[1]) && *report.at_s.last().unwrap() > 9900.0);
        assert_eq!((samples.mean(0), samples.mean(1), &samples.max), (0.5, 4.0, &vec![1, 4]));
    }

    #[test]
    fn a_few_looks_are_kept_as_they_are() {
        let mut samples = Samples::new(1);
        [3, 1, 2].into_iter().for_each(|length| samples.look(length as f64, std::iter::once(length)));
        assert_eq!(samples.report().waiting, [[3.0], [1.0], [2.0]]);
        assert_eq!(Samples::new(1).mean(0), 0.0);
    }
}
