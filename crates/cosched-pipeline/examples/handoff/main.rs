//! The cost of handing a buffer from stage to stage: this library, with a thread per stage and run-to-completion, compared
//! with queues from Rust crates.
//!
//! `cargo run --release -p cosched-pipeline --example handoff -- [--quick] [--engines a,b] [--cells 2x1,5x2w10] [--runs N]`
//! prints one JSON object per line: engine, stages, cpus, work_us (per stage and buffer), ns_per_buffer_stage (median over the
//! runs), and its spread. All engines run the same program: the given number of stages in a row, each on a thread (or on one
//! worker per CPU: cosched-worker), with buffers that circulate through a pool, on the given number of CPUs (set by affinity).
//! The engines are interleaved: one run of each after the other. With work, the bound is stages × work / CPUs per buffer.
//! `tools/bench/bench pipeline` runs this together with the pipelines in C++.

mod chains;
mod ours;
mod work;

use std::time::Duration;

use cosched_pipeline::Kind;
use serde_json::json;

use crate::work::steps_per_us;

/// This library's engines.
const OURS: [&str; 2] = ["cosched-thread", "cosched-worker"];

/// What is measured for one line of the result.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) stages: usize,
    pub(crate) cpus: usize,
    pub(crate) work_us: u64,
    /// `work_us` converted to steps of work.
    pub(crate) work_steps: u64,
    pub(crate) buffers: usize,
    /// Number of buffers that the source conveys in total.
    pub(crate) rounds: u64,
}

struct Arguments {
    engines: Vec<String>,
    cells: Vec<Cell>,
    runs: usize,
}

fn main() {
    let arguments = arguments();
    for cell in &arguments.cells {
        if pin(cell.cpus) < cell.cpus {
            eprintln!("handoff: {} CPUs are not there; left out", cell.cpus);
            continue;
        }
        // An engine that only spins needs a CPU for each thread.
        let fits = |engine: &&String| *engine != "spsc-spin" || cell.stages <= cell.cpus;
        let engines: Vec<&String> = arguments.engines.iter().filter(fits).collect();
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); engines.len()];
        for _ in 0..arguments.runs {
            for (engine, times) in engines.iter().zip(&mut times) {
                let time = run(engine, cell);
                times.push(time.as_nanos() as f64 / (cell.rounds * cell.stages as u64) as f64);
            }
        }
        for (engine, mut times) in engines.into_iter().zip(times) {
            times.sort_by(f64::total_cmp);
            let round = |ns: f64| (ns * 10.0).round() / 10.0;
            println!(
                "{}",
                json!({
                    "engine": engine, "stages": cell.stages, "cpus": cell.cpus, "work_us": cell.work_us,
                    "ns_per_buffer_stage": round(times[times.len() / 2]),
                    "ns_min": round(times[0]), "ns_max": round(times[times.len() - 1]),
                    "runs": times.len(), "buffers": cell.buffers, "rounds": cell.rounds,
                })
            );
        }
    }
}

fn run(engine: &str, cell: &Cell) -> Duration {
    match engine {
        "cosched-thread" => ours::run(cell, Kind::Thread),
        "cosched-worker" => ours::run(cell, Kind::Worker),
        _ => chains::run(engine, cell).unwrap_or_else(|| {
            eprintln!("handoff: no engine '{engine}'; there are {} {}", OURS.join(" "), chains::ENGINES.join(" "));
            std::process::exit(2)
        }),
    }
}

fn arguments() -> Arguments {
    let mut engines = OURS.into_iter().chain(chains::ENGINES).map(str::to_owned).collect();
    let (mut cells, mut runs, mut buffers, mut quick) = ("2x1,2x2,5x1,5x2,5x2w10".to_owned(), 7, 16, false);
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().unwrap_or_else(|| usage(&format!("{argument} needs a value")));
        match argument.as_str() {
            "--quick" => quick = true,
            "--engines" => engines = value().split(',').map(str::to_owned).collect(),
            "--cells" => cells = value(),
            "--runs" => runs = number(&value()),
            "--buffers" => buffers = number(&value()),
            _ => usage(&format!("unknown: {argument}")),
        }
    }
    let cells = cells.split(',').map(|text| cell(text, buffers, if quick { 10 } else { 1 })).collect();
    Arguments { engines, cells, runs: if quick { 3 } else { runs.max(1) } }
}

/// "5x2w10": 5 stages on 2 CPUs with 10 µs of work; "5x2s9000": with 9000 steps of work.
fn cell(text: &str, buffers: usize, part: u64) -> Cell {
    let (stages, rest) = text.split_once('x').unwrap_or_else(|| usage(&format!("not a cell: {text}")));
    let (cpus, work_us, work_steps) = if let Some((cpus, steps)) = rest.split_once('s') {
        let steps = number(steps) as u64;
        (cpus, steps.div_ceil(steps_per_us()), steps)
    } else {
        let (cpus, us) = rest.split_once('w').unwrap_or((rest, "0"));
        let us = number(us) as u64;
        (cpus, us, us * steps_per_us())
    };
    let rounds = 100_000_u64.checked_div(work_us).unwrap_or(200_000) / part;
    Cell { stages: number(stages), cpus: number(cpus), work_us, work_steps, buffers, rounds: rounds.max(1) }
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| usage(&format!("not a number: {text}")))
}

fn usage(what: &str) -> ! {
    eprintln!(
        "handoff: {what}\nusage: handoff [--quick] [--engines A,B] [--cells 2x1,5x2w10] [--runs N] [--buffers N]"
    );
    std::process::exit(2)
}

/// Binds this thread, and those that it starts, to the first `cpus` CPUs. Returns the number that it got.
fn pin(cpus: usize) -> usize {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    static ALL: std::sync::OnceLock<Option<CpuSet>> = std::sync::OnceLock::new();
    let Some(all) = ALL.get_or_init(|| sched_getaffinity(None).ok()) else { return 0 };
    let mut set = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).take(cpus).for_each(|cpu| set.set(cpu));
    // The kernel ignores CPUs that do not exist.
    if sched_setaffinity(None, &set).is_err() {
        return 0;
    }
    sched_getaffinity(None).map_or(0, |set| set.count() as usize)
}
