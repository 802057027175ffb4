//! Is the exact mean response time inside the interval that a sampled run states?
//!
//! The quick form has a few lists. The measurement, a quarter of an hour:
//!     SAMPLING=40 cargo test --release -p cosched-study --test sampling -- --nocapture

use cosched_sim::paper::{Sampling, run, run_sampled};
use cosched_sim::sweep::Wanted;
use cosched_sim::{Class, JobSpec, JobType, Outcome, Params, Silent};
use cosched_study::workload::generated;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const NODES: u32 = 8;

/// Every second list is one of three jobs that stay for long under PB in one of two patterns; the others are queues of all types.
fn list(number: u64) -> Vec<JobSpec> {
    if number.is_multiple_of(2) {
        let wanted =
            Wanted { workload: "WL7".into(), load: Some(0.6), nodes: NODES, seed: number, jobs: 8, mean_exec_s: 40.0 };
        return generated(&wanted).unwrap();
    }
    let job = |k: u64, tasks, kind| JobSpec {
        arrival_ns: k * (number % 5) * 500_000_000,
        tasks,
        exec_ns: (50 + (number * 7 + k * 11) % 21) * 1_000_000_000,
        kind,
        class: Class::Batch,
        footprint: cosched_sim::Footprint::default(),
    };
    vec![job(0, 8, JobType::J5), job(1, 8, JobType::J1), job(2, 6, JobType::J3)]
}

fn mean_response_s(outcome: &Outcome, jobs: &[JobSpec]) -> f64 {
    let each =
        outcome.jobs.iter().zip(jobs).map(|(times, job)| (times.finish_ns.unwrap() - job.arrival_ns) as f64 / 1e9);
    each.sum::<f64>() / jobs.len() as f64
}

/// A case: the exact mean, the estimate, half of its interval, the part of the time that was skipped.
struct Case {
    name: String,
    exact: f64,
    estimate: f64,
    half: f64,
    skipped: f64,
}

impl Case {
    fn is_inside(&self) -> bool {
        (self.exact - self.estimate).abs() <= self.half
    }
}

fn case(strategy: &str, number: u64, sampling: &Sampling) -> Case {
    let jobs = list(number);
    let params = Params { seed: number, ..Params::paper(strategy.parse().unwrap(), NODES) };
    let exact = run(&params, &jobs, &mut Silent, &mut |_| true).unwrap();
    let (outcome, sampled) = run_sampled(&params, &jobs, sampling, 1, &mut |_| true).unwrap();
    Case {
        name: format!("{strategy} list {number}"),
        exact: mean_response_s(&exact, &jobs),
        estimate: sampled.response_s,
        half: sampled.response_ci95_s.unwrap(),
        skipped: sampled.skipped.skipped_ns as f64 / outcome.sim_end_ns as f64,
    }
}

fn cases(strategies: &[&str], lists: u64, sampling: &Sampling) -> Vec<Case> {
    let all: Vec<(&str, u64)> = strategies.iter().flat_map(|s| (1..=lists).map(move |list| (*s, list))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((strategy, list)) = all.get(next.fetch_add(1, Relaxed)) {
                    let case = case(strategy, *list, sampling);
                    done.lock().unwrap().push(case);
                }
            });
        }
    });
    let mut cases = done.into_inner().unwrap();
    cases.sort_by(|a: &Case, b: &Case| a.name.cmp(&b.name));
    cases
}

#[test]
fn exact_means_are_inside_the_stated_intervals() {
    let lists = std::env::var("SAMPLING").ok().and_then(|text| text.parse().ok());
    let strategies = ["GS", "SB", "PB", "PB-SB", "SY", "DCS"];
    let Some(lists) = lists else {
        let cases = cases(&["GS", "SB"], 1, &Sampling { copies: 4, first: 4, ..Sampling::default() });
        for Case { name, exact, estimate, half, skipped } in &cases {
            assert!(*skipped > 0.1, "{name} jumps: {skipped}");
            assert!((exact - estimate).abs() <= half.max(0.01 * exact), "{name}: {exact} s, {estimate} ±{half} s");
        }
        return;
    };
    let cases = cases(&strategies, lists, &Sampling::default());
    for case in &cases {
        let Case { name, exact, estimate, half, skipped } = case;
        let word = if case.is_inside() { "" } else { "  OUTSIDE" };
        println!("{name}: {exact:.3} s, {estimate:.3} ±{half:.3} s, {:.0} % skipped{word}", 100.0 * skipped);
    }
    for strategy in strategies {
        let own: Vec<&Case> = cases.iter().filter(|case| case.name.starts_with(&format!("{strategy} "))).collect();
        let inside = own.iter().filter(|case| case.is_inside()).count();
        let mean = |of: fn(&Case) -> f64| 100.0 * own.iter().map(|case| of(case)).sum::<f64>() / own.len() as f64;
        println!(
            "{strategy}: {inside} of {} inside; half width {:.2} %, error {:.2} %, {:.0} % skipped",
            own.len(),
            mean(|case| case.half / case.estimate),
            mean(|case| (case.exact - case.estimate).abs() / case.exact),
            mean(|case| case.skipped)
        );
    }
}
