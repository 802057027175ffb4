//! Traces of real runs.

use super::*;
use crate::{JobSpec, JobType, Message, Observer, Params, Slice, Strategy, general, paper};
use serde_json::Value;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn jobs() -> Vec<JobSpec> {
    let kinds = [JobType::J3, JobType::J1, JobType::J2, JobType::J5];
    let job = |k: usize| JobSpec {
        arrival_ns: k as u64 * 7 * MS,
        tasks: [4, 2, 3, 1][k % 4],
        exec_ns: (40 + k as u64 * 11) * MS,
        kind: kinds[k % 4],
        class: cosched_core::Class::Batch,
        footprint: crate::job::Footprint::default(),
    };
    (0..12).map(job).collect()
}

fn params(strategy: &str) -> Params {
    Params { mpl: 3, quantum_ns: 20 * MS, ..Params::paper(strategy.parse::<Strategy>().unwrap(), 4) }
}

fn simulate(params: &Params, jobs: &[JobSpec], observer: &mut impl Observer) -> u64 {
    let outcome = if paper::handles(params) {
        paper::run(params, jobs, observer, &mut |_| true)
    } else {
        general::run(params, jobs, observer, &mut |_| true)
    };
    outcome.unwrap().sim_end_ns
}

/// The events of a run's trace.
fn chrome(strategy: &str, window: Window) -> Vec<Value> {
    let (params, jobs, mut bytes) = (params(strategy), jobs(), Vec::new());
    let mut trace = ChromeTrace::new(&mut bytes, window, params.nodes, &jobs);
    let end_ns = simulate(&params, &jobs, &mut trace);
    trace.finish(end_ns).unwrap();
    let mut json: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    json["traceEvents"].as_array_mut().map(std::mem::take).expect("a list of events")
}

/// A time of an event in ns: three decimals of µs are exact.
fn ns(event: &Value, key: &str) -> u64 {
    let micros = event[key].as_f64().unwrap_or_else(|| panic!("{key} of {event}"));
    (micros * 1000.0).round() as u64
}

const STRATEGIES: [&str; 5] = ["GS", "Local", "SB", "DCS", "PB-SY"];

#[test]
fn slices_of_a_thread_do_not_overlap() {
    for strategy in STRATEGIES {
        let mut spans: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
        for event in chrome(strategy, Window::ALL).iter().filter(|event| event["ph"] == "X") {
            let thread = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let start = ns(event, "ts");
            spans.entry(thread).or_default().push((start, start + ns(event, "dur")));
        }
        assert!(spans.len() >= 4, "{strategy}: every node has slices");
        for (thread, mut spans) in spans {
            spans.sort_unstable();
            for pair in spans.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "{strategy} {thread:?} {pair:?}");
            }
        }
    }
}

#[test]
fn the_window_is_respected_and_cuts() {
    let window = Window { start_ns: 30 * MS, end_ns: 45 * MS };
    for strategy in STRATEGIES {
        let events = chrome(strategy, window);
        assert!(events.iter().filter(|event| event["ph"] == "X").count() > 20, "{strategy}");
        for event in events.iter().filter(|event| event["ph"] != "M") {
            let start = ns(event, "ts");
            let end = start + if event["ph"] == "X" { ns(event, "dur") } else { 0 };
            assert!(window.start_ns <= start && end <= window.end_ns, "{strategy}: {event}");
        }
        // Jobs that run across both edges are cut to the window.
        let edges =
            |phase: &str, at: u64| events.iter().any(|e| e["cat"] == "job" && e["ph"] == phase && ns(e, "ts") == at);
        assert!(edges("b", window.start_ns) && edges("e", window.end_ns), "{strategy}");
    }
}

#[test]
fn what_begins_ends_and_flows_have_two_ends() {
    let events = chrome("SB", Window::ALL);
    let mut open: BTreeMap<String, i64> = BTreeMap::new();
    let mut flows: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for event in &events {
        let id = || format!("{}/{}/{}", event["pid"], event["cat"], event["id"]);
        match event["ph"].as_str().unwrap() {
            "b" => *open.entry(id()).or_default() += 1,
            "e" => *open.entry(id()).or_default() -= 1,
            phase @ ("s" | "f") => {
                flows.entry(event["id"].as_u64().unwrap()).or_default().push(if phase == "s" { "s" } else { "f" });
            }
            _ => {}
        }
    }
    assert!(open.values().all(|count| *count == 0), "{open:?}");
    assert!(flows.len() > 100 && flows.values().all(|ends| *ends == ["s", "f"]));
    for category in ["io", "blocked", "job", "compute", "spin", "switch", "interrupt"] {
        assert!(events.iter().any(|event| event["cat"] == category), "no {category}");
    }
    let queue: Vec<u64> =
        events.iter().filter(|e| e["name"] == "arrival queue").filter_map(|e| e["args"]["jobs"].as_u64()).collect();
    assert!(queue.contains(&1) && queue.last() == Some(&0), "{queue:?}");
}

/// Sums of the reports.
#[derive(Default)]
struct Sums {
    compute_ns: u64,
    busy_ns: u64,
}

impl Observer for Sums {
    fn slice(&mut self, slice: Slice) {
        let length = slice.end_ns - slice.start_ns;
        self.compute_ns += if slice.activity == crate::Activity::Compute { length } else { 0 };
        self.busy_ns += if takes_cpu(slice.activity) { length } else { 0 };
    }
    fn message(&mut self, _: Message) {}
    fn job(&mut self, _: u64, _: u32, _: crate::JobChange, _: &[u32], _: Option<u32>) {}
    fn row(&mut self, _: u64, _: u32) {}
}

