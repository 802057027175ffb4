//! Hyper-Erlang distributions of common order (Jann et al. 1997): two Erlang branches with the same number of stages.
//! Four numbers describe run times and inter-arrival times of real machines; two fitters find them.

mod em;
mod gamma;
mod ks;
mod moments;

pub use em::{EmFit, ORDER_MAX_EM, fit_em};
pub use gamma::regularised_gamma;
pub use ks::{ks_distance, ks_exponential};
pub use moments::{Moments, ORDER_MAX, fit_moments};

use super::random::Random;

/// `f(t) = Σ p_i λ_i^n t^(n−1) e^(−λ_i t) / (n−1)!`, i = 1, 2.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HyperErlang {
    /// n: stages of both branches, at least 1.
    pub order: u32,
    /// The rate of a stage in the branch of short times, 1/s; the larger one.
    pub lambda1: f64,
    /// The rate of a stage in the branch of long times, 1/s.
    pub lambda2: f64,
    /// The probability of the branch of short times.
    pub p1: f64,
}

impl HyperErlang {
    /// From the means of the branches.
    pub fn of_means(order: u32, p1: f64, mean1: f64, mean2: f64) -> HyperErlang {
        let stages = f64::from(order);
        HyperErlang { order, lambda1: stages / mean1, lambda2: stages / mean2, p1 }
    }

    /// The k-th raw moment: `n (n+1) … (n+k−1) Σ p_i / λ_i^k`.
    pub fn moment(&self, k: i32) -> f64 {
        let rising: f64 = (0..k).map(|i| f64::from(self.order) + f64::from(i)).product();
        rising * (self.p1 / self.lambda1.powi(k) + (1.0 - self.p1) / self.lambda2.powi(k))
    }

    /// The mean, s.
    pub fn mean(&self) -> f64 {
        self.moment(1)
    }

    /// The squared coefficient of variation.
    pub fn cv2(&self) -> f64 {
        self.moment(2) / (self.mean() * self.mean()) - 1.0
    }

    /// The probability that a value is at most t.
    pub fn cdf(&self, t: f64) -> f64 {
        let stages = f64::from(self.order);
        let branch = |lambda: f64| regularised_gamma(stages, lambda * t);
        self.p1 * branch(self.lambda1) + (1.0 - self.p1) * branch(self.lambda2)
    }

    /// Draws a value, s.
    pub fn sample(&self, random: &mut Random) -> f64 {
        let lambda = if random.chance(self.p1) { self.lambda1 } else { self.lambda2 };
        let stages: f64 = (0..self.order).map(|_| random.exponential()).sum();
        stages / lambda
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_moments_and_the_distribution() {
        let model = HyperErlang::of_means(2, 0.8, 0.375, 3.5);
        assert!((model.mean() - 1.0).abs() < 1e-12, "D18: {}", model.mean());
        assert!((model.cv2().sqrt() - 1.69).abs() < 0.005, "D18: {}", model.cv2().sqrt());
        let mut random = Random::new(5, 0);
        let mut draws: Vec<f64> = (0..50_000).map(|_| model.sample(&mut random)).collect();
        draws.sort_by(f64::total_cmp);
        // The Kolmogorov–Smirnov distance exceeds 1.95/√n in one of a thousand cases.
        let distance = ks_distance(&draws, |t| model.cdf(t));
        assert!(distance < 1.95 / 50_000_f64.sqrt(), "{distance}");
    }
}
