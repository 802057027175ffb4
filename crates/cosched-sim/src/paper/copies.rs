//! Several sampled runs, and the error that they estimate (decision 0060).
//!
//! Problem: a jump extrapolates what was observed. Whether that is one of two patterns, and how a job that ends later delays
//! all others, cannot be seen from any rate within the run.
//! Rule: the whole simulation is run several times with different draws of computation and I/O. The estimate is the mean of
//! the copies' mean response times. The exact run is one more such copy, so it is expected at the mean ± t · s · √(1 + 1/n),
//! with the copies' standard deviation s. Without skewness there are no draws; then the copies get a small skewness.

use super::sampled::{Sampling, Skipped};
use crate::error::SimError;
use crate::job::JobSpec;
use crate::metrics::Estimate;
use crate::outcome::{Outcome, Progress};
use crate::params::{Params, ParamsError};
use crate::threads::share_out;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The results of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// What was skipped in the copy that gives the outcome.
    pub skipped: Skipped,
    /// The number of copies.
    pub copies: u32,
    /// The mean of the copies' mean response times.
    pub response_s: f64,
    /// Half the width of the 95 % interval in which the exact mean response time is expected; `None` for a single copy.
    pub response_ci95_s: Option<f64>,
}

/// The skewness of the copies, if the run has none: enough to leave a pattern, too little to change a rate.
const SKEW_MIN: f64 = 0.001;

/// The part of the mean response time by which the jumps of all copies may be off together, which their spread does not show: at most 0.24 % under GS,
/// whose copies differ least (decision 0060).
const SHARED_PART: f64 = 0.003;

/// Runs the jobs to their end, but skips intervals in which nothing changes (see `sampled.rs`), in several copies: an
/// estimate, with its error. The outcome is that of the copy whose mean response time is the nearest to the mean of all.
/// The copies run side by side on up to `threads` threads; the result is the same for any number. `watch` is asked from any of them,
/// one at a time.
pub fn run_sampled(
    params: &Params,
    jobs: &[JobSpec],
    sampling: &Sampling,
    threads: usize,
    watch: &mut (dyn FnMut(Progress) -> bool + Send),
) -> Result<(Outcome, Sampled), SimError> {
    if params.end_ns.is_some() {
        let why = "a jump may go beyond it";
        return Err(ParamsError::new("sampling and an end of the simulated time", why, "leave one of them out").into());
    }
    let copies = sampling.copies.max(1);
    let all = copied(params, jobs, sampling, threads, &Mutex::new(Told::new(copies, watch)))?;
    let means: Vec<f64> = all.iter().map(|(mean, ..)| *mean).collect();
    let estimate = Estimate::of(&means).unwrap_or(Estimate { mean: 0.0, ci95: None, n: 0 });
    let far = |mean: f64| (mean - estimate.mean).abs();
    let nearest = all.into_iter().min_by(|a, b| far(a.0).total_cmp(&far(b.0)));
    let (_, outcome, skipped) = nearest.unwrap_or_default();
    // The interval for one more value is √(n + 1) times as wide as that of the mean of n.
    let spread_s = estimate.ci95.map(|half| half * (f64::from(copies) + 1.0).sqrt());
    let response_ci95_s = spread_s.map(|half| half.max(SHARED_PART * estimate.mean));
    Ok((outcome, Sampled { skipped, copies, response_s: estimate.mean, response_ci95_s }))
}

/// A copy's mean response time, outcome and jumps.
type Copied = (f64, Outcome, Skipped);

/// Simulates all copies, in their order whichever ends first.
fn copied(
    params: &Params,
    jobs: &[JobSpec],
    sampling: &Sampling,
    threads: usize,
    told: &Mutex<Told<'_>>,
) -> Result<Vec<Copied>, SimError> {
    let all: Vec<OnceLock<Result<Copied, SimError>>> = (0..sampling.copies.max(1)).map(|_| OnceLock::new()).collect();
    let told = || told.lock().unwrap_or_else(PoisonError::into_inner);
    share_out(all.len(), threads, &|copy| {
        let mut watch = |now| told().tell(copy, now);
        let run = super::silent(&of_copy(params, copy as u64), jobs, Some(sampling), &mut watch);
        told().done[copy] = u64::MAX;
        let run = run.map(|(outcome, skipped)| (mean_response_s(&outcome, jobs), outcome, skipped));
        all[copy].get_or_init(|| run).is_ok()
    });
    // Copies that were not begun come after one that failed.
    all.into_iter().map_while(OnceLock::into_inner).collect()
}

/// The progress of all copies, as that of one run.
struct Told<'a> {
    watch: &'a mut (dyn FnMut(Progress) -> bool + Send),
    /// Each copy's task-iterations so far; more than there are once it has ended.
    done: Vec<u64>,
    stopped: bool,
}

impl<'a> Told<'a> {
    fn new(copies: u32, watch: &'a mut (dyn FnMut(Progress) -> bool + Send)) -> Told<'a> {
        Told { watch, done: vec![0; copies as usize], stopped: false }
    }

    /// Returns whether this copy is to continue.
    fn tell(&mut self, copy: usize, now: Progress) -> bool {
        let (done, whole) = now.task_iterations;
        self.done[copy] = done;
        let sum = self.done.iter().map(|done| done.min(&whole)).sum();
        let all = (sum, self.done.len() as u64 * whole);
        self.stopped = self.stopped || !(self.watch)(Progress { task_iterations: all, ..now });
        !self.stopped
    }
}

/// The parameters of a copy; the first one has the run's own draws.
fn of_copy(params: &Params, copy: u64) -> Params {
    let seed = params.seed.wrapping_add(copy.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Params { seed, skew: if copy > 0 { params.skew.max(SKEW_MIN) } else { params.skew }, ..*params }
}

fn mean_response_s(outcome: &Outcome, jobs: &[JobSpec]) -> f64 {
    let each = outcome.jobs.iter().zip(jobs).filter_map(|(times, job)| Some(times.finish_ns? - job.arrival_ns));
    each.map(|ns| ns as f64 / 1e9).sum::<f64>() / jobs.len().max(1) as f64
}
