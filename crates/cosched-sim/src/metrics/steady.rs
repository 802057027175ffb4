//! Where a run's warm-up ends.
//!
//! Problem: a simulation begins with an empty machine, so its first jobs are served better than those of a machine in use.
//! Rule: MSER-5 (White, Cobb and Spratt 2000). The values are averaged in batches of five, in the order of arrival, and the
//! first batches are cut off such that the standard error of the rest is the smallest. If that would be more than half of
//! them, the values have not settled: then there is no steady mean, and the run is too short for one.

use serde::{Deserialize, Serialize};

/// The number of values in a batch.
const BATCH: usize = 5;
/// The minimum number of batches for the rule.
const BATCHES_MIN: usize = 10;

/// The mean without the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// The number of jobs in the warm-up.
    pub warm_up_jobs: u64,
    /// The mean of the remaining jobs.
    pub mean: f64,
}

impl Steady {
    /// From values in the order of arrival; `None` for fewer than 50, and when they have not settled.
    pub fn of(values: &[f64]) -> Option<Steady> {
        let batches: Vec<f64> =
            values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
        if batches.len() < BATCHES_MIN {
            return None;
        }
        // From the end: with each additional batch, the sums and the standard error that the rest would have. A few batches
        // may agree by chance, so the last ones are not accepted as the rest.
        let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
        for (cut, batch) in batches.iter().enumerate().rev() {
            sum += batch;
            squares += batch * batch;
            let n = (batches.len() - cut) as f64;
            let error2 = (squares - sum * sum / n).max(0.0) / (n * n);
            if n >= BATCH as f64 && error2 <= best.0 {
                best = (error2, cut);
            }
        }
        let warm_up = best.1 * BATCH;
        let mean = super::estimate::mean(values.get(warm_up..)?)?;
        (best.1 <= batches.len() / 2).then_some(Steady { warm_up_jobs: warm_up as u64, mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that look like noise, from -0.5 to 0.5.
    fn noise(k: usize) -> f64 {
        ((k * 7919) % 101) as f64 / 101.0 - 0.5
    }

    #[test]
    fn a_rise_at_the_beginning_is_cut_off() {
        let values: Vec<f64> = (0..300).map(|k| 10.0 - 9.0 * (1.0 - k.min(60) as f64 / 60.0) + noise(k)).collect();
        let steady = Steady::of(&values).unwrap();
        assert!((45..=75).contains(&steady.warm_up_jobs), "{steady:?}");
        assert!((steady.mean - 10.0).abs() < 0.1, "{steady:?}");
    }

    #[test]
    fn what_is_steady_from_the_beginning_loses_little() {
        let values: Vec<f64> = (0..300).map(|k| 10.0 + noise(k)).collect();
        assert!(Steady::of(&values).unwrap().warm_up_jobs <= 60, "{:?}", Steady::of(&values));
        assert_eq!(Steady::of(&[3.0; 50]), Some(Steady { warm_up_jobs: 0, mean: 3.0 }));
    }

    #[test]
    fn what_rises_all_the_time_has_not_settled() {
        let values: Vec<f64> = (0..300).map(|k| (k * k) as f64 + noise(k)).collect();
        assert_eq!(Steady::of(&values), None);
        assert_eq!(Steady::of(&[1.0; 49]), None, "too few to tell");
    }
}
