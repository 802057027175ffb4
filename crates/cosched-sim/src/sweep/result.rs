//! What is stored for a cell: enough for every table and plot, but not the jobs.

use super::plan::Plan;
use crate::general::Config;
use crate::job::{Footprint, JobSpec};
use crate::metrics::{RunMetrics, job_metrics, quantile, run_metrics};
use crate::outcome::Outcome;
use crate::paper::Sampled;
use crate::params::Params;
use serde::{Deserialize, Serialize};

/// The number of stored quantiles of the bounded slowdown: 0, 1/40 … 1.
pub const QUANTILES: usize = 41;

/// A cell's numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The run's metrics.
    pub metrics: RunMetrics,
    /// A hash of the list of jobs: several seeds may have the same list.
    pub list: u64,
    /// [`QUANTILES`] quantiles of the bounded slowdown; empty when no job has ended.
    pub bounded_slowdowns: Vec<f64>,
    /// Events that the engine handled.
    pub events: u64,
    /// Iterations that tasks have completed.
    pub task_iterations: u64,
    /// Of a sampled run: half the width of the 95 % interval in which the exact mean response time is expected, in s.
    #[serde(default)]
    pub sampling_ci95_s: Option<f64>,
}

/// The result of an engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// The outcome.
    pub outcome: Outcome,
    /// Of a sampled run: its estimate.
    pub sampled: Option<Sampled>,
}

impl Simulated {
    /// The run's metrics. The mean response time of a sampled run is that of all copies, to which its interval belongs.
    pub fn metrics(&self, params: &Params, jobs: &[JobSpec], bound_s: f64) -> RunMetrics {
        let mut metrics = run_metrics(params, jobs, &self.outcome, bound_s);
        if let (Some(sampled), Some(response)) = (self.sampled, &mut metrics.response_s) {
            response.mean = sampled.response_s;
        }
        metrics
    }
}

impl From<Outcome> for Simulated {
    /// The result of an exact run.
    fn from(outcome: Outcome) -> Simulated {
        Simulated { outcome, sampled: None }
    }
}

/// The state of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// The result is available.
    Done(Box<CellResult>),
    /// The simulation failed: the reason.
    Failed(String),
}

impl Taken {
    /// The result, if there is one.
    pub fn result(&self) -> Option<&CellResult> {
        match self {
            Taken::Done(result) => Some(result),
            Taken::Failed(_) => None,
        }
    }
}

impl CellResult {
    /// The result of an engine's run.
    pub fn new(config: &Config, jobs: &[JobSpec], run: &Simulated, bound_s: f64) -> CellResult {
        let outcome = &run.outcome;
        let ended = job_metrics(jobs, outcome, bound_s);
        let mut slowdowns: Vec<f64> = ended.iter().map(|job| job.bounded_slowdown).collect();
        slowdowns.sort_by(f64::total_cmp);
        let part = |k: usize| quantile(&slowdowns, k as f64 / (QUANTILES - 1) as f64);
        CellResult {
            metrics: run.metrics(&config.params, jobs, bound_s),
            list: hash_jobs(jobs),
            bounded_slowdowns: if slowdowns.is_empty() { Vec::new() } else { (0..QUANTILES).map(part).collect() },
            events: outcome.events,
            task_iterations: outcome.task_iterations,
            sampling_ci95_s: run.sampled.and_then(|sampled| sampled.response_ci95_s),
        }
    }
}

/// A hash of all inputs of a cell: the machine, the threshold, the jobs themselves and the simulator's version. It is
/// the key of a result in the journal.
pub(super) fn key(plan: &Plan, config: &Config, jobs_hash: u64) -> u64 {
    let sampled = if plan.sampled { " sampled, mean of copies" } else { "" };
    let text = format!("{} {config:?} {:?} {jobs_hash:016x}{sampled}", env!("CARGO_PKG_VERSION"), plan.bound_s);
    text.bytes().fold(OFFSET, step)
}

/// A hash of a list of jobs.
pub(super) fn hash_jobs(jobs: &[JobSpec]) -> u64 {
    jobs.iter().fold(OFFSET, |hash, job| {
        let words = [job.arrival_ns, job.tasks.into(), job.exec_ns, job.kind as u64, job.class as u64];
        let of_memory = [job.footprint.working_set_bytes, job.footprint.bytes_per_s];
        // The hash of a list that has none is the same as before there were any.
        let of_memory = of_memory.iter().filter(|_| job.footprint != Footprint::default());
        words.iter().chain(of_memory).flat_map(|word| word.to_le_bytes()).fold(hash, step)
    })
}

// FNV-1a, 64 bits.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}
