//! The report of a sweep or a comparison.

use crate::metrics::Estimate;
use crate::strategy::Strategy;
use crate::sweep::{QUANTILES, Row, Table};
use cosched_report::{Chart, IDLE, Page, Point, Series, Shape, axis, middle, percent, shares, short};

/// The uses of CPU time, and their colours.
const CPU_PARTS: [(&str, usize); 6] =
    [("computation", 0), ("spinning", 1), ("switches", 5), ("interrupts", 7), ("scheduler", 2), ("idle", IDLE)];

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
    // The field's standard figure; with a single load it says little and is left out.
    let note = " Utilisation is useful work. A curve that turns upwards has met what a strategy can reach.";
    against(&mut page, table, &strategies, &VARIED[0], &UTILISATION, note);
    for varied in &VARIED {
        against(&mut page, table, &strategies, varied, varied, "");
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
    let cost = |has: bool, cost: f64| if has { format!("/{cost}") } else { String::new() };
    let interrupt = cost(row.cell.config.has_interrupts(), us(params.interrupt_ns));
    let turn = cost(params.strategy.has_turns(), us(params.quantum_ns) / 1e3);
    format!("{} {}{interrupt}{turn}", params.strategy, us(params.switch_ns))
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
    page.table(&titles, table.rows.iter().map(row).collect());
}

/// A parameter that may vary.
struct Varied {
    title: &'static str,
    unit: &'static str,
    of: fn(&Row) -> Option<f64>,
    /// The row's setting without this parameter.
    rest: fn(&Row) -> String,
}

const VARIED: [Varied; 4] = [
    Varied { title: "load", unit: "", of: |row| row.cell.wanted.load, rest: |row| rest(row, "load") },
    Varied {
        title: "multiprogramming level",
        unit: "",
        of: |row| Some(row.cell.config.params.mpl.into()),
        rest: |row| rest(row, "mpl"),
    },
    Varied {
        title: "skewness",
        unit: "%",
        of: |row| Some(row.cell.config.params.skew * 100.0),
        rest: |row| rest(row, "skew"),
    },
    Varied {
        title: "nodes",
        unit: "",
        of: |row| Some(row.cell.config.params.nodes.into()),
        rest: |row| rest(row, "nodes"),
    },
];

const UTILISATION: Varied = Varied {
    title: "utilisation",
    unit: "%",
    of: |row| row.value("util_useful").map(|estimate| estimate.mean * 100.0),
    rest: VARIED[0].rest,
};

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
fn strategy_lines(strategies: &[Strategy], rows: &[&Row], x: fn(&Row) -> Option<f64>) -> Vec<Series> {
    let mut found: Vec<Series> = Vec::new();
    for row in rows {
        let rivals: Vec<&Row> = rows.iter().copied().filter(|other| other.cell.is_rival_of(&row.cell)).collect();
        let Some((x, response)) = x(row).zip(row.value("mean_response_s")) else { continue };
        let name = name(row, &rivals);
        let point = Point { ci95: response.ci95, ..(x, response.mean).into() };
        match found.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => found.push(Series::new(name, style(strategies, row), Shape::Line, [point])),
        }
    }
    for line in &mut found {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    found
}

