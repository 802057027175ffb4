//! Means with intervals, and pairs against each other.

use super::student::t_975;
use serde::{Deserialize, Serialize};

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval (Student's t); none of a single value.
    pub ci95: Option<f64>,
    /// How many values.
    pub n: u64,
}

impl Estimate {
    /// Of independent values, as the means of replications; none of nothing.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let mean = mean(values)?;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        Some(Estimate { mean, ci95: half_width(squares, values.len()), n: values.len() as u64 })
    }

    /// Whether the interval excludes this value: a difference from it is significant at 5 %.
    pub fn excludes(&self, value: f64) -> bool {
        self.ci95.is_some_and(|half| (self.mean - value).abs() > half)
    }
}

/// The plain mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half the width of the interval of a mean of `n` values whose squared deviations sum to `squares`.
fn half_width(squares: f64, n: usize) -> Option<f64> {
    let degrees = n.checked_sub(1)?;
    let t = t_975(degrees as u64)?;
    Some(t * libm::sqrt(squares / degrees as f64 / n as f64))
}

/// Fewest jobs of which batches are made.
const BATCHED_MIN: usize = 20;

/// Means of 20 batches of consecutive values (10 batches below 40 values; none below 20), whose sizes differ by one at
/// most. Jobs that follow each other share their circumstances, so their own deviations would make intervals that are
/// far too narrow; batches are nearly independent.
pub fn batch_means(values: &[f64]) -> Option<Vec<f64>> {
    let n = values.len();
    let batches = match n {
        0..BATCHED_MIN => return None,
        BATCHED_MIN..40 => 10,
        _ => 20,
    };
    (0..batches).map(|k| mean(&values[k * n / batches..(k + 1) * n / batches])).collect()
}

/// The mean of the differences of pairs: values that came from the same seeds (common random numbers). None when the
/// lists have different lengths.
pub fn difference(values: &[f64], base: &[f64]) -> Option<Estimate> {
    if values.len() != base.len() {
        return None;
    }
    Estimate::of(&values.iter().zip(base).map(|(x, y)| x - y).collect::<Vec<f64>>())
}

/// The ratio of the means of pairs, with the interval of the ratio estimator (Cochran 1977, chapter 6): the spread of
/// x − R·y, so that what both share cancels. None when the lists differ in length or the base is 0.
pub fn ratio(values: &[f64], base: &[f64]) -> Option<Estimate> {
    let (above, below) = (mean(values)?, mean(base)?);
    if values.len() != base.len() || below == 0.0 {
        return None;
    }
    let ratio = above / below;
    let squares: f64 = values.iter().zip(base).map(|(x, y)| (x - ratio * y) * (x - ratio * y)).sum();
    let ci95 = half_width(squares, values.len()).map(|half| half / below.abs());
    Some(Estimate { mean: ratio, ci95, n: values.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn an_interval_by_hand() {
        // Mean 3, standard deviation 1.581139, standard error 0.707107, t(4) = 2.776445.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((estimate.mean, estimate.n), (3.0, 5));
        assert!(close(estimate.ci95.unwrap(), 2.776_445_105_198 * 0.5_f64.sqrt()));
        assert!(estimate.excludes(5.0) && !estimate.excludes(4.0));
        let single = Estimate::of(&[7.0]).unwrap();
        assert_eq!((single.mean, single.ci95), (7.0, None));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn pairs_are_compared_by_their_differences() {
        let (x, y) = ([10.0, 21.0, 29.0], [5.0, 10.0, 15.0]);
        let d = difference(&x, &y).unwrap();
        // Differences 5, 11, 14: mean 10, deviations 25 + 1 + 16 = 42, t(2) = 4.302653.
        assert!(close(d.mean, 10.0) && close(d.ci95.unwrap(), 4.302_652_729_749 * (42.0_f64 / 2.0 / 3.0).sqrt()));
        let r = ratio(&x, &y).unwrap();
        // R = 2, x − 2y = 0, 1, −1: squares 2, over 2·3, over the base's mean of 10.
        assert!(close(r.mean, 2.0) && close(r.ci95.unwrap(), 4.302_652_729_749 * (1.0_f64 / 3.0).sqrt() / 10.0));
        assert_eq!((difference(&x, &y[..2]), ratio(&x, &[0.0; 3])), (None, None));
    }

    #[test]
    fn exactly_proportional_pairs_have_no_spread() {
        let r = ratio(&[3.0, 6.0, 9.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((r.mean, r.ci95), (3.0, Some(0.0)));
    }

    #[test]
    fn batches_cover_all_values_once() {
        let values: Vec<f64> = (0..47).map(f64::from).collect();
        let batches = batch_means(&values).unwrap();
        assert_eq!(batches.len(), 20);
        assert_eq!((batches[0], batches[19]), (0.5, 45.0));
        assert_eq!(batch_means(&values[..20]).unwrap(), (0..10).map(|k| f64::from(k) * 2.0 + 0.5).collect::<Vec<_>>());
        assert_eq!(batch_means(&values[..19]), None);
    }
}
