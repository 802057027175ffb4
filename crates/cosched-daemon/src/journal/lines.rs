//! The lines of a journal.
//!
//! A line is `CRC32 in hex, space, number, space, JSON`; the sum covers everything after the first space. A file begins with a line that has `begin`
//! in the place of JSON. Numbers rise by one from line to line and continue in the next file. Lines of earlier versions have no number.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::io;

const BEGIN: &str = "begin";

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Read<C> {
    /// The changes in the order of their numbers, each once.
    pub(crate) changes: Vec<C>,
    /// A lower bound of the number of lines that are unreadable, missing, doubled or out of order. A torn last line is not damage.
    pub(crate) damaged: usize,
    /// The last line's number; 0 if there is none.
    pub(super) last: u64,
    /// All lines have numbers.
    pub(super) is_numbered: bool,
}

/// Parses a file of which lines up to the number `mark` were once on the disk.
pub(crate) fn read<C: DeserializeOwned>(bytes: &[u8], mark: u64) -> Read<C> {
    let mut unreadable = 0;
    let mut found: Vec<(u64, Option<C>)> = Vec::new();
    for text in bytes.split_inclusive(|b| *b == b'\n') {
        let Some((end, line)) = text.split_last() else { continue };
        match parse(line) {
            Some(line) => {
                found.push(line);
                unreadable += usize::from(*end != b'\n');
            }
            None if *end != b'\n' && is_torn(text) => (),
            None => unreadable += 1,
        }
    }
    let is_numbered = found.iter().all(|(number, _)| *number > 0);
    let displaced = displaced(&found);
    let last = found.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let missing = missing(&found, mark) as usize;
    // Lines without a number stay before the others.
    found.sort_by_key(|(number, _)| *number);
    found.dedup_by(|(later, _), (earlier, _)| later == earlier && *later > 0);
    Read {
        changes: found.into_iter().filter_map(|(_, change)| change).collect(),
        // An unreadable line is one of the missing ones.
        damaged: unreadable.max(missing) + displaced,
        last,
        is_numbered,
    }
}

/// The number of lines that come after one with a higher number, or the same.
fn displaced<C>(found: &[(u64, Option<C>)]) -> usize {
    let mut highest = 0;
    let mut count = 0;
    for (number, _) in found.iter().filter(|(number, _)| *number > 0) {
        count += usize::from(*number <= highest);
        highest = highest.max(*number);
    }
    count
}

/// The number of line numbers between the beginning of the file and the mark that are missing.
fn missing<C>(found: &[(u64, Option<C>)], mark: u64) -> u64 {
    let numbers: BTreeSet<u64> = found.iter().map(|(number, _)| *number).filter(|number| *number > 0).collect();
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        // Without any line, it is unknown how many are missing.
        return mark.min(1);
    };
    let has_begin = found.iter().any(|(number, change)| number == first && change.is_none());
    let first = if has_begin { *first } else { first - 1 };
    mark.max(*last) + 1 - first - numbers.len() as u64
}

/// Whether these bytes without a line end can be the beginning of a valid line.
fn is_torn(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        0..8 => byte.is_ascii_hexdigit(),
        8 => *byte == b' ',
        9 => *byte == b'{' || byte.is_ascii_digit(),
        _ => *byte >= b' ',
    };
    text.iter().enumerate().all(fits)
}

