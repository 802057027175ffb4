//! Sorts the records of a column.
//!
//! The result is an *order*: for each rank, the offset of its record in the buffer, as little-endian `u32` (so a column has less
//! than 4 GiB). The records themselves are moved only once, when the next stage gathers them into blocks.

mod compare;
mod radix;

use crate::format::Format;
use crate::layout::{Held, hand_begins};

/// How a column is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// A comparison sort that moves whole records: the paper's compute-bound version.
    Compute,
    /// A radix sort of the keys' first bytes with pointers: fast, so that the disk is the bottleneck (the paper's I/O-bound
    /// version).
    Io,
}

/// The size of an entry of an order in bytes.
pub const ORDER_BYTES: usize = 4;

/// Sorts columns, one after the other. Its memory is kept and reused.
pub struct Sorter {
    format: Format,
    version: Version,
    threads: usize,
    radix: radix::Scratch,
}

impl Sorter {
    /// A sorter that uses up to `threads` threads for a column.
    pub fn new(format: Format, version: Version, threads: usize) -> Sorter {
        Sorter { format, version, threads: threads.max(1), radix: radix::Scratch::default() }
    }

    /// The size in bytes of its own memory for columns of `records` records.
    pub fn memory_bytes(version: Version, records: u64) -> u64 {
        match version {
            Version::Io => 2 * records * size_of::<radix::Entry>() as u64,
            Version::Compute => 0,
        }
    }

    /// Sorts the records of a column. Afterwards `order[i]` is the offset in `bytes` of the record with rank i; records with equal
    /// keys have adjacent ranks, in unspecified order. If `hands` is greater than one, the order is dealt out like cards: first
    /// the records with ranks 0, `hands`, 2 `hands`, …, then those with ranks 1, `hands` + 1, ….
    ///
    /// # Panics
    /// If `order` does not have [`ORDER_BYTES`] for each record, or a record is not within `bytes`.
    pub fn sort(&mut self, bytes: &mut [u8], held: &[Held], order: &mut [u8], hands: u64) {
        match self.version {
            Version::Io => {
                let places = radix::sort(&self.format, bytes, held, &mut self.radix, self.threads);
                write_order(order, places, hands as usize);
            }
            Version::Compute => write_order(order, compare::sort(&self.format, bytes, held), hands as usize),
        }
    }
}

/// The offset of the record with a rank.
#[inline]
pub fn place(order: &[u8], rank: usize) -> usize {
    let at = rank * ORDER_BYTES;
    u32::from_le_bytes([order[at], order[at + 1], order[at + 2], order[at + 3]]) as usize
}

