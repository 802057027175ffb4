//! Reports of real runs: complete, self-contained and the same bytes each time.

use super::*;
use crate::general::Config;
use crate::metrics::{BOUND_S, run_metrics};
use crate::sweep::{Description, Hooks, Journal, Plan, Seeds, Simulated, Table, Wanted, run};
use crate::trace::Places;
use crate::{JobSpec, JobType, Params, Strategy, paper};
use serde_json::Value;

const MS: u64 = 1_000_000;

fn jobs(wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
    let gap = 12.0 / wanted.load.unwrap_or(1.0);
    let job = |k: u64| JobSpec {
        arrival_ns: (k as f64 * gap) as u64 * MS,
        tasks: 1 + (k as u32 * 3 % 4),
        exec_ns: (20 + 7 * (k % 5)) * MS,
        kind: JobType::ALL[(k % 6) as usize],
        class: cosched_core::Class::Batch,
        footprint: crate::job::Footprint::default(),
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

/// The data in a report, and its charts.
fn data(html: &str) -> (Value, Vec<Value>) {
    let (_, rest) = html.split_once("id=\"report\">").unwrap();
    let data: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let charts = data["blocks"].as_array().unwrap().iter().filter_map(|block| block.get("chart").cloned()).collect();
    (data, charts)
}

#[test]
fn a_sweep_has_its_figures() {
    let table = table();
    let html = sweep_report("Test & more", &table);
    let (page, charts) = data(&html);
    assert_eq!(page["title"], "Test & more");
    let headings: Vec<&str> = page["blocks"].as_array().unwrap().iter().filter_map(|b| b["heading"].as_str()).collect();
    for heading in ["Response against utilisation", "Response against load", "Response against multiprogramming level"]
    {
        assert!(headings.contains(&heading), "{heading}");
    }
    assert!(!headings.contains(&"Response against skewness"), "it does not vary");
    // Two charts against utilisation, two against load, two against MPL, three for each of four settings.
    let of = |shape: &str| charts.iter().filter(|chart| chart["series"][0]["shape"] == shape).count();
    assert_eq!((charts.len(), of("bars"), of("lying")), (2 + 2 + 2 + 4 * 3, 4, 4));
    let load = charts.iter().find(|chart| chart["title"] == "Response against load").unwrap();
    assert!(load["caption"].as_str().unwrap().contains("a <b> & \"c\".csv"));
    let series = load["series"].as_array().unwrap();
    assert_eq!(series.iter().map(|line| &line["name"]).collect::<Vec<_>>(), ["GS", "PB", "SB"]);
    for line in series {
        let points = line["points"].as_array().unwrap();
        assert_eq!(points.iter().map(|point| point["x"].as_f64().unwrap()).collect::<Vec<_>>(), [0.4, 0.8]);
        assert!(points.iter().all(|point| point["y"].as_f64().unwrap() > 0.0 && point["ci95"].is_f64()), "{line}");
    }
    let cpu = charts.iter().find(|chart| chart["series"][0]["shape"] == "lying").unwrap();
    let ends =
        cpu["series"].as_array().unwrap().iter().map(|part| part["points"][0]["x"].as_f64().unwrap()).sum::<f64>();
    assert!((ends - 100.0).abs() < 1e-6, "{ends} % of the CPU time");
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
        let (_, charts) = data(&html);
        assert_eq!(charts.len(), 5);
        // Each job is in both figures of places, in one rectangle or more, for the time that it had nodes.
        for chart in &charts[1..3] {
            for (index, times) in outcome.jobs.iter().enumerate() {
                let name = format!("job {index} (");
                let jobs = chart["series"].as_array().unwrap();
                let job = jobs.iter().find(|job| job["name"].as_str().unwrap().starts_with(&name)).unwrap();
                let [start, end] = [times.start_ns, times.finish_ns].map(|ns| ns.unwrap() as f64 / 1e9);
                let rects = job["points"].as_array().unwrap();
                let fits = |rect: &Value| rect["x"] == start && rect["end"][0] == end;
                assert!(!rects.is_empty() && rects.iter().all(fits), "{strategy} {job}");
            }
        }
    }
}

#[test]
fn nothing_has_a_report_too() {
    let params = Params::paper(Strategy::Gang, 4);
    let outcome = crate::Outcome::default();
    let html = run_report("none", &params, &[], &outcome, &run_metrics(&params, &[], &outcome, BOUND_S), &[]);
    assert_eq!(data(&html).1.len(), 2, "CPU time and the queue");
    assert_eq!(data(&sweep_report("none", &Table { rows: Vec::new() })).1.len(), 0);
}
