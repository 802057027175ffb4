//! The quality of a schedule.

use super::engine::Schedule;
use super::filter::BatchJob;
use crate::workload::stats::{BOUND_S, quantile};
use serde::Serialize;

/// The metrics of a schedule (docs/workloads.md). Flow is from submission to end; bounded slowdown is
/// `max(1, flow / max(run, 10 s))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The number of jobs.
    pub jobs_used: u64,
    /// Mean time from submission to start, s.
    pub mean_wait_s: f64,
    /// Mean time from submission to end, s.
    pub mean_flow_s: f64,
    /// The longest time from submission to end, s.
    pub max_flow_s: f64,
    /// Mean flow / run time.
    pub mean_slowdown: f64,
    /// Mean bounded slowdown.
    pub avebsld: f64,
    /// Median of the bounded slowdown.
    pub median_bsld: f64,
    /// 95th percentile of the bounded slowdown.
    pub p95_bsld: f64,
    /// 99th percentile of the bounded slowdown.
    pub p99_bsld: f64,
    /// The largest bounded slowdown.
    pub max_bsld: f64,
    /// Mean of `max(1, flow / (size · max(run, 10 s)))`.
    pub mean_bsld_per_processor: f64,
    /// Σ size · run / (processors · makespan).
    pub utilization: f64,
    /// From the first submission to the last end, s.
    pub makespan_s: f64,
    /// The fraction of processors · makespan that was idle while jobs waited.
    pub loss_of_capacity: f64,
}

/// The metrics; `None` without jobs.
pub fn summarise(jobs: &[BatchJob], procs: u32, schedule: &Schedule) -> Option<Summary> {
    let seconds = |us: u64| us as f64 / 1e6;
    let first = jobs.first()?.submit_us;
    let times = || jobs.iter().zip(schedule.start_us.iter().zip(&schedule.end_us));
    let last = *schedule.end_us.iter().max()?;
    let makespan_s = seconds(last - first);
    let n = jobs.len() as f64;
    let flow_s = |job: &BatchJob, end: u64| seconds(end - job.submit_us);
    let mean = |of: &dyn Fn(&BatchJob, u64) -> f64| times().map(|(job, (_, end))| of(job, *end)).sum::<f64>() / n;
    let bounded = |job: &BatchJob| seconds(job.run_us).max(BOUND_S);
    let mut slowdowns: Vec<f64> = times().map(|(job, (_, end))| (flow_s(job, *end) / bounded(job)).max(1.0)).collect();
    let avebsld = slowdowns.iter().sum::<f64>() / n;
    slowdowns.sort_by(f64::total_cmp);
    let capacity = f64::from(procs) * makespan_s;
    Some(Summary {
        jobs_used: jobs.len() as u64,
        mean_wait_s: times().map(|(job, (start, _))| seconds(start - job.submit_us)).sum::<f64>() / n,
        mean_flow_s: mean(&flow_s),
        max_flow_s: times().map(|(job, (_, end))| flow_s(job, *end)).fold(0.0, f64::max),
        mean_slowdown: mean(&|job, end| flow_s(job, end) / seconds(job.run_us)),
        avebsld,
        median_bsld: quantile(&slowdowns, 0.5),
        p95_bsld: quantile(&slowdowns, 0.95),
        p99_bsld: quantile(&slowdowns, 0.99),
        max_bsld: quantile(&slowdowns, 1.0),
        mean_bsld_per_processor: mean(&|job, end| (flow_s(job, end) / (f64::from(job.size) * bounded(job))).max(1.0)),
        utilization: mean(&|job, _| f64::from(job.size) * seconds(job.run_us)) * n / capacity,
        makespan_s,
        loss_of_capacity: schedule.idle_while_waiting as f64 / 1e6 / capacity,
    })
}
