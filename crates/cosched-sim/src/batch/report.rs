//! Batsim's `jobs.csv` (columns of its 5.x documentation), which evalys and other tools read.

use super::engine::Schedule;
use super::filter::BatchJob;
use super::places::allocate;
use crate::metrics::{JOBS_CSV_HEADER, words_of};
use std::io::{self, Write};

/// Writes every job of a schedule. Times are in s; `consumed_energy` is −1: not computed. Where jobs change processors,
/// `allocated_resources` is empty; after a failure it is what the job had last. The stretch is turnaround over the
/// run time alone.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_jobs_csv(
    mut out: impl Write,
    workload: &str,
    jobs: &[BatchJob],
    procs: u32,
    schedule: &Schedule,
) -> io::Result<()> {
    writeln!(out, "{JOBS_CSV_HEADER}")?;
    // A comma or a quote in a name must not become a column.
    let workload: String =
        workload.chars().map(|c| if c == ',' || c == '"' || c.is_control() { '_' } else { c }).collect();
    let places = schedule.places.clone().unwrap_or_else(|| allocate(jobs, procs, schedule));
    let times = schedule.start_us.iter().zip(&schedule.end_us);
    for (place, (job, (start, finish))) in jobs.iter().zip(times).enumerate() {
        let seconds = |us: u64| us as f64 / 1e6;
        // The machine ends a job at its estimate.
        let (success, state) = if job.run_us < job.estimate_us {
            (1, "COMPLETED_SUCCESSFULLY")
        } else {
            (0, "COMPLETED_WALLTIME_REACHED")
        };
        let turnaround = seconds(finish - job.submit_us);
        writeln!(
            out,
            // With decimals also where all are whole: a column's type must not depend on its values.
            "{},{workload},{},{:.6},{},{},{success},{state},{:.6},{:.6},{:.6},{:.6},{turnaround:.6},{},{},-1,",
            job.number,
            job.number,
            seconds(job.submit_us),
            job.size,
            seconds(job.estimate_us),
            seconds(*start),
            seconds(finish - start),
            seconds(*finish),
            seconds(start - job.submit_us),
            turnaround / seconds(job.run_us),
            words_of(&places[place]),
        )?;
    }
    out.flush()
}
