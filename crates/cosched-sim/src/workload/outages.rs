//! Outages of nodes from a file: CSV with the header `node,down_s,up_s`, one outage per line, in any order.

use super::decimal::seconds_to_ns;
use super::lines::{Line, Lines, excerpt};
use std::io::{self, BufRead};

/// The header of such a file.
pub const OUTAGES_HEADER: &str = "node,down_s,up_s";

/// The most outages of a file.
const OUTAGES_MAX: usize = 1_000_000;

/// A node is down from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    /// From 0.
    pub node: u32,
    /// When it fails, µs.
    pub down_us: u64,
    /// When it is repaired, µs; later.
    pub up_us: u64,
}

/// Why a file of outages cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutagesError {
    /// The text could not be read.
    #[error(
        "the outages cannot be read\n  why: {0}\n  hint: look whether the file is whole, and whether you may read it"
    )]
    Read(#[from] io::Error),
    /// A line is neither the header nor an outage.
    #[error(
        "line {line} is no outage\n  why: {reason}, in `{text}`\n  hint: the first line is {OUTAGES_HEADER}, the others a node from 0 and \
         decimal seconds, as 3,3600,7200"
    )]
    Line {
        /// Counted from 1.
        line: u64,
        /// The text of the line.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// One node is down twice at once.
    #[error(
        "node {0} is down twice at {1} s\n  why: one outage begins before another one has ended\n  hint: make them one outage"
    )]
    Twice(u32, f64),
}

/// Reads outages, and sorts them by node and time. Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
/// The first invalid line; a read error; outages of one node that overlap.
pub fn read_outages(input: impl BufRead) -> Result<Vec<Outage>, OutagesError> {
    let mut lines = Lines::new(input);
    let (mut outages, mut has_header) = (Vec::new(), false);
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let wrong = |reason| OutagesError::Line { line: line.number, text: excerpt(text), reason };
        if !std::mem::replace(&mut has_header, true) {
            if text.split(',').map(str::trim).ne(OUTAGES_HEADER.split(',')) {
                return Err(wrong("it is not the header"));
            }
            continue;
        }
        if outages.len() == OUTAGES_MAX {
            return Err(wrong("a file has at most 1000000"));
        }
        outages.push(outage(&line, text).map_err(wrong)?);
    }
    outages.sort_unstable();
    match outages.windows(2).find(|pair| pair[0].node == pair[1].node && pair[1].down_us < pair[0].up_us) {
        Some(pair) => Err(OutagesError::Twice(pair[1].node, pair[1].down_us as f64 / 1e6)),
        None => Ok(outages),
    }
}

fn outage(line: &Line<'_>, text: &str) -> Result<Outage, &'static str> {
    if line.is_cut {
        return Err("the line does not end");
    }
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let [node, down, up] = fields[..] else { return Err("it has not three columns") };
    let node = node.parse().map_err(|_| "the node is not a whole number")?;
    // Up to 10^9 s.
    let us = |field| seconds_to_ns(field).ok().map(|ns| ns / 1000).filter(|us| *us <= 1_000_000_000_000_000);
    let (down_us, up_us) = us(down).zip(us(up)).ok_or("a time is not decimal seconds up to 1e9")?;
    if up_us <= down_us {
        return Err("it ends before a microsecond is over");
    }
    Ok(Outage { node, down_us, up_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_read_and_checked() {
        let read = |text: &str| read_outages(text.as_bytes()).map_err(|error| error.to_string());
        let of = |node, down_us, up_us| Outage { node, down_us, up_us };
        let text = "# two\nnode, down_s, up_s\n7,0.5,1\n\n3,2,3.000001\n3,1,2\n";
        assert_eq!(
            read(text),
            Ok(vec![of(3, 1_000_000, 2_000_000), of(3, 2_000_000, 3_000_001), of(7, 500_000, 1_000_000)])
        );
        assert_eq!(read("node,down_s,up_s"), Ok(vec![]));
        let cases = [
            ("1,2,3", "line 1 is no outage\n  why: it is not the header"),
            ("node,down_s,up_s\n1,2", "line 2 is no outage\n  why: it has not three columns, in `1,2`"),
            ("node,down_s,up_s\n-1,2,3", "the node is not a whole number"),
            ("node,down_s,up_s\n1,2,1e3", "not decimal seconds"),
            ("node,down_s,up_s\n1,2,2000000000", "not decimal seconds"),
            ("node,down_s,up_s\n1,3,2", "it ends before"),
            ("node,down_s,up_s\n1,2,5\n1,4,6", "node 1 is down twice at 4 s"),
        ];
        for (text, part) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(part) && error.contains("hint:"), "{text}: {error}");
        }
    }
}
