//! Opening and reading workloads of any format.

use super::progress::Progress;
use crate::format::grouped;
use crate::out::{EXIT_REFUSED, Failure, say};
use cosched_sim::JobSpec;
use cosched_sim::workload::batsim::{BatsimError, BatsimWorkload, read_batsim};
use cosched_sim::workload::swf::{ReadReport, Record, SwfError, SwfHeader, SwfReader, unpack};
use cosched_sim::workload::{JobListError, TraceJob, from_specs, read_jobs, to_records};
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
            Err(Failure::explained(1, &what, &error.to_string(), "look at the name, and whether you may read it"))
        }
    }
}

/// Opens a file and unpacks it if it is packed.
pub(crate) fn open_text(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    unpack(open(path)?).map_err(|error| {
        let what = format!("cannot read {}", path.display());
        Failure::explained(1, &what, &error.to_string(), "traces are plain text or gzip")
    })
}

/// A workload.
pub(crate) enum Source {
    /// A trace.
    Swf { records: Vec<Record>, header: SwfHeader, report: ReadReport },
    /// A job list.
    Jobs(Vec<TraceJob>),
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
            Source::Jobs(jobs) => of(&jobs, Vec::new()),
            Source::Batsim(workload) => of(&workload.jobs, vec![("MaxProcs".into(), workload.procs.to_string())]),
        }
    }
}

/// Reads a workload, whatever its format is; says on standard error what was skipped. With `strict`, a line that is
/// no job is a failure.
pub(crate) fn read(path: &Path, flops: Option<f64>, strict: bool) -> Result<Source, Failure> {
    let mut text = open_text(path)?;
    let mut start = Vec::new();
    let peeked = (&mut text).take(PEEKED).read_to_end(&mut start);
    peeked.map_err(|error| swf_failure(path, &SwfError::of_io(error, 0)))?;
    let format = guess(&start);
    let text = Cursor::new(start).chain(text);
    let named = |message: String, code| Failure { code, message: format!("{}: {message}", path.display()) };
    match format {
        Guess::Swf => {
            let mut records = Vec::new();
            let (header, report) = read_trace(path, text, strict, |record| records.push(*record))?;
            Ok(Source::Swf { records, header, report })
        }
        Guess::Jobs => Ok(Source::Jobs(from_specs(&job_list(path, text)?))),
        Guess::Batsim => match read_batsim(text, flops) {
            Ok(workload) if strict && !workload.dropped.is_empty() => {
                let (reason, count) = &workload.dropped[0];
                Err(named(format!("{count} jobs cannot be used: {reason} (--strict)"), EXIT_REFUSED))
            }
            Ok(workload) => {
                for (reason, count) in &workload.dropped {
                    say(&format!("{}: skipped {count} jobs: {reason}", path.display()));
                }
                Ok(Source::Batsim(workload))
            }
            Err(error @ BatsimError::Read(_)) => Err(named(error.to_string(), 1)),
            Err(error) => Err(named(error.to_string(), EXIT_REFUSED)),
        },
    }
}

/// Reads a job list.
pub(crate) fn job_list(path: &Path, text: impl BufRead) -> Result<Vec<JobSpec>, Failure> {
    read_jobs(text).map_err(|error| {
        let code = if matches!(error, JobListError::Read(_)) { 1 } else { EXIT_REFUSED };
        Failure { code, message: format!("{}: {error}", path.display()) }
    })
}

/// Reads a trace record by record; says on standard error what was skipped.
pub(crate) fn read_trace(
    path: &Path,
    text: impl BufRead,
    strict: bool,
    mut take: impl FnMut(&Record),
) -> Result<(SwfHeader, ReadReport), Failure> {
    let mut reader = SwfReader::new(text);
    let mut progress = Progress::new("reading");
    while let Some(record) = reader.next_record().map_err(|error| swf_failure(path, &error))? {
        take(&record);
        let records = reader.report().records;
        progress.tick(records, || format!("{} jobs", grouped(records)));
    }
    progress.done();
    let report = reader.report().clone();
    tell(path, &report);
    if strict && report.malformed > 0 {
        let what = format!("{}: {} lines are no jobs", path.display(), report.malformed);
        return Err(Failure::explained(EXIT_REFUSED, &what, "--strict was given", "mend the lines listed above"));
    }
    Ok((reader.header().clone(), report))
}

fn swf_failure(path: &Path, error: &SwfError) -> Failure {
    let code = match error {
        SwfError::Read(_) | SwfError::Truncated { .. } => 1,
        SwfError::NotSwf { .. } | SwfError::Empty { .. } => EXIT_REFUSED,
    };
    Failure { code, message: format!("{}: {error}", path.display()) }
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

/// By the first bytes: an object is Batsim's, a header with arrival_s is a job list's.
fn guess(start: &[u8]) -> Guess {
    let start = String::from_utf8_lossy(start);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let first = start.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    match first {
        Some(line) if line.starts_with('{') => Guess::Batsim,
        Some(line) if line.split(',').any(|column| column.trim() == "arrival_s") => Guess::Jobs,
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
        assert_eq!(of("; Version: 2\n"), "swf");
        assert_eq!(of(""), "swf");
    }
}
