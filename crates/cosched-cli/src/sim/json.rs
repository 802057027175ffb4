//! The JSON of `cosched sim run`, which comparisons read.

use super::timed::Timed;
use cosched_sim::metrics::{Energy, RunMetrics};
use cosched_sim::paper::Sampled;
use cosched_sim::{CpuTime, JobSpec, Params};
use serde::Serialize;

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct RunJson {
    strategy: &'static str,
    sim_end_ns: u64,
    events: u64,
    task_iterations: u64,
    wall_s: f64,
    mean_response_s: Option<f64>,
    mean_wait_s: Option<f64>,
    #[serde(with = "CpuJson")]
    cpu_ns: CpuTime,
    context_switches: u64,
    messages: u64,
    interrupts: u64,
    boosts: u64,
    blocks: u64,
    yields: u64,
    util_nominal: f64,
    util_useful: f64,
    util_compute: f64,
    unfinished: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<SampledJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<Energy>,
    metrics: RunMetrics,
    jobs: Vec<JobJson>,
}

#[derive(Debug, Serialize)]
struct SampledJson {
    skipped_s: f64,
    jumps: u64,
    skipped_iterations: u64,
    copies: u32,
    mean_response_s: f64,
    mean_response_ci95_s: Option<f64>,
}

impl From<Sampled> for SampledJson {
    fn from(sampled: Sampled) -> SampledJson {
        SampledJson {
            skipped_s: sampled.skipped.skipped_ns as f64 / 1e9,
            jumps: sampled.skipped.jumps,
            skipped_iterations: sampled.skipped.skipped_iterations,
            copies: sampled.copies,
            mean_response_s: sampled.response_s,
            mean_response_ci95_s: sampled.response_ci95_s,
        }
    }
}

#[derive(Serialize)]
#[serde(remote = "CpuTime")]
struct CpuJson {
    #[serde(rename = "compute")]
    compute_ns: u64,
    #[serde(rename = "spin")]
    spin_ns: u64,
    #[serde(rename = "switch")]
    switch_ns: u64,
    #[serde(rename = "interrupt")]
    interrupt_ns: u64,
    #[serde(rename = "sched")]
    sched_ns: u64,
    #[serde(rename = "idle")]
    idle_ns: u64,
}

#[derive(Debug, Serialize)]
struct JobJson {
    id: usize,
    tasks: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    arrival_ns: u64,
    start_ns: Option<u64>,
    finish_ns: Option<u64>,
}

/// The outcome of a run; means are over the jobs that ended or started, utilisations over all CPUs.
pub(crate) fn outcome(
    params: &Params,
    cpus_per_node: u32,
    jobs: &[JobSpec],
    timed: &Timed,
    metrics: RunMetrics,
    energy: Option<Energy>,
) -> RunJson {
    let out = &timed.outcome;
    let mean_s = |end: fn(&cosched_sim::JobTimes) -> Option<u64>| {
        let each = out.jobs.iter().zip(jobs).filter_map(|(times, job)| Some(end(times)? - job.arrival_ns));
        let (count, sum) = each.fold((0_u64, 0_u128), |(n, sum), ns| (n + 1, sum + u128::from(ns)));
        (count > 0).then(|| sum as f64 / count as f64 / 1e9)
    };
    let all = out.sim_end_ns as f64 * f64::from(params.nodes) * f64::from(cpus_per_node);
    let part = |ns: u64| if all > 0.0 { ns as f64 / all } else { 0.0 };
    let job = |(id, (times, job)): (usize, (&cosched_sim::JobTimes, &JobSpec))| JobJson {
        id,
        tasks: job.tasks,
        kind: job.kind.name(),
        arrival_ns: job.arrival_ns,
        start_ns: times.start_ns,
        finish_ns: times.finish_ns,
    };
    RunJson {
        strategy: params.strategy.name(),
        sim_end_ns: out.sim_end_ns,
        events: out.events,
        task_iterations: out.task_iterations,
        wall_s: timed.wall_s,
        mean_response_s: mean_s(|times| times.finish_ns),
        mean_wait_s: mean_s(|times| times.start_ns),
        cpu_ns: out.cpu,
        context_switches: out.context_switches,
        messages: out.messages,
        interrupts: out.interrupts,
        boosts: out.boosts,
        blocks: out.blocks,
        yields: out.yields,
        util_nominal: part(out.nominal_ns),
        util_useful: part(out.useful_ns),
        util_compute: part(out.cpu.compute_ns),
        unfinished: out.jobs.iter().filter(|times| times.finish_ns.is_none()).count(),
        sampled: timed.sampled.map(SampledJson::from),
        energy,
        metrics,
        jobs: out.jobs.iter().zip(jobs).enumerate().map(job).collect(),
    }
}
