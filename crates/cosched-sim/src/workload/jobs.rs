//! The job list: CSV with the header `arrival_s,tasks,exec_s,type`, one job per line; a fifth column, `class`, is for `live`. Times are decimal
//! seconds and are read exactly; the generator writes them with six decimals (D21).

use super::decimal::{ns_to_seconds, seconds_to_ns};
use super::lines::{Line, Lines, excerpt};
use crate::job::{JobSpec, JobType};
use cosched_core::Class;
use std::io::{self, BufRead, Write};

/// The header of a job list.
pub const JOB_LIST_HEADER: &str = "arrival_s,tasks,exec_s,type";

const COLUMNS: [&str; 4] = ["arrival_s", "tasks", "exec_s", "type"];

/// Why a job list cannot be used. A list is read completely or not at all: without one of its jobs the results of all others would be different.
#[derive(Debug, thiserror::Error)]
pub enum JobListError {
    /// The text could not be read.
    #[error(
        "the job list cannot be read\n  why: {0}\n  hint: look whether the file is whole, and whether you may read it"
    )]
    Read(#[from] io::Error),
    /// The first line that is neither blank nor a comment is not the header.
    #[error(
        "line {line} is not the header of a job list\n  why: it is `{text}`\n  hint: the first line must be \
         {JOB_LIST_HEADER}; `cosched workload convert` makes a job list from a trace"
    )]
    Header {
        /// Counted from 1.
        line: u64,
        /// The text of the line.
        text: String,
    },
    /// A line is not a job.
    #[error(
        "line {line} of the job list is not a job\n  why: {reason}, in `{text}`\n  hint: columns are \
         {JOB_LIST_HEADER}: decimal seconds, tasks from 1, type J1 to J6; class may follow: express, interactive, batch or standby"
    )]
    Line {
        /// Counted from 1.
        line: u64,
        /// The text of the line.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There are no jobs.
    #[error(
        "the job list has no jobs\n  why: no line follows the header {JOB_LIST_HEADER}\n  hint: look whether the file \
         was written to its end; `cosched workload generate` makes a list"
    )]
    Empty,
}

/// Reads a job list: the header, then jobs in the order of the file (they need not be sorted by arrival). Blank lines and lines that begin with `#`
/// are skipped.
///
/// # Errors
/// The first invalid line, with its number, text and the reason; a read error; a list without jobs.
pub fn read_jobs(input: impl BufRead) -> Result<Vec<JobSpec>, JobListError> {
    let mut lines = Lines::new(input);
    let mut jobs = Vec::new();
    let mut has_class = None;
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match has_class {
            Some(has_class) => jobs.push(job(&line, text, has_class)?),
            None => match header(text) {
                None => return Err(JobListError::Header { line: line.number, text: excerpt(text) }),
                known => has_class = known,
            },
        }
    }
    if jobs.is_empty() { Err(JobListError::Empty) } else { Ok(jobs) }
}

/// Writes a job list that [`read_jobs`] reads back to the same jobs.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_jobs(mut out: impl Write, jobs: &[JobSpec]) -> io::Result<()> {
    let has_class = jobs.iter().any(|job| job.class != Class::Batch);
    writeln!(out, "{JOB_LIST_HEADER}{}", if has_class { ",class" } else { "" })?;
    for job in jobs {
        write!(out, "{},{},{},{}", ns_to_seconds(job.arrival_ns), job.tasks, ns_to_seconds(job.exec_ns), job.kind)?;
        if has_class {
            write!(out, ",{}", job.class.name())?;
        }
        writeln!(out)?;
    }
    out.flush()
}

/// Whether jobs have classes, if the line is the header; otherwise `None`.
fn header(text: &str) -> Option<bool> {
    let columns: Vec<&str> = text.split(',').map(str::trim).collect();
    let has_class = columns.last() == Some(&"class");
    (columns[..columns.len() - usize::from(has_class)] == COLUMNS).then_some(has_class)
}