#[test]
fn the_trace_has_all_of_the_cpu_time() {
    for strategy in STRATEGIES {
        let (params, jobs, mut bytes) = (params(strategy), jobs(), Vec::new());
        let mut both = (Sums::default(), TextTrace::new(&mut bytes, Window::ALL));
        simulate(&params, &jobs, &mut both);
        let (sums, text) = both;
        text.finish().unwrap();
        let silent = paper::run(&params, &jobs, &mut crate::Silent, &mut |_| true).unwrap();
        assert_eq!(sums.compute_ns, silent.cpu.compute_ns, "{strategy}");
        let all = silent.sim_end_ns * u64::from(params.nodes);
        assert_eq!(sums.busy_ns, all - silent.cpu.idle_ns, "{strategy}");
        let text = String::from_utf8(bytes).unwrap();
        let computed: f64 = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words[5] == "compute")
            .map(|words| words[1].parse::<f64>().unwrap())
            .sum();
        assert!((computed - silent.cpu.compute_ns as f64 / 1e9).abs() < 1e-6, "{strategy}");
    }
}

/// The states of a Paje trace add up to the CPU time, in the order of time, and every link that starts ends.
#[test]
fn paje_adds_up() {
    for strategy in ["GS", "SB"] {
        let (params, jobs, mut bytes) = (params(strategy), jobs(), Vec::new());
        let mut trace = PajeTrace::new(&mut bytes, Window::ALL, params.nodes);
        let end_ns = simulate(&params, &jobs, &mut trace);
        trace.finish(end_ns).unwrap();
        let out = crate::paper::run(&params, &jobs, &mut crate::Silent, &mut |_| true).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let ns = |word: &str| (word.parse::<f64>().unwrap() * 1e9).round() as u64;
        let (mut last, mut computed, mut links) = (0, 0, [0, 0]);
        let mut states = std::collections::BTreeMap::new();
        for words in text.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
            let Ok(kind) = words[0].parse::<u32>() else { continue };
            if kind >= 4 {
                assert!(ns(words[1]) >= last, "{words:?} after {last}");
                last = ns(words[1]);
            }
            match kind {
                6 => {
                    if let Some(("compute", since)) = states.insert(words[3], (words[4], last)) {
                        computed += last - since;
                    }
                }
                7 | 8 => links[kind as usize - 7] += 1,
                _ => {}
            }
        }
        assert_eq!((computed, states.len()), (out.cpu.compute_ns, params.nodes as usize), "{strategy}");
        assert_eq!(links, [out.messages; 2], "{strategy}");
    }
}

#[test]
fn text_has_fixed_columns() {
    let (params, jobs, mut bytes) = (params("GS"), jobs(), Vec::new());
    let mut trace = TextTrace::new(&mut bytes, Window { start_ns: 0, end_ns: 8 * MS });
    simulate(&params, &jobs, &mut trace);
    trace.finish().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "            time_s      duration_s  node    job  task event     details");
    assert_eq!(lines[1], "       0.000000000     0.000000000     -      0     - arrived");
    assert!(
        lines.contains(&"       0.000000000     0.000000000     -      0     - started   nodes 0-3 row 0"),
        "{text}"
    );
    assert!(lines.contains(&"       0.000000000     0.000000000     -      -     - row       row 0"), "{text}");
    assert!(lines.iter().skip(1).all(|line| line.split_whitespace().next().unwrap().parse::<f64>().unwrap() < 0.008));
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    let (params, jobs) = (params("PB"), jobs());
    let mut small = [0_u8; 1000];
    let mut trace = ChromeTrace::new(&mut small[..], Window::ALL, params.nodes, &jobs);
    let end_ns = simulate(&params, &jobs, &mut trace);
    assert_eq!(trace.finish(end_ns).unwrap_err().kind(), std::io::ErrorKind::WriteZero);
    let mut small = [0_u8; 1000];
    let mut trace = TextTrace::new(&mut small[..], Window::ALL);
    simulate(&params, &jobs, &mut trace);
    assert_eq!(trace.finish().unwrap_err().kind(), std::io::ErrorKind::WriteZero);
}

#[test]
fn cpus_of_a_node_have_threads_of_their_own() {
    let mut bytes = Vec::new();
    let mut trace = ChromeTrace::new(&mut bytes, Window::ALL, 1, &[]);
    // Two CPUs, in the order of the ends.
    for (start_ns, end_ns) in [(0, 10), (10, 20), (5, 25), (20, 30), (25, 40)] {
        trace.slice(Slice { node: 0, start_ns, end_ns, activity: crate::Activity::Compute, process: Some((0, 0)) });
    }
    trace.finish(40).unwrap();
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let threads: Vec<u64> = events.iter().filter(|e| e["ph"] == "X").map(|e| e["tid"].as_u64().unwrap()).collect();
    assert_eq!(threads, [1, 1, 2, 1, 2]);
    assert!(events.iter().any(|event| event["args"]["name"] == "CPU 1"));
}

#[test]
fn places_are_kept() {
    let (params, jobs) = (params("GS"), jobs());
    let mut places = Places::new(jobs.len());
    simulate(&params, &jobs, &mut places);
    assert_eq!(places.places()[0], Place { nodes: vec![0, 1, 2, 3], row: Some(0) });
    assert!(places.nodes().iter().zip(&jobs).all(|(nodes, job)| nodes.len() == job.tasks as usize));
}
