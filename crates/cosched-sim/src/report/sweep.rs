//! The report of a sweep or a comparison.

use super::bars::{Bar, lying, standing};
use super::lines::{Distribution, Line, distributions, lines};
use super::page::{Page, percent, short};
use crate::metrics::{CpuShares, Estimate};
use crate::strategy::Strategy;
use crate::sweep::{QUANTILES, Row, Table};

/// The uses of CPU time, and their colours.
pub(super) const CPU_PARTS: [(&str, &str); 6] = [
    ("computation", "f0"),
    ("spinning", "f1"),
    ("switches", "f5"),
    ("interrupts", "f7"),
    ("scheduler", "f2"),
    ("idle", "fidle"),
];

/// The maximum number of settings with figures of their own; the table has all.
const PANELS_MAX: usize = 12;

/// One HTML file on a sweep: response against utilisation and against every axis that varies, then for each setting
/// wait + execution, CPU time and slowdowns of the strategies, then the table.
pub fn sweep_report(title: &str, table: &Table) -> String {
    let seeds = table.seeds();
    let intervals = if seeds > 1 {
        format!("95 % intervals over {seeds} seeds; strategies have the same jobs and draws")
    } else {
        "one seed, so no intervals".to_owned()
    };
    let below = format!("{} settings, {intervals}. cosched {}", table.rows.len(), env!("CARGO_PKG_VERSION"));
    let mut page = Page::new(title, &below);
    warn(&mut page, table);
    let strategies = strategies(table);
    let settings = settings(table);
    summary(&mut page, table, seeds);
    against_utilisation(&mut page, table, &strategies);
    for axis in &AXES {
        against(&mut page, table, &strategies, axis);
    }
    for setting in settings.iter().take(PANELS_MAX) {
        panel(&mut page, &strategies, setting);
    }
    if settings.len() > PANELS_MAX {
        page.paragraph(&format!(
            "Figures are of the first {PANELS_MAX} of {} settings; the table has all.",
            settings.len()
        ));
    }
    page.finish()
}

fn warn(page: &mut Page, table: &Table) {
    let failed: usize = table.rows.iter().map(|row| row.failures.len()).sum();
    let cut: u64 = table.rows.iter().map(|row| row.unfinished).sum();
    if failed > 0 {
        page.paragraph(&format!("{failed} simulations gave no result; the table says how many of which row."));
    }
    if cut > 0 {
        page.paragraph(&format!(
            "{cut} jobs had not ended when their runs were cut: means of those rows are over the others, and too small."
        ));
    }
}

/// The strategies in the order of the table; their indices are their styles.
fn strategies(table: &Table) -> Vec<Strategy> {
    let mut found = Vec::new();
    for row in &table.rows {
        if !found.contains(&row.cell.config.params.strategy) {
            found.push(row.cell.config.params.strategy);
        }
    }
    found
}

fn style(strategies: &[Strategy], row: &Row) -> usize {
    strategies.iter().position(|strategy| *strategy == row.cell.config.params.strategy).unwrap_or(0)
}

/// A strategy's name, with its costs if a setting has it more than once.
fn name(row: &Row, rows: &[&Row]) -> String {
    let params = &row.cell.config.params;
    let twins = rows.iter().filter(|other| other.cell.config.params.strategy == params.strategy).count();
    if twins < 2 {
        return params.strategy.to_string();
    }
    let us = |ns: u64| ns as f64 / 1e3;
    if params.strategy.is_gang() {
        return format!("{} {}/{}", params.strategy, us(params.switch_ns), us(params.quantum_ns) / 1e3);
    }
    format!("{} {}/{}", params.strategy, us(params.switch_ns), us(params.interrupt_ns))
}

/// Groups of rows that can be compared: they differ only in strategy and its costs.
fn settings(table: &Table) -> Vec<Vec<&Row>> {
    let mut found: Vec<Vec<&Row>> = Vec::new();
    for row in &table.rows {
        match found.last_mut() {
            Some(setting) if row.cell.is_rival_of(&setting[0].cell) => setting.push(row),
            _ => found.push(vec![row]),
        }
    }
    found
}

