//! A quantity over many jobs.

use serde::{Deserialize, Serialize};

/// One quantity over the jobs that have ended.
///
/// Percentiles interpolate between the two nearest ranks (type 7 of Hyndman and Fan 1996: the default of R and NumPy).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The root mean square: much larger than the mean if the mean is dominated by few jobs.
    pub rms: f64,
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl Summary {
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mean = super::estimate::mean(values)?;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let squares = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
        Some(Summary {
            mean,
            rms: libm::sqrt(squares),
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            p99: quantile(&sorted, 0.99),
            max: quantile(&sorted, 1.0),
        })
    }
}

/// The value below which this fraction (0 to 1) of sorted values lies, interpolated linearly; 0 without values.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part.clamp(0.0, 1.0) * last as f64;
    let below = (place as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate() {
        let values: Vec<f64> = (1..=5).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 3.0);
        assert_eq!(quantile(&values, 0.95), 4.8);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (1.0, 5.0));
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
    }

    #[test]
    fn a_summary_of_four_values() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.max), (2.5, 2.5, 4.0));
        assert_eq!(summary.rms, 7.5_f64.sqrt());
        assert_eq!(Summary::of(&[]), None);
    }
}
