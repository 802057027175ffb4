//! The writer.

use super::{Record, SwfHeader};
use std::io::{self, Write};

/// Writes the header.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_header(mut out: impl Write, header: &SwfHeader) -> io::Result<()> {
    for (key, value) in header.entries() {
        let mut lines = value.lines();
        writeln!(out, "; {key}: {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, ";{:width$}{line}", "", width = key.len() + 3)?;
        }
    }
    Ok(())
}

/// Writes a comment.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_comment(mut out: impl Write, text: &str) -> io::Result<()> {
    text.lines().try_for_each(|line| writeln!(out, "; {line}"))
}

/// Writes a record.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_record(mut out: impl Write, record: &Record) -> io::Result<()> {
    for (place, field) in record.fields().iter().enumerate() {
        let blank = if place == 0 { "" } else { " " };
        // Whole numbers are printed without decimals, others with as many as are needed to read them back.
        write!(out, "{blank}{field}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::super::{FIELDS, read_records};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_are_read_back() {
        let entry = |key: &str, value: &str| (key.to_string(), value.to_string());
        let header = SwfHeader::new([entry("Note", "a\nb"), entry("MaxProcs", "338 (batch)"), entry("Note", "")]);
        let mut text = Vec::new();
        write_header(&mut text, &header).unwrap();
        write_comment(&mut text, "").unwrap();
        write_record(&mut text, &Record::new([1.0; FIELDS])).unwrap();
        let (_, read, _) = read_records(&text[..]).unwrap();
        assert_eq!(read.entries(), header.entries());
    }

    fn any_field() -> impl Strategy<Value = f64> {
        prop_oneof![Just(-1.0), (0..10_000_000_u32).prop_map(f64::from), -1e6..1e12_f64]
    }

    proptest! {
        #[test]
        fn records_are_read_back(rows in prop::collection::vec(prop::array::uniform18(any_field()), 1..10)) {
            let mut text = Vec::new();
            for row in &rows {
                write_record(&mut text, &Record::new(*row)).unwrap();
            }
            let (records, _, report) = read_records(&text[..]).unwrap();
            prop_assert_eq!(records.iter().map(|record| *record.fields()).collect::<Vec<_>>(), rows);
            prop_assert_eq!(report.malformed, 0);
        }
    }
}