fn values(rows: &[&Row], of: fn(&Row) -> Option<f64>) -> usize {
    let mut values: Vec<u64> = rows.iter().filter_map(|row| of(row)).map(f64::to_bits).collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// A chart of the response against `x` for each group of rows in which a parameter varies.
fn against(page: &mut Page, table: &Table, strategies: &[Strategy], varied: &Varied, x: &Varied, note: &str) {
    let groups: Vec<_> =
        groups(table, varied.rest).into_iter().filter(|(_, rows)| values(rows, varied.of) > 1).collect();
    if groups.is_empty() {
        return;
    }
    let heading = format!("Response against {}", x.title);
    page.heading(&heading);
    for (name, rows) in groups.iter().take(PANELS_MAX) {
        let (x_axis, y_axis) = (axis(x.title, x.unit), axis("mean response", "s"));
        let lines = strategy_lines(strategies, rows, x.of);
        page.chart(Chart::new(&heading, &format!("{name}.{note}"), x_axis, y_axis, lines));
    }
}

fn panel(page: &mut Page, strategies: &[Strategy], rows: &[&Row]) {
    page.heading(&setting_name(rows[0]));
    response_figure(page, rows);
    cpu_figure(page, rows);
    slowdown_figure(page, strategies, rows);
}

fn response_figure(page: &mut Page, rows: &[&Row]) {
    let (mut names, mut waits, mut executions) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let measures = ["mean_wait_s", "mean_execution_s", "mean_response_s"].map(|measure| row.value(measure));
        let [Some(wait), Some(execution), Some(whole)] = measures else { continue };
        let x = middle(names.len());
        names.push(name(row, rows));
        waits.push((x, wait.mean));
        executions.push(Point { ci95: whole.ci95, ..(x, execution.mean).into() });
    }
    page.chart(Chart::new(
        "Wait and execution times",
        "Mean response: time in the arrival queue and time from start to end. Bars that are far higher are cut.",
        axis("strategy", "").named(names),
        axis("mean response", "s").cut(),
        [Series::new("wait", 4, Shape::Bars, waits), Series::new("execution", 0, Shape::Bars, executions)],
    ));
}

/// Distribution functions of slowdowns.
pub(super) fn distributions(lines: impl IntoIterator<Item = Series>, caption: &str) -> Chart {
    let (x, y) = (axis("bounded slowdown", "").log(), axis("part of the jobs", ""));
    Chart::new("Distribution of the bounded slowdown", caption, x, y, lines)
}

fn slowdown_figure(page: &mut Page, strategies: &[Strategy], rows: &[&Row]) {
    let distribution = |row: &&Row| {
        let all: Vec<&Vec<f64>> = row.results.iter().map(|(_, result)| &result.bounded_slowdowns).collect();
        let whole = all.iter().filter(|quantiles| quantiles.len() == QUANTILES).count();
        (whole > 0 && whole == all.len()).then(|| {
            let mean = |k: usize| all.iter().map(|quantiles| quantiles[k]).sum::<f64>() / all.len() as f64;
            let points = (0..QUANTILES).map(|k| (mean(k), k as f64 / (QUANTILES - 1) as f64));
            Series::new(name(row, rows), style(strategies, row), Shape::Curve, points)
        })
    };
    let found: Vec<Series> = rows.iter().filter_map(distribution).collect();
    let first = rows.iter().flat_map(|row| &row.results).next();
    let Some((_, result)) = first.filter(|_| !found.is_empty()) else { return };
    let bound = result.metrics.bounded_slowdown_threshold_s;
    page.chart(distributions(
        found,
        &format!("Part of the jobs below a bounded slowdown (threshold {bound} s; quantiles are means over seeds)."),
    ));
}

fn cpu_figure(page: &mut Page, rows: &[&Row]) {
    let measures = ["cpu_compute", "cpu_spin", "cpu_switch", "cpu_interrupt", "cpu_sched", "cpu_idle"];
    let (names, parts): (Vec<String>, Vec<Vec<f64>>) = rows
        .iter()
        .filter_map(|row| {
            let parts: Option<Vec<f64>> = measures.iter().map(|name| Some(row.value(name)?.mean)).collect();
            Some((name(row, rows), parts?))
        })
        .unzip();
    page.chart(cpu_chart(names, &parts));
}

/// The parts of CPU time of each strategy.
pub(super) fn cpu_chart(names: Vec<String>, parts: &[Vec<f64>]) -> Chart {
    let (x, y) = (axis("part of CPU time", "%"), axis("strategy", "").named(names));
    Chart::new("How CPU time was spent", "CPU time of all nodes.", x, y, shares(&CPU_PARTS, parts))
}
