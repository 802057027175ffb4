//! Means with intervals, and comparisons of pairs.
//!
//! Intervals come only from independent replications (decision 0059): jobs of one run share their circumstances, and near
//! saturation even twenty batches of a hundred jobs do, so the error that a single run estimates for itself is far too small.

use super::student::t_975;
use serde::{Deserialize, Serialize};

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval (Student's t); `None` for a single value.
    pub ci95: Option<f64>,
    /// The number of values.
    pub n: u64,
}

impl Estimate {
    /// The estimate from independent values, such as the means of replications; `None` without values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let mean = mean(values)?;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        Some(Estimate { mean, ci95: half_width(squares, values.len()), n: values.len() as u64 })
    }

    /// The same of quantities above 0, as times. Their means over replications are skewed to the right: a sample without a
    /// very long one has a small mean and a small spread at once, and Student's interval ends below the truth (decision 0059).
    /// So the interval is the widest of Student's, its upper side with Hall's correction for skewness (1992), and Cox's for
    /// the mean of a log-normal quantity (Olsson 2005). None where that is beyond all numbers.
    pub fn of_positive(values: &[f64]) -> Option<Estimate> {
        let plain = Estimate::of(values)?;
        let (Some(half), true) = (plain.ci95, values.iter().all(|value| *value > 0.0)) else { return Some(plain) };
        let widest = half.max(hall(values, plain.mean)).max(cox(values, plain.mean));
        let ci95 = if half == 0.0 { plain.ci95 } else { Some(widest).filter(|half| half.is_finite()) };
        Some(Estimate { ci95, ..plain })
    }

    /// Whether the interval excludes this value: a difference from it is significant at 5 %.
    pub fn excludes(&self, value: f64) -> bool {
        self.ci95.is_some_and(|half| (self.mean - value).abs() > half)
    }
}

/// The plain mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half the width of the interval of a mean of `n` values whose squared deviations sum to `squares`.
fn half_width(squares: f64, n: usize) -> Option<f64> {
    let degrees = n.checked_sub(1)?;
    let t = t_975(degrees as u64)?;
    Some(t * libm::sqrt(squares / degrees as f64 / n as f64))
}

/// How far above their mean Hall's interval of these values ends; 0 of fewer than three.
fn hall(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let moment = |power: i32| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    let Some(t) = t_975(values.len() as u64 - 1).filter(|_| values.len() > 2) else { return 0.0 };
    let (second, third) = (moment(2), moment(3));
    if second == 0.0 {
        return 0.0;
    }
    let skewness = third / (second * libm::sqrt(second)) * libm::sqrt(n * (n - 1.0)) / (n - 2.0);
    let error = libm::sqrt(second / (n - 1.0));
    error * (t + skewness.max(0.0) * (1.0 + 2.0 * t * t) / (6.0 * libm::sqrt(n)))
}

/// How far from their mean the further end of Cox's interval of these values is.
fn cox(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let logs: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
    let middle = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - middle) * (log - middle)).sum::<f64>() / (n - 1.0);
    let Some(t) = t_975(values.len() as u64 - 1) else { return 0.0 };
    let h = t * libm::sqrt(variance / n + variance * variance / (2.0 * (n - 1.0)));
    let side = |sign: f64| (libm::exp(middle + variance / 2.0 + sign * h) - mean).abs();
    side(1.0).max(side(-1.0))
}

/// The mean of the differences of pairs: values that came from the same seeds (common random numbers). `None` when the lists
/// have different lengths.
pub fn difference(values: &[f64], base: &[f64]) -> Option<Estimate> {
    if values.len() != base.len() {
        return None;
    }
    Estimate::of(&values.iter().zip(base).map(|(x, y)| x - y).collect::<Vec<f64>>())
}

/// The ratio of the means of pairs, with the interval of the ratio estimator (Cochran 1977, chapter 6): the spread of x − R·y,
/// so that what both share cancels. `None` when the lists differ in length or the base is 0.
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
    fn times_have_an_interval_for_skewed_quantities() {
        let e = std::f64::consts::E;
        let positive = Estimate::of_positive(&[1.0, e, e * e]).unwrap();
        // Logarithms 0, 1, 2: mean 1, variance 1; h = t(2) · √(1/3 + 1/4) = 3.286092; exp(1.5 + h) is the far end.
        let h = 4.302_652_729_749 * (1.0_f64 / 3.0 + 0.25).sqrt();
        assert!(close(positive.mean, (1.0 + e + e * e) / 3.0));
        assert!(close(positive.ci95.unwrap(), (1.5 + h).exp() - positive.mean), "{positive:?}");
        // One of ten above the others: mean 100.1, standard error 0.1, adjusted skewness √10.
        let far: Vec<f64> = (0..10).map(|k| if k == 0 { 101.0 } else { 100.0 }).collect();
        let (plain, positive) = (Estimate::of(&far).unwrap(), Estimate::of_positive(&far).unwrap());
        let t = 2.262_157_163_f64;
        let by_hand = 0.1 * (t + 10.0_f64.sqrt() * (1.0 + 2.0 * t * t) / (6.0 * 10.0_f64.sqrt()));
        assert!(
            (plain.ci95.unwrap() - 0.1 * t).abs() < 1e-9 && (positive.ci95.unwrap() - by_hand).abs() < 1e-6,
            "{positive:?}"
        );
        let narrow = [100.0, 101.0, 99.0, 100.5, 99.5];
        let (plain, positive) = (Estimate::of(&narrow).unwrap(), Estimate::of_positive(&narrow).unwrap());
        assert!((positive.ci95.unwrap() / plain.ci95.unwrap() - 1.0).abs() < 0.02, "little spread is no skew");
        assert_eq!(Estimate::of_positive(&[2.0, 2.0]).unwrap().ci95, Some(0.0));
        assert_eq!(Estimate::of_positive(&[0.0, 1.0]), Estimate::of(&[0.0, 1.0]));
        assert_eq!(Estimate::of_positive(&[1e-300, 1e300]).unwrap().ci95, None);
        assert_eq!(Estimate::of_positive(&[7.0]).unwrap().ci95, None);
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
}