/// Writes the order into its buffer.
fn write_order(order: &mut [u8], mut places: impl ExactSizeIterator<Item = u32>, hands: usize) {
    let (entries, rest) = order.as_chunks_mut::<ORDER_BYTES>();
    assert!(rest.is_empty() && places.len() == entries.len(), "an entry for each record");
    let count = entries.len() as u64;
    let begins: Vec<usize> = (0..hands as u64).map(|hand| hand_begins(count, hands as u64, hand) as usize).collect();
    for round in 0..entries.len().div_ceil(hands) {
        for (begin, place) in begins.iter().zip(&mut places) {
            entries[begin + round] = place.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records in the order of a sorter, and in that of the standard library's sort.
    fn both(format: Format, version: Version, threads: usize, runs: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let size = format.record_bytes;
        let (mut bytes, mut held) = (Vec::new(), Vec::new());
        for run in runs {
            // A gap before each run, as between slots.
            bytes.extend_from_slice(&[0xee; 13]);
            held.push(Held { at: bytes.len(), count: run.len() / size });
            bytes.extend_from_slice(&run[..run.len() / size * size]);
        }
        let mut expected: Vec<Vec<u8>> =
            held.iter().flat_map(|h| bytes[h.at..h.at + h.count * size].chunks(size)).map(<[u8]>::to_vec).collect();
        let mut order = vec![0; expected.len() * ORDER_BYTES];
        Sorter::new(format, version, threads).sort(&mut bytes, &held, &mut order, 1);
        let found: Vec<Vec<u8>> = (0..expected.len()).map(|i| bytes[place(&order, i)..][..size].to_vec()).collect();
        expected.sort_by(|a, b| format.compare(a, b).then_with(|| a.cmp(b)));
        (found, expected)
    }

    /// Asserts that keys are in order, and that the records are the same.
    fn assert_sorted(format: Format, mut found: Vec<Vec<u8>>, expected: Vec<Vec<u8>>) {
        assert!(found.windows(2).all(|two| format.compare(&two[0], &two[1]).is_le()), "out of order");
        found.sort_by(|a, b| format.compare(a, b).then_with(|| a.cmp(b)));
        assert_eq!(found, expected);
    }

    fn check(format: Format, runs: &[Vec<u8>]) {
        for version in [Version::Io, Version::Compute] {
            for threads in [1, 3] {
                let (found, expected) = both(format, version, threads, runs);
                assert_sorted(format, found, expected);
            }
        }
    }

    /// Bytes with many or few repetitions.
    fn noise(len: usize, seed: u64, values: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 24) % values) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn nothing_and_one_record() {
        let format = Format::default();
        check(format, &[]);
        check(format, &[vec![]]);
        check(format, &[noise(100, 1, 256)]);
    }

    #[test]
    fn columns_large_enough_for_every_level() {
        let format = Format::new(20, 3, 12).unwrap();
        check(format, &[noise(20 * 30_000, 7, 256), noise(20 * 10_000, 8, 256)]);
    }

    #[test]
    fn keys_that_are_equal_or_nearly_so() {
        let format = Format::new(24, 0, 20).unwrap();
        check(format, &[vec![7; 24 * 5_000]]);
        check(format, &[noise(24 * 20_000, 3, 2)]);
        // Equal in the first 16 bytes, different after that.
        let mut late = vec![9u8; 24 * 5_000];
        for (i, record) in late.chunks_mut(24).enumerate() {
            record[16..20].copy_from_slice(&(i as u32).wrapping_mul(0x9e37_79b9).to_be_bytes());
        }
        check(format, &[late]);
        let long = Format::new(100, 0, 100).unwrap();
        let mut later = vec![1u8; 100 * 5_000];
        for (i, record) in later.chunks_mut(100).enumerate() {
            record[96..].copy_from_slice(&(i as u32).wrapping_mul(0x9e37_79b9).to_be_bytes());
        }
        check(long, &[later]);
    }

    #[test]
    fn columns_that_are_in_order_already_or_the_other_way_round() {
        let format = Format::new(8, 0, 4).unwrap();
        let record = |i: u32| [i.to_be_bytes(), [0; 4]].concat();
        check(format, &[(0..20_000).flat_map(record).collect()]);
        check(format, &[(0..20_000).rev().flat_map(record).collect()]);
        // An organ-pipe sequence, which is bad for pivots from the middle.
        check(format, &[(0..10_000).chain((0..10_000).rev()).flat_map(record).collect()]);
    }

    #[test]
    fn an_order_is_dealt_out() {
        for (count, hands) in [(0, 3), (1, 3), (7, 3), (9, 3), (10, 1), (2, 5)] {
            let mut order = vec![0xff; count * ORDER_BYTES];
            write_order(&mut order, 0..count as u32, hands);
            let dealt: Vec<usize> = (0..hands).flat_map(|hand| (hand..count).step_by(hands)).collect();
            assert_eq!((0..count).map(|i| place(&order, i)).collect::<Vec<_>>(), dealt);
            let begins = (0..hands).map(|hand| hand_begins(count as u64, hands as u64, hand as u64) as usize);
            assert!(begins.zip(0..).all(|(begin, hand)| hand >= count || dealt[begin] == hand));
        }
    }

    proptest! {
        #[test]
        fn any_format_and_content(record_bytes in 1usize..40, from in 0usize..39, len in 1usize..40, runs in 0usize..5,
                                  records in 0usize..300, seed: u64, values in 1u64..257) {
            let from = from % record_bytes;
            let format = Format::new(record_bytes, from, len.min(record_bytes - from)).unwrap();
            let runs: Vec<_> = (0..runs).map(|i| noise(records * record_bytes, seed ^ i as u64, values)).collect();
            check(format, &runs);
        }
    }
}
