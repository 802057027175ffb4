//! Tables of results for people.

use super::timed::Timed;
use crate::format::percent;
use crate::table::{Column, Listing, numbers, words};
use cosched_report::short;
use cosched_sim::Params;
use cosched_sim::metrics::{Energy, Estimate, RunMetrics, Summary};
use cosched_sim::paper::Sampled;
use cosched_sim::sweep::{Row, SEEDS, Table};

/// The summary of one run.
pub(crate) fn run(
    source: &str,
    params: &Params,
    timed: &Timed,
    metrics: &RunMetrics,
    energy: Option<&Energy>,
) -> String {
    let ended = match (metrics.finished, metrics.jobs) {
        (finished, jobs) if finished == jobs => format!("{jobs} jobs, all ended"),
        (finished, jobs) => format!("{finished} of {jobs} jobs ended (means are over those)"),
    };
    let head = format!(
        "{} on {source}: {} nodes, MPL {}, skewness {}, seed {}\n{ended}; {} s simulated in {} s\n\n",
        params.strategy,
        params.nodes,
        params.level_max(),
        percent(params.skew),
        params.seed,
        short(metrics.sim_end_s),
        short(timed.wall_s)
    );
    let estimate = timed.sampled.as_ref().map_or(String::new(), |sampled| estimated(sampled, metrics));
    head + &estimate
        + &quantities(metrics)
        + &steady(metrics)
        + "\n"
        + &machine(metrics)
        + &energy.map_or(String::new(), joules)
}

fn joules(energy: &Energy) -> String {
    let Energy { total_j, busy_j, spinning_j, idle_j, off_j, mean_w } = energy;
    let part = |joules: &f64| cosched_report::percent(if *total_j > 0.0 { joules / total_j } else { 0.0 });
    format!(
        "{:<14} {} J, {} W on average; busy {}  spinning {}  idle {}  without a job {} %\n",
        "energy",
        short(*total_j),
        short(*mean_w),
        part(busy_j),
        part(spinning_j),
        part(idle_j),
        part(off_j)
    )
}

/// That it is an estimate, and how good.
fn estimated(Sampled { skipped, copies, response_s, response_ci95_s }: &Sampled, metrics: &RunMetrics) -> String {
    let half = response_ci95_s.map_or(String::new(), |half| format!(" ±{} s (95 %)", short(half)));
    let part = percent(skipped.skipped_ns as f64 / 1e9 / metrics.sim_end_s.max(f64::MIN_POSITIVE));
    format!(
        "ESTIMATE by sampling: mean response {} s{half}, from {copies} copies with other draws.\n{part} of the simulated time \
         was skipped, in {} jumps; the numbers below are those of a typical copy.\n\n",
        short(*response_s),
        skipped.jumps
    )
}

/// The mean without the warm-up, and that one run has no interval.
fn steady(metrics: &RunMetrics) -> String {
    let steady = match metrics.steady {
        Some(steady) => format!(
            "mean response {} s without the first {} jobs, the warm-up (MSER-5)",
            short(steady.mean),
            steady.warm_up_jobs
        ),
        None => "the response times have not settled, or there are fewer than 50 jobs: no warm-up was found".to_owned(),
    };
    format!("{steady}\none run has no intervals: `cosched sim compare` gives them, over several seeds\n")
}

fn quantities(metrics: &RunMetrics) -> String {
    let bounded = format!("bounded slowdown ({} s)", metrics.bounded_slowdown_threshold_s);
    let list: [(&str, Option<Summary>); 5] = [
        ("response s", metrics.response_s),
        ("wait s", metrics.wait_s),
        ("execution s", metrics.execution_s),
        ("slowdown", metrics.slowdown),
        (&bounded, metrics.bounded_slowdown),
    ];
    Listing::of(list.into_iter().filter_map(|(name, summary)| Some((name, summary?))))
        .words("", 0, |(name, _)| name)
        .numbers("MEAN", 0, |(_, of)| short(of.mean))
        .numbers("RMS", 3, |(_, of)| short(of.rms))
        .numbers("MEDIAN", 0, |(_, of)| short(of.median))
        .numbers("P95", 2, |(_, of)| short(of.p95))
        .numbers("P99", 2, |(_, of)| short(of.p99))
        .numbers("MAX", 1, |(_, of)| short(of.max))
        .render(None)
}

