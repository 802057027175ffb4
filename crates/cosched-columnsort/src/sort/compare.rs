//! A comparison sort that moves whole records of any size: quicksort, with heapsort where pivots are bad.
//!
//! This is the compute-bound version of the paper: about log2(n) comparisons and half as many moves for each record.

use std::cmp::Ordering;

use crate::format::Format;
use crate::layout::Held;

/// At most this number of records are sorted by insertion.
const FEW: usize = 12;
/// From this number of records on the pivot is a median of medians of three.
const MANY: usize = 128;

/// Sorts in place; the records are contiguous afterwards, and the result is their offsets.
pub(super) fn sort(format: &Format, bytes: &mut [u8], held: &[Held]) -> impl ExactSizeIterator<Item = u32> + use<> {
    assert!(bytes.len() <= u32::MAX as usize, "places in a column are 32 bits wide");
    let size = format.record_bytes;
    let begin = held.first().map_or(0, |held| held.at);
    let mut end = begin;
    for held in held {
        bytes.copy_within(held.at..held.at + held.count * size, end);
        end += held.count * size;
    }
    let mut records = Records { format, bytes: &mut bytes[begin..end] };
    let count = records.len();
    records.quicksort(0, count, 2 * count.max(1).ilog2());
    (0..count).map(move |i| (begin + i * size) as u32)
}

/// Contiguous records.
struct Records<'a> {
    format: &'a Format,
    bytes: &'a mut [u8],
}

impl Records<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / self.format.record_bytes
    }

    fn get(&self, i: usize) -> &[u8] {
        let size = self.format.record_bytes;
        &self.bytes[i * size..(i + 1) * size]
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.format.compare(self.get(a), self.get(b))
    }

    fn swap(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let size = self.format.record_bytes;
        let (low, high) = (a.min(b), a.max(b));
        let (left, right) = self.bytes.split_at_mut(high * size);
        left[low * size..(low + 1) * size].swap_with_slice(&mut right[..size]);
    }

    /// Sorts [from, to); after `depth` more partitions heapsort takes over.
    fn quicksort(&mut self, mut from: usize, mut to: usize, mut depth: u32) {
        while to - from > FEW {
            if depth == 0 {
                return self.heapsort(from, to);
            }
            depth -= 1;
            let (less, greater) = self.partition(from, to);
            // The recursion is on the smaller side, so that the stack stays small.
            if less - from < to - greater {
                self.quicksort(from, less, depth);
                from = greater;
            } else {
                self.quicksort(greater, to, depth);
                to = less;
            }
        }
        self.insertion(from, to);
    }

    /// Three parts: less than the pivot in [from, a), equal in [a, b), greater in [b, to). Returns (a, b).
    fn partition(&mut self, from: usize, to: usize) -> (usize, usize) {
        let pivot = self.pivot(from, to);
        self.swap(from, pivot);
        // The pivot is always at `less`.
        let (mut less, mut next, mut greater) = (from, from + 1, to);
        while next < greater {
            match self.compare(next, less) {
                Ordering::Less => {
                    self.swap(next, less);
                    less += 1;
                    next += 1;
                }
                Ordering::Equal => next += 1,
                Ordering::Greater => {
                    greater -= 1;
                    // A record that is greater can stay where it is, which saves half of the moves.
                    while greater > next && self.compare(greater, less).is_gt() {
                        greater -= 1;
                    }
                    self.swap(next, greater);
                }
            }
        }
        (less, greater)
    }

    fn pivot(&self, from: usize, to: usize) -> usize {
        let (len, middle) = (to - from, from + (to - from) / 2);
        if len < MANY {
            return self.median(from, middle, to - 1);
        }
        let step = len / 8;
        let low = self.median(from, from + step, from + 2 * step);
        let centre = self.median(middle - step, middle, middle + step);
        let high = self.median(to - 1 - 2 * step, to - 1 - step, to - 1);
        self.median(low, centre, high)
    }

    fn median(&self, a: usize, b: usize, c: usize) -> usize {
        let (low, high) = if self.compare(a, b).is_le() { (a, b) } else { (b, a) };
        if self.compare(c, low).is_le() {
            low
        } else if self.compare(c, high).is_ge() {
            high
        } else {
            c
        }
    }

    fn insertion(&mut self, from: usize, to: usize) {
        for i in from + 1..to {
            let mut at = i;
            while at > from && self.compare(at, at - 1).is_lt() {
                self.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    fn heapsort(&mut self, from: usize, to: usize) {
        let len = to - from;
        for root in (0..len / 2).rev() {
            self.sift(from, root, len);
        }
        for end in (1..len).rev() {
            self.swap(from, from + end);
            self.sift(from, 0, end);
        }
    }

    fn sift(&mut self, from: usize, mut root: usize, len: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= len {
                return;
            }
            if child + 1 < len && self.compare(from + child, from + child + 1).is_lt() {
                child += 1;
            }
            if self.compare(from + root, from + child).is_ge() {
                return;
            }
            self.swap(from + root, from + child);
            root = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heapsort_sorts_where_pivots_are_bad() {
        let format = Format::new(4, 0, 4).unwrap();
        let mut bytes: Vec<u8> = (0..3000u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
        let mut expected: Vec<[u8; 4]> = bytes.as_chunks::<4>().0.to_vec();
        expected.sort_unstable();
        let mut records = Records { format: &format, bytes: &mut bytes };
        records.quicksort(0, 3000, 1);
        assert_eq!(bytes.as_chunks::<4>().0, expected);
    }
}
