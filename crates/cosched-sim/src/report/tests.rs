//! Reports of real runs: complete, self-contained and the same bytes each time.

use super::*;
use crate::general::Config;
use crate::metrics::{BOUND_S, run_metrics};
use crate::sweep::{Description, Hooks, Journal, Plan, Seeds, Simulated, Table, Wanted, run};
use crate::trace::Places;
use crate::{JobSpec, JobType, Params, Strategy, paper};

const MS: u64 = 1_000_000;

fn jobs(wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
    let gap = 12.0 / wanted.load.unwrap_or(1.0);
    let job = |k: u64| JobSpec {
        arrival_ns: (k as f64 * gap) as u64 * MS,
        tasks: 1 + (k as u32 * 3 % 4),
        exec_ns: (20 + 7 * (k % 5)) * MS,
        kind: JobType::ALL[(k % 6) as usize],
        class: cosched_core::Class::Batch,
    };
    Ok((0..24).map(job).collect())
}

fn table() -> Table {
    let description = Description {
        strategies: vec!["GS".into(), "PB".into(), "SB".into()],
        workloads: vec!["a <b> & \"c\".csv".into()],
        load: vec![0.4, 0.8],
        mpl: vec![2, 4],
        seeds: Seeds::Count(2),
        ..Description::default()
    };
    let plan = Plan::new(&description, &|strategy, _| Config::paper(Params::paper(strategy, 4))).unwrap();
    let hooks = Hooks {
        jobs: &jobs,
        simulate: &|config, jobs, watch| {
            paper::run(&config.params, jobs, &mut crate::Silent, watch).map(Simulated::from)
        },
        now_s: &|| 0.0,
        progress: &|_| (),
    };
    let taken = run(&plan, &Journal::default(), 2, hooks, &mut |_| Ok(())).unwrap();
    Table::new(&plan, &taken)
}

/// Every opened element is closed, in order; text has no stray brackets.
fn check_markup(html: &str) {
    const EMPTY: [&str; 5] = ["meta", "line", "path", "!DOCTYPE", "br"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("an element ends");
        let element = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = element.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{element}");
        } else {
            let name = element.split([' ', '\n']).next().unwrap();
            let is_closed = element.ends_with('/') || (EMPTY.contains(&name) && name != "path");
            if !is_closed {
                open.push(name);
            }
            if name == "style" {
                rest = &rest[rest.find("</style>").expect("it ends")..];
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

/// Nothing is loaded and nothing is executed.
fn check_alone(html: &str) {
    for word in ["http:", "https:", "<script", "src=", "href=", "@import", "url(", "NaN", "inf\""] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn a_sweep_has_its_figures() {
    let table = table();
    let html = sweep_report("Test & more", &table);
    check_alone(&html);
    check_markup(&html);
    assert!(html.contains("<h1>Test &amp; more</h1>") && html.contains("a &lt;b&gt; &amp; &quot;c&quot;.csv"));
    for heading in ["Response against utilisation", "Response against load", "Response against multiprogramming level"]
    {
        assert!(html.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    assert!(!html.contains("Response against skewness"), "it does not vary");
    // Two figures against utilisation, two against load, two against MPL, three for each of four settings.
    assert_eq!(html.matches("<svg").count(), 2 + 2 + 2 + 4 * 3);
    assert_eq!(html, sweep_report("Test & more", &table), "the same bytes");
}

#[test]
fn a_run_has_its_figures() {
    for strategy in ["GS", "PB"] {
        let params = Params { mpl: 3, ..Params::paper(strategy.parse::<Strategy>().unwrap(), 4) };
        let jobs = jobs(&Wanted { workload: String::new(), load: None, nodes: 4, seed: 1, jobs: 0, mean_exec_s: 1.0 })
            .unwrap();
        let mut places = Places::new(jobs.len());
        let outcome = paper::run(&params, &jobs, &mut places, &mut |_| true).unwrap();
        let metrics = run_metrics(&params, &jobs, &outcome, BOUND_S);
        let html = run_report("jobs.csv", &params, &jobs, &outcome, &metrics, places.places());
        check_alone(&html);
        check_markup(&html);
        assert_eq!(html.matches("<svg").count(), 5);
        // Each job is in both figures of places, in one rectangle or more.
        for index in 0..jobs.len() {
            assert!(html.matches(&format!("<title>job {index} (")).count() >= 2, "{strategy} {index}");
        }
    }
}

#[test]
fn nothing_has_a_report_too() {
    let params = Params::paper(Strategy::Gang, 4);
    let outcome = crate::Outcome::default();
    let html = run_report("none", &params, &[], &outcome, &run_metrics(&params, &[], &outcome, BOUND_S), &[]);
    check_alone(&html);
    check_markup(&html);
    check_markup(&sweep_report("none", &Table { rows: Vec::new() }));
}
