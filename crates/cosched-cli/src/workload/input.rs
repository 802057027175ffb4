//! Opens and reads workloads: job lists and traces, plain or compressed, from files or standard input, recognised by their
//! contents.

use crate::format::grouped;
use crate::out::{EXIT_REFUSED, Failure, say};
use crate::progress::Progress;
use cosched_sim::workload::swf::{ReadReport, Record, SwfHeader};
use cosched_study::workload::ReadError;
pub(crate) use cosched_study::workload::Source;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).and_then(|file| {
        let is_directory = file.metadata()?.is_dir();
        if is_directory { Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")) } else { Ok(file) }
    });
    match file {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            let what = format!("cannot open {}", path.display());
            let hint = "check the path and its permissions; `cosched workload generate` writes WL1 to WL8";
            Err(Failure::explained(1, &what, &error.to_string(), hint))
        }
    }
}

/// Reads a workload in any format; reports skipped lines on standard error. With `strict`, an invalid line is a failure.
pub(crate) fn read(path: &Path, flops: Option<f64>, strict: bool) -> Result<Source, Failure> {
    checked(path, strict, |file, show| Source::read(file, flops, show))
}

/// As [`read`], as a trace whose records go to `take`, with the header as far as it has been read, and are not kept.
pub(crate) fn stream(
    path: &Path,
    strict: bool,
    mut take: impl FnMut(&SwfHeader, &Record),
) -> Result<(SwfHeader, ReadReport), Failure> {
    let source = checked(path, strict, |file, show| Source::stream(file, None, show, &mut take))?;
    let (others, header, report) = source.into_trace();
    others.iter().for_each(|record| take(&header, record));
    Ok((header, report))
}

fn checked(
    path: &Path,
    strict: bool,
    read: impl FnOnce(Box<dyn Read>, &mut dyn FnMut(u64)) -> Result<Source, ReadError>,
) -> Result<Source, Failure> {
    let shown = path.display();
    let progress = Progress::new(false);
    let mut show = |count| progress.show(|| format!("cosched: reading: {} jobs", grouped(count)));
    let source = read(open(path)?, &mut show).map_err(|error| match &error {
        ReadError::Packed(why) => {
            let what = format!("cannot read {shown}");
            Failure::explained(1, &what, &why.to_string(), "workloads are plain text or gzip")
        }
        _ => {
            let code = if error.is_unread() { 1 } else { EXIT_REFUSED };
            Failure { code, message: format!("{shown}: {error}") }
        }
    })?;
    match &source {
        Source::Jobs(_) => {}
        Source::Swf { report, header, .. } => {
            tell(path, report);
            if let Some(size) = header.unusable_size() {
                say(&format!(
                    "{shown}: MaxProcs or MaxNodes is {size}: not a number from 1 to {}, so not used",
                    u32::MAX
                ));
            }
            if strict && report.malformed > 0 {
                let what = format!("{shown}: {} invalid lines", report.malformed);
                let hint = "fix the lines listed above";
                return Err(Failure::explained(EXIT_REFUSED, &what, "--strict was given", hint));
            }
        }
        Source::Batsim(workload) => match workload.dropped.first() {
            Some((reason, count)) if strict => {
                let message = format!("{shown}: {count} jobs cannot be used: {reason} (--strict)");
                return Err(Failure { code: EXIT_REFUSED, message });
            }
            _ => {
                for (reason, count) in &workload.dropped {
                    say(&format!("{shown}: skipped {count} jobs: {reason}"));
                }
            }
        },
    }
    Ok(source)
}

fn tell(path: &Path, report: &ReadReport) {
    let path = path.display();
    for bad in &report.malformed_lines {
        say(&format!("{path}: skipped line {}: {}, in `{}`", bad.line, bad.reason, bad.text));
    }
    let listed = report.malformed_lines.len() as u64;
    if report.malformed > listed {
        say(&format!("{path}: skipped {} more lines", report.malformed - listed));
    }
    if report.extra_columns > 0 {
        let line = report.extra_columns_line;
        say(&format!(
            "{path}: {} records have more than 18 columns (first: line {line}); the rest is ignored",
            report.extra_columns
        ));
    }
    if report.missing_columns > 0 {
        let line = report.missing_columns_line;
        say(&format!(
            "{path}: {} records have fewer than 18 columns (first: line {line}); the rest is unknown",
            report.missing_columns
        ));
    }
}
