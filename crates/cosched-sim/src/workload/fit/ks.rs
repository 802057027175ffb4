//! The Kolmogorov–Smirnov distance: the largest difference between a fitted distribution and its sample.

use super::Moments;

/// The largest difference between the empirical distribution of a sorted sample and `cdf`, 0 to 1; 0 without a sample.
pub fn ks_distance(sorted: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let n = sorted.len() as f64;
    let (mut from, mut distance) = (0, 0.0_f64);
    // Equal values form one step of the empirical distribution.
    for group in sorted.chunk_by(|a, b| a == b) {
        let to = from + group.len();
        let p = cdf(group[0]);
        distance = distance.max(p - from as f64 / n).max(to as f64 / n - p);
        from = to;
    }
    distance
}

/// The distance of an exponential distribution with the sample's mean: the baseline that a fit has to beat.
pub fn ks_exponential(sorted: &[f64], moments: &Moments) -> f64 {
    let mean = moments.raw[0];
    ks_distance(sorted, |t| if mean > 0.0 { -libm::expm1(-t / mean) } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_compared_on_both_sides() {
        assert!((ks_distance(&[0.1, 0.2, 0.9], |t| t) - (2.0 / 3.0 - 0.2)).abs() < 1e-15);
        assert!((ks_distance(&[0.5, 0.5], |t| t) - 0.5).abs() < 1e-15);
        assert!((ks_distance(&[0.9], |t| t) - 0.9).abs() < 1e-15);
        assert_eq!(ks_distance(&[], |t| t), 0.0);
    }
}
