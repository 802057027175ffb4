//! A run's jobs as CSV.

use super::job::job_metrics;
use crate::job::JobSpec;
use crate::outcome::Outcome;
use std::io::{self, Write};

/// Nanoseconds as decimal seconds, exactly: nine decimals.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

const HEADER: &str =
    "id,tasks,type,exec_s,arrival_s,start_s,finish_s,wait_s,response_s,execution_s,slowdown,bounded_slowdown";

/// Writes one line per job, in the order of the job list; values that do not exist are empty. Times are exact, ratios
/// have the digits that identify them.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_jobs_csv(mut out: impl Write, jobs: &[JobSpec], outcome: &Outcome, bound_s: f64) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    let mut ended = job_metrics(jobs, outcome, bound_s);
    ended.sort_by_key(|job| job.index);
    let mut ended = ended.into_iter().peekable();
    for (id, (job, times)) in jobs.iter().zip(&outcome.jobs).enumerate() {
        let metrics = ended.next_if(|metrics| metrics.index == id);
        let since = |from: Option<u64>, to: Option<u64>| from.zip(to).map(|(from, to)| to.saturating_sub(from));
        let arrival_ns = Some(job.arrival_ns);
        let time = |ns: Option<u64>| ns.map(seconds).unwrap_or_default();
        writeln!(
            out,
            "{id},{},{},{},{},{},{},{},{},{},{},{}",
            job.tasks,
            job.kind,
            seconds(job.exec_ns),
            seconds(job.arrival_ns),
            time(times.start_ns),
            time(times.finish_ns),
            time(since(arrival_ns, times.start_ns)),
            time(since(arrival_ns, times.finish_ns)),
            time(since(times.start_ns, times.finish_ns)),
            metrics.and_then(|job| job.slowdown).map(|x| x.to_string()).unwrap_or_default(),
            metrics.map(|job| job.bounded_slowdown.to_string()).unwrap_or_default(),
        )?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::{job, times};
    use super::*;
    use crate::outcome::JobTimes;

    #[test]
    fn a_line_a_job_in_the_order_of_the_list() {
        let jobs = [job(10, 4, 20), job(0, 1, 2), job(5, 1, 1)];
        let started = JobTimes { start_ns: Some(6_000_000_001), finish_ns: None };
        let outcome = Outcome { jobs: vec![times(15, 75), times(0, 4), started], ..Outcome::default() };
        let mut text = Vec::new();
        write_jobs_csv(&mut text, &jobs, &outcome, 10.0).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "0,4,J3,20.000000000,10.000000000,15.000000000,75.000000000,5.000000000,65.000000000,60.000000000,3.25,3.25",
                "1,1,J3,2.000000000,0.000000000,0.000000000,4.000000000,0.000000000,4.000000000,4.000000000,2,1",
                "2,1,J3,1.000000000,5.000000000,6.000000001,,1.000000001,,,,",
            ]
        );
        assert!(text.lines().all(|line| line.split(',').count() == 12), "{text}");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut small = [0_u8; 40];
        let error = write_jobs_csv(&mut small[..], &[job(0, 1, 1)], &Outcome::default(), 10.0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
