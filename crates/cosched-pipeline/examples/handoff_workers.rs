//! The run-to-completion side of `bench pipeline`: a number of tokens go through serial stages on workers, a fixed pool of
//! buffers goes round, each stage touches its token and then works for so many loops. The time is that from the first call of
//! the first stage to the last of the last one: what it takes to make threads is left out. One line of JSON.
//!
//! The peers do the same in `tools/bench/pipeline_peers.cpp`.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cosched_pipeline::{Buffer, Flow, Kind, Options, Pipeline, Resource, Stage};

const USAGE: &str = "handoff_workers [--stages N] [--tokens N] [--buffers N] [--workers N] [--loops N] [--threads]";

struct Asked {
    stages: u64,
    tokens: u64,
    buffers: u64,
    workers: u64,
    loops: u64,
    threads: bool,
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked { stages: 2, tokens: 100_000, buffers: 16, workers: 1, loops: 0, threads: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let place = match word.as_str() {
            "--stages" => &mut asked.stages,
            "--tokens" => &mut asked.tokens,
            "--buffers" => &mut asked.buffers,
            "--workers" => &mut asked.workers,
            "--loops" => &mut asked.loops,
            "--threads" => {
                asked.threads = true;
                continue;
            }
            _ => return Err(format!("what is '{word}'? {USAGE}")),
        };
        let value = words.next().unwrap_or_default();
        *place = value.parse().map_err(|_| format!("{word}: '{value}' is not a number"))?;
    }
    if [asked.stages - asked.stages.min(1), asked.tokens, asked.buffers, asked.workers].contains(&0) {
        return Err(format!("2 stages at least, and only --loops may be 0; {USAGE}"));
    }
    Ok(asked)
}

/// The same dependent steps as in the C++ program.
fn work(seed: u64, loops: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..loops {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

fn touch(buffer: &mut Buffer, loops: u64) {
    let step = if loops > 0 { work(buffer.tag(), loops) & 1 } else { 1 };
    buffer.set_tag(buffer.tag().wrapping_add(step));
}

fn main() {
    let asked = asked().unwrap_or_else(|error| {
        eprintln!("handoff_workers: {error}");
        std::process::exit(2);
    });
    let (loops, tokens) = (asked.loops, asked.tokens);
    let kind = if asked.threads { Kind::Thread } else { Kind::Worker };
    let (begin, end) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let (began, ended) = (begin.clone(), end.clone());
    let mut next = 0;
    let source = Stage::source("stage 0", Resource::Compute, move |buffer: &mut Buffer| {
        if next == 0 {
            began.get_or_init(Instant::now);
        }
        touch(buffer, loops);
        next += 1;
        Ok(if next == tokens { Flow::Last } else { Flow::Continue })
    });
    let mut line = Pipeline::new("handoff").buffers(asked.buffers as usize, 4096).stage(source.kind(kind));
    for number in 1..asked.stages {
        let ended = ended.clone();
        let is_sink = number + 1 == asked.stages;
        let mut seen = 0;
        let stage = Stage::compute(format!("stage {number}"), move |buffer| {
            touch(buffer, loops);
            seen += 1;
            if is_sink && seen == tokens {
                ended.get_or_init(Instant::now);
            }
            Ok(())
        });
        line = line.stage(stage.kind(kind));
    }
    let mut options = Options::default();
    options.workers = Some(asked.workers as usize);
    let report = line.run(&options).unwrap_or_else(|failure| {
        eprintln!("handoff_workers: {failure}");
        std::process::exit(1);
    });
    let at = |of: &OnceLock<Instant>| *of.get().expect("the first and the last stage have run");
    let took_s = (at(&end) - at(&begin)).as_secs_f64();
    assert!(report.stages.iter().all(|stage| stage.rounds == tokens), "{report:?}");
    let busy_s: Vec<f64> = report.stages.iter().map(|stage| stage.busy_s).collect();
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_s = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let ns_per_visit = took_s * 1e9 / (asked.tokens * asked.stages) as f64;
    println!(
        "{{\"peer\": \"cosched\", \"elapsed_s\": {took_s:.9}, \"cpu_s\": {cpu_s:.6}, \"ns_per_visit\": {ns_per_visit:.3}, \"busy_s\": {busy_s:?}}}"
    );
}
