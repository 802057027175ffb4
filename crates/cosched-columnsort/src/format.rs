//! Records: all of the same size, each with a key at a fixed place. Keys are compared as bytes.

use std::cmp::Ordering;
use std::fmt;

/// The format of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Format {
    /// The size of a record in bytes.
    pub record_bytes: usize,
    /// The offset of the key in the record, in bytes.
    pub key_offset: usize,
    /// The size of the key in bytes.
    pub key_bytes: usize,
}

/// The records of sortbenchmark.org: 100 bytes, the first 10 of which are the key.
impl Default for Format {
    fn default() -> Format {
        Format { record_bytes: 100, key_offset: 0, key_bytes: 10 }
    }
}

/// Why a record format, or a file of such records, is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFormat {
    /// Records or keys of 0 bytes.
    #[error("records and keys have at least one byte")]
    Empty,
    /// Records larger than the maximum.
    #[error("a record has at most {} bytes", Format::RECORD_BYTES_MAX)]
    Large,
    /// A key that extends beyond the record.
    #[error("the key ends at byte {end}, but a record has {record_bytes} bytes")]
    KeyOutside {
        /// The end of the key (exclusive).
        end: usize,
        /// The record's size.
        record_bytes: usize,
    },
    /// A file that ends inside a record.
    #[error("{bytes} bytes are {records} records of {record_bytes} bytes and {rest} bytes more")]
    Partial {
        /// The file's size.
        bytes: u64,
        /// The number of whole records in it.
        records: u64,
        /// The record's size.
        record_bytes: usize,
        /// The number of bytes after the last whole record.
        rest: u64,
    },
}

impl Format {
    /// The size of the largest record in bytes.
    pub const RECORD_BYTES_MAX: usize = 1 << 20;

    /// A format, if it is valid.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(record_bytes: usize, key_offset: usize, key_bytes: usize) -> Result<Format, BadFormat> {
        if record_bytes == 0 || key_bytes == 0 {
            return Err(BadFormat::Empty);
        }
        if record_bytes > Format::RECORD_BYTES_MAX {
            return Err(BadFormat::Large);
        }
        match key_offset.checked_add(key_bytes) {
            Some(end) if end <= record_bytes => Ok(Format { record_bytes, key_offset, key_bytes }),
            end => Err(BadFormat::KeyOutside { end: end.unwrap_or(usize::MAX), record_bytes }),
        }
    }

    /// The number of records in a file of `bytes` bytes.
    ///
    /// # Errors
    /// [`BadFormat::Partial`] if it ends inside a record.
    pub fn records_in(&self, bytes: u64) -> Result<u64, BadFormat> {
        let size = self.record_bytes as u64;
        match bytes % size {
            0 => Ok(bytes / size),
            rest => Err(BadFormat::Partial { bytes, records: bytes / size, record_bytes: self.record_bytes, rest }),
        }
    }

    /// A record's key.
    #[inline]
    pub fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.key_offset..self.key_offset + self.key_bytes]
    }

    /// Eight bytes of the key from `from` on, as a number whose order is that of the bytes; zeros
    /// after the key's end.
    #[inline]
    pub fn word(&self, record: &[u8], from: usize) -> u64 {
        let key = &self.key(record)[from..];
        match key.first_chunk::<8>() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes[..key.len()].copy_from_slice(key);
                u64::from_be_bytes(bytes)
            }
        }
    }

    /// The order of two records.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.word(a, 0).cmp(&self.word(b, 0)) {
            Ordering::Equal if self.key_bytes > 8 => self.key(a)[8..].cmp(&self.key(b)[8..]),
            order => order,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, key of {} bytes at {}", self.record_bytes, self.key_bytes, self.key_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formats_that_make_no_sense() {
        assert_eq!(Format::new(0, 0, 1), Err(BadFormat::Empty));
        assert_eq!(Format::new(10, 0, 0), Err(BadFormat::Empty));
        assert_eq!(Format::new(10, 5, 6), Err(BadFormat::KeyOutside { end: 11, record_bytes: 10 }));
        assert_eq!(Format::new(10, usize::MAX, 2), Err(BadFormat::KeyOutside { end: usize::MAX, record_bytes: 10 }));
        assert_eq!(Format::new((1 << 20) + 1, 0, 1), Err(BadFormat::Large));
        let rest = Format::default().records_in(250).unwrap_err();
        assert_eq!(rest.to_string(), "250 bytes are 2 records of 100 bytes and 50 bytes more");
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_keys_bytes(a in proptest::collection::vec(0u8..4, 20), b in proptest::collection::vec(0u8..4, 20),
                                               offset in 0usize..6, len in 1usize..14) {
            let format = Format::new(20, offset, len).unwrap();
            prop_assert_eq!(format.compare(&a, &b), a[offset..offset + len].cmp(&b[offset..offset + len]));
        }
    }
}
