//! A run's jobs in the format of Batsim, for evalys and everything else that reads its `jobs.csv`.

use super::csv::seconds;
use crate::job::JobSpec;
use crate::outcome::{JobTimes, Outcome};
use std::io::{self, Write};

/// Columns of Batsim 5.x.
pub(crate) const HEADER: &str = "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,\
final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,\
consumed_energy,metadata";

/// A job of Batsim's `jobs.csv`.
#[derive(Clone, Debug)]
pub struct BatsimRow<'a> {
    /// Its id.
    pub id: String,
    /// Its profile, or its type.
    pub profile: &'a str,
    /// When it was submitted.
    pub arrival_ns: u64,
    /// Its processors.
    pub tasks: u32,
    /// Its walltime, if it has one.
    pub requested_s: Option<f64>,
    /// How it ended, in Batsim's words.
    pub state: &'a str,
}

/// The state of a job that has ended by itself.
pub const SUCCESSFUL: &str = "COMPLETED_SUCCESSFULLY";

/// Writes Batsim's `jobs.csv`. `nodes` gives the nodes of each job in the order of its tasks. As in Batsim, jobs that
/// have not ended are left out; their number is returned. Energy of jobs is not known and there are no requested times:
/// both are -1. The stretch is Batsim's: turnaround over execution time.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_batsim_jobs(
    out: impl Write,
    workload: &str,
    jobs: &[JobSpec],
    outcome: &Outcome,
    nodes: &[Vec<u32>],
) -> io::Result<u64> {
    let row = |(id, job): (usize, &JobSpec)| BatsimRow {
        id: id.to_string(),
        profile: job.kind.name(),
        arrival_ns: job.arrival_ns,
        tasks: job.tasks,
        requested_s: None,
        state: SUCCESSFUL,
    };
    let places = |job: usize| interval_set(nodes.get(job).map_or(&[], Vec::as_slice));
    write_batsim_rows(out, workload, jobs.iter().enumerate().map(row), &outcome.jobs, places)
}

/// The same for jobs of any kind, in the order of their times; `places` gives the resources of each as Batsim writes them.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_batsim_rows<'a>(
    mut out: impl Write,
    workload: &str,
    rows: impl Iterator<Item = BatsimRow<'a>>,
    times: &[JobTimes],
    places: impl Fn(usize) -> String,
) -> io::Result<u64> {
    writeln!(out, "{HEADER}")?;
    let workload = word(workload);
    let mut left_out = 0;
    for (place, (row, times)) in rows.zip(times).enumerate() {
        let (Some(start), Some(finish)) = (times.start_ns, times.finish_ns) else {
            left_out += 1;
            continue;
        };
        let (execution, turnaround) = (finish - start, finish - row.arrival_ns);
        writeln!(
            out,
            "{},{workload},{},{},{},{},{},{},{},{},{},{},{},{},{},-1,",
            word(&row.id),
            word(row.profile),
            seconds(row.arrival_ns),
            row.tasks,
            row.requested_s.unwrap_or(-1.0),
            u8::from(row.state == SUCCESSFUL),
            row.state,
            seconds(start),
            seconds(execution),
            seconds(finish),
            seconds(start - row.arrival_ns),
            seconds(turnaround),
            if execution > 0 { turnaround as f64 / execution as f64 } else { 1.0 },
            places(place),
        )?;
    }
    out.flush()?;
    Ok(left_out)
}

/// A name without characters that would break a line of CSV.
fn word(name: &str) -> String {
    name.chars().map(|c| if matches!(c, ',' | '"' | '\n' | '\r') { '_' } else { c }).collect()
}

/// Numbers as closed intervals: ascending, disjoint, as few as possible, separated by blanks (`1-3 5 7`).
pub fn interval_set(numbers: &[u32]) -> String {
    words_of(&intervals(numbers))
}

/// Intervals as Batsim and evalys write them.
pub fn words_of(intervals: &[(u32, u32)]) -> String {
    let word = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    intervals.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Numbers as closed intervals.
pub(crate) fn intervals(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut found: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::{job, times};
    use super::*;

    #[test]
    fn interval_sets_are_maximal_and_ascending() {
        let cases: [(&[u32], &str); 5] =
            [(&[], ""), (&[4], "4"), (&[3, 1, 2, 7, 5], "1-3 5 7"), (&[0, 1, 0], "0-1"), (&[9, 10, 12], "9-10 12")];
        for (numbers, text) in cases {
            assert_eq!(interval_set(numbers), text);
        }
    }

    #[test]
    fn lines_have_the_columns_of_batsim() {
        let jobs = [job(10, 4, 20), job(0, 1, 2)];
        let outcome = Outcome { jobs: vec![times(15, 75), JobTimes::default()], ..Outcome::default() };
        let mut text = Vec::new();
        let left_out = write_batsim_jobs(&mut text, "my,jobs", &jobs, &outcome, &[vec![0, 1, 2, 5], vec![]]).unwrap();
        assert_eq!(left_out, 1);
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split(',').count(), 17);
        assert_eq!(
            lines[1],
            "0,my_jobs,J3,10.000000000,4,-1,1,COMPLETED_SUCCESSFULLY,15.000000000,60.000000000,75.000000000,5.000000000,\
             65.000000000,1.0833333333333333,0-2 5,-1,"
        );
    }
}
