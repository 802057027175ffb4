//! The HTML report: one file with its figures, which opens from disk without a network.

use super::output::{memory, notes};
use crate::format::{command_line, percent};
use cosched_report::{Axis, Chart, Page, Point, Series, Shape, Title, axis, middle, short};
use cosched_sim::metrics::{Estimate, t_975};
use cosched_study::slowdown::record::{Document, MixRow, Row};
use cosched_study::slowdown::results::cpu_shares;

/// The whole page.
pub(crate) fn html(document: &Document) -> String {
    page(document).finish()
}

fn page(document: &Document) -> Page {
    let head = &document.head;
    let title = if head.commands.is_empty() { command_line(&head.command) } else { "A mix of jobs".into() };
    let below = format!(
        "Slowdown by sharing, measured on {} ({} CPUs), {}; {} repetitions; cosched {}",
        head.host, head.cpus, head.started, head.repeat, head.cosched
    );
    let mut page = Page::new(&title, &below);
    if let Some(single) = &document.single {
        page.paragraph(&format!(
            "One job alone under {}: t_1 = {} s, {} of the CPUs, {}, {} voluntary and {} involuntary context switches.",
            single.policy,
            short(single.time_s),
            percent(single.cpu_share),
            memory(single.peak_memory_bytes),
            short(single.voluntary),
            short(single.involuntary)
        ));
    }
    for note in notes(document) {
        page.paragraph(&note);
    }
    if head.commands.is_empty() {
        figures(&mut page, document);
    }
    table(&mut page, document);
    mix(&mut page, document);
    page
}

fn figures(page: &mut Page, document: &Document) {
    let mut figure = |title: &str, y: Axis, caption: &str, lines: Vec<Series>, rule: Option<Series>| {
        if lines.iter().any(|line| !line.points.is_empty()) {
            page.heading(title);
            page.chart(Chart::new(title, caption, axis("concurrent jobs", ""), y, lines.into_iter().chain(rule)));
        }
    };
    let of_jobs = |of: &dyn Fn(&Row) -> Option<Estimate>| {
        lines(document, |policy| {
            let rows = document.results.iter().filter(|row| row.policy == policy);
            rows.filter_map(|row| Some(point(f64::from(row.jobs), of(row)?))).collect()
        })
    };
    let equal = document.head.jobs.iter().map(|jobs| (f64::from(*jobs), f64::from(*jobs)));
    figure(
        "Slowdown",
        axis("slowdown t_j / t_1", ""),
        "Medians; bars are 95 % intervals of the ratio. Jobs that use all CPUs alone cannot be below s = j.",
        of_jobs(&|row| Some(ratio(row.slowdown?, row.slowdown_stderr, row.runs))),
        Some(Series::new("s = j", 8, Shape::Rule, equal)),
    );
    let in_percent = |row: &Row| cpu_shares(document, row).iter().map(|share| share * 100.0).collect::<Vec<f64>>();
    figure(
        "CPU utilisation",
        axis("part of the CPUs", "%"),
        "CPU time of all jobs over elapsed time and CPUs.",
        of_jobs(&|row| Estimate::of(&in_percent(row))),
        None,
    );
    figure(
        "Fairness",
        axis("Jain's index", ""),
        "Of the jobs' turnarounds: 1 when all end at the same time.",
        of_jobs(&|row| Some(Estimate { mean: row.jain?, ci95: None, n: 1 })),
        None,
    );
}

/// A slowdown with its 95 % interval, from its standard error.
fn ratio(mean: f64, stderr: Option<f64>, runs: usize) -> Estimate {
    let n = runs as u64;
    let ci95 = stderr.zip(t_975(n.saturating_sub(1))).map(|(error, t)| error * t);
    Estimate { mean, ci95, n }
}

/// A line for each policy.
fn lines(document: &Document, points: impl Fn(&str) -> Vec<Point>) -> Vec<Series> {
    let policies = document.head.policies.iter().enumerate();
    policies.map(|(style, policy)| Series::new(policy, style, Shape::Line, points(policy))).collect()
}

fn point(x: f64, y: Estimate) -> Point {
    Point { ci95: y.ci95, ..(x, y.mean).into() }
}

const TITLES: [Title<'static>; 14] = [
    ("policy", true),
    ("jobs", false),
    ("runs", false),
    ("time s", false),
    ("± s", false),
    ("min..max s", false),
    ("slowdown", false),
    ("±", false),
    ("CPU", false),
    ("Jain", false),
    ("first..last end s", false),
    ("voluntary", false),
    ("involuntary", false),
    ("not done", true),
];

