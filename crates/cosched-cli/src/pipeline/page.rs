//! The page of `cosched pipeline report --html`: a single file that loads nothing from a network.

use cosched_pipeline::{Report, StageReport};
use cosched_report::{Chart, IDLE, Page, Series, Shape, axis, percent, shares, short};

/// The parts of the time of a stage's threads, and their colours.
const TIME: [(&str, usize); 6] = [
    ("on a CPU", 0),
    ("without a CPU", 1),
    ("device, network", 2),
    ("waits for input", 4),
    ("waits for room", 3),
    ("other", IDLE),
];

/// The page of a report, or of several, one below the other.
pub(super) fn page(reports: &[Report]) -> Page {
    let mut page = match reports {
        [report] => Page::new(&format!("Pipeline {}", report.name), &about(report)),
        _ => Page::new(&format!("{} pipelines", reports.len()), "One after the other."),
    };
    for report in reports {
        if reports.len() > 1 {
            page.heading(&format!("Pipeline {}", report.name));
            page.paragraph(&about(report));
        }
        body(&mut page, report);
    }
    page
}

fn about(report: &Report) -> String {
    format!(
        "{} s, {} blocks, {} stages, {} MB of buffers, {} CPUs, priorities {}. cosched {}",
        short(report.elapsed_s),
        report.rounds,
        report.stages.len(),
        short(report.memory_bytes as f64 / 1e6),
        report.cpus,
        report.priorities,
        env!("CARGO_PKG_VERSION"),
    )
}

fn body(page: &mut Page, report: &Report) {
    bound(page, report);
    times(page, report);
    queues(page, report);
    changes(page, report);
    if !report.stalls.is_empty() {
        page.heading("Stuck");
        let rows: Vec<Vec<String>> = report
            .stalls
            .iter()
            .map(|stall| {
                let state = if stall.over { "continued" } else { "did not continue" };
                vec![
                    stall.stage.clone(),
                    stall.what.clone(),
                    state.to_owned(),
                    short(stall.since_s),
                    short(stall.held_s),
                ]
            })
            .collect();
        page.table(
            &[("stage", true), ("what it did", true), ("then", true), ("from s", false), ("for s", false)],
            rows,
        );
    }
    if !report.notes.is_empty() {
        page.heading("Notes");
        report.notes.iter().for_each(|note| page.paragraph(note));
    }
}

fn bound(page: &mut Page, report: &Report) {
    let bound = &report.bound;
    let needs = [("compute", bound.compute_s), ("communicate", bound.communicate_s), ("I/O", bound.io_s)];
    let part = |s: f64| if report.elapsed_s > 0.0 { (s / report.elapsed_s).clamp(0.0, 1.0) } else { 0.0 };
    let parts = needs.map(|(_, s)| vec![part(s), 1.0 - part(s)]);
    page.heading("Throughput against the bound");
    let busiest = bound.stage.as_ref().map_or(String::new(), |stage| format!(" The busiest stage is {stage}."));
    page.paragraph(&format!(
        "The work needs at least max(compute, communicate, I/O) = {} s; {} limits.{busiest} The run took {} s, so it had \
         {} % of the best speed: {} of at most {} blocks per second.",
        short(bound.s()),
        if bound.limiting == "io" { "I/O" } else { &bound.limiting },
        short(report.elapsed_s),
        percent(report.efficiency()),
        short(rate(report.rounds, report.elapsed_s)),
        short(rate(report.rounds, bound.s())),
    ));
    page.chart(Chart::new(
        "The bound by resource",
        "The least time that the work needs on each resource, as a fraction of the time of the run.",
        axis("part of the time that the run took", "%"),
        axis("resource", "").named(needs.map(|(name, _)| name.to_owned())),
        shares(&[("needed", 0), ("more", IDLE)], &parts),
    ));
}

fn rate(rounds: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { rounds as f64 / seconds } else { 0.0 }
}

fn times(page: &mut Page, report: &Report) {
    page.heading("How the stages spent their time");
    let bars: Vec<Vec<f64>> = report.stages.iter().map(|stage| parts(stage, report.elapsed_s)).collect();
    page.chart(Chart::new(
        "How the stages spent their time",
        "Of stages on workers, the parts are of the time of as many workers as can work on the stage.",
        axis("part of the time of the stage's threads", "%"),
        axis("stage", "").named(report.stages.iter().map(|stage| stage.name.clone())),
        shares(&TIME, &bars),
    ));
    let titles = [
        ("stage", true),
        ("uses", true),
        ("on", true),
        ("threads", false),
        ("blocks", false),
        ("MB", false),
        ("busy s", false),
        ("CPU s", false),
        ("delay s", false),
        ("wait in s", false),
        ("wait out s", false),
        ("yielded", false),
        ("preempted", false),
        ("settings", true),
    ];
    let rows: Vec<Vec<String>> = report.stages.iter().map(row).collect();
    page.table(&titles, rows);
}

