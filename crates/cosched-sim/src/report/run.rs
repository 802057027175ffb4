//! The report of one run.

use super::place::{JOBS_MAX, drawn, gantt, matrix};
use super::sweep::{cpu_chart, distributions};
use crate::job::JobSpec;
use crate::metrics::{JobMetrics, RunMetrics, Summary, job_metrics, quantile};
use crate::outcome::Outcome;
use crate::params::Params;
use crate::trace::Place;
use cosched_report::{Chart, Page, Series, Shape, axis, percent, short};
use std::collections::BTreeMap;

/// The maximum number of jobs in the table.
const LISTED_MAX: usize = 1000;

/// One HTML file on one run: its metrics, where jobs ran, how they waited, the activities of the CPUs. `name` is that
/// of the workload, `places` comes from [`crate::trace::Places`].
pub fn run_report(
    name: &str,
    params: &Params,
    jobs: &[JobSpec],
    outcome: &Outcome,
    metrics: &RunMetrics,
    places: &[Place],
) -> String {
    let below = format!(
        "{} nodes, MPL {}, skewness {} %, seed {}; {} of {} jobs ended in {} s of simulated time. cosched {}",
        params.nodes,
        params.level_max(),
        short(params.skew * 100.0),
        params.seed,
        metrics.finished,
        metrics.jobs,
        short(metrics.sim_end_s),
        env!("CARGO_PKG_VERSION")
    );
    let mut page = Page::new(&format!("{} on {name}", params.strategy), &below);
    if metrics.finished < metrics.jobs {
        page.paragraph("The run was cut before all jobs had ended: means are over those that had, and too small.");
    }
    numbers(&mut page, metrics);
    page.heading("What the CPUs did");
    let cpu = &metrics.cpu;
    let parts = vec![cpu.compute, cpu.spin, cpu.switch, cpu.interrupt, cpu.sched, cpu.idle];
    page.chart(cpu_chart(vec![params.strategy.to_string()], &[parts]));
    where_jobs_were(&mut page, params, jobs, outcome, places);
    queue(&mut page, jobs, outcome);
    let ended = job_metrics(jobs, outcome, metrics.bounded_slowdown_threshold_s);
    slowdowns(&mut page, params, metrics, &ended);
    list(&mut page, jobs, &ended);
    page.finish()
}

fn numbers(page: &mut Page, metrics: &RunMetrics) {
    page.heading("Jobs");
    let quantities: [(&str, Option<Summary>); 5] = [
        ("response s", metrics.response_s),
        ("wait s", metrics.wait_s),
        ("execution s", metrics.execution_s),
        ("slowdown", metrics.slowdown),
        ("bounded slowdown", metrics.bounded_slowdown),
    ];
    let row = |(name, summary): (&str, Option<Summary>)| {
        let summary = summary?;
        let numbers = [summary.rms, summary.median, summary.p95, summary.p99, summary.max].map(short);
        Some([name.to_owned(), short(summary.mean)].into_iter().chain(numbers).collect())
    };
    let rows: Vec<Vec<String>> = quantities.into_iter().filter_map(row).collect();
    let titles = ["", "mean", "RMS", "median", "p95", "p99", "max"].map(|title| (title, title.is_empty()));
    page.table(&titles, rows);
    page.paragraph(&format!(
        "Bounded slowdown counts jobs below {} s as if they took that long. One run has no \
         interval: compare replications (cosched sim compare --seeds 20).",
        metrics.bounded_slowdown_threshold_s
    ));
    let optional = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let rows: Vec<Vec<String>> = [
        ("throughput, jobs per hour", short(metrics.throughput_per_h)),
        ("makespan s", optional(metrics.makespan_s)),
        ("offered load", optional(metrics.offered_load)),
        ("utilisation: useful work (computation and communication) %", percent(metrics.utilisation.useful)),
        ("utilisation: nominal (with I/O) %", percent(metrics.utilisation.nominal)),
        ("useful, without warm-up and drain %", metrics.utilisation.useful_trimmed.map_or("–".to_owned(), percent)),
        ("fairness: Jain's index of slowdowns", optional(metrics.jain_slowdown)),
        ("cells free while jobs waited %", percent(metrics.fragmentation)),
        ("context switches per node and s", short(metrics.switches_per_node_s)),
        ("messages", metrics.messages.to_string()),
        ("spinning per message µs", optional(metrics.spin_us_per_message)),
    ]
    .into_iter()
    .map(|(name, value)| vec![name.to_owned(), value])
    .collect();
    page.heading("Machine");
    page.table(&[("", true), ("", false)], rows);
}

