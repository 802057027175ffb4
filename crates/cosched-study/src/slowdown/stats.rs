//! Statistics of repeated measurements.

/// The median; of an even number of values the mean of the two in the middle. None for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[sorted.len() / 2 - 1] + upper) / 2.0 } else { upper })
}

/// The mean; None for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    cosched_sim::metrics::mean(values)
}

/// The standard error of the mean, √(Σ(x − x̄)² / (n − 1) / n); None for fewer than two values.
pub fn stderr(values: &[f64]) -> Option<f64> {
    let (mean, n) = (mean(values)?, values.len() as f64);
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt())
}

/// The standard error of the ratio of two independent means, to first order (Cochran 1977, section 6.4, without the
/// covariance): the squares of the relative errors add up. None unless both are known: a single run says nothing of its
/// error.
pub fn ratio_stderr(above: (f64, Option<f64>), below: (f64, Option<f64>)) -> Option<f64> {
    let (above_error, below_error) = above.1.zip(below.1)?;
    let is_ratio = above.0 != 0.0 && below.0 != 0.0;
    is_ratio.then(|| (above.0 / below.0).abs() * (above_error / above.0).hypot(below_error / below.0))
}

/// Jain's fairness index (Σx)² / (n Σx²): 1 if all values are equal, 1/n if one has everything. None for no values or
/// only zeros.
pub fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: Option<f64>, b: f64) {
        assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} {b}");
    }

    #[test]
    fn medians_and_errors() {
        near(median(&[3.0, 1.0, 2.0]), 2.0);
        near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!((median(&[]), mean(&[]), stderr(&[1.0])), (None, None, None));
        near(mean(&[1.0, 2.0, 6.0]), 3.0);
        // Deviations −2, −1, 3: 14 / 2 / 3.
        near(stderr(&[1.0, 2.0, 6.0]), (7.0_f64 / 3.0).sqrt());
    }

    #[test]
    fn errors_of_ratios_add_up_as_squares() {
        // 3 % and 4 % give 5 %.
        near(ratio_stderr((2.0, Some(0.06)), (1.0, Some(0.04))), 0.1);
        assert_eq!(ratio_stderr((2.0, Some(0.06)), (1.0, None)), None);
        assert_eq!(ratio_stderr((2.0, None), (1.0, None)), None);
        assert_eq!(ratio_stderr((2.0, Some(0.1)), (0.0, Some(0.1))), None);
    }

    #[test]
    fn a_simulated_ratio_has_the_error_that_is_said() {
        // Pairs of means of 8 values with known deviations; with a linear congruential generator, so always the same.
        let mut state = 12345_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut ratios = Vec::new();
        let mut said = Vec::new();
        for _ in 0..2000 {
            let above: Vec<f64> = (0..8).map(|_| 4.0 + uniform()).collect();
            let below: Vec<f64> = (0..8).map(|_| 2.0 + uniform()).collect();
            let (a, b) = (mean(&above).unwrap(), mean(&below).unwrap());
            ratios.push(a / b);
            said.push(ratio_stderr((a, stderr(&above)), (b, stderr(&below))).unwrap());
        }
        let spread = stderr(&ratios).unwrap() * (ratios.len() as f64).sqrt();
        let said = mean(&said).unwrap();
        assert!((said / spread - 1.0).abs() < 0.1, "{said} {spread}");
    }

    #[test]
    fn fairness() {
        near(jain(&[2.0, 2.0, 2.0]), 1.0);
        near(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        near(jain(&[1.0, 3.0]), 0.8);
        assert_eq!((jain(&[]), jain(&[0.0])), (None, None));
    }
}
