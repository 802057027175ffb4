//! The metrics of a run: one object for JSON, tables and sweeps.

use super::job::{JobMetrics, job_metrics};
use super::steady::Steady;
use super::summary::Summary;
use crate::job::{JobSpec, Shape};
use crate::outcome::Outcome;
use crate::params::Params;
use serde::{Deserialize, Serialize};

/// The metrics of a run. Means of jobs are over those that have ended; `finished` says how many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// Jobs in the list.
    pub jobs: u64,
    /// Jobs that left the arrival queue.
    pub started: u64,
    /// Jobs that ended.
    pub finished: u64,
    /// Response times in s.
    pub response_s: Option<Summary>,
    /// The response times without the warm-up; `None` when they have not settled.
    pub steady: Option<Steady>,
    /// Times in the arrival queue, in s.
    pub wait_s: Option<Summary>,
    /// Times from start to end, in s.
    pub execution_s: Option<Summary>,
    /// Response over the time alone.
    pub slowdown: Option<Summary>,
    /// The same with short jobs counted as if they were as long as the threshold.
    pub bounded_slowdown: Option<Summary>,
    /// That threshold in s.
    pub bounded_slowdown_threshold_s: f64,
    /// The simulated time in s.
    pub sim_end_s: f64,
    /// From the first arrival to the last end, in s; `None` when a job has not ended.
    pub makespan_s: Option<f64>,
    /// Jobs that ended per hour since the first arrival.
    pub throughput_per_h: f64,
    /// Σ tasks · time alone over CPUs · last arrival (D19); `None` when all arrive at 0.
    pub offered_load: Option<f64>,
    /// How much of the CPU time was work.
    pub utilisation: Utilisation,
    /// How the CPU time was spent; the sum is 1.
    pub cpu: CpuShares,
    /// Jain's index of the slowdowns: 1 when all are equal, 1/N when one job gets everything.
    pub jain_slowdown: Option<f64>,
    /// The largest slowdown.
    pub max_stretch: Option<f64>,
    /// Cells of the matrix (process places) that were free while jobs waited, as a fraction of all cells × time.
    pub fragmentation: f64,
    /// Messages delivered.
    pub messages: u64,
    /// Context switches that were paid.
    pub context_switches: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Processes moved to the head of the highest level.
    pub boosts: u64,
    /// Processes that blocked in a receive.
    pub blocks: u64,
    /// Yields.
    pub yields: u64,
    /// Context switches per node and s.
    pub switches_per_node_s: f64,
    /// Spinning per message in µs; `None` without messages.
    pub spin_us_per_message: Option<f64>,
}

/// Work over CPU time (D26).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Σ iterations · (C + D + M): may exceed 1, because I/O overlaps.
    pub nominal: f64,
    /// Σ iterations · (C + M): the paper's "useful work".
    pub useful: f64,
    /// Computation alone.
    pub compute: f64,
    /// Nominal without warm-up and drain: from when 5 % of the jobs have started until 95 % have ended, each job's work
    /// spread evenly over its execution. `None` below 20 jobs or when one has not ended.
    pub nominal_trimmed: Option<f64>,
    /// Useful without warm-up and drain.
    pub useful_trimmed: Option<f64>,
}

/// Fractions of the CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Computation of jobs.
    pub compute: f64,
    /// Spinning for messages.
    pub spin: f64,
    /// Context switches.
    pub switch: f64,
    /// Interrupts.
    pub interrupt: f64,
    /// The scheduler's own work.
    pub sched: f64,
    /// Idle time.
    pub idle: f64,
}

/// The metrics of a run. `bound_s` is the threshold of the bounded slowdown ([`super::BOUND_S`] is usual).
pub fn run_metrics(params: &Params, jobs: &[JobSpec], outcome: &Outcome, bound_s: f64) -> RunMetrics {
    let ended = job_metrics(jobs, outcome, bound_s);
    let summary = |of: fn(&JobMetrics) -> f64| Summary::of(&ended.iter().map(of).collect::<Vec<f64>>());
    let slowdowns: Vec<f64> = ended.iter().filter_map(|job| job.slowdown).collect();
    let slowdown = Summary::of(&slowdowns);
    let all_ended = ended.len() == jobs.len();
    let first_ns = jobs.iter().map(|job| job.arrival_ns).min().unwrap_or(0);
    let span_s = outcome.sim_end_ns.saturating_sub(first_ns) as f64 / 1e9;
    let last_ns = outcome.jobs.iter().filter_map(|job| job.finish_ns).max();
    let sim_end_s = outcome.sim_end_ns as f64 / 1e9;
    let cpu = &outcome.cpu;
    let responses: Vec<f64> = ended.iter().map(|job| job.response_s).collect();
    RunMetrics {
        jobs: jobs.len() as u64,
        started: outcome.jobs.iter().filter(|job| job.start_ns.is_some()).count() as u64,
        finished: ended.len() as u64,
        response_s: Summary::of(&responses),
        steady: if all_ended { Steady::of(&responses) } else { None },
        wait_s: summary(|job| job.wait_s),
        execution_s: summary(|job| job.execution_s),
        slowdown,
        bounded_slowdown: summary(|job| job.bounded_slowdown),
        bounded_slowdown_threshold_s: bound_s,
        sim_end_s,
        makespan_s: last_ns.filter(|_| all_ended).map(|last| last.saturating_sub(first_ns) as f64 / 1e9),
        throughput_per_h: part(ended.len() as f64 * 3600.0, span_s),
        offered_load: offered_load(params, jobs, outcome),
        utilisation: utilisation(params, jobs, outcome),
        cpu: shares(outcome),
        jain_slowdown: jain(&slowdowns),
        max_stretch: slowdown.map(|summary| summary.max),
        fragmentation: part(
            outcome.free_while_waiting_ns as f64,
            cpu_ns(outcome) as f64 * f64::from(params.level_max()),
        ),
        messages: outcome.messages,
        context_switches: outcome.context_switches,
        interrupts: outcome.interrupts,
        boosts: outcome.boosts,
        blocks: outcome.blocks,
        yields: outcome.yields,
        switches_per_node_s: part(outcome.context_switches as f64, cpu_ns(outcome) as f64 / 1e9),
        spin_us_per_message: (outcome.messages > 0).then(|| cpu.spin_ns as f64 / 1e3 / outcome.messages as f64),
    }
}