fn job(line: &Line<'_>, text: &str, has_class: bool) -> Result<JobSpec, JobListError> {
    let wrong = |reason: String| JobListError::Line { line: line.number, text: excerpt(text), reason };
    if line.is_cut {
        return Err(wrong("the line does not end".into()));
    }
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let ([arrival, tasks, exec, kind], class) = match fields[..] {
        [arrival, tasks, exec, kind] if !has_class => ([arrival, tasks, exec, kind], None),
        [arrival, tasks, exec, kind, class] if has_class => ([arrival, tasks, exec, kind], Some(class)),
        _ => return Err(wrong(format!("it has {} columns, not {}", fields.len(), 4 + u32::from(has_class)))),
    };
    let time = |name: &str, field: &str| {
        seconds_to_ns(field).map_err(|reason| wrong(format!("{name} `{}` {reason}", excerpt(field))))
    };
    let count = || Some(tasks).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    Ok(JobSpec {
        arrival_ns: time("arrival_s", arrival)?,
        tasks: count()
            .filter(|n: &u32| *n > 0)
            .ok_or_else(|| wrong(format!("tasks `{}` is not a whole number from 1", excerpt(tasks))))?,
        exec_ns: time("exec_s", exec)?,
        kind: kind.parse::<JobType>().map_err(&wrong)?,
        class: class.map_or(Ok(Class::Batch), |name| name.parse().map_err(&wrong))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<JobSpec>, String> {
        read_jobs(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_is_read_in_its_order() {
        let text = "\u{feff}# from a test\n\narrival_s, tasks ,exec_s,type\r\n2.5,3,0.1,J4\n # more\n0, 1 ,10,6\n";
        let jobs = [
            JobSpec {
                arrival_ns: 2_500_000_000,
                tasks: 3,
                exec_ns: 100_000_000,
                kind: JobType::J4,
                class: cosched_core::Class::Batch,
            },
            JobSpec {
                arrival_ns: 0,
                tasks: 1,
                exec_ns: 10_000_000_000,
                kind: JobType::J6,
                class: cosched_core::Class::Batch,
            },
        ];
        assert_eq!(read(text), Ok(jobs.to_vec()));
    }

    #[test]
    fn errors_carry_line_text_and_reason() {
        let with = |line: &str| read(&format!("# x\n{JOB_LIST_HEADER}\n1,1,1,J1\n{line}\n")).unwrap_err();
        let cases = [
            ("1,2,3", "3 columns"),
            ("1,2,3,J1,5", "5 columns"),
            ("1,0,3,J1", "tasks `0`"),
            ("1,+2,3,J1", "tasks `+2`"),
            ("1,4294967296,3,J1", "tasks `4294967296`"),
            ("1,2.0,3,J1", "tasks `2.0`"),
            ("1,,3,J1", "tasks ``"),
            ("-1,2,3,J1", "arrival_s `-1` is negative"),
            ("1,2,nan,J1", "exec_s `nan` is not"),
            ("1,2,3,J7", "no job type 'J7'"),
        ];
        for (line, reason) in cases {
            let error = with(line);
            assert!(error.starts_with("line 4 of the job list is not a job\n"), "{error}");
            assert!(error.contains(reason) && error.contains(&format!("in `{line}`")), "{error}");
        }
        assert!(with(&"9".repeat(100_000)).contains("does not end"));
    }

    #[test]
    fn a_list_needs_its_header_and_a_job() {
        assert!(read("1,2,3,J1\n").unwrap_err().contains("line 1 is not the header"));
        assert!(read("\narrival,tasks,exec_s,type\n").unwrap_err().contains("line 2 is not the header"));
        assert!(read("").unwrap_err().contains("no jobs"));
        assert!(read("arrival_s,tasks,exec_s,type\n").unwrap_err().contains("no jobs"));
    }

    #[test]
    fn times_are_written_with_six_decimals() {
        let job = JobSpec {
            arrival_ns: 1_500_000_000,
            tasks: 7,
            exec_ns: 2_000_001_000,
            kind: JobType::J2,
            class: cosched_core::Class::Batch,
        };
        let mut text = Vec::new();
        write_jobs(&mut text, &[job]).unwrap();
        assert_eq!(text, b"arrival_s,tasks,exec_s,type\n1.500000,7,2.000001,J2\n");
    }

    fn any_job() -> impl Strategy<Value = JobSpec> {
        let time = 0..=1_000_000_000_000_000_000_u64;
        (time.clone(), 1..=u32::MAX, time, 0..6_usize).prop_map(|(arrival_ns, tasks, exec_ns, kind)| JobSpec {
            arrival_ns,
            tasks,
            exec_ns,
            kind: JobType::ALL[kind],
            class: cosched_core::Class::Batch,
        })
    }

    proptest! {
        #[test]
        fn lists_are_read_back(jobs in prop::collection::vec(any_job(), 1..20)) {
            let mut text = Vec::new();
            write_jobs(&mut text, &jobs).unwrap();
            prop_assert_eq!(read_jobs(&text[..]).unwrap(), jobs);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_jobs(&bytes[..]);
        }

        #[test]
        fn almost_lists_are_answered(lines in prop::collection::vec("[0-9.,J# x-]{0,20}", 0..20)) {
            let _ = read_jobs(format!("{JOB_LIST_HEADER}\n{}", lines.join("\n")).as_bytes());
        }
    }
}
