//! Random numbers that are the same on every machine: PCG, and our own transforms on `libm`, whose functions give the
//! same bits everywhere. Each purpose has a separate stream, so that an additional draw for the sizes does not change
//! the times.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// The streams: arrivals (plus the class), run times (plus the class), sizes (plus the class), types, estimates.
pub(crate) const ARRIVALS: u64 = 1_000;
pub(crate) const RUNS: u64 = 2_000;
pub(crate) const SIZES: u64 = 3_000;
pub(crate) const TYPES: u64 = 4_000;
pub(crate) const ESTIMATES: u64 = 5_000;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// The stream of a seed for a purpose.
    pub fn new(seed: u64, stream: u64) -> Random {
        const STATE: u128 = 0xcafe_f00d_d15e_a5e5;
        Random(Pcg64::new((u128::from(seed) << 64) | STATE, u128::from(stream)))
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in (0, 1].
    pub fn positive_unit(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform on 0 to n − 1; n must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The bias is n / 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.positive_unit())
    }

    /// Standard normal (Box–Muller; the second number is discarded).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Gamma of this shape and scale, both above 0 (Marsaglia and Tsang 2000).
    pub fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        if shape < 1.0 {
            let boost = libm::pow(self.positive_unit(), 1.0 / shape);
            return self.gamma(shape + 1.0, scale) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            if libm::log(self.positive_unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_variance(draw: impl FnMut(usize) -> f64) -> (f64, f64) {
        let values: Vec<f64> = (0..100_000).map(draw).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 1e5)
    }

    #[test]
    fn streams_are_the_same_for_ever() {
        let mut random = Random::new(1, 0);
        let first: Vec<u64> = (0..3).map(|_| random.0.next_u64()).collect();
        assert_eq!(first, [8_006_340_299_592_954_333, 329_469_587_650_464_257, 16_889_183_530_502_739_615]);
        assert_ne!(Random::new(1, 1).unit(), Random::new(1, 0).unit());
        assert_ne!(Random::new(2, 0).unit(), Random::new(1, 0).unit());
    }

    #[test]
    fn gamma_has_its_moments() {
        for (shape, scale) in [(0.5, 2.0), (1.0, 1.0), (4.2, 0.94), (312.0, 0.03)] {
            let mut random = Random::new(7, 0);
            let (mean, variance) = mean_and_variance(|_| random.gamma(shape, scale));
            assert!((mean / (shape * scale) - 1.0).abs() < 0.02, "{shape} {mean}");
            assert!((variance / (shape * scale * scale) - 1.0).abs() < 0.05, "{shape} {variance}");
        }
    }

    #[test]
    fn whole_numbers_are_uniform() {
        let mut random = Random::new(3, 0);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }
}