/// The number of a line without its end (0: none) and the text after it, if its sum is correct.
fn checked(line: &[u8]) -> Option<(u64, &[u8])> {
    let (sum, rest) = (line.get(..8)?, line.get(8..)?.strip_prefix(b" ")?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    if sum != crc32fast::hash(rest) {
        return None;
    }
    let blank = rest.iter().position(|byte| *byte == b' ');
    let number = blank.and_then(|at| std::str::from_utf8(&rest[..at]).ok()?.parse::<u64>().ok());
    // The highest number is invalid, as no number follows it.
    match number.filter(|number| (1..u64::MAX).contains(number)) {
        Some(number) => Some((number, &rest[blank? + 1..])),
        None => Some((0, rest)),
    }
}

/// Parses a line without its end: its number, and its change, which the first line does not have.
fn parse<C: DeserializeOwned>(line: &[u8]) -> Option<(u64, Option<C>)> {
    let (number, rest) = checked(line)?;
    if number > 0 && rest == BEGIN.as_bytes() {
        return Some((number, None));
    }
    Some((number, Some(serde_json::from_slice(rest).ok()?)))
}

/// The number of undamaged lines with a content that is unknown to this program.
pub(super) fn unknown<C: DeserializeOwned>(bytes: &[u8]) -> usize {
    bytes.split(|b| *b == b'\n').filter(|line| checked(line).is_some() && parse::<C>(line).is_none()).count()
}

/// These changes as lines that are numbered from `next`; returns also the number after them.
pub(super) fn text(next: u64, changes: impl Iterator<Item = impl Serialize>) -> io::Result<(Vec<u8>, u64)> {
    let (mut text, mut next) = (Vec::new(), next);
    for change in changes {
        push(&mut text, &mut next, &serde_json::to_string(&change)?);
    }
    Ok((text, next))
}

/// The same as a whole file, with its first line.
pub(super) fn file(next: u64, changes: impl Iterator<Item = impl Serialize>) -> io::Result<(Vec<u8>, u64)> {
    let (mut file, mut next) = (Vec::new(), next);
    push(&mut file, &mut next, BEGIN);
    let (lines, next) = text(next, changes)?;
    file.extend(lines);
    Ok((file, next))
}

fn push(text: &mut Vec<u8>, next: &mut u64, what: &str) {
    let rest = format!("{next} {what}");
    text.extend(format!("{:08x} {rest}\n", crc32fast::hash(rest.as_bytes())).into_bytes());
    *next += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: std::ops::Range<u32>) -> Vec<u8> {
        file(1, numbers).unwrap().0
    }

    #[test]
    fn a_file_begins_where_the_last_one_ended() {
        let (first, next) = file(1, 0..3).unwrap();
        assert_eq!(next, 5, "the beginning has a number, too");
        let (second, next) = file(next, 3..4).unwrap();
        assert_eq!(next, 7);
        let read = |bytes: &[u8], mark| {
            let Read { changes, damaged, last, is_numbered } = read::<u32>(bytes, mark);
            assert!(is_numbered);
            (changes, damaged, last)
        };
        assert_eq!(read(&first, 4), (vec![0, 1, 2], 0, 4));
        assert_eq!(read(&second, 6), (vec![3], 0, 6));
        assert_eq!(read(&second, 8), (vec![3], 2, 6), "two lines more were on the disk");
        assert_eq!(read(&second[..second.len() - 2], 6).1, 1, "the last one was, too: it is not torn");
    }

    #[test]
    fn the_beginning_of_a_line_is_torn_and_anything_else_is_damage() {
        let whole = bytes(0..2);
        for (rest, damaged) in [
            ("0123", 0),
            ("0123abcd ", 0),
            ("0123abcd 4 12", 0),
            ("0123abcd {", 0),
            ("rubbish", 1),
            ("0123abcd x", 1),
            ("\0\0\0", 1),
        ] {
            let read = read::<u32>(&[&whole[..], rest.as_bytes()].concat(), 0);
            assert_eq!((read.changes, read.damaged), (vec![0, 1], damaged), "{rest}");
        }
        let read = read::<u32>(&[&whole[..], b"rubbish\n"].concat(), 0);
        assert_eq!(read.damaged, 1);
    }

    #[test]
    fn lines_that_this_program_does_not_know_are_told_from_damaged_ones() {
        let (mut text, next) = text(1, ["later"].iter()).unwrap();
        assert_eq!(unknown::<u32>(&text), 1);
        text.extend(self::text(next, 0..1_u32).unwrap().0);
        assert_eq!(unknown::<u32>(&text), 1);
        text[0] ^= 1;
        assert_eq!(unknown::<u32>(&text), 0, "this one is damaged");
    }

    #[test]
    fn the_highest_number_there_is_has_none_after_it() {
        let line = |number: u64| {
            let rest = format!("{number} 7");
            format!("{:08x} {rest}", crc32fast::hash(rest.as_bytes()))
        };
        assert_eq!(parse::<u32>(line(u64::MAX - 1).as_bytes()), Some((u64::MAX - 1, Some(7))));
        assert_eq!(parse::<u32>(line(u64::MAX).as_bytes()), None);
        assert_eq!(parse::<u32>(line(0).as_bytes()), None);
    }
}
