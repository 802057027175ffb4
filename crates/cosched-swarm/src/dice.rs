//! A seeded random number generator that gives the same numbers on every machine, independent of library versions.

/// SplitMix64 (Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// A number from `low` to `high`, both inclusive.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with probability 1 / `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A random element of `of`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs for seed 1234567 (Vigna's reference implementation).
    #[test]
    fn the_bits_are_those_of_the_reference() {
        let mut dice = Dice(1_234_567);
        assert_eq!([dice.bits(), dice.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
