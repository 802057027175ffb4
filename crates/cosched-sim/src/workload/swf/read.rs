//! The reader: one record at a time, whatever the size of the log. Lines that are not records are skipped, counted and
//! listed; the caller decides whether that matters.

use super::super::JOB_LIST_HEADER;
use super::super::lines::{Lines, excerpt};
use super::{FIELDS, Record, SwfHeader};
use std::io::{self, BufRead};

/// A line with fewer columns is not a job: number, submit, wait, run, processors.
const FIELDS_MIN: usize = 5;
/// The maximum number of invalid lines that are kept with their text; more are only counted.
const LISTED_MAX: usize = 20;
/// After this number of lines without a single record, the file must be of another kind.
const HOPELESS: u64 = 100;

/// A line that is not a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// Counted from 1, in the unpacked text.
    pub line: u64,
    /// Its text, possibly truncated.
    pub text: String,
    /// What is wrong.
    pub reason: String,
}

/// What the reader has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Records read.
    pub records: u64,
    /// Lines that were skipped because they are not records.
    pub malformed: u64,
    /// The first of them.
    pub malformed_lines: Vec<BadLine>,
    /// Records with more than 18 columns (the rest is ignored).
    pub extra_columns: u64,
    /// The first line with extra columns; 0 if there is none.
    pub extra_columns_line: u64,
    /// Records with fewer than 18 columns (the rest is unknown).
    pub missing_columns: u64,
    /// The first line with missing columns; 0 if there is none.
    pub missing_columns_line: u64,
}

/// Why a log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SwfError {
    /// The text could not be read.
    #[error(
        "the trace cannot be read\n  why: {0}\n  hint: look whether it is the right file, and whether you may read it"
    )]
    Read(io::Error),
    /// The file ends too early, or its packed bytes are damaged.
    #[error(
        "the trace ends early or is damaged after line {line}\n  why: {why}\n  hint: get the file again (`gzip -t \
         FILE` checks a packed one)"
    )]
    Truncated {
        /// The last line that could be read.
        line: u64,
        /// The error of the decompression.
        why: String,
    },
    /// None of the lines is a record.
    #[error(
        "this is not a trace in the Standard Workload Format (SWF)\n  why: none of the first {lines} lines is a job; \
         line {}: {}, in `{}`\n  hint: a job is a line of 18 numbers, and comments begin with `;`; a \
         job list begins with {JOB_LIST_HEADER}",
        first.line, first.reason, first.text
    )]
    NotSwf {
        /// The number of lines that were examined, without comments.
        lines: u64,
        /// The first of them.
        first: BadLine,
    },
    /// There are no records.
    #[error(
        "the trace has no jobs\n  why: it has {header_lines} comment lines and nothing else\n  hint: get the file again"
    )]
    Empty {
        /// Lines that begin with `;`.
        header_lines: u64,
    },
}

impl SwfError {
    /// Converts an error of a reader after this line.
    pub fn of_io(error: io::Error, line: u64) -> SwfError {
        match error.kind() {
            // Flate2 reports damaged streams as invalid input.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                SwfError::Truncated { line, why: error.to_string() }
            }
            _ => SwfError::Read(error),
        }
    }
}

/// Reads a log record by record.
pub struct SwfReader<R> {
    lines: Lines<R>,
    header: SwfHeader,
    report: ReadReport,
    /// The number of the last line, and the number of columns of the last record; 0 before it.
    line: u64,
    columns: usize,
}

