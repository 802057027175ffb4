//! Opening and reading workloads: job lists and traces, plain or packed, from files or standard input, told by their content.

use crate::format::grouped;
use crate::out::{EXIT_REFUSED, Failure, say};
use crate::progress::Progress;
use cosched_sim::JobSpec;
use cosched_sim::workload::batsim::{BatsimError, BatsimWorkload, read_batsim};
use cosched_sim::workload::select::{NotTaken, Selection, Selector};
use cosched_sim::workload::swf::{ReadReport, Record, SwfError, SwfHeader, SwfReader, unpack};
use cosched_sim::workload::{JobListError, TraceJob, from_specs, read_jobs, to_records};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
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

/// A workload.
pub(crate) enum Source {
    /// A trace.
    Swf { records: Vec<Record>, header: SwfHeader, report: ReadReport },
    /// A job list.
    Jobs(Vec<JobSpec>),
    /// A workload of Batsim.
    Batsim(BatsimWorkload),
}

impl Source {
    /// As a trace: what its format does not say is unknown.
    pub(crate) fn into_trace(self) -> (Vec<Record>, SwfHeader, ReadReport) {
        let of = |jobs: &[TraceJob], entries: Vec<(String, String)>| {
            let report = ReadReport { records: jobs.len() as u64, ..ReadReport::default() };
            (to_records(jobs).collect(), SwfHeader::new(entries), report)
        };
        match self {
            Source::Swf { records, header, report } => (records, header, report),
            Source::Jobs(jobs) => of(&from_specs(&jobs), Vec::new()),
            Source::Batsim(workload) => of(&workload.jobs, vec![("MaxProcs".into(), workload.procs.to_string())]),
        }
    }

    /// The jobs that are asked for, by submission, and why others are not taken.
    pub(crate) fn select(&self, asked: Selection) -> (Vec<TraceJob>, NotTaken) {
        let mut selector = Selector::new(asked);
        match self {
            Source::Swf { records, report, .. } => {
                selector.malformed(report.malformed);
                records.iter().for_each(|record| selector.add(record));
            }
            Source::Jobs(jobs) => from_specs(jobs).into_iter().for_each(|job| selector.add_job(job)),
            Source::Batsim(workload) => {
                selector.malformed(workload.dropped.iter().map(|(_, count)| count).sum());
                workload.jobs.iter().for_each(|job| selector.add_job(*job));
            }
        }
        selector.finish()
    }
}

/// Reads a workload, whatever its format is; says on standard error what was skipped. With `strict`, a line that is
/// no job is a failure.
pub(crate) fn read(path: &Path, flops: Option<f64>, strict: bool) -> Result<Source, Failure> {
    let shown = path.display();
    let mut text = unpack(open(path)?).map_err(|error| {
        let what = format!("cannot read {shown}");
        Failure::explained(1, &what, &error.to_string(), "workloads are plain text or gzip")
    })?;
    let failed = |error: &dyn Display, is_unread: bool| Failure {
        code: if is_unread { 1 } else { EXIT_REFUSED },
        message: format!("{shown}: {error}"),
    };
    let trace_failed =
        |error: SwfError| failed(&error, matches!(error, SwfError::Read(_) | SwfError::Truncated { .. }));
    let mut start = Vec::new();
    let peeked = (&mut text).take(PEEKED).read_to_end(&mut start);
    peeked.map_err(|error| trace_failed(SwfError::of_io(error, 0)))?;
    let format = guess(&start);
    let text = Cursor::new(start).chain(text);
    match format {
        Guess::Swf => {
            let (records, header, report) = read_trace(text).map_err(trace_failed)?;
            tell(path, &report);
            if strict && report.malformed > 0 {
                let what = format!("{shown}: {} invalid lines", report.malformed);
                let hint = "fix the lines listed above";
                return Err(Failure::explained(EXIT_REFUSED, &what, "--strict was given", hint));
            }
            Ok(Source::Swf { records, header, report })
        }
        Guess::Jobs => match read_jobs(text) {
            Ok(jobs) => Ok(Source::Jobs(jobs)),
            Err(error) => Err(failed(&error, matches!(error, JobListError::Read(_)))),
        },
        Guess::Batsim => match read_batsim(text, flops) {
            Ok(workload) if strict && !workload.dropped.is_empty() => {
                let (reason, count) = &workload.dropped[0];
                Err(failed(&format!("{count} jobs cannot be used: {reason} (--strict)"), false))
            }
            Ok(workload) => {
                for (reason, count) in &workload.dropped {
                    say(&format!("{shown}: skipped {count} jobs: {reason}"));
                }
                Ok(Source::Batsim(workload))
            }
            Err(error) => Err(failed(&error, matches!(error, BatsimError::Read(_)))),
        },
    }
}

/// The clock is looked at after so many jobs.
const STEPS: u64 = 1024;

fn read_trace(text: impl BufRead) -> Result<(Vec<Record>, SwfHeader, ReadReport), SwfError> {
    let mut reader = SwfReader::new(text);
    let progress = Progress::new(false);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
        let count = reader.report().records;
        if count.is_multiple_of(STEPS) {
            progress.show(|| format!("cosched: reading: {} jobs", grouped(count)));
        }
    }
    let report = reader.report().clone();
    Ok((records, reader.header().clone(), report))
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

enum Guess {
    Swf,
    Jobs,
    Batsim,
}

/// Bytes by which a format is told.
const PEEKED: u64 = 4096;

/// By the first bytes: an object is Batsim's, words with commas are a job list's header; a trace has comments and numbers.
fn guess(start: &[u8]) -> Guess {
    let start = String::from_utf8_lossy(start);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let first = start.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    match first {
        Some(line) if line.starts_with('{') => Guess::Batsim,
        Some(line) if line.contains(',') && line.starts_with(char::is_alphabetic) => Guess::Jobs,
        _ => Guess::Swf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_content() {
        let of = |text: &str| match guess(text.as_bytes()) {
            Guess::Swf => "swf",
            Guess::Jobs => "jobs",
            Guess::Batsim => "batsim",
        };
        assert_eq!(of("\u{feff}\n {\"nb_res\": 1}"), "batsim");
        assert_eq!(of("# made today\n\narrival_s,tasks,exec_s,type\n"), "jobs");
        assert_eq!(of("task,s\n1,2\n"), "jobs");
        assert_eq!(of("; Version: 2\n"), "swf");
        assert_eq!(of(""), "swf");
    }
}