fn setting_name(row: &Row) -> String {
    let (params, wanted) = (&row.cell.config.params, &row.cell.wanted);
    let load = wanted.load.map_or(String::new(), |load| format!(", load {load}"));
    let grain = if row.cell.grain > 1 { format!(", grain {}", row.cell.grain) } else { String::new() };
    let skew = short(params.skew * 100.0);
    format!("{}{load}: {} nodes, MPL {}, skewness {skew} %{grain}", wanted.workload, params.nodes, params.mpl)
}

fn with_interval(estimate: Option<Estimate>, show: fn(f64) -> String) -> String {
    match estimate {
        None => "–".to_owned(),
        Some(Estimate { mean, ci95: None, .. }) => show(mean),
        Some(Estimate { mean, ci95: Some(half), .. }) => format!("{} ± {}", show(mean), show(half)),
    }
}

fn summary(page: &mut Page, table: &Table, seeds: usize) {
    page.heading("Results");
    let titles = [
        ("strategy", true),
        ("setting", true),
        ("response s", false),
        ("ratio to the first", false),
        ("wait s", false),
        ("execution s", false),
        ("slowdown, bounded", false),
        ("useful work %", false),
        ("compute %", false),
        ("spin %", false),
        ("idle %", false),
        ("fairness", false),
        ("not ended", false),
    ];
    let row = |row: &Row| {
        let of = |measure: &str, show: fn(f64) -> String| with_interval(row.value(measure), show);
        let plain =
            |measure: &str, show: fn(f64) -> String| row.value(measure).map_or("–".to_owned(), |e| show(e.mean));
        let results = row.results.len();
        let failed = if results < seeds { format!(" ({} failed)", row.failures.len()) } else { String::new() };
        vec![
            name(row, &table.rows.iter().filter(|other| other.cell.is_rival_of(&row.cell)).collect::<Vec<_>>()),
            setting_name(row) + &failed,
            of("mean_response_s", short),
            with_interval(row.response_ratio, |x| format!("{x:.3}")),
            of("mean_wait_s", short),
            of("mean_execution_s", short),
            of("mean_bounded_slowdown", short),
            of("util_useful", percent),
            plain("cpu_compute", percent),
            plain("cpu_spin", percent),
            plain("cpu_idle", percent),
            plain("jain_slowdown", |x| format!("{x:.3}")),
            if row.unfinished > 0 { row.unfinished.to_string() } else { String::new() },
        ]
    };
    page.table(&titles, &table.rows.iter().map(row).collect::<Vec<_>>());
}

/// A parameter that may vary.
struct Axis {
    title: &'static str,
    of: fn(&Row) -> Option<f64>,
    /// The row's setting without this parameter.
    rest: fn(&Row) -> String,
}

const AXES: [Axis; 4] = [
    Axis { title: "load", of: |row| row.cell.wanted.load, rest: |row| rest(row, "load") },
    Axis {
        title: "multiprogramming level",
        of: |row| Some(row.cell.config.params.mpl.into()),
        rest: |row| rest(row, "mpl"),
    },
    Axis { title: "skewness in %", of: |row| Some(row.cell.config.params.skew * 100.0), rest: |row| rest(row, "skew") },
    Axis { title: "nodes", of: |row| Some(row.cell.config.params.nodes.into()), rest: |row| rest(row, "nodes") },
];

/// The setting without one of its parts: rows with the same rest share a figure.
fn rest(row: &Row, without: &str) -> String {
    let (params, wanted) = (&row.cell.config.params, &row.cell.wanted);
    let parts = [
        ("load", wanted.load.map_or(String::new(), |load| format!("load {load}"))),
        ("nodes", format!("{} nodes", params.nodes)),
        ("mpl", format!("MPL {}", params.mpl)),
        ("skew", format!("skewness {} %", short(params.skew * 100.0))),
        ("grain", if row.cell.grain > 1 { format!("grain {}", row.cell.grain) } else { String::new() }),
    ];
    let words: Vec<String> =
        parts.into_iter().filter(|(name, word)| *name != without && !word.is_empty()).map(|(_, word)| word).collect();
    format!("{}: {}", wanted.workload, words.join(", "))
}

