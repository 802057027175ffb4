//! Jobs of two phases from a file: CSV, one job per line. Each iteration of a job is a phase on nodes of the first pool, then one on nodes of
//! the second (reinforcement learning: rollouts, then training).

use super::decimal::seconds_to_ns;
use super::lines::{Line, Lines, excerpt};
use serde::Serialize;
use std::io::{self, BufRead};

/// The header of such a file.
pub const PHASE_JOBS_HEADER: &str =
    "name,arrival_s,iterations,first_nodes,first_s,second_nodes,second_s,memory_gb,slowdown_max";

/// The most jobs of a list.
pub const PHASE_JOBS_MAX: usize = 10_000;

/// The most iterations of all jobs of a list.
const ITERATIONS_MAX: u64 = 1_000_000;

/// The longest time of all phases of a job, µs (11 days for each of 1000 iterations).
const JOB_US_MAX: u64 = 1_000_000_000_000_000;

/// A job that alternates between two pools.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseJob {
    /// What it is called.
    pub name: String,
    /// When it arrives, µs.
    pub arrival_us: u64,
    /// How often it executes both phases; at least 1.
    pub iterations: u32,
    /// Nodes of the first and of the second pool; at least 1.
    pub nodes: [u32; 2],
    /// Mean length of a phase on each, µs; at least 1.
    pub phase_us: [u64; 2],
    /// Memory of its state on each of its nodes, GB.
    pub memory_gb: u32,
    /// How many times as long as alone it may take: 1 to 100.
    pub slowdown_max: f64,
}

/// Why such a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PhaseJobsError {
    /// The text could not be read.
    #[error("the jobs cannot be read\n  why: {0}\n  hint: look whether the file is whole, and whether you may read it")]
    Read(#[from] io::Error),
    /// A line is neither the header nor a job.
    #[error(
        "line {line} is no job of phases\n  why: {reason}, in `{text}`\n  hint: the first line is {PHASE_JOBS_HEADER}"
    )]
    Line {
        /// Counted from 1.
        line: u64,
        /// The text of the line.
        text: String,
        /// What is wrong with it: the column, its text, and what it should be.
        reason: String,
    },
    /// There are no jobs.
    #[error(
        "the list has no jobs\n  why: no line follows the header {PHASE_JOBS_HEADER}\n  hint: look whether the file is whole"
    )]
    Empty,
}

/// Reads jobs, and sorts them by arrival; ties stay in the order of the file. Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
/// The first invalid line, with its number and column; a read error; a list without jobs.
pub fn read_phase_jobs(input: impl BufRead) -> Result<Vec<PhaseJob>, PhaseJobsError> {
    let mut lines = Lines::new(input);
    let (mut jobs, mut iterations, mut has_header) = (Vec::new(), 0, false);
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let wrong = |reason: String| PhaseJobsError::Line { line: line.number, text: excerpt(text), reason };
        if !std::mem::replace(&mut has_header, true) {
            if text.split(',').map(str::trim).ne(PHASE_JOBS_HEADER.split(',')) {
                return Err(wrong("it is not the header".to_owned()));
            }
            continue;
        }
        let job = job(&line, text).map_err(wrong)?;
        iterations += u64::from(job.iterations);
        if jobs.len() == PHASE_JOBS_MAX || iterations > ITERATIONS_MAX {
            return Err(wrong(format!("a list has at most {PHASE_JOBS_MAX} jobs with {ITERATIONS_MAX} iterations")));
        }
        jobs.push(job);
    }
    jobs.sort_by_key(|job: &PhaseJob| job.arrival_us);
    if jobs.is_empty() { Err(PhaseJobsError::Empty) } else { Ok(jobs) }
}