impl<R: BufRead> SwfReader<R> {
    /// A reader of decompressed text (see [`super::unpack`]).
    pub fn new(input: R) -> SwfReader<R> {
        SwfReader {
            lines: Lines::new(input),
            header: SwfHeader::default(),
            report: ReadReport::default(),
            line: 0,
            columns: 0,
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// An error of the reader; a compressed file that ends early; a text without any record.
    pub fn next_record(&mut self) -> Result<Option<Record>, SwfError> {
        loop {
            let read = self.lines.next_line();
            let Some(line) = read.map_err(|error| SwfError::of_io(error, self.line))? else { break };
            self.line = line.number;
            let text = line.text.trim();
            if text.is_empty() {
                continue;
            }
            if text.starts_with(';') {
                self.header.add(text);
                continue;
            }
            if line.is_open && is_beginning(text, self.columns) {
                let why = format!("this line ends within its {} columns, in `{}`", self.columns, excerpt(text));
                return Err(SwfError::Truncated { line: line.number, why });
            }
            let parsed = if line.is_cut { Err("the line does not end".into()) } else { record(text) };
            match parsed {
                Ok((record, columns)) => {
                    self.columns = columns;
                    self.report.count(line.number, columns);
                    return Ok(Some(record));
                }
                Err(reason) => self.report.skip(BadLine { line: line.number, text: excerpt(text), reason }),
            }
            if self.report.malformed >= HOPELESS && self.report.records == 0 {
                break;
            }
        }
        match self.report.malformed_lines.first() {
            Some(first) if self.report.records == 0 => {
                Err(SwfError::NotSwf { lines: self.report.malformed, first: first.clone() })
            }
            None if self.report.records == 0 => Err(SwfError::Empty { header_lines: self.header.lines() }),
            _ => Ok(None),
        }
    }

    /// The header, as far as it has been read.
    pub fn header(&self) -> &SwfHeader {
        &self.header
    }

    /// What has been found so far.
    pub fn report(&self) -> &ReadReport {
        &self.report
    }
}

/// Reads a whole log into memory (144 bytes per record).
///
/// # Errors
/// As for [`SwfReader::next_record`].
pub fn read_records(input: impl BufRead) -> Result<(Vec<Record>, SwfHeader, ReadReport), SwfError> {
    let mut reader = SwfReader::new(input);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((records, reader.header, reader.report))
}

impl ReadReport {
    fn count(&mut self, line: u64, columns: usize) {
        self.records += 1;
        let (counted, first) = match columns {
            FIELDS => return,
            0..FIELDS => (&mut self.missing_columns, &mut self.missing_columns_line),
            _ => (&mut self.extra_columns, &mut self.extra_columns_line),
        };
        *first = if *counted == 0 { line } else { *first };
        *counted += 1;
    }

    fn skip(&mut self, line: BadLine) {
        self.malformed += 1;
        if self.malformed_lines.len() < LISTED_MAX {
            self.malformed_lines.push(line);
        }
    }
}

/// Whether the last line of a file is the beginning of a record like the previous one: numbers, but fewer.
fn is_beginning(text: &str, columns: usize) -> bool {
    let words = || text.split_ascii_whitespace();
    let is_numeric = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
    words().count() < columns && words().all(is_numeric)
}

/// The record of a line and the number of its columns.
fn record(text: &str) -> Result<(Record, usize), String> {
    let mut fields = [-1.0; FIELDS];
    let mut columns = 0;
    for word in text.split_ascii_whitespace() {
        if let Some(field) = fields.get_mut(columns) {
            *field =
                number(word).ok_or_else(|| format!("column {} `{}` is not a number", columns + 1, excerpt(word)))?;
        }
        columns += 1;
    }
    if columns < FIELDS_MIN {
        return Err(format!("it has {columns} columns; a job has 18, and {FIELDS_MIN} at least"));
    }
    Ok((Record::new(fields), columns))
}

/// A number, whole or with decimals. Values far beyond those of any log are rejected.
fn number(word: &str) -> Option<f64> {
    const MAGNITUDE_MAX: f64 = 1e15;
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.len() <= 15 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = digits.bytes().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0')) as f64;
        return Some(if digits.len() < word.len() { -value } else { value });
    }
    word.parse().ok().filter(|value: &f64| value.abs() <= MAGNITUDE_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::unpack;
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "  15 599850 192180 3477 4 -1 -1 25 53940 -1 1 12 12 -1 0 -1 -1 -1\n";

    fn read(text: &str) -> Result<(Vec<Record>, SwfHeader, ReadReport), String> {
        read_records(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_is_not_zero() {
        let (records, ..) = read(LINE).unwrap();
        let record = &records[0];
        assert_eq!((record.number(), record.submit_s()), (15.0, 599_850.0));
        assert_eq!((record.wait_s(), record.run_s(), record.cpu_s()), (Some(192_180.0), Some(3477.0), None));
        assert_eq!((record.size(), record.requested()), (Some(4), Some(25)));
        assert_eq!((record.estimate_s(), record.status(), record.user()), (Some(53_940.0), Some(1.0), Some(12.0)));
        assert_eq!(record.queue(), Some(0.0));
        let (records, ..) = read("1 0 -1 0 0 -1 -1 -1 0\n").unwrap();
        assert_eq!((records[0].wait_s(), records[0].run_s(), records[0].size()), (None, Some(0.0), None));
        assert_eq!(records[0].estimate_s(), Some(0.0));
    }

    #[test]
    fn what_files_do_is_survived_and_counted() {
        let text = format!(
            "stray first line\n; Version: 2\n{LINE}\n; a late comment\n3 489.00 .5 1e2 7\n4 x 1 1 1\n5 1 1\n\
             6 nan 1 1 1\n7 1 1 1 1e99\n8{} 99\n\u{1a}",
            " 1".repeat(17)
        );
        let (records, header, report) = read(&text).unwrap();
        assert_eq!((records.len(), header.lines(), report.records), (3, 2, 3));
        assert_eq!((records[1].submit_s(), records[1].wait_s(), records[1].run_s()), (489.0, Some(0.5), Some(100.0)));
        let listed: Vec<(u64, &str)> = report.malformed_lines.iter().map(|bad| (bad.line, &bad.reason[..])).collect();
        let expected = [
            (1, "column 1 `stray` is not a number"),
            (7, "column 2 `x` is not a number"),
            (8, "it has 3 columns; a job has 18, and 5 at least"),
            (9, "column 2 `nan` is not a number"),
            (10, "column 5 `1e99` is not a number"),
            (12, "column 1 `·` is not a number"),
        ];
        assert_eq!(listed, expected);
        assert_eq!((report.malformed, report.missing_columns, report.missing_columns_line), (6, 1, 6));
        assert_eq!((report.extra_columns, report.extra_columns_line), (1, 11));
    }

    #[test]
    fn a_file_that_ends_within_a_line_is_an_error() {
        for length in [2, 10, 40, LINE.len() - 4] {
            let error = read(&format!("{LINE}{LINE}{}", &LINE[..length])).map(|(records, ..)| records.len());
            let is_blank = LINE[..length].trim().is_empty();
            assert_eq!(error.is_ok(), is_blank, "{length}: {error:?}");
            assert!(is_blank || error.unwrap_err().starts_with("the trace ends early or is damaged after line 3\n"));
        }
        assert_eq!(read(LINE.trim_end()).unwrap().0.len(), 1);
        assert_eq!(read("1 2 3 4 5 6\n1 2 3 4 5 6").unwrap().0.len(), 2);
    }

    #[test]
    fn other_files_are_recognised() {
        let error = read(&"arrival_s,tasks,exec_s,type\n".repeat(1000)).unwrap_err();
        assert!(error.starts_with("this is not a trace in the Standard Workload Format"), "{error}");
        assert!(error.contains("first 100 lines"), "{error}");
        assert!(read("; Version: 2\n").unwrap_err().contains("1 comment lines and nothing else"));
        assert!(read("").unwrap_err().contains("no jobs"));
    }

    #[test]
    fn a_packed_log_that_ends_early_is_an_error() {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for number in 0..5000_u32 {
            writeln!(encoder, "{number} {} -1 {} 4", number * 7, number.wrapping_mul(2_654_435_761) % 1000).unwrap();
        }
        let whole = encoder.finish().unwrap();
        let open = |bytes: &[u8]| read_records(unpack(bytes).unwrap()).map(|(records, ..)| records.len());
        assert_eq!(open(&whole).unwrap(), 5000);
        for length in [12, whole.len() / 2, whole.len() - 1] {
            assert!(matches!(open(&whole[..length]), Err(SwfError::Truncated { .. })), "{length}");
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x55;
        assert!(open(&damaged).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = read_records(&bytes[..]);
            let packed = [&b"\x1f\x8b\x08"[..], &bytes].concat();
            let _ = unpack(&packed[..]).map(read_records);
        }

        #[test]
        fn almost_logs_are_answered(lines in prop::collection::vec("[0-9 .;:a-e-]{0,60}", 0..30)) {
            let text = lines.join("\n");
            if let Ok((records, header, report)) = read(&text) {
                let used = lines.iter().filter(|line| !line.trim().is_empty()).count() as u64;
                prop_assert_eq!(report.records, records.len() as u64);
                prop_assert_eq!(report.records + report.malformed + header.lines(), used);
            }
        }
    }
}
