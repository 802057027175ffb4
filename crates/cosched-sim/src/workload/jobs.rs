//! The job list: CSV with the header `arrival_s,tasks,exec_s,type`, one job per line. Further columns may follow: `class` for `live`, and
//! `working_set_bytes` and `memory_bytes_per_s` for machines with a memory. Times are decimal seconds and are read exactly; the generator
//! writes them with six decimals (D21).

use super::decimal::{ns_to_seconds, seconds_to_ns};
use super::lines::{Line, Lines, excerpt};
use crate::job::{Footprint, JobSpec, JobType};
use cosched_core::Class;
use std::io::{self, BufRead, Write};

/// The header of a job list.
pub const JOB_LIST_HEADER: &str = "arrival_s,tasks,exec_s,type";

const COLUMNS: [&str; 4] = ["arrival_s", "tasks", "exec_s", "type"];

/// A column that may follow these.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Further {
    Class,
    WorkingSet,
    Bandwidth,
}

impl Further {
    const ALL: [Further; 3] = [Further::Class, Further::WorkingSet, Further::Bandwidth];

    fn name(self) -> &'static str {
        ["class", "working_set_bytes", "memory_bytes_per_s"][self as usize]
    }

    /// Its value, if it is not the one that a list without the column has.
    fn of(self, job: &JobSpec) -> Option<String> {
        let number = |bytes: u64| (bytes > 0).then(|| bytes.to_string());
        match self {
            Further::Class => (job.class != Class::Batch).then(|| job.class.name().to_owned()),
            Further::WorkingSet => number(job.footprint.working_set_bytes),
            Further::Bandwidth => number(job.footprint.bytes_per_s),
        }
    }

    fn usual(self) -> &'static str {
        if self == Further::Class { Class::Batch.name() } else { "0" }
    }

    fn put(self, text: &str, job: &mut JobSpec) -> Result<(), String> {
        let number = |most: u64| {
            let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let bytes = digits.and_then(|text| text.parse::<u64>().ok()).filter(|bytes| *bytes <= most);
            bytes.ok_or_else(|| {
                format!("{} `{}` is not a whole number of bytes up to {most}", self.name(), excerpt(text))
            })
        };
        match self {
            Further::Class => job.class = text.parse()?,
            Further::WorkingSet => job.footprint.working_set_bytes = number(Footprint::MOST.working_set_bytes)?,
            Further::Bandwidth => job.footprint.bytes_per_s = number(Footprint::MOST.bytes_per_s)?,
        }
        Ok(())
    }
}

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
         {JOB_LIST_HEADER}: decimal seconds, tasks from 1, type J1 to J6; class may follow (express, interactive, batch or \
         standby), working_set_bytes and memory_bytes_per_s"
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
    let mut further: Option<Vec<Further>> = None;
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match &further {
            Some(further) => jobs.push(job(&line, text, further)?),
            None => match header(text) {
                None => return Err(JobListError::Header { line: line.number, text: excerpt(text) }),
                known => further = known,
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
    let is_used = |column: &Further| jobs.iter().any(|job| column.of(job).is_some());
    let further: Vec<Further> = Further::ALL.into_iter().filter(is_used).collect();
    let names: String = further.iter().map(|column| format!(",{}", column.name())).collect();
    writeln!(out, "{JOB_LIST_HEADER}{names}")?;
    for job in jobs {
        write!(out, "{},{},{},{}", ns_to_seconds(job.arrival_ns), job.tasks, ns_to_seconds(job.exec_ns), job.kind)?;
        for column in &further {
            write!(out, ",{}", column.of(job).as_deref().unwrap_or(column.usual()))?;
        }
        writeln!(out)?;
    }
    out.flush()
}

/// The further columns, each at most once, if the line is the header.
fn header(text: &str) -> Option<Vec<Further>> {
    let columns: Vec<&str> = text.split(',').map(str::trim).collect();
    let others = columns.strip_prefix(&COLUMNS[..])?;
    let mut further = Vec::new();
    for name in others {
        let column = Further::ALL.into_iter().find(|column| column.name() == *name)?;
        if further.contains(&column) {
            return None;
        }
        further.push(column);
    }
    Some(further)
}

fn job(line: &Line<'_>, text: &str, further: &[Further]) -> Result<JobSpec, JobListError> {
    let wrong = |reason: String| JobListError::Line { line: line.number, text: excerpt(text), reason };
    if line.is_cut {
        return Err(wrong("the line does not end".into()));
    }
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let (arrival, tasks, exec, kind, others) = match fields[..] {
        [arrival, tasks, exec, kind, ref others @ ..] if others.len() == further.len() => {
            (arrival, tasks, exec, kind, others)
        }
        _ => return Err(wrong(format!("it has {} columns, not {}", fields.len(), COLUMNS.len() + further.len()))),
    };
    let time = |name: &str, field: &str| {
        seconds_to_ns(field).map_err(|reason| wrong(format!("{name} `{}` {reason}", excerpt(field))))
    };
    let count = || Some(tasks).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    let mut job = JobSpec {
        arrival_ns: time("arrival_s", arrival)?,
        tasks: count()
            .filter(|n: &u32| *n > 0)
            .ok_or_else(|| wrong(format!("tasks `{}` is not a whole number from 1", excerpt(tasks))))?,
        exec_ns: time("exec_s", exec)?,
        kind: kind.parse::<JobType>().map_err(&wrong)?,
        class: Class::Batch,
        footprint: Footprint::default(),
    };
    further.iter().zip(others).try_for_each(|(column, text)| column.put(text, &mut job)).map_err(wrong)?;
    Ok(job)
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
                class: Class::Batch,
                footprint: Footprint::default(),
            },
            JobSpec {
                arrival_ns: 0,
                tasks: 1,
                exec_ns: 10_000_000_000,
                kind: JobType::J6,
                class: Class::Batch,
                footprint: Footprint::default(),
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
    fn further_columns_are_read_in_any_order() {
        let with = |columns: &str, values: &str| read(&format!("{JOB_LIST_HEADER},{columns}\n1,1,1,J1,{values}\n"));
        let footprint = Footprint { working_set_bytes: 1 << 20, bytes_per_s: 5_000_000_000 };
        let jobs = with("memory_bytes_per_s,class, working_set_bytes", "5000000000, express ,1048576").unwrap();
        assert_eq!((jobs[0].class, jobs[0].footprint), (Class::Express, footprint));
        for wrong in ["-1", "nan", "1.5", "1e6", "1MiB", "", "1125899906842625", "99999999999999999999"] {
            let why = format!("working_set_bytes `{wrong}` is not a whole number of bytes up to 1125899906842624");
            assert!(with("working_set_bytes", wrong).unwrap_err().contains(&why), "{wrong}");
        }
        assert!(with("memory_bytes_per_s", "1000000000000001").is_err());
        assert!(with("class,class", "batch,batch").unwrap_err().contains("is not the header"), "each once");
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
            class: Class::Batch,
            footprint: Footprint::default(),
        };
        let mut text = Vec::new();
        write_jobs(&mut text, &[job]).unwrap();
        assert_eq!(text, b"arrival_s,tasks,exec_s,type\n1.500000,7,2.000001,J2\n");
    }

    fn any_job() -> impl Strategy<Value = JobSpec> {
        let time = 0..=1_000_000_000_000_000_000_u64;
        let footprint = prop_oneof![Just((0, 0)), (0..=1_u64 << 50, 0..=1_000_000_000_000_000_u64)];
        (time.clone(), 1..=u32::MAX, time, 0..6_usize, footprint).prop_map(|(arrival_ns, tasks, exec_ns, kind, of)| {
            JobSpec {
                arrival_ns,
                tasks,
                exec_ns,
                kind: JobType::ALL[kind],
                class: Class::Batch,
                footprint: Footprint { working_set_bytes: of.0, bytes_per_s: of.1 },
            }
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
