//! How long the planner of a cluster takes when one job arrives.
//!
//! `cargo run --release -p cosched-core --example plan_speed [-- NODES… PACKING…]`: clusters of 1, 100, 1,000 and 10,000
//! with 8 CPUs each, full of 2,000 jobs: half of them on one node, the others on more, of sizes from 9 CPUs to a
//! sixteenth of the cluster, evenly by logarithm. One more job arrives, is planned, and ends, many times; each arrival is
//! timed; the 10th percentile shows the time where no other program wants the CPU. Also measured: continuing from the stored
//! state, as a daemon does after a conflict, and the process's memory.

use cosched_core::cluster::{Capacity, Config, Input, JobSpec, Packing, Planner, State, Want};
use cosched_core::{Class, JobId, NodeId, Time};
use std::time::Instant;

const JOBS: u64 = 2_000;
const CPUS: u32 = 8;
const ARRIVALS: u64 = 200;

/// The generator of Knuth's MMIX, so that the sizes are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

fn spec(id: u64, nodes: u32, random: &mut Random) -> JobSpec {
    let widest = f64::from((nodes * CPUS / 16).max(16));
    let cpus = match id % 2 {
        _ if nodes == 1 => 1 + random.below(CPUS),
        0 => 1 + random.below(CPUS),
        _ => (9.0 * (widest / 9.0).powf(f64::from(random.below(1000)) / 1000.0)) as u32,
    };
    let class = Class::ALL[1 + random.below(3) as usize];
    let want = Want::Total { cpus, memory_per_cpu_bytes: 1, disk_bytes: 0 };
    JobSpec::new(JobId(id), class, want)
}

fn full(nodes: u32, config: Config) -> (Planner, Random) {
    let mut state = State { config, ..State::default() };
    let capacity = Capacity { cpus: CPUS, memory_bytes: 1 << 40, disk_bytes: 1 << 40 };
    let record = cosched_core::cluster::NodeRecord { capacity, drains: false, other_threads_seen: 0, other_threads: 0 };
    state.nodes = (0..nodes).map(|id| (NodeId(id), record)).collect();
    let mut planner = Planner::new(state).expect("a sound state");
    let mut random = Random(1);
    for id in 0..JOBS {
        let spec = spec(id, nodes, &mut random);
        planner.handle(Time(0), Time(0), Input::Submit(spec)).expect("the job fits");
        while planner.poll_action().is_some() {}
    }
    (planner, random)
}

/// The resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn measure(nodes: u32, name: &str, config: Config) {
    let before_kib = resident_kib();
    let (mut planner, mut random) = full(nodes, config);
    let memory_kib = resident_kib().saturating_sub(before_kib);
    let mut arrivals_us: Vec<f64> = Vec::new();
    let mut departures_us: Vec<f64> = Vec::new();
    for i in 0..ARRIVALS {
        let spec = spec(JOBS + i, nodes, &mut random);
        let began = Instant::now();
        planner.handle(Time(0), Time(0), Input::Submit(spec)).expect("the job fits");
        arrivals_us.push(began.elapsed().as_secs_f64() * 1e6);
        while planner.poll_action().is_some() {}
        let began = Instant::now();
        planner.handle(Time(0), Time(0), Input::End(JobId(JOBS + i))).expect("the job exists");
        departures_us.push(began.elapsed().as_secs_f64() * 1e6);
        while planner.poll_action().is_some() {}
    }
    let state = planner.state().clone();
    let began = Instant::now();
    let again = Planner::new(state).expect("a sound state");
    let derive_us = began.elapsed().as_secs_f64() * 1e6;
    assert_eq!(again.plan(), planner.plan());
    arrivals_us.sort_by(f64::total_cmp);
    departures_us.sort_by(f64::total_cmp);
    let at = |sorted: &[f64], part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize] / 1000.0;
    let plan = planner.plan();
    println!(
        "{nodes:>6} {name:<16} {:>5} {:>6} {:>8.3} {:>8.3} {:>8.3} {:>8.3} {:>8.3} {:>9.3} {:>9.3} {:>9.1}",
        plan.rows.len() - 1,
        plan.turns.len(),
        at(&arrivals_us, 0.1),
        at(&arrivals_us, 0.5),
        at(&arrivals_us, 0.95),
        at(&arrivals_us, 0.99),
        at(&arrivals_us, 1.0),
        at(&departures_us, 0.5),
        derive_us / 1000.0,
        memory_kib as f64 / 1024.0,
    );
}

fn main() {
    let (asked, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.parse::<u32>().is_ok());
    let asked: Vec<u32> = asked.iter().filter_map(|word| word.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![1, 100, 1_000, 10_000] } else { asked };
    println!(
        "{:>6} {:<16} {:>5} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}",
        "nodes",
        "packing",
        "rows",
        "turns",
        "p10 ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "max ms",
        "gone ms",
        "read ms",
        "MiB"
    );
    for nodes in sizes {
        let of = |packing| Config { packing, ..Config::default() };
        let kinds = [
            ("first fit", of(Packing::FirstFit)),
            ("best fit", of(Packing::BestFit)),
            ("buddy", of(Packing::Buddy)),
            ("buddy, 90 %", Config { ceiling_permille: 900, ..of(Packing::Buddy) }),
        ];
        for (name, config) in kinds {
            if names.is_empty() || names.iter().any(|asked| asked == name) {
                measure(nodes, name, config);
            }
        }
    }
}
