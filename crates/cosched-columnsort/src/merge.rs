//! Step 7 for columns whose halves are sorted: they are merged, not sorted again.

use crate::format::Format;
use crate::sort::place;

/// Sorted records, one after the other.
pub struct Sorted<'a> {
    bytes: &'a [u8],
    size: usize,
    /// Where each record begins; None if they are contiguous.
    order: Option<&'a [u8]>,
    next: usize,
    end: usize,
}

impl<'a> Sorted<'a> {
    /// The records with ranks `from` to `to` of a column whose order is `order`.
    pub fn ordered(format: &Format, bytes: &'a [u8], order: &'a [u8], from: usize, to: usize) -> Sorted<'a> {
        Sorted { bytes, size: format.record_bytes, order: Some(order), next: from, end: to.max(from) }
    }

    /// Contiguous records.
    pub fn side_by_side(format: &Format, bytes: &'a [u8]) -> Sorted<'a> {
        Sorted { bytes, size: format.record_bytes, order: None, next: 0, end: bytes.len() / format.record_bytes }
    }

    /// No records.
    pub fn empty(format: &Format) -> Sorted<'a> {
        Sorted::side_by_side(format, &[])
    }

    fn peek(&self) -> Option<&'a [u8]> {
        if self.next == self.end {
            return None;
        }
        let at = self.order.map_or(self.next * self.size, |order| place(order, self.next));
        Some(&self.bytes[at..at + self.size])
    }
}

/// Merges two sorted sources into one stream of bytes, which can be taken in pieces of any length.
pub struct Merging<'a> {
    format: Format,
    first: Sorted<'a>,
    second: Sorted<'a>,
    /// The part of a record that did not fit into the last piece.
    begun: &'a [u8],
}

impl<'a> Merging<'a> {
    /// Among equal keys, those of the first source come first.
    pub fn new(format: Format, first: Sorted<'a>, second: Sorted<'a>) -> Merging<'a> {
        Merging { format, first, second, begun: &[] }
    }

    /// The next record.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (source, record) = match (self.first.peek(), self.second.peek()) {
            (Some(a), Some(b)) if self.format.compare(a, b).is_gt() => (&mut self.second, b),
            (Some(a), _) => (&mut self.first, a),
            (None, Some(b)) => (&mut self.second, b),
            (None, None) => return None,
        };
        source.next += 1;
        Some(record)
    }

    /// Fills `dest` as far as there are records; returns the number of bytes written.
    pub fn fill(&mut self, dest: &mut [u8]) -> usize {
        let size = self.format.record_bytes;
        let mut at = self.begun.len().min(dest.len());
        dest[..at].copy_from_slice(&self.begun[..at]);
        self.begun = &self.begun[at..];
        while at + size <= dest.len() {
            let Some(record) = self.next() else { return at };
            dest[at..at + size].copy_from_slice(record);
            at += size;
        }
        if at < dest.len() {
            let Some(record) = self.next() else { return at };
            let (now, later) = record.split_at(dest.len() - at);
            dest[at..].copy_from_slice(now);
            self.begun = later;
            at = dest.len();
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_in_pieces(mut a in proptest::collection::vec(0u16..300, 0..60), mut b in proptest::collection::vec(0u16..300, 0..60),
                            piece in 1usize..17) {
            a.sort_unstable();
            b.sort_unstable();
            // Three bytes: the key, and its source.
            let format = Format::new(3, 0, 2).unwrap();
            let bytes = |keys: &[u16], whose| keys.iter().flat_map(|key| [key.to_be_bytes()[0], key.to_be_bytes()[1], whose]).collect::<Vec<u8>>();
            let (first, second) = (bytes(&a, 0), bytes(&b, 1));
            let order: Vec<u8> = (0..a.len() as u32).flat_map(|i| (i * 3).to_le_bytes()).collect();
            let mut merging = Merging::new(format, Sorted::ordered(&format, &first, &order, 0, a.len()), Sorted::side_by_side(&format, &second));
            let mut out = Vec::new();
            loop {
                let mut dest = vec![0; piece];
                let len = merging.fill(&mut dest);
                out.extend_from_slice(&dest[..len]);
                if len < piece { break; }
            }
            let mut expected: Vec<(u16, u8)> = a.iter().map(|k| (*k, 0)).chain(b.iter().map(|k| (*k, 1))).collect();
            expected.sort();
            let expected: Vec<u8> = expected.iter().flat_map(|(key, whose)| [key.to_be_bytes()[0], key.to_be_bytes()[1], *whose]).collect();
            prop_assert_eq!(out, expected);
        }
    }
}