fn job(line: &Line<'_>, text: &str) -> Result<PhaseJob, String> {
    if line.is_cut {
        return Err("the line does not end".to_owned());
    }
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let [name, arrival, iterations, first_nodes, first, second_nodes, second, memory, slowdown] = fields[..] else {
        return Err(format!("it has {} columns, not 9", fields.len()));
    };
    let job = PhaseJob {
        name: excerpt(name),
        arrival_us: seconds("arrival_s", arrival)?,
        iterations: whole("iterations", iterations, 1..=1_000_000)?,
        nodes: [whole("first_nodes", first_nodes, 1..=10_000)?, whole("second_nodes", second_nodes, 1..=10_000)?],
        phase_us: [phase("first_s", first)?, phase("second_s", second)?],
        memory_gb: whole("memory_gb", memory, 0..=1_000_000)?,
        slowdown_max: slowdown_max(slowdown)?,
    };
    let all_us = u128::from(job.iterations) * (u128::from(job.phase_us[0]) + u128::from(job.phase_us[1]));
    if all_us > u128::from(JOB_US_MAX) {
        return Err("iterations × (first_s + second_s) is more than 1e9 s".to_owned());
    }
    Ok(job)
}

fn wrong(column: &str, text: &str, right: &str) -> String {
    format!("{column} `{}` {right}", excerpt(text))
}

fn seconds(column: &str, text: &str) -> Result<u64, String> {
    seconds_to_ns(text).map(|ns| ns / 1000).map_err(|reason| wrong(column, text, &reason))
}

fn phase(column: &str, text: &str) -> Result<u64, String> {
    match seconds(column, text)? {
        0 => Err(wrong(column, text, "is below a microsecond")),
        us => Ok(us),
    }
}

fn whole(column: &str, text: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let right = || format!("is not a whole number from {} to {}", range.start(), range.end());
    let number = digits.and_then(|text| text.parse().ok()).filter(|number| range.contains(number));
    number.ok_or_else(|| wrong(column, text, &right()))
}

fn slowdown_max(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1.0..=100.0).contains(number));
    number.ok_or_else(|| wrong("slowdown_max", text, "is not a number from 1 to 100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Vec<PhaseJob>, String> {
        read_phase_jobs(format!("{PHASE_JOBS_HEADER}\n{lines}").as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn jobs_are_read_and_sorted() {
        let jobs = read("# two\nlate,2.5,3,4,10,2,5.5,700,1.5\n\n a , 0,1,1,0.000001,1,1,0,1\n").unwrap();
        let late = PhaseJob {
            name: "late".to_owned(),
            arrival_us: 2_500_000,
            iterations: 3,
            nodes: [4, 2],
            phase_us: [10_000_000, 5_500_000],
            memory_gb: 700,
            slowdown_max: 1.5,
        };
        assert_eq!((jobs[0].name.as_str(), jobs[0].phase_us[0], &jobs[1]), ("a", 1, &late));
    }

    #[test]
    fn errors_name_line_and_column() {
        let cases = [
            ("a,0,1", "it has 3 columns, not 9"),
            ("a,-1,1,1,1,1,1,1,1", "arrival_s `-1` is negative"),
            ("a,0,0,1,1,1,1,1,1", "iterations `0` is not a whole number from 1 to 1000000"),
            ("a,0,1,+1,1,1,1,1,1", "first_nodes `+1` is not a whole number"),
            ("a,0,1,1,nan,1,1,1,1", "first_s `nan` is not a decimal number"),
            ("a,0,1,1,0,1,1,1,1", "first_s `0` is below a microsecond"),
            ("a,0,1,1,1,10001,1,1,1", "second_nodes `10001` is not"),
            ("a,0,1,1,1,1,99999999999999999999,1,1", "second_s `99999999999999999999` is more than"),
            ("a,0,1,1,1,1,1,4294967296,1", "memory_gb `4294967296` is not"),
            ("a,0,1,1,1,1,1,1,nan", "slowdown_max `nan` is not a number from 1 to 100"),
            ("a,0,1,1,1,1,1,1,0.99", "slowdown_max `0.99` is not"),
            ("a,0,1000000,1,1000,1,1,1,1", "is more than 1e9 s"),
            ("a,0,1000000,1,1,1,1,1,1\nb,0,1,1,1,1,1,1,1", "at most 10000 jobs with 1000000 iterations"),
        ];
        for (lines, part) in cases {
            let error = read(lines).unwrap_err();
            let at = 1 + lines.lines().count();
            assert!(error.starts_with(&format!("line {at} is no job of phases")) && error.contains(part), "{error}");
        }
        assert!(read("").unwrap_err().contains("the list has no jobs"));
        assert!(read_phase_jobs(&b"a,0\n"[..]).unwrap_err().to_string().contains("it is not the header"));
    }
}