fn table(page: &mut Page, document: &Document) {
    let or_dash = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let range = |low, high| format!("{}..{}", or_dash(low), or_dash(high));
    let row = |row: &Row| {
        vec![
            row.policy.clone(),
            row.jobs.to_string(),
            row.runs.to_string(),
            or_dash(row.time_s),
            or_dash(row.time_stderr_s),
            range(row.time_min_s, row.time_max_s),
            or_dash(row.slowdown),
            or_dash(row.slowdown_stderr),
            row.cpu_share.map_or("–".into(), percent),
            or_dash(row.jain),
            range(row.first_end_s, row.last_end_s),
            or_dash(row.voluntary),
            or_dash(row.involuntary),
            row.not_done_outcome.map_or(String::new(), |outcome| format!("{} ({})", row.not_done, outcome.name())),
        ]
    };
    page.heading("The numbers");
    page.table(&TITLES, document.results.iter().map(row).collect());
}

fn mix(page: &mut Page, document: &Document) {
    if document.mix.is_empty() {
        return;
    }
    let or_dash = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let titles = [
        ("policy", true),
        ("job", true),
        ("turnaround s", false),
        ("alone s", false),
        ("slowdown", false),
        ("±", false),
    ];
    let rows: Vec<Vec<String>> = document
        .mix
        .iter()
        .map(|row| {
            let numbers = [row.turnaround_s, row.alone_s, row.slowdown, row.slowdown_stderr].map(or_dash);
            [vec![row.policy.clone(), row.name.clone()], numbers.to_vec()].concat()
        })
        .collect();
    page.heading("The jobs of the mix");
    let names = document.head.commands.iter().enumerate().map(|(place, job)| format!("{} {}", place + 1, job.name));
    let all = lines(document, |policy| {
        let rows = document.mix.iter().filter(|row| row.policy == policy);
        let slowdown = |row: &MixRow| Some(ratio(row.slowdown?, row.slowdown_stderr, row.runs));
        rows.filter_map(|row| Some(point(middle(row.command), slowdown(row)?))).collect()
    });
    if all.iter().any(|line| !line.points.is_empty()) {
        let caption = "Turnaround against that alone; bars are 95 % intervals.";
        let (x, y) = (axis("job", "").named(names), axis("slowdown", ""));
        page.chart(Chart::new("Slowdown of each job", caption, x, y, all));
    }
    page.table(&titles, rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::slowdown::results::document;
    use cosched_study::slowdown::samples::{head, run};

    #[test]
    fn the_page_has_its_figures() {
        let head = head(&["linux", "gang"], &[1, 2], 2);
        let runs = [run("linux", 0, &[1.0]), run("linux", 0, &[2.0, 2.5]), run("gang", 0, &[2.0, 3.0])];
        let made = page(&document(&head, &runs));
        let charts: Vec<&Chart> = made.charts().collect();
        assert_eq!(
            charts.iter().map(|chart| &chart.title[..]).collect::<Vec<_>>(),
            ["Slowdown", "CPU utilisation", "Fairness"]
        );
        let gang = |line: &Series| (line.name.clone(), line.points.iter().map(|point| point.x).collect::<Vec<_>>());
        assert_eq!(
            charts[0].series.iter().map(gang).collect::<Vec<_>>(),
            [
                ("linux".to_owned(), vec![1.0, 2.0]),
                ("gang".to_owned(), vec![2.0]),
                ("s = j".to_owned(), vec![1.0, 2.0]),
            ]
        );
        // A report without measurements is still a page.
        assert!(html(&document(&head, &[])).contains("The numbers"));
    }

    #[test]
    fn a_mix_has_a_figure_too() {
        use cosched_study::slowdown::mix::MixJob;
        use cosched_study::slowdown::record::{Head, Run};
        let job = |name: &str| MixJob { name: name.into(), class: None, start_s: 0.0, count: 1, command: vec![] };
        let head = Head { commands: vec![job("a<b"), job("c")], ..head(&["linux", "gang"], &[2], 1) };
        let alone = Run { alone: Some(0), ..run("linux", 0, &[1.0]) };
        let mut together = run("gang", 0, &[3.0, 4.0]);
        together.each[1].command = 1;
        let page = page(&document(&head, &[alone, together]));
        assert_eq!(page.charts().count(), 1);
        assert!(page.finish().contains("[\"1 a\\u003cb\",\"2 c\"]"));
        assert_eq!(super::page(&document(&head, &[])).charts().count(), 0, "nothing measured yet");
    }
}
