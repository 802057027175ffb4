//! Assigns estimates to jobs such that each covers its job's run time.

use super::{EstimateBin, EstimateError};
use crate::workload::TraceJob;
use crate::workload::random::Random;

/// Gives every job one of the estimates of the bins, which together have one for each job. Starting with the longest
/// job, each draws among the remaining estimates that cover it.
///
/// # Errors
/// The k-th longest estimate is below the k-th longest run time for some k.
pub fn assign(jobs: &mut [TraceJob], bins: &[EstimateBin], random: &mut Random) -> Result<(), EstimateError> {
    let longest_first = bins.iter().rev();
    let mut estimates: Vec<f64> =
        longest_first.flat_map(|bin| std::iter::repeat_n(bin.time_s as f64, bin.jobs as usize)).collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|a, b| jobs[*b].run_s.total_cmp(&jobs[*a].run_s).then(a.cmp(b)));
    for (place, (job, estimate)) in order.iter().zip(&estimates).enumerate() {
        let run_s = jobs[*job].run_s;
        if run_s > *estimate {
            let (run_s, estimate_s) = (run_s.ceil() as u64, *estimate as u64);
            return Err(EstimateError::Uncovered { place: place + 1, run_s, estimate_s });
        }
    }
    let mut covering = 0;
    for (place, job) in order.into_iter().enumerate() {
        let run_s = jobs[job].run_s;
        while estimates.get(covering).is_some_and(|estimate| *estimate >= run_s) {
            covering += 1;
        }
        // The estimates from `place` to `covering` are left and cover it; the swap moves one behind that covers all
        // longer jobs.
        let drawn = place + random.below((covering - place) as u64) as usize;
        estimates.swap(place, drawn);
        jobs[job].estimate_s = Some(estimates[place]);
    }
    Ok(())
}
