//! Sets of columns of the matrix, one bit each: planning with many gangs often checks whether one fits.

use alloc::vec;
use alloc::vec::Vec;

const BITS: usize = u64::BITS as usize;

/// A set of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(Vec<u64>);

impl Columns {
    /// These columns, out of `total`.
    pub(crate) fn new(total: usize, columns: impl Iterator<Item = usize>) -> Columns {
        let mut words = vec![0; total.div_ceil(BITS)];
        for column in columns {
            words[column / BITS] |= 1 << (column % BITS);
        }
        Columns(words)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether all of `other` are in this set. Both must be of the same matrix.
    pub(crate) fn contains(&self, other: &Columns) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| b & !a == 0)
    }

    /// The lowest column that is in both.
    pub(crate) fn first_of(&self, other: &Columns) -> Option<usize> {
        let both = self.0.iter().zip(&other.0).map(|(a, b)| a & b).enumerate();
        both.filter(|(_, word)| *word != 0).map(|(i, word)| i * BITS + word.trailing_zeros() as usize).next()
    }

    /// Removes all of `other`.
    pub(crate) fn take(&mut self, other: &Columns) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    /// Adds all of `other`.
    pub(crate) fn add(&mut self, other: &Columns) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Removes one column.
    pub(crate) fn take_one(&mut self, column: usize) {
        self.0[column / BITS] &= !(1 << (column % BITS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_beyond_the_first_word_count() {
        let mut free = Columns::new(130, [0, 64, 129].into_iter());
        let wide = Columns::new(130, [64, 129].into_iter());
        assert!(free.contains(&wide) && !wide.contains(&free));
        assert_eq!(free.first_of(&wide), Some(64));
        free.take(&wide);
        assert_eq!((free.first_of(&wide), free.is_empty()), (None, false));
        free.take_one(0);
        assert!(free.is_empty());
    }
}