fn row(stage: &StageReport) -> Vec<String> {
    let times = [stage.busy_s, stage.cpu_s, stage.delay_s, stage.wait_in_s, stage.wait_out_s].map(short);
    let words = [stage.name.clone(), stage.resource.clone(), stage.kind.clone()];
    let counts = [stage.incarnations.to_string(), stage.rounds.to_string(), short(stage.bytes as f64 / 1e6)];
    let switches = [stage.switches_voluntary.to_string(), stage.switches_involuntary.to_string()];
    words.into_iter().chain(counts).chain(times).chain(switches).chain([stage.settings.clone()]).collect()
}

/// CPU time and delay come from the kernel and cover everything that a thread does; what exceeds the busy time belongs
/// to the waits.
fn parts(stage: &StageReport, elapsed_s: f64) -> Vec<f64> {
    let cpu = stage.cpu_s.min(stage.busy_s);
    let delay = stage.delay_s.min(stage.busy_s - cpu);
    let known = [cpu, delay, stage.busy_s - cpu - delay, stage.wait_in_s, stage.wait_out_s];
    let sum: f64 = known.iter().sum();
    let whole = (stage.incarnations.max(1) as f64 * elapsed_s).max(sum).max(f64::MIN_POSITIVE);
    known.into_iter().chain([whole - sum]).map(|s| s / whole).collect()
}

fn queues(page: &mut Page, report: &Report) {
    let occupancy = &report.occupancy;
    if occupancy.at_s.len() < 2 {
        return;
    }
    page.heading("Buffers that waited");
    let series = |(style, stage): (usize, &StageReport)| {
        let waiting = occupancy.at_s.iter().zip(&occupancy.waiting);
        Series::new(&stage.name, style, Shape::Steps, waiting.map(|(at, row)| (*at, f64::from(row[style]))))
    };
    page.chart(Chart::new(
        "Buffers that waited before each stage",
        "The queue before the limiting stage is full, the one behind it empty.",
        axis("time", "s"),
        axis("buffers before the stage", ""),
        report.stages.iter().enumerate().map(series),
    ));
    let rows: Vec<Vec<String>> = report
        .stages
        .iter()
        .map(|stage| vec![stage.name.clone(), short(stage.queue_mean), stage.queue_max.to_string()])
        .collect();
    page.folded("Means and maxima", &[("stage", true), ("mean", false), ("most", false)], rows);
}

fn changes(page: &mut Page, report: &Report) {
    let all = report.stages.iter().flat_map(|stage| stage.actions.iter().map(move |action| (stage, action)));
    let mut all: Vec<_> = all.collect();
    if all.is_empty() {
        return;
    }
    all.sort_by(|a, b| a.1.at_s.total_cmp(&b.1.at_s));
    page.heading("Changes of priority");
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|(stage, action)| {
            let outcome = action.refused.as_ref().map_or("done".to_owned(), |why| format!("refused: {why}"));
            let words = [&stage.name, &action.change, &action.why, &action.by].map(String::clone);
            std::iter::once(short(action.at_s)).chain(words).chain([outcome]).collect()
        })
        .collect();
    let titles = [("at s", false), ("stage", true), ("change", true), ("why", true), ("by", true), ("outcome", true)];
    page.table(&titles, rows);
    for stage in report.stages.iter().filter(|stage| stage.actions_count > stage.actions.len() as u64) {
        page.paragraph(&format!("Of {} changes of {}, the first are listed.", stage.actions_count, stage.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_stage_are_all_of_its_time() {
        let stage = StageReport {
            incarnations: 2,
            busy_s: 1.0,
            cpu_s: 0.5,
            delay_s: 0.7,
            wait_in_s: 0.5,
            ..StageReport::default()
        };
        let parts = parts(&stage, 1.0);
        let expected = [0.25, 0.25, 0.0, 0.25, 0.0, 0.25];
        assert!(parts.iter().zip(expected).all(|(part, wanted)| (part - wanted).abs() < 1e-9), "{parts:?}");
        for elapsed_s in [0.0, 0.1, 9.0] {
            let sum: f64 = super::parts(&stage, elapsed_s).iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{elapsed_s}: {sum}");
        }
    }

    #[test]
    fn an_empty_report_is_a_page_too() {
        let made = page(&[Report { name: "<b>".into(), ..Report::default() }]);
        assert_eq!(made.charts().count(), 2);
        assert!(made.finish().contains("Pipeline \\u003cb>"));
    }
}
