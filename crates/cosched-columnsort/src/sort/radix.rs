//! Radix sort of key prefixes with pointers, from the most significant digit.
//!
//! An entry consists of eight bytes of the key as a number, and the record's offset. Entries are dealt into buckets by the
//! highest bits in which they differ, until a bucket fits into a cache; then the standard library's sort is faster. If whole
//! prefixes are equal and the key is longer, the next eight bytes are sorted in the same way. Records are only read.

use crate::format::Format;
use crate::layout::Held;

/// A prefix and the offset of its record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    word: u64,
    place: u32,
}

/// Memory that a sorter reuses.
#[derive(Default)]
pub(super) struct Scratch {
    entries: Vec<Entry>,
    other: Vec<Entry>,
}

/// Buckets of at most this number of entries (32 KiB) are sorted by comparison.
const SMALL: usize = 2048;
/// Bits of a digit: the number of buckets for which the first-level cache has a line each.
const DIGIT_BITS: u32 = 8;
/// Keys whose first words, up to this number, are equal are compared byte by byte after these.
const WORDS_MAX: usize = 4;
const BUCKETS: usize = 1 << DIGIT_BITS;

/// Sorts; returns the records' offsets in sorted order.
pub(super) fn sort<'a>(
    format: &Format,
    bytes: &[u8],
    held: &[Held],
    scratch: &'a mut Scratch,
    threads: usize,
) -> impl ExactSizeIterator<Item = u32> + use<'a> {
    let count = held.iter().map(|held| held.count).sum();
    assert!(bytes.len() <= u32::MAX as usize, "places in a column are 32 bits wide");
    scratch.entries.resize(count, Entry::default());
    scratch.other.resize(count, Entry::default());
    let (entries, other) = (&mut scratch.entries[..], &mut scratch.other[..]);
    extract(format, bytes, held, entries);
    let keys = Keys { format, bytes };
    if threads > 1 && count > SMALL * threads {
        sort_parallel(&keys, entries, other, threads);
    } else {
        keys.sort(entries, other, 0);
    }
    scratch.entries.iter().map(|entry| entry.place)
}

/// Extracts the entries of all records.
fn extract(format: &Format, bytes: &[u8], held: &[Held], entries: &mut [Entry]) {
    let mut rest = entries;
    for held in held {
        let (now, later) = rest.split_at_mut(held.count);
        let records = bytes[held.at..].chunks_exact(format.record_bytes);
        for ((entry, record), i) in now.iter_mut().zip(records).zip(0..) {
            *entry = Entry { word: format.word(record, 0), place: (held.at + i * format.record_bytes) as u32 };
        }
        rest = later;
    }
}

/// Sorts with several threads, which share the buckets of the first digit.
fn sort_parallel(keys: &Keys, entries: &mut [Entry], other: &mut [Entry], threads: usize) {
    let Some(shift) = digit(entries) else { return keys.sort(entries, other, 0) };
    let ends = deal(entries, other, shift);
    let (count, share) = (entries.len(), entries.len().div_ceil(threads));
    std::thread::scope(|scope| {
        let (mut rest, mut rest_other, mut taken) = (entries, other, 0);
        for end in ends {
            if end == taken || (end - taken < share && end < count) {
                continue;
            }
            let (now, later) = rest.split_at_mut(end - taken);
            let (now_other, later_other) = rest_other.split_at_mut(end - taken);
            (rest, rest_other, taken) = (later, later_other, end);
            scope.spawn(move || keys.sort(now, now_other, 0));
        }
    });
}

/// The number of bits below the highest digit in which entries differ; None if all are equal.
fn digit(entries: &[Entry]) -> Option<u32> {
    let first = entries.first()?.word;
    let differ = entries.iter().fold(0, |differ, entry| differ | (entry.word ^ first));
    (differ != 0).then(|| (u64::BITS - differ.leading_zeros()).saturating_sub(DIGIT_BITS))
}

/// Deals entries into buckets by the digit above `shift`; returns where each bucket ends.
fn deal(entries: &mut [Entry], other: &mut [Entry], shift: u32) -> [usize; BUCKETS] {
    let bucket = |entry: &Entry| (entry.word >> shift) as usize % BUCKETS;
    let mut places = [0usize; BUCKETS];
    for entry in entries.iter() {
        places[bucket(entry)] += 1;
    }
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for entry in entries.iter() {
        let place = &mut places[bucket(entry)];
        other[*place] = *entry;
        *place += 1;
    }
    entries.copy_from_slice(other);
    places
}

/// Access to the rest of the keys.
struct Keys<'a> {
    format: &'a Format,
    bytes: &'a [u8],
}

impl Keys<'_> {
    /// Sorts entries whose keys are equal before byte `from`, and whose words are the eight bytes from there.
    fn sort(&self, entries: &mut [Entry], other: &mut [Entry], from: usize) {
        self.sort_words(entries, other);
        if self.format.key_bytes > from + 8 {
            self.sort_ties(entries, other, from + 8);
        }
    }

    fn sort_words(&self, entries: &mut [Entry], other: &mut [Entry]) {
        if entries.len() <= SMALL {
            return entries.sort_unstable_by_key(|entry| entry.word);
        }
        let Some(shift) = digit(entries) else { return };
        let mut begin = 0;
        for end in deal(entries, other, shift) {
            self.sort_words(&mut entries[begin..end], &mut other[begin..end]);
            begin = end;
        }
    }

    /// Sorts groups of equal words by the key's next eight bytes.
    fn sort_ties(&self, entries: &mut [Entry], other: &mut [Entry], from: usize) {
        let mut begin = 0;
        while begin < entries.len() {
            let word = entries[begin].word;
            let len = entries[begin..].iter().take_while(|entry| entry.word == word).count();
            if len > 1 {
                let tied = &mut entries[begin..begin + len];
                if from >= WORDS_MAX * 8 {
                    let rest = |entry: &Entry| &self.format.key(&self.bytes[entry.place as usize..])[from..];
                    tied.sort_unstable_by(|a, b| rest(a).cmp(rest(b)));
                    begin += len;
                    continue;
                }
                for entry in &mut *tied {
                    entry.word = self.format.word(&self.bytes[entry.place as usize..], from);
                }
                self.sort(tied, &mut other[begin..begin + len], from);
            }
            begin += len;
        }
    }
}
