//! The fit by three moments (Jann et al. 1997: "match the first three moments"; the algebra is derived in
//! docs/workloads.md). It reproduces load and burstiness exactly, but often not the body of the distribution.

use super::HyperErlang;

/// The highest order that is tried.
pub const ORDER_MAX: u32 = 200;

/// The raw moments of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The number of values.
    pub samples: u64,
    /// Means of t, t² and t³.
    pub raw: [f64; 3],
}

impl Moments {
    /// The moments of these values; `None` without values.
    pub fn of(values: &[f64]) -> Option<Moments> {
        let n = values.len() as f64;
        let mean = |power: i32| values.iter().map(|value| value.powi(power)).sum::<f64>() / n;
        (!values.is_empty()).then(|| Moments { samples: values.len() as u64, raw: [mean(1), mean(2), mean(3)] })
    }

    /// The squared coefficient of variation.
    pub fn cv2(&self) -> f64 {
        self.raw[1] / (self.raw[0] * self.raw[0]) - 1.0
    }
}

/// The hyper-Erlang distribution of the smallest order that has these moments; `None` if no order up to [`ORDER_MAX`]
/// has them, as for a sample of equal values.
pub fn fit_moments(moments: &Moments) -> Option<HyperErlang> {
    (1..=ORDER_MAX).find_map(|order| fit_order(moments, order))
}

/// With x = 1/λ, the branches are the two points of a distribution whose moments are those of the sample divided by
/// n, n(n+1) and n(n+1)(n+2).
pub(super) fn fit_order(moments: &Moments, order: u32) -> Option<HyperErlang> {
    let n = f64::from(order);
    let [mu1, mu2, mu3] = moments.raw;
    let (m1, m2, m3) = (mu1 / n, mu2 / (n * (n + 1.0)), mu3 / (n * (n + 1.0) * (n + 2.0)));
    let d = m2 - m1 * m1;
    let s = (m3 - m1 * m2) / d;
    let q = (m1 * m3 - m2 * m2) / d;
    let is_feasible = d > 0.0 && q > 0.0 && s * s > 4.0 * q;
    if !is_feasible {
        return None;
    }
    let long = (s + (s * s - 4.0 * q).sqrt()) / 2.0;
    // The product of the roots is q: the difference would cancel.
    let short = q / long;
    let p_long = (m1 - short) / (long - short);
    let fit = HyperErlang { order, lambda1: 1.0 / short, lambda2: 1.0 / long, p1: 1.0 - p_long };
    let is_proper = fit.lambda1.is_finite() && fit.lambda2 > 0.0 && (0.0..=1.0).contains(&fit.p1);
    is_proper.then_some(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of expected.json (`unit_fit`), computed by an independent program.
    #[test]
    fn small_samples_have_the_published_fits() {
        let one_to_ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let cases: [(&[f64], u32, [f64; 3]); 4] = [
            (
                &[1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0],
                3,
                [2.425_631_840_820_598_6, 0.112_150_158_595_219_39, 0.487_979_526_098_007_54],
            ),
            (
                &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 30.0],
                2,
                [0.907_439_321_974_843_1, 0.146_628_407_670_334_58, 0.480_684_170_532_782_23],
            ),
            (
                &[9.0, 10.0, 11.0, 12.0, 40.0],
                2,
                [0.168_073_822_820_532_18, 0.115_920_223_993_164_35, 0.159_374_433_590_835_92],
            ),
            (&one_to_ten, 8, [16.728_342_171_984_47, 1.271_657_828_015_588_4, 0.136_079_777_860_323_44]),
        ];
        for (sample, order, [lambda1, lambda2, p1]) in cases {
            let moments = Moments::of(sample).unwrap();
            let fit = fit_moments(&moments).unwrap();
            assert_eq!(fit.order, order);
            for (value, expected) in [(fit.lambda1, lambda1), (fit.lambda2, lambda2), (fit.p1, p1)] {
                assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
            }
            for (k, raw) in (1..).zip(moments.raw) {
                assert!((fit.moment(k) / raw - 1.0).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn samples_without_a_fit() {
        for sample in [&[10.0; 4][..], &[5.0], &[0.0, 0.0]] {
            assert_eq!(fit_moments(&Moments::of(sample).unwrap()), None);
        }
        assert_eq!(Moments::of(&[]), None);
    }
}
