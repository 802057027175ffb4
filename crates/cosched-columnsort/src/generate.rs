//! Generates records from a seed: the same bytes on every machine, and each record independently of those before it.

use crate::format::Format;

/// The distribution of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// Uniformly random bytes.
    Random,
    /// Already in order.
    Sorted,
    /// In reverse order.
    Reversed,
    /// Only 16 different keys.
    Few,
}

/// A generator of records.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    /// The format of the records.
    pub format: Format,
    /// The distribution of their keys.
    pub keys: Keys,
    /// Printable characters only, and a newline as the last byte, so that programs for lines of text can sort them too.
    pub lines: bool,
    /// Different seeds give different records.
    pub seed: u64,
    /// The total number of records.
    pub records: u64,
}

const PRINTABLE: std::ops::RangeInclusive<u8> = b' '..=b'~';

/// One step of splitmix64 (Steele, Lea & Flood 2014).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Generator {
    /// Generates the record with this index.
    pub fn fill(&self, index: u64, record: &mut [u8]) {
        let mut state = self.seed;
        let mut state = mix(&mut state) ^ index.wrapping_mul(0xd134_2543_de82_ef95);
        for chunk in record.chunks_mut(8) {
            let word = mix(&mut state);
            self.fill_word(word, chunk);
        }
        let key = &mut record[self.format.key_offset..self.format.key_offset + self.format.key_bytes];
        match self.keys {
            Keys::Random => {}
            Keys::Sorted => self.number(index, key),
            Keys::Reversed => self.number(self.records.saturating_sub(1).saturating_sub(index), key),
            Keys::Few => {
                let value = mix(&mut state) % 16;
                self.number(value, key);
            }
        }
        if self.lines {
            *record.last_mut().expect("a record has bytes") = b'\n';
        }
    }

    fn fill_word(&self, word: u64, chunk: &mut [u8]) {
        for (byte, random) in chunk.iter_mut().zip(word.to_le_bytes()) {
            *byte = if self.lines {
                let values = u16::from(PRINTABLE.end() - PRINTABLE.start()) + 1;
                PRINTABLE.start() + ((u16::from(random) * values) >> 8) as u8
            } else {
                random
            };
        }
    }

    /// Writes a number as a key whose order is that of the number (only its last digits, if the key is short).
    fn number(&self, mut value: u64, key: &mut [u8]) {
        let (first, base) = if self.lines { (b'0', 10) } else { (0, 256) };
        for byte in key.iter_mut().rev() {
            *byte = first + (value % base) as u8;
            value /= base;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(keys: Keys, lines: bool, format: Format, records: u64) -> Vec<Vec<u8>> {
        let generator = Generator { format, keys, lines, seed: 7, records };
        (0..records)
            .map(|i| {
                let mut record = vec![0; format.record_bytes];
                generator.fill(i, &mut record);
                record
            })
            .collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_bytes() {
        let format = Format::default();
        let record = &records(Keys::Random, false, format, 2)[1];
        assert_eq!(record[..4], [250, 247, 51, 115]);
        assert_ne!(records(Keys::Random, false, format, 2)[0], *record);
    }

    #[test]
    fn keys_are_what_was_asked_for() {
        for lines in [false, true] {
            let format = Format::new(30, 2, 12).unwrap();
            let sorted = records(Keys::Sorted, lines, format, 500);
            assert!(sorted.windows(2).all(|two| format.compare(&two[0], &two[1]).is_lt()));
            let reversed = records(Keys::Reversed, lines, format, 500);
            assert!(reversed.windows(2).all(|two| format.compare(&two[0], &two[1]).is_gt()));
            let few = records(Keys::Few, lines, format, 500);
            let different: std::collections::BTreeSet<_> = few.iter().map(|record| format.key(record)).collect();
            assert_eq!(different.len(), 16);
        }
    }

    #[test]
    fn lines_are_printable_and_end() {
        let lines = records(Keys::Random, true, Format::default(), 300);
        assert!(lines.iter().all(|line| line[99] == b'\n' && line[..99].iter().all(|byte| PRINTABLE.contains(byte))));
        let mut seen = [false; 256];
        lines.iter().flatten().for_each(|byte| seen[usize::from(*byte)] = true);
        assert!(PRINTABLE.clone().all(|byte| seen[usize::from(byte)]), "every printable character comes up");
    }
}
