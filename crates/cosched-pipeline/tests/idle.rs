//! Workers without work sleep. Alone in its process, because it measures the CPU time of all workers.

use std::sync::mpsc::channel;
use std::time::Duration;

use cosched_pipeline::{Buffer, Flow, Kind, Options, Pipeline, Resource, Stage};

fn count_to(n: u64) -> Stage {
    let mut next = 0;
    Stage::source("count", Resource::Compute, move |buffer: &mut Buffer| {
        buffer.set_tag(next);
        next += 1;
        Ok(if next == n { Flow::Last } else { Flow::Continue })
    })
}

#[test]
fn idle_workers_use_no_cpu() {
    let (to, from) = channel();
    let slow = Stage::blocking("slow", Resource::Io, |_| {
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    });
    let line = Pipeline::new("idle").buffers(4, 8).stage(count_to(60).kind(Kind::Thread)).stage(slow);
    let line = line.stage(Stage::compute("work", move |buffer| Ok(to.send(buffer.tag())?)));
    let line = line.stage(Stage::compute("more", |_| Ok(())));
    let mut options = Options::default();
    options.workers = Some(2);
    let running = line.start(&options).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let spent_s = cpu_of_workers();
    running.wait().unwrap();
    assert_eq!(from.try_iter().count(), 60);
    // 60 wake-ups with their search take about 10 µs each; 10 % of the time is allowed.
    assert!(spent_s < 0.05, "{spent_s} s of CPU in 0.5 s");
}

/// CPU time of all threads of this process with the workers' name, in seconds.
fn cpu_of_workers() -> f64 {
    let mut sum_ns = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        if read("comm").starts_with("worker") {
            sum_ns += read("schedstat").split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    sum_ns as f64 / 1e9
}
