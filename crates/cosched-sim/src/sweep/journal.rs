//! The journal: one line of JSON for each simulated cell, appended when the cell is done.
//!
//! A killed sweep leaves at most one incomplete line. An incomplete line is not used, and is cut off before the next
//! line is appended; everything before it is used again.

use super::result::CellResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

/// The contents of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// Results by the key of their inputs.
    pub results: BTreeMap<u64, CellResult>,
    /// The length of the complete lines in bytes: the file has to be cut to this before it is appended to.
    pub whole_bytes: u64,
    /// Complete lines that are not results: they are kept and not used.
    pub strange: u64,
    /// The text after the complete lines is not the beginning of a result: the file belongs to another program and must
    /// not be cut.
    pub is_foreign: bool,
}

/// The beginning of each line.
const BEGINNING: &[u8] = b"{\"key\":\"";
/// The maximum length of a line.
const LINE_MAX: u64 = 1 << 20;

#[derive(Serialize)]
struct Written<'a> {
    key: String,
    cell: &'a str,
    wall_s: f64,
    result: &'a CellResult,
}

#[derive(Deserialize)]
struct Read {
    key: String,
    result: CellResult,
}

impl Journal {
    /// Reads a journal, however it ends.
    ///
    /// # Errors
    /// An error of the reader.
    pub fn read(mut input: impl BufRead) -> io::Result<Journal> {
        let mut journal = Journal::default();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let length = (&mut input).take(LINE_MAX).read_until(b'\n', &mut bytes)? as u64;
            if bytes.last() != Some(&b'\n') {
                let begins = bytes.starts_with(BEGINNING) || BEGINNING.starts_with(&bytes);
                journal.is_foreign = length == LINE_MAX || !begins;
                return Ok(journal);
            }
            journal.whole_bytes += length;
            match parse(&bytes) {
                Some((key, result)) => drop(journal.results.insert(key, result)),
                None => journal.strange += u64::from(!bytes.trim_ascii().is_empty()),
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(u64, CellResult)> {
    let read: Read = serde_json::from_slice(bytes).ok()?;
    Some((u64::from_str_radix(&read.key, 16).ok()?, read.result))
}

/// The line for a result, with its line break. `cell` is for readers, `wall_s` the time that it took.
pub fn line(key: u64, cell: &str, wall_s: f64, result: &CellResult) -> String {
    let written = Written { key: format!("{key:016x}"), cell, wall_s, result };
    // Strings and finite numbers can always be written as JSON; a number that is not finite becomes null.
    let json = serde_json::to_string(&written).unwrap_or_default();
    json + "\n"
}
