//! What a run cost, and what it did to the jobs.

use super::{PhaseJob, PhasePolicy, PhaseRun, PhaseSettings};
use crate::workload::stats::quantile;
use serde::Serialize;

/// One policy's run. A job's slowdown is its turnaround over its time on nodes of its own with the same lengths of phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// The policy.
    pub policy: PhasePolicy,
    /// Node-hours held times their prices.
    pub cost: f64,
    /// Over that of `dedicated`.
    pub relative_cost: f64,
    /// Node-hours of the first pool.
    pub first_node_hours: f64,
    /// Node-hours of the second pool.
    pub second_node_hours: f64,
    /// The part of the first pool's node-hours in which phases were executed.
    pub first_utilisation: f64,
    /// The same of the second pool.
    pub second_utilisation: f64,
    /// Mean time from arrival to end, s.
    pub mean_turnaround_s: f64,
    /// Mean slowdown.
    pub mean_slowdown: f64,
    /// 95th percentile of the slowdown.
    pub p95_slowdown: f64,
    /// The largest slowdown.
    pub max_slowdown: f64,
    /// The part of the jobs whose turnaround is at most `slowdown_max` times their time alone with the longest phases, as it is planned.
    pub within_limit: f64,
    /// The part of the jobs whose slowdown is at most `slowdown_max`.
    pub within_limit_as_run: f64,
}

/// The metrics; `None` without jobs.
pub fn summarise_phases(
    jobs: &[PhaseJob],
    settings: &PhaseSettings,
    policy: PhasePolicy,
    run: &PhaseRun,
) -> Option<PhaseSummary> {
    let (mut dedicated, mut used) = ([0_u128; 2], [0_u128; 2]);
    let (mut turnaround_s, mut slowdowns, mut kept, mut kept_as_run) = (0.0, Vec::new(), 0_u32, 0_u32);
    for (number, (job, end_us)) in jobs.iter().zip(&run.end_us).enumerate() {
        let add = |sum: [u64; 2], phases: [u64; 2]| [sum[0] + phases[0], sum[1] + phases[1]];
        let phases_us = settings.lengths.all(number, job).fold([0; 2], add);
        let alone_us = settings.alone_us([phases_us].into_iter());
        for pool in 0..2 {
            dedicated[pool] += u128::from(job.nodes[pool]) * u128::from(alone_us);
            used[pool] += u128::from(job.nodes[pool]) * u128::from(phases_us[pool]);
        }
        let taken_us = (end_us - job.arrival_us) as f64;
        turnaround_s += taken_us / 1e6;
        slowdowns.push(taken_us / alone_us as f64);
        kept += u32::from(*end_us <= settings.deadline_us(job));
        kept_as_run += u32::from(taken_us <= job.slowdown_max * alone_us as f64);
    }
    slowdowns.sort_by(f64::total_cmp);
    let hours = |node_us: [u128; 2]| node_us.map(|node_us| node_us as f64 / 3.6e9);
    let (held, dedicated, used) = (hours(run.held), hours(dedicated), hours(used));
    let cost = |hours: [f64; 2]| hours[0] * settings.prices[0] + hours[1] * settings.prices[1];
    let count = jobs.len() as f64;
    (!jobs.is_empty()).then(|| PhaseSummary {
        policy,
        cost: cost(held),
        relative_cost: cost(held) / cost(dedicated),
        first_node_hours: held[0],
        second_node_hours: held[1],
        first_utilisation: used[0] / held[0],
        second_utilisation: used[1] / held[1],
        mean_turnaround_s: turnaround_s / count,
        mean_slowdown: slowdowns.iter().sum::<f64>() / count,
        p95_slowdown: quantile(&slowdowns, 0.95),
        max_slowdown: quantile(&slowdowns, 1.0),
        within_limit: f64::from(kept) / count,
        within_limit_as_run: f64::from(kept_as_run) / count,
    })
}
