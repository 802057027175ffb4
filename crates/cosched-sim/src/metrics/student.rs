//! Quantiles of Student's t distribution, for 95 % intervals.

use std::f64::consts::FRAC_PI_2;

/// Degrees of freedom from which the expansion around the normal distribution is used; its error there is below 1e-9.
const EXPAND_FROM: u64 = 200;

/// The 97.5 % quantile of Student's t distribution: a 95 % interval is the mean ± this × the standard error.
///
/// `None` without degrees of freedom. The probability of ±t is a finite sum for whole degrees of freedom
/// (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4), which is inverted by bisection.
pub fn t_975(degrees_of_freedom: u64) -> Option<f64> {
    match degrees_of_freedom {
        0 => None,
        n if n >= EXPAND_FROM => Some(expansion(n as f64)),
        n => Some(bisect(n)),
    }
}

fn bisect(n: u64) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // The interval halves to the spacing of doubles; a fixed number of steps gives the same bits everywhere.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        *(if inside(n, middle) < 0.95 { &mut low } else { &mut high }) = middle;
    }
    libm::sqrt(n as f64) * libm::tan(0.5 * (low + high))
}

/// The probability that |t| < √n · tan θ.
fn inside(n: u64, theta: f64) -> f64 {
    let (sin, cos) = (libm::sin(theta), libm::cos(theta));
    let odd = n % 2 == 1;
    // Terms sin·cosᵏ with factors 2/3 · 4/5 … (odd n) or 1/2 · 3/4 … (even n).
    let (mut term, mut k, mut sum) = (if odd { sin * cos } else { sin }, if odd { 1.0 } else { 0.0 }, 0.0);
    let count = if odd { (n - 1) / 2 } else { n / 2 };
    for _ in 0..count {
        sum += term;
        term *= cos * cos * (k + 1.0) / (k + 2.0);
        k += 2.0;
    }
    if odd { (theta + sum) / FRAC_PI_2 } else { sum }
}

/// The Cornish–Fisher expansion (Abramowitz and Stegun 1964, 26.7.5).
fn expansion(n: f64) -> f64 {
    let z = 1.959_963_984_540_054_f64;
    let (z2, z3) = (z * z, z * z * z);
    let (z5, z7) = (z3 * z2, z3 * z2 * z2);
    let first = (z3 + z) / 4.0;
    let second = (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0;
    let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0;
    z + first / n + second / (n * n) + third / (n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (3, 3.182_446_305),
            (4, 2.776_445_105),
            (9, 2.262_157_163),
            (10, 2.228_138_852),
            (19, 2.093_024_054),
            (30, 2.042_272_456),
            (120, 1.979_930_405),
        ];
        for (n, expected) in table {
            let t = t_975(n).unwrap();
            assert!((t - expected).abs() < 2e-9, "{n}: {t}");
        }
        assert_eq!(t_975(0), None);
    }

    #[test]
    fn the_expansion_continues_the_sum() {
        assert!((expansion(200.0) - bisect(200)).abs() < 1e-8);
        assert!((t_975(u64::MAX).unwrap() - 1.959_963_984_540_054).abs() < 1e-12);
    }
}