/// Rows with the same rest, in the order of the table.
fn groups(table: &Table, rest: impl Fn(&Row) -> String) -> Vec<(String, Vec<&Row>)> {
    let mut found: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &table.rows {
        let key = rest(row);
        match found.iter_mut().find(|(other, _)| *other == key) {
            Some((_, rows)) => rows.push(row),
            None => found.push((key, vec![row])),
        }
    }
    found
}

/// One line for each strategy (and costs) through the rows of a group.
fn strategy_lines(strategies: &[Strategy], rows: &[&Row], x: &dyn Fn(&Row) -> Option<f64>) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    for row in rows {
        let rivals: Vec<&Row> = rows.iter().copied().filter(|other| other.cell.is_rival_of(&row.cell)).collect();
        let Some(point) = x(row).zip(row.value("mean_response_s")) else { continue };
        let name = name(row, &rivals);
        match found.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => found.push(Line { name, style: style(strategies, row), points: vec![point] }),
        }
    }
    for line in &mut found {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    found
}

fn point_table(page: &mut Page, lines: &[Line], x_title: &str) {
    let rows: Vec<Vec<String>> = lines
        .iter()
        .flat_map(|line| {
            line.points.iter().map(|(x, y)| vec![line.name.clone(), short(*x), with_interval(Some(*y), short)])
        })
        .collect();
    page.folded("The points", &[("strategy", true), (x_title, false), ("response s", false)], &rows);
}

/// The field's standard figure; with a single load it says little and is left out.
fn against_utilisation(page: &mut Page, table: &Table, strategies: &[Strategy]) {
    let varied: Vec<_> =
        groups(table, AXES[0].rest).into_iter().filter(|(_, rows)| values(rows, AXES[0].of) > 1).collect();
    if varied.is_empty() {
        return;
    }
    page.heading("Response against utilisation");
    for (name, rows) in varied.iter().take(PANELS_MAX) {
        let useful = |row: &Row| row.value("util_useful").map(|estimate| estimate.mean * 100.0);
        let lines_of = strategy_lines(strategies, rows, &useful);
        let svg =
            lines(&lines_of, "utilisation (useful work) in %", "mean response in s", "Response against utilisation");
        page.figure(
            &svg,
            &format!("{name}. A curve that turns upwards has met the utilisation that a strategy can reach."),
        );
        point_table(page, &lines_of, "useful work %");
    }
}

