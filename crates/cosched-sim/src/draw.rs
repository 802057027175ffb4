//! Random draws for skewness (D20): a hash of job, task, iteration and kind, so that any two simulators draw the same
//! numbers.

const G: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[inline]
fn absorb(h: u64, v: u64) -> u64 {
    mix(h.wrapping_add(G.wrapping_mul(v.wrapping_add(1))))
}

#[inline]
fn unit(h: u64) -> f64 {
    // Signed conversions are a single instruction.
    (h >> 11) as i64 as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// The draws of one task: the hash of seed, job and task, to which iteration and kind are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws(u64);

impl Draws {
    /// For task `task` of job `job` (numbered from 0 in the order of the job list).
    pub fn new(seed: u64, job: u64, task: u64) -> Draws {
        Draws(absorb(absorb(mix(seed.wrapping_add(G)), job), task))
    }

    /// The two numbers in [0, 1) of an iteration (from 0): for its computation and for its I/O.
    #[inline]
    pub fn pair(self, iteration: u64) -> (f64, f64) {
        let h = absorb(self.0, iteration);
        (unit(absorb(h, 0)), unit(absorb(h, 1)))
    }

    /// The number in [0, 1) of an iteration for any kind: 0 for computation, 1 for I/O, more for user-defined programs.
    #[inline]
    pub fn unit(self, iteration: u64, kind: u64) -> f64 {
        unit(absorb(absorb(self.0, iteration), kind))
    }
}

/// A duration with skewness: `ns · (1 + skew·(u − 1/2))`, rounded to the nearest.
#[inline]
pub(crate) fn skewed_ns(ns: u64, skew: f64, u: f64) -> u64 {
    (ns as i64 as f64 * (1.0 + skew * (u - 0.5)) + 0.5) as i64 as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of D20, word for word.
    fn by_definition(seed: u64, words: [u64; 4]) -> f64 {
        let mut h = mix(seed.wrapping_add(G));
        for v in words {
            h = mix(h.wrapping_add(G.wrapping_mul(v + 1)));
        }
        (h >> 11) as f64 * 2.0_f64.powi(-53)
    }

    #[test]
    fn draws_follow_the_definition() {
        for (j, k, n) in [(0, 0, 0), (3, 1, 77), (999, 31, 1_000_000)] {
            let draws = Draws::new(5, j, k);
            let expected = (by_definition(5, [j, k, n, 0]), by_definition(5, [j, k, n, 1]));
            assert_eq!(draws.pair(n), expected);
            assert_eq!((draws.unit(n, 0), draws.unit(n, 1)), expected);
        }
    }

    #[test]
    fn the_finaliser_is_that_of_splitmix64() {
        // The first output of splitmix64 with seed 0, a published check value.
        assert_eq!(mix(G), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn skewness_moves_a_duration_by_half_of_it_at_most() {
        assert_eq!(skewed_ns(1000, 0.2, 0.0), 900);
        assert_eq!(skewed_ns(1000, 0.2, 0.5), 1000);
        assert_eq!(skewed_ns(1000, 1.5, 0.999_999_999), 1750);
        assert_eq!(skewed_ns(12_345, 0.0, 0.7), 12_345);
    }
}
