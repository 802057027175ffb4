//! Medians, and the deviation of values from them.

use alloc::vec::Vec;

/// The ratio of a normal distribution's standard deviation to its median absolute deviation.
const SIGMA_PER_MAD: f64 = 1.4826;

/// The ratio of the standard error of [`middle`] to that of a mean, for a normal distribution.
const MIDDLE_OVER_MEAN: f64 = 1.09;

/// The median; 0 without values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (n, half) if n % 2 == 1 => sorted[half],
        (_, half) => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// The standard deviation that corresponds to the median absolute deviation of these values.
pub(super) fn sigma(values: &[f64]) -> f64 {
    let middle = median(values);
    let off: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    SIGMA_PER_MAD * median(&off)
}

/// The mean of the middle half of the values: nearly as exact as a mean, and nearly as robust against outliers as a median.
pub(super) fn middle(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let half = &sorted[cut..sorted.len() - cut];
    if half.is_empty() { 0.0 } else { half.iter().sum::<f64>() / half.len() as f64 }
}

/// The standard error of [`middle`] of `count` values.
pub(super) fn error_of_middle(sigma: f64, count: usize) -> f64 {
    MIDDLE_OVER_MEAN * sigma / root(count.max(1) as f64)
}

/// The pooled standard deviation of `a` and `b`, weighted by their counts of values.
pub(super) fn pooled(a: f64, count_a: usize, b: f64, count_b: usize) -> f64 {
    let (of_a, of_b) = (count_a as f64, count_b as f64);
    root((a * a * of_a + b * b * of_b) / (of_a + of_b).max(1.0))
}

/// The square root, by Newton's method, because core has none.
fn root(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let mut guess = value.max(1.0);
    for _ in 0..60 {
        guess = (guess + value / guess) / 2.0;
    }
    guess
}

/// The differences between the rates of windows under one setting: a trial's gain must exceed them.
#[derive(Debug, Clone, Default)]
pub(super) struct Noise {
    /// The last rates under one setting.
    rates: Vec<f64>,
    /// For three windows in a row, the relative deviation of the middle one from the mean of its neighbours.
    off: Vec<f64>,
}

impl Noise {
    const KEPT: usize = 15;

    /// Adds one more window under the same setting as the last.
    pub(super) fn add(&mut self, rate: f64) {
        self.rates.push(rate);
        if let [before, middle, after] = self.rates[..] {
            let mean = (before + after) / 2.0;
            if mean > 0.0 {
                self.off.push(middle / mean - 1.0);
            }
            self.rates.remove(0);
        }
        if self.off.len() > Noise::KEPT {
            self.off.remove(0);
        }
    }

    /// The next window has another setting.
    pub(super) fn cut(&mut self) {
        self.rates.clear();
    }

    /// The standard deviation of one such comparison; `None` if there were too few.
    pub(super) fn sigma(&self) -> Option<f64> {
        let off: Vec<f64> = self.off.iter().map(|off| off.abs()).collect();
        (off.len() >= 3).then(|| SIGMA_PER_MAD * median(&off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_matter() {
        assert_eq!((middle(&[]), middle(&[3.0, 4.0]), middle(&[1.0, 3.0, 4.0, 900.0])), (0.0, 3.5, 3.5));
        assert_eq!((median(&[]), median(&[3.0]), median(&[4.0, 1.0, 2.0, 9.0])), (0.0, 3.0, 3.0));
        assert_eq!(sigma(&[1.0, 2.0, 3.0, 4.0, 1000.0]), SIGMA_PER_MAD);
        assert!((pooled(1.0, 8, 3.0, 2) - root(2.6)).abs() < 1e-9);
        assert!((root(2.0) * root(2.0) - 2.0).abs() < 1e-9 && root(1.0) == 1.0);
    }

    #[test]
    fn noise_ignores_a_slow_drift() {
        let mut noise = Noise::default();
        (0..20).for_each(|k| noise.add(100.0 + f64::from(k)));
        assert!(noise.sigma().unwrap() < 1e-9);
        (0..20).for_each(|k| noise.add(if k % 2 == 0 { 90.0 } else { 110.0 }));
        assert!(noise.sigma().unwrap() > 0.2);
    }

    #[test]
    fn nothing_is_known_of_too_few_windows() {
        let mut noise = Noise::default();
        [1.0, 2.0].into_iter().for_each(|rate| noise.add(rate));
        noise.cut();
        [1.0, 2.0].into_iter().for_each(|rate| noise.add(rate));
        assert_eq!(noise.sigma(), None);
    }
}