fn values(rows: &[&Row], of: fn(&Row) -> Option<f64>) -> usize {
    let mut values: Vec<u64> = rows.iter().filter_map(|row| of(row)).map(f64::to_bits).collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

fn against(page: &mut Page, table: &Table, strategies: &[Strategy], axis: &Axis) {
    let varied: Vec<_> = groups(table, axis.rest).into_iter().filter(|(_, rows)| values(rows, axis.of) > 1).collect();
    if varied.is_empty() {
        return;
    }
    let title = format!("Response against {}", axis.title);
    page.heading(&title);
    for (name, rows) in varied.iter().take(PANELS_MAX) {
        let lines_of = strategy_lines(strategies, rows, &axis.of);
        page.figure(&lines(&lines_of, axis.title, "mean response in s", &title), &format!("{name}."));
        point_table(page, &lines_of, axis.title);
    }
}

/// The fractions of CPU time in the order of [`CPU_PARTS`].
pub(super) fn shares(cpu: &CpuShares) -> Vec<f64> {
    vec![cpu.compute, cpu.spin, cpu.switch, cpu.interrupt, cpu.sched, cpu.idle]
}

fn panel(page: &mut Page, strategies: &[Strategy], rows: &[&Row]) {
    page.heading(&setting_name(rows[0]));
    response_figure(page, rows);
    cpu_figure(page, rows);
    slowdown_figure(page, strategies, rows);
}

fn response_figure(page: &mut Page, rows: &[&Row]) {
    let bars: Vec<Bar> = rows
        .iter()
        .filter_map(|row| {
            let parts = vec![row.value("mean_wait_s")?.mean, row.value("mean_execution_s")?.mean];
            Some(Bar { name: name(row, rows), parts, ci95: row.value("mean_response_s")?.ci95 })
        })
        .collect();
    let svg = standing(&bars, &[("wait", "f4"), ("execution", "f0")], "mean response in s", "Wait and execution times");
    page.figure(
        &svg,
        "Mean response: time in the arrival queue and time from start to end. Bars that are far higher are cut.",
    );
    let rows: Vec<Vec<String>> = bars
        .iter()
        .map(|bar| [vec![bar.name.clone()], bar.parts.iter().map(|part| short(*part)).collect()].concat())
        .collect();
    page.folded("The bars", &[("strategy", true), ("wait s", false), ("execution s", false)], &rows);
}

fn slowdown_figure(page: &mut Page, strategies: &[Strategy], rows: &[&Row]) {
    let distribution = |row: &&Row| {
        let all: Vec<&Vec<f64>> = row.results.iter().map(|(_, result)| &result.bounded_slowdowns).collect();
        let whole = all.iter().filter(|quantiles| quantiles.len() == QUANTILES).count();
        (whole > 0 && whole == all.len()).then(|| {
            let mean = |k: usize| all.iter().map(|quantiles| quantiles[k]).sum::<f64>() / all.len() as f64;
            let points = (0..QUANTILES).map(|k| (mean(k), k as f64 / (QUANTILES - 1) as f64)).collect();
            Distribution { name: name(row, rows), style: style(strategies, row), points }
        })
    };
    let found: Vec<Distribution> = rows.iter().filter_map(distribution).collect();
    let first = rows.iter().flat_map(|row| &row.results).next();
    let Some((_, result)) = first.filter(|_| !found.is_empty()) else { return };
    let bound = result.metrics.bounded_slowdown_threshold_s;
    page.figure(
        &distributions(&found, "bounded slowdown", "Distribution of the bounded slowdown"),
        &format!("Part of the jobs below a bounded slowdown (threshold {bound} s; quantiles are means over seeds)."),
    );
    let quantiles = [10, 20, 30, 36, 38, 40];
    let titles = ["strategy", "p25", "median", "p75", "p90", "p95", "max"].map(|title| (title, title == "strategy"));
    let row = |one: &Distribution| {
        let values = quantiles.iter().map(|k| short(one.points[*k].0));
        std::iter::once(one.name.clone()).chain(values).collect()
    };
    page.folded("The distribution", &titles, &found.iter().map(row).collect::<Vec<Vec<String>>>());
}

fn cpu_figure(page: &mut Page, rows: &[&Row]) {
    let measures = ["cpu_compute", "cpu_spin", "cpu_switch", "cpu_interrupt", "cpu_sched", "cpu_idle"];
    let bars: Vec<Bar> = rows
        .iter()
        .filter_map(|row| {
            let parts: Option<Vec<f64>> = measures.iter().map(|name| Some(row.value(name)?.mean)).collect();
            Some(Bar { name: name(row, rows), parts: parts?, ci95: None })
        })
        .collect();
    page.figure(&lying(&bars, &CPU_PARTS, "% of CPU time", "How CPU time was spent"), "CPU time of all nodes.");
    let titles: Vec<(&str, bool)> =
        std::iter::once(("strategy", true)).chain(CPU_PARTS.iter().map(|(name, _)| (*name, false))).collect();
    let rows: Vec<Vec<String>> = bars
        .iter()
        .map(|bar| [vec![bar.name.clone()], bar.parts.iter().map(|part| percent(*part)).collect()].concat())
        .collect();
    page.folded("CPU time in %", &titles, &rows);
}
