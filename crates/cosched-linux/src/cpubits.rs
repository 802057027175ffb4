//! A set of CPUs that threads and processes share without locks. CPUs whose numbers differ by a multiple of 1,024 count as one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const WORDS: usize = 16;

#[derive(Debug)]
#[repr(C)]
pub(crate) struct CpuBits([AtomicU64; WORDS]);

impl CpuBits {
    pub(crate) fn all() -> CpuBits {
        CpuBits([const { AtomicU64::new(u64::MAX) }; WORDS])
    }

    pub(crate) fn none() -> CpuBits {
        CpuBits([const { AtomicU64::new(0) }; WORDS])
    }

    fn at(cpu: u32) -> (usize, u64) {
        let bit = CpuBits::index(cpu);
        (bit / 64, 1 << (bit % 64))
    }

    /// The index of a CPU's state among `WORDS * 64`.
    pub(crate) fn index(cpu: u32) -> usize {
        cpu as usize % (WORDS * 64)
    }

    pub(crate) fn add(&self, cpu: u32) {
        let (word, bit) = CpuBits::at(cpu);
        self.0[word].fetch_or(bit, Relaxed);
    }

    /// Replaces the set. A concurrent reader may see a part of both sets.
    pub(crate) fn set(&self, cpus: &[u32]) {
        let mut words = [0; WORDS];
        cpus.iter().map(|cpu| CpuBits::at(*cpu)).for_each(|(word, bit)| words[word] |= bit);
        self.0.iter().zip(words).for_each(|(word, bits)| word.store(bits, Relaxed));
    }

    /// Empties the set; returns what was in it.
    pub(crate) fn take(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| self.0[word].swap(0, Relaxed))
    }

    /// Adds the set to `all`.
    pub(crate) fn join_into(&self, all: &mut [u64; WORDS]) {
        all.iter_mut().zip(&self.0).for_each(|(all, word)| *all |= word.load(Relaxed));
    }

    /// The number of these CPUs that are in the set.
    pub(crate) fn count_of(&self, others: &[u64; WORDS]) -> u32 {
        self.0.iter().zip(others).map(|(word, bits)| (word.load(Relaxed) & bits).count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_added_taken_and_compared() {
        let (idle, place) = (CpuBits::all(), CpuBits::all());
        assert_eq!(idle.take(), [u64::MAX; WORDS]);
        [3, 1023].iter().for_each(|cpu| idle.add(*cpu));
        let found = idle.take();
        assert_eq!((place.count_of(&found), place.count_of(&idle.take())), (2, 0));
        place.set(&[2, 64]);
        assert_eq!(place.count_of(&found), 0);
        place.set(&[3]);
        assert_eq!(place.count_of(&found), 1);
    }
}