/// A part as a fraction of a whole; 0 if the whole is 0.
fn part(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The CPU time of all nodes.
fn cpu_ns(outcome: &Outcome) -> u128 {
    let cpu = &outcome.cpu;
    let of_jobs = [cpu.compute_ns, cpu.message_ns, cpu.spin_ns];
    let others = [cpu.switch_ns, cpu.interrupt_ns, cpu.sched_ns, cpu.idle_ns];
    of_jobs.iter().chain(&others).map(|ns| u128::from(*ns)).sum()
}

fn shares(outcome: &Outcome) -> CpuShares {
    let all = cpu_ns(outcome) as f64;
    let cpu = &outcome.cpu;
    CpuShares {
        compute: part(cpu.compute_ns as f64, all),
        spin: part(cpu.spin_ns as f64, all),
        switch: part(cpu.switch_ns as f64, all),
        interrupt: part(cpu.interrupt_ns as f64, all),
        sched: part(cpu.sched_ns as f64, all),
        idle: part(cpu.idle_ns as f64, all),
    }
}

/// Jain's fairness index, (Σx)² / (N · Σx²).
fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// The number of CPUs: CPU time per simulated time, and at least the number of nodes.
fn cpus(params: &Params, outcome: &Outcome) -> f64 {
    part(cpu_ns(outcome) as f64, outcome.sim_end_ns as f64).round().max(f64::from(params.nodes))
}

fn offered_load(params: &Params, jobs: &[JobSpec], outcome: &Outcome) -> Option<f64> {
    let last_ns = jobs.iter().map(|job| job.arrival_ns).max().filter(|ns| *ns > 0)?;
    let work: u128 = jobs.iter().map(|job| u128::from(job.tasks) * u128::from(job.exec_ns)).sum();
    Some(work as f64 / (last_ns as f64 * cpus(params, outcome)))
}

fn utilisation(params: &Params, jobs: &[JobSpec], outcome: &Outcome) -> Utilisation {
    let all = cpu_ns(outcome) as f64;
    let (nominal_trimmed, useful_trimmed) = trimmed(params, jobs, outcome).unzip();
    Utilisation {
        nominal: part(outcome.nominal_ns as f64, all),
        useful: part(outcome.useful_ns as f64, all),
        compute: part(outcome.cpu.compute_ns as f64, all),
        nominal_trimmed,
        useful_trimmed,
    }
}

/// The minimum number of jobs for trimming: one of 20 is 5 %.
const TRIMMED_MIN: usize = 20;

/// Nominal and useful utilisation between the start of the job after the first 5 % and the end of the one before the
/// last 5 %.
fn trimmed(params: &Params, jobs: &[JobSpec], outcome: &Outcome) -> Option<(f64, f64)> {
    let n = jobs.len();
    let cut = n / TRIMMED_MIN;
    let mut starts = outcome.jobs.iter().map(|job| job.start_ns).collect::<Option<Vec<u64>>>()?;
    let mut ends = outcome.jobs.iter().map(|job| job.finish_ns).collect::<Option<Vec<u64>>>()?;
    let spans: Vec<(u64, u64)> = starts.iter().copied().zip(ends.iter().copied()).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let (from, to) = (*starts.get(cut)?, *ends.get(n.checked_sub(cut + 1)?)?);
    if cut == 0 || to <= from {
        return None;
    }
    let (mut nominal, mut useful) = (0.0, 0.0);
    for (job, (start, end)) in jobs.iter().zip(spans) {
        let shape = Shape::new(job, params);
        let inside = end.min(to).saturating_sub(start.max(from)) as f64;
        let iterations = part(inside, (end - start) as f64) * shape.iterations as f64 * f64::from(job.tasks);
        nominal += iterations * shape.iteration_ns() as f64;
        useful += iterations * (shape.compute_ns + shape.communicate_ns) as f64;
    }
    let all = cpus(params, outcome) * (to - from) as f64;
    Some((part(nominal, all), part(useful, all)))
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::{job, times};
    use super::*;
    use crate::outcome::CpuTime;
    use crate::strategy::Strategy;

    const S: u64 = 1_000_000_000;

    fn outcome() -> Outcome {
        // Two nodes, 100 s.
        let cpu = CpuTime {
            message_ns: 0,
            compute_ns: 80 * S,
            spin_ns: 20 * S,
            switch_ns: 10 * S,
            interrupt_ns: 2 * S,
            sched_ns: 8 * S,
            idle_ns: 80 * S,
        };
        Outcome {
            sim_end_ns: 100 * S,
            messages: 1000,
            context_switches: 400,
            cpu,
            nominal_ns: 120 * S,
            useful_ns: 100 * S,
            free_while_waiting_ns: 100 * u128::from(S),
            jobs: vec![times(10, 60), times(20, 100)],
            ..Outcome::default()
        }
    }

    #[test]
    fn numbers_of_a_run_by_hand() {
        let params = Params::paper(Strategy::Gang, 2);
        let metrics = run_metrics(&params, &[job(10, 1, 25), job(20, 2, 20)], &outcome(), 10.0);
        assert_eq!((metrics.jobs, metrics.started, metrics.finished), (2, 2, 2));
        let response = metrics.response_s.unwrap();
        assert_eq!((response.mean, response.max), (65.0, 80.0));
        assert_eq!(metrics.slowdown.unwrap().mean, 3.0, "2 and 4");
        // (2 + 4)² / (2 · (4 + 16))
        assert_eq!((metrics.jain_slowdown, metrics.max_stretch), (Some(0.9), Some(4.0)));
        assert_eq!((metrics.makespan_s, metrics.throughput_per_h), (Some(90.0), 80.0));
        assert_eq!(metrics.offered_load, Some(65.0 / 40.0));
        let utilisation = metrics.utilisation;
        assert_eq!((utilisation.nominal, utilisation.useful, utilisation.compute), (0.6, 0.5, 0.4));
        assert_eq!((metrics.cpu.spin, metrics.cpu.sched), (0.1, 0.04));
        assert_eq!(metrics.fragmentation, 0.1, "100 of 200 s · 5 rows");
        assert_eq!((metrics.switches_per_node_s, metrics.spin_us_per_message), (2.0, Some(20_000.0)));
    }

    #[test]
    fn what_has_not_ended_is_said() {
        let params = Params::paper(Strategy::Gang, 2);
        let mut cut = outcome();
        cut.jobs[1].finish_ns = None;
        let metrics = run_metrics(&params, &[job(10, 1, 25), job(20, 2, 20)], &cut, 10.0);
        assert_eq!((metrics.jobs, metrics.started, metrics.finished, metrics.makespan_s), (2, 2, 1, None));
        assert_eq!(metrics.response_s.unwrap().mean, 50.0);
        let nothing = run_metrics(&params, &[], &Outcome::default(), 10.0);
        assert_eq!((nothing.response_s, nothing.throughput_per_h, nothing.jain_slowdown), (None, 0.0, None));
    }

    #[test]
    fn trimming_leaves_out_warm_up_and_drain() {
        // 20 jobs of one task, each 10 s alone on one node, one after the other on an idle machine of one CPU.
        let params = Params::paper(Strategy::Gang, 1);
        let jobs: Vec<JobSpec> = (0..20).map(|k| job(k * 20, 1, 10)).collect();
        let done = Outcome {
            sim_end_ns: 390 * S,
            cpu: CpuTime { compute_ns: 200 * S, idle_ns: 190 * S, ..CpuTime::default() },
            jobs: (0..20).map(|k| times(k * 20, k * 20 + 10)).collect(),
            ..Outcome::default()
        };
        // From 20 s (the second start) to 370 s (the last end but one): 18 jobs of 10 s.
        let (nominal, useful) = trimmed(&params, &jobs, &done).unwrap();
        assert!((nominal - 180.0 / 350.0).abs() < 1e-4, "{nominal}");
        // J3 of one task computes half of its time and does I/O for the other half.
        assert!((useful - nominal / 2.0).abs() < 1e-9, "{useful}");
        assert_eq!(trimmed(&params, &jobs[..19], &Outcome { jobs: done.jobs[..19].to_vec(), ..done.clone() }), None);
    }

    #[test]
    fn metrics_survive_json() {
        let params = Params::paper(Strategy::Gang, 2);
        let metrics = run_metrics(&params, &[job(10, 1, 25), job(20, 2, 21)], &outcome(), 10.0);
        let text = serde_json::to_string(&metrics).unwrap();
        assert_eq!(serde_json::from_str::<RunMetrics>(&text).unwrap(), metrics, "to the last bit");
    }
}