fn machine(metrics: &RunMetrics) -> String {
    let (cpu, used) = (&metrics.cpu, &metrics.utilisation);
    let share = cosched_report::percent;
    let optional = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let trimmed =
        used.useful_trimmed.map_or(String::new(), |part| format!(" ({} without warm-up and drain)", share(part)));
    let lines = [
        (
            "CPU time %",
            format!(
                "compute {}  spin {}  switch {}  interrupt {}  sched {}  idle {}",
                share(cpu.compute),
                share(cpu.spin),
                share(cpu.switch),
                share(cpu.interrupt),
                share(cpu.sched),
                share(cpu.idle)
            ),
        ),
        ("utilisation %", format!("useful {}{trimmed}  nominal {}", share(used.useful), share(used.nominal))),
        (
            "throughput",
            format!("{} jobs/h  makespan {} s", short(metrics.throughput_per_h), optional(metrics.makespan_s)),
        ),
        (
            "fairness",
            format!(
                "Jain's index of slowdowns {}  largest slowdown {}",
                optional(metrics.jain_slowdown),
                optional(metrics.max_stretch)
            ),
        ),
        ("fragmentation", format!("{} % of places free while jobs waited", share(metrics.fragmentation))),
        ("switches", format!("{} per node and s; {} messages", short(metrics.switches_per_node_s), metrics.messages)),
    ];
    lines.iter().map(|(name, text)| format!("{name:<14} {text}\n")).collect()
}

/// A column of a table with one row per cell.
type Part = (Column, fn(&Row) -> String);

/// Inputs; those that do not vary are left out.
fn inputs() -> [Part; 6] {
    [
        (words("WORKLOAD", 0), |row| row.cell.wanted.workload.clone()),
        (numbers("LOAD", 0), |row| row.cell.wanted.load.map(|load| load.to_string()).unwrap_or_default()),
        (numbers("NODES", 0), |row| row.cell.config.params.nodes.to_string()),
        (numbers("MPL", 0), |row| row.cell.config.params.mpl.to_string()),
        (numbers("SKEW", 0), |row| percent(row.cell.config.params.skew)),
        (numbers("GRAIN", 0), |row| row.cell.grain.to_string()),
    ]
}

/// Costs; they vary only with the strategy, so they are shown only when one strategy has several.
fn costs() -> [Part; 3] {
    [
        (numbers("CS US", 0), |row| short(row.cell.config.params.switch_ns as f64 / 1e3)),
        (numbers("INTR US", 0), |row| {
            if row.cell.config.has_interrupts() {
                short(row.cell.config.params.interrupt_ns as f64 / 1e3)
            } else {
                "-".into()
            }
        }),
        (numbers("Q MS", 0), |row| {
            if row.cell.config.params.strategy.has_turns() {
                short(row.cell.config.params.quantum_ns as f64 / 1e6)
            } else {
                "-".into()
            }
        }),
    ]
}

fn outputs() -> [Part; 11] {
    [
        (numbers("RESPONSE S", 0), |row| estimate(row.value("mean_response_s"), short)),
        (numbers("RATIO", 0), |row| estimate(row.response_ratio, |x| format!("{x:.3}"))),
        (numbers("WAIT S", 1), |row| mean(row, "mean_wait_s", short)),
        (numbers("EXEC S", 1), |row| mean(row, "mean_execution_s", short)),
        (numbers("BSLD", 1), |row| mean(row, "mean_bounded_slowdown", short)),
        (numbers("USEFUL%", 1), |row| mean(row, "util_useful", cosched_report::percent)),
        (numbers("COMP%", 2), |row| mean(row, "cpu_compute", cosched_report::percent)),
        (numbers("SPIN%", 2), |row| mean(row, "cpu_spin", cosched_report::percent)),
        (numbers("SWITCH%", 3), |row| mean(row, "cpu_switch", cosched_report::percent)),
        (numbers("IDLE%", 3), |row| mean(row, "cpu_idle", cosched_report::percent)),
        (numbers("JAIN", 4), |row| mean(row, "jain_slowdown", |x| format!("{x:.3}"))),
    ]
}