fn where_jobs_were(page: &mut Page, params: &Params, jobs: &[JobSpec], outcome: &Outcome, places: &[Place]) {
    let shown = drawn(jobs, outcome, places);
    if shown.is_empty() {
        return;
    }
    let note = if shown.len() == JOBS_MAX { format!(" The first {JOBS_MAX} jobs.") } else { String::new() };
    page.heading("Where jobs were");
    let caption = format!("Nodes over time; jobs that share a node lie over each other, so darker is fuller.{note}");
    page.chart(gantt(&shown, &caption));
    let rows = if params.strategy.has_rows() {
        "The Ousterhout matrix over time: each band is a row with all nodes; white is free."
    } else {
        "Places of processes over time: each band has all nodes; a process takes its node's lowest free place."
    };
    page.chart(matrix(&shown, params.nodes, &format!("{rows}{note}")));
}

/// The maximum number of points in a figure.
const POINTS_MAX: usize = 2000;

fn queue(page: &mut Page, jobs: &[JobSpec], outcome: &Outcome) {
    // Changes at the same instant are combined.
    let mut changes: BTreeMap<u64, (i32, i32)> = BTreeMap::new();
    for (job, times) in jobs.iter().zip(&outcome.jobs) {
        for (ns, to_queue, to_nodes) in
            [(Some(job.arrival_ns), 1, 0), (times.start_ns, -1, 1), (times.finish_ns, 0, -1)]
        {
            if let Some(ns) = ns.filter(|ns| *ns <= outcome.sim_end_ns) {
                let change = changes.entry(ns).or_default();
                *change = (change.0 + to_queue, change.1 + to_nodes);
            }
        }
    }
    let (mut waiting, mut running) = (vec![(0.0, 0.0)], vec![(0.0, 0.0)]);
    let (mut waits, mut runs) = (0, 0);
    let every = changes.len().div_ceil(POINTS_MAX).max(1);
    for (place, (ns, (to_queue, to_nodes))) in changes.iter().enumerate() {
        (waits, runs) = (waits + to_queue, runs + to_nodes);
        if place % every == 0 || place + 1 == changes.len() {
            waiting.push((*ns as f64 / 1e9, f64::from(waits)));
            running.push((*ns as f64 / 1e9, f64::from(runs)));
        }
    }
    page.heading("Jobs over time");
    page.chart(Chart::new(
        "Jobs that wait and that run",
        "Jobs in the arrival queue, and jobs that have their nodes.",
        axis("simulated time", "s"),
        axis("jobs", ""),
        [Series::new("waiting", 0, Shape::Steps, waiting), Series::new("running", 1, Shape::Steps, running)],
    ));
}

fn slowdowns(page: &mut Page, params: &Params, metrics: &RunMetrics, ended: &[JobMetrics]) {
    let mut sorted: Vec<f64> = ended.iter().map(|job| job.bounded_slowdown).collect();
    if sorted.is_empty() {
        return;
    }
    sorted.sort_by(f64::total_cmp);
    let points = (0..=200).map(|k| f64::from(k) / 200.0).map(|part| (quantile(&sorted, part), part));
    page.heading("Slowdown");
    let bound = metrics.bounded_slowdown_threshold_s;
    page.chart(distributions(
        [Series::new(params.strategy.to_string(), 0, Shape::Curve, points)],
        &format!("Part of the jobs below a bounded slowdown (threshold {bound} s)."),
    ));
}

fn list(page: &mut Page, jobs: &[JobSpec], ended: &[JobMetrics]) {
    let titles = ["id", "type", "tasks", "alone s", "arrival s", "wait s", "execution s", "response s", "slowdown"]
        .map(|title| (title, title == "type"));
    let row = |metrics: &JobMetrics| {
        let job = &jobs[metrics.index];
        let seconds = [
            job.exec_ns as f64 / 1e9,
            job.arrival_ns as f64 / 1e9,
            metrics.wait_s,
            metrics.execution_s,
            metrics.response_s,
        ];
        [metrics.index.to_string(), job.kind.to_string(), job.tasks.to_string()]
            .into_iter()
            .chain(seconds.map(short))
            .chain([metrics.slowdown.map_or("–".to_owned(), short)])
            .collect()
    };
    let rows: Vec<Vec<String>> = ended.iter().take(LISTED_MAX).map(row).collect();
    let note = if ended.len() > LISTED_MAX { format!(" (the first {LISTED_MAX})") } else { String::new() };
    page.folded(&format!("All jobs that ended{note}"), &titles, rows);
}
