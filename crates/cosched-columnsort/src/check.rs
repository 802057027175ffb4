//! Checks whether records are in order, and computes an order-independent checksum of them, like valsort's (the sum of the
//! records' CRC-32), to check whether they are the same as before.

use crate::format::Format;

/// Facts about consecutive records. Two summaries can be joined, so that blocks can be processed one by one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// The number of records.
    pub records: u64,
    /// The sum of their CRC-32: it does not depend on their order.
    pub checksum: u128,
    /// The number of records whose key equals that of the previous one.
    pub duplicates: u64,
    /// The number of records whose key is smaller than that of the previous one.
    pub unordered: u64,
    /// The index of the first such record.
    pub first_unordered: Option<u64>,
    /// The keys of the first and of the last record.
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Summary {
    /// Summarises consecutive records.
    pub fn of(format: &Format, bytes: &[u8]) -> Summary {
        let mut summary = Summary::default();
        let mut before: Option<&[u8]> = None;
        for record in bytes.chunks_exact(format.record_bytes) {
            summary.checksum += u128::from(crc32fast::hash(record));
            if let Some(before) = before {
                summary.count(format.compare(before, record));
            }
            before = Some(record);
            summary.records += 1;
        }
        if let (Some(first), Some(last)) = (bytes.get(..format.record_bytes), before) {
            summary.ends = Some((format.key(first).to_vec(), format.key(last).to_vec()));
        }
        summary
    }

    /// Counts a record that is beside the one before it in this order.
    fn count(&mut self, order: std::cmp::Ordering) {
        match order {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => self.duplicates += 1,
            std::cmp::Ordering::Greater => {
                self.unordered += 1;
                self.first_unordered.get_or_insert(self.records);
            }
        }
    }

    /// Appends the summary of the records that come next.
    pub fn add(&mut self, next: Summary) {
        if let (Some((_, last)), Some((first, _))) = (&self.ends, &next.ends) {
            self.count(last.cmp(first));
        }
        let begin = self.records;
        self.first_unordered = self.first_unordered.or(next.first_unordered.map(|at| begin + at));
        self.records += next.records;
        self.checksum += next.checksum;
        self.duplicates += next.duplicates;
        self.unordered += next.unordered;
        self.ends = match (self.ends.take(), next.ends) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (mine, theirs) => mine.or(theirs),
        };
    }

    /// Whether no key is smaller than the previous one.
    pub fn in_order(&self) -> bool {
        self.unordered == 0
    }

    /// The checksum as it is printed: hexadecimal.
    pub fn checksum_hex(&self) -> String {
        format!("{:x}", self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_wrong_is_counted() {
        let format = Format::new(2, 0, 1).unwrap();
        let summary = Summary::of(&format, b"a1b1b2a3c4");
        assert_eq!(
            (summary.records, summary.duplicates, summary.unordered, summary.first_unordered),
            (5, 1, 1, Some(3))
        );
        assert!(!summary.in_order());
        assert_eq!(Summary::of(&format, b"a1b1").checksum, Summary::of(&format, b"b1a1").checksum);
        assert_ne!(Summary::of(&format, b"a1b1").checksum, Summary::of(&format, b"a1a1").checksum);
        assert_eq!(Summary::of(&format, b""), Summary::default());
    }

    proptest! {
        /// The joined summaries of blocks equal the summary of the whole.
        #[test]
        fn blocks_join(bytes in proptest::collection::vec(0u8..5, 0..200), cuts in proptest::collection::vec(0usize..60, 0..6)) {
            let format = Format::new(3, 1, 1).unwrap();
            let bytes = &bytes[..bytes.len() / 3 * 3];
            let mut joined = Summary::default();
            let mut rest = bytes;
            for cut in cuts {
                let (now, later) = rest.split_at((cut * 3).min(rest.len()));
                joined.add(Summary::of(&format, now));
                rest = later;
            }
            joined.add(Summary::of(&format, rest));
            prop_assert_eq!(joined, Summary::of(&format, bytes));
        }
    }
}