/// The table of a sweep or a comparison, with notes.
pub(crate) fn rows(table: &Table, width: Option<usize>) -> String {
    let strategy: Part = (words("STRATEGY", 0), |row| row.cell.config.params.strategy.to_string());
    let mut parts = vec![strategy];
    parts.extend(inputs().into_iter().filter(|(_, of)| differ(table, *of)));
    if have_cost_variants(table) {
        parts.extend(costs().into_iter().filter(|(_, of)| differ(table, *of)));
    }
    parts.extend(outputs());
    if table.rows.iter().any(|row| row.value("sampling_ci95_s").is_some()) {
        parts.push((numbers("SAMPLING S", 0), |row| mean(row, "sampling_ci95_s", short)));
    }
    if table.rows.iter().any(|row| row.unfinished > 0) {
        parts.push((numbers("NOT ENDED", 0), |row| row.unfinished.to_string()));
    }
    if table.rows.iter().any(|row| !row.failures.is_empty()) {
        parts.push((numbers("FAILED", 0), |row| row.failures.len().to_string()));
    }
    let listing = parts.into_iter().fold(Listing::of(&table.rows), |all, (column, of)| all.column(column, of));
    listing.render(width) + &notes(table)
}

fn notes(table: &Table) -> String {
    let mut text = match table.seeds() {
        0 | 1 => "\nRATIO: mean response over the first strategy's. There are no intervals\n  why: one run does not say how much of \
                  a difference is chance\n  hint: several seeds, as --seeds 20\n"
            .to_owned(),
        seeds => format!(
            "\n±: 95 % intervals over {seeds} seeds (Student's t). RATIO: mean response over the first strategy's, in pairs.\n"
        ),
    };
    if (2..SEEDS as usize).contains(&table.seeds()) {
        text += &format!("With fewer than {SEEDS} seeds the intervals cover less than 95 %.\n");
    }
    let mut single: Vec<&str> = table.single_lists().collect();
    single.dedup();
    for workload in single {
        let name = std::path::Path::new(workload).file_name().map_or(workload.into(), |name| name.to_string_lossy());
        text += &format!(
            "{name} is one list of jobs for all seeds, which vary the draws of computation and I/O alone: the intervals \
             are those of this list.\n"
        );
    }
    if table.rows.iter().any(|row| row.unfinished > 0) {
        text += "Jobs that had not ended when their run was cut are excluded from the means, which are therefore too small.\n";
    }
    if table.rows.iter().any(|row| row.value("sampling_ci95_s").is_some()) {
        text += "Estimates by sampling. SAMPLING S: the exact mean response of a run is expected within this (95 %).\n";
    }
    text
}

fn differ(table: &Table, of: fn(&Row) -> String) -> bool {
    table.rows.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

/// Whether a strategy occurs with several costs.
fn have_cost_variants(table: &Table) -> bool {
    let twins = |a: &Row, b: &Row| {
        a.cell.is_rival_of(&b.cell) && a.cell.config.params.strategy == b.cell.config.params.strategy
    };
    table.rows.windows(2).any(|pair| twins(&pair[0], &pair[1]))
}

fn estimate(estimate: Option<Estimate>, show: fn(f64) -> String) -> String {
    match estimate {
        None => "-".to_owned(),
        Some(Estimate { mean, ci95: None, .. }) => show(mean),
        Some(Estimate { mean, ci95: Some(half), .. }) => format!("{} ±{}", show(mean), show(half)),
    }
}

fn mean(row: &Row, measure: &str, show: fn(f64) -> String) -> String {
    row.value(measure).map_or("-".to_owned(), |estimate| show(estimate.mean))
}
