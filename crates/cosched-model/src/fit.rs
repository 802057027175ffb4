//! α and β from a ping-pong: the line time = α + β size (Strazdins & Uhlmann 2004, section 2.2).
//!
//! Least squares of relative errors: the times of messages span four orders of magnitude, and the absolute errors of the
//! long ones would make α meaningless.

/// A line through times of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// α: the time of an empty message, in the unit of the times.
    pub alpha: f64,
    /// β: the time of each unit of size.
    pub beta: f64,
    /// The largest relative distance of a point from the line.
    pub error_max: f64,
}

/// Why no line can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Fewer than two sizes.
    #[error("a line needs times of at least two different sizes")]
    Sizes,
    /// A size below 0, a time that is not above 0, or one that is not finite.
    #[error("sizes must be finite and not negative, times finite and above 0")]
    Point,
}

/// Fits the line to points (size, time). α and β are never negative: if the best line has a negative one, the best line
/// without is returned.
///
/// # Errors
/// [`FitError`].
pub fn line(points: &[(f64, f64)]) -> Result<Line, FitError> {
    let good = |&(size, time): &(f64, f64)| size.is_finite() && size >= 0.0 && time.is_finite() && time > 0.0;
    if !points.iter().all(good) {
        return Err(FitError::Point);
    }
    if points.iter().all(|point| point.0 == points[0].0) {
        return Err(FitError::Sizes);
    }
    // Minimise the sum of (1 - (alpha u + beta v))² with u = 1 / time, v = size / time.
    let (mut uu, mut uv, mut vv, mut u_sum, mut v_sum) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (size, time) in points {
        let (u, v) = (1.0 / time, size / time);
        uu += u * u;
        uv += u * v;
        vv += v * v;
        u_sum += u;
        v_sum += v;
    }
    let determinant = uu * vv - uv * uv;
    let (alpha, beta) = ((u_sum * vv - v_sum * uv) / determinant, (v_sum * uu - u_sum * uv) / determinant);
    let (alpha, beta) = if alpha < 0.0 {
        (0.0, v_sum / vv)
    } else if beta < 0.0 {
        (u_sum / uu, 0.0)
    } else {
        (alpha, beta)
    };
    let error = |(size, time): &(f64, f64)| ((alpha + beta * size) / time - 1.0).abs();
    Ok(Line { alpha, beta, error_max: points.iter().map(error).fold(0.0, f64::max) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_the_papers_constants() {
        let points: Vec<_> = [1.0, 8.0, 512.0, 8192.0, 131_072.0].map(|n| (n, 80.0 + 0.85 * n)).into();
        let found = line(&points).unwrap();
        assert!((found.alpha - 80.0).abs() < 1e-6 && (found.beta - 0.85).abs() < 1e-9, "{found:?}");
        assert!(found.error_max < 1e-9);
    }

    #[test]
    fn never_gives_less_than_no_time() {
        let falling = line(&[(1.0, 10.0), (1000.0, 5.0)]).unwrap();
        assert!(falling.beta == 0.0 && falling.alpha > 5.0, "{falling:?}");
        let steep = line(&[(1.0, 0.1), (1000.0, 1000.0)]).unwrap();
        assert!(steep.alpha == 0.0 && steep.beta > 0.0, "{steep:?}");
    }

    #[test]
    fn says_why_there_is_no_line() {
        assert_eq!(line(&[]), Err(FitError::Sizes));
        assert_eq!(line(&[(8.0, 1.0), (8.0, 2.0)]), Err(FitError::Sizes));
        for bad in [(-1.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            assert_eq!(line(&[(2.0, 1.0), bad]), Err(FitError::Point));
        }
    }

    proptest! {
        #[test]
        fn noise_of_a_per_cent_moves_the_constants_little(
            alpha in 0.5..500.0_f64, beta in 1e-4..10.0_f64, noise in proptest::collection::vec(-0.01..0.01_f64, 7)
        ) {
            let sizes = [1.0, 8.0, 64.0, 512.0, 4096.0, 32_768.0, 131_072.0];
            let points: Vec<_> = sizes.iter().zip(&noise).map(|(n, e)| (*n, (alpha + beta * n) * (1.0 + e))).collect();
            let found = line(&points).unwrap();
            prop_assert!(found.error_max < 0.05, "{found:?}");
            let exact = line(&sizes.map(|n| (n, alpha + beta * n))).unwrap();
            prop_assert!((exact.alpha / alpha - 1.0).abs() < 1e-4 && (exact.beta / beta - 1.0).abs() < 1e-4, "{exact:?}");
        }
    }
}
