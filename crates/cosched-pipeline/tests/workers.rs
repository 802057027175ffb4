//! Stages on workers: the same results as on threads, for any graph, and nothing is left behind.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;

use common::bounded;
use cosched_pipeline::{BoxError, Buffer, Cause, Each, Flow, Graph, Options, Path, Pipeline, Resource, Stage};

fn workers(count: usize) -> Options {
    let mut options = Options::default();
    options.workers = Some(count);
    options
}

fn count_to(n: u64) -> Stage {
    let mut next = 0;
    Stage::source("count", Resource::Compute, move |buffer: &mut Buffer| {
        buffer.set_tag(next);
        buffer.set_len(1);
        next += 1;
        Ok(if next == n { Flow::Last } else { Flow::Continue })
    })
}

/// Records the calls that it got, one letter each.
struct Calls(Arc<std::sync::Mutex<String>>, Option<&'static str>);

impl Calls {
    fn got(&self, call: char, name: &str) -> Result<(), BoxError> {
        self.0.lock().unwrap().push(call);
        if self.1 == Some(name) { Err(format!("no {name}").into()) } else { Ok(()) }
    }
}

impl Each for Calls {
    fn init(&mut self) -> Result<(), BoxError> {
        self.got('i', "init")
    }

    fn round(&mut self, _: &mut Buffer) -> Result<Flow, BoxError> {
        self.got('r', "round").map(|()| Flow::Continue)
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.got('c', "cleanup")
    }
}

#[test]
fn a_stage_is_begun_once_and_ended_once_also_behind_an_error() {
    for (bad, calls) in [(None, "irrrc"), (Some("init"), "i"), (Some("round"), "irc"), (Some("cleanup"), "irrrc")] {
        let heard = Arc::new(std::sync::Mutex::new(String::new()));
        let stage = Stage::each("calls", Resource::Compute, Calls(heard.clone(), bad));
        let line = Pipeline::new("calls").buffers(2, 8).stage(count_to(3)).stage(stage);
        let result = bounded(move || line.run(&workers(2)));
        assert_eq!(*heard.lock().unwrap(), calls);
        match (result, bad) {
            (Ok(_), None) => {}
            (Err(failure), Some(_)) => assert_eq!(failure.stage.as_deref(), Some("calls")),
            (result, _) => panic!("{result:?}"),
        }
    }
}

#[test]
fn a_stage_without_buffers_is_begun_and_ended_too() {
    let heard = Arc::new(std::sync::Mutex::new(String::new()));
    let stage = Stage::each("calls", Resource::Compute, Calls(heard.clone(), None));
    let nothing = Stage::source("none", Resource::Compute, |_: &mut Buffer| Ok(Flow::End));
    let line = Pipeline::new("none").buffers(2, 8).stage(nothing).stage(stage);
    let report = bounded(move || line.run(&workers(3))).unwrap();
    assert_eq!(*heard.lock().unwrap(), "ic");
    assert!(report.stages.iter().all(|stage| stage.rounds == 0 && stage.kind == "worker"), "{report:?}");
}

#[test]
fn workers_that_are_none_or_too_many_are_no_hang() {
    let line = |n| Pipeline::new("line").buffers(2, 8).stage(count_to(n)).stage(Stage::compute("work", |_| Ok(())));
    let failure = line(5).run(&workers(0)).unwrap_err();
    assert!(failure.to_string().contains("0 workers"), "{failure}");
    bounded(move || line(5000).run(&workers(40))).unwrap();
}

#[test]
fn long_stages_use_all_workers_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let work = move |_: &mut Buffer| {
        seen.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        now.fetch_sub(1, SeqCst);
        Ok(())
    };
    let mut line = Pipeline::new("long").buffers(8, 8).stage(count_to(30));
    for number in 0..3 {
        line = line.stage(Stage::compute(format!("work {number}"), work.clone()));
    }
    bounded(move || line.run(&workers(3))).unwrap();
    assert_eq!(most.load(SeqCst), 3);
}

#[test]
fn a_short_stage_that_turns_long_gets_help() {
    // The rounds are so short that one worker works alone; then one round does not end before the source has
    // continued.
    const STUCK: u64 = 150_000;
    let begun = Arc::new(AtomicU64::new(0));
    let seen = begun.clone();
    let mut next = 0;
    let source = Stage::source("count", Resource::Compute, move |buffer: &mut Buffer| {
        buffer.set_tag(next);
        next += 1;
        begun.store(next, SeqCst);
        Ok(if next == 200_000 { Flow::Last } else { Flow::Continue })
    });
    let stuck = Stage::compute("stuck", move |buffer| {
        while buffer.tag() == STUCK && seen.load(SeqCst) < STUCK + 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let line = Pipeline::new("turns").buffers(8, 8).stage(source).stage(stuck);
    bounded(move || line.run(&workers(2))).unwrap();
}

#[test]
fn a_source_of_several_paths_and_a_stage_that_all_pass() {
    let left = [40u64, 1, 25];
    let mut done = [0u64; 3];
    let mut graph = Graph::new("virtual");
    let source = graph.stage(Stage::source("all", Resource::Compute, move |buffer: &mut Buffer| {
        let path = buffer.path().index();
        buffer.set_tag(done[path]);
        done[path] += 1;
        Ok(if done[path] == left[path] { Flow::Last } else { Flow::Continue })
    }));
    let (to, from) = channel();
    let own: Vec<_> = (0..3).map(|i| graph.stage(Stage::compute(format!("own {i}"), |_| Ok(())))).collect();
    let sink = graph.stage(Stage::compute("sink", move |buffer| Ok(to.send((buffer.path().index(), buffer.tag()))?)));
    for (i, own) in own.into_iter().enumerate() {
        graph.path(Path::new(format!("path {i}")).buffers(i + 1, 8).through([source, own, sink]));
    }
    bounded(move || graph.run(&workers(3))).unwrap();
    let got: Vec<(usize, u64)> = from.try_iter().collect();
    for (path, left) in left.into_iter().enumerate() {
        let tags = got.iter().filter(|(of, _)| *of == path).map(|(_, tag)| *tag);
        assert!(tags.eq(0..left), "path {path}: {got:?}");
    }
}

#[test]
fn a_source_in_the_middle_of_a_run_is_told_and_stop_stops() {
    let says_last =
        Stage::each("middle", Resource::Compute, |_: &mut Buffer| -> Result<Flow, BoxError> { Ok(Flow::Last) });
    let line = Pipeline::new("misuse").buffers(2, 8).stage(count_to(9)).stage(says_last);
    let failure = bounded(move || line.run(&workers(2))).unwrap_err();
    assert!(matches!(failure.cause, Cause::Misuse(_)) && failure.stage.as_deref() == Some("middle"), "{failure}");

    let line =
        Pipeline::new("endless").buffers(4, 8).stage(count_to(u64::MAX)).stage(Stage::compute("work", |_| Ok(())));
    let running = line.start(&workers(2)).unwrap();
    while running.snapshot().stages[1].rounds < 1000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    running.stop();
    let failure = bounded(move || running.wait()).unwrap_err();
    assert!(matches!(failure.cause, Cause::Stopped), "{failure}");
}

#[test]
fn the_time_of_stages_is_told_though_not_all_of_it_is_measured() {
    let spin = |us: u64| {
        move |_: &mut Buffer| {
            let begin = std::time::Instant::now();
            while begin.elapsed() < Duration::from_micros(us) {
                std::hint::spin_loop();
            }
            Ok(())
        }
    };
    let line = Pipeline::new("time").buffers(4, 8).stage(count_to(20_000));
    let line = line.stage(Stage::compute("short", spin(1))).stage(Stage::compute("long", spin(10)));
    let report = bounded(move || line.run(&workers(1))).unwrap();
    let busy_s: Vec<f64> = report.stages.iter().map(|stage| stage.busy_s).collect();
    // There is no upper bound for what a busy machine adds; a lower bound is known, and all of it fits into the run.
    assert!(busy_s[1] > 0.016 && busy_s[2] > 0.2 && busy_s.iter().sum::<f64>() < 1.3 * report.elapsed_s, "{report:?}");
}

#[test]
fn a_trace_has_each_round_of_each_stage_once() {
    let line = Pipeline::new("trace").buffers(3, 8).stage(count_to(50));
    let work = Stage::replicated("work", 2, Resource::Compute, |_| {
        |_: &mut Buffer| -> Result<Flow, BoxError> { Ok(Flow::Continue) }
    });
    let line = line.stage(work).stage(Stage::compute("end", |_| Ok(())));
    let mut options = workers(2);
    options.trace = true;
    let report = bounded(move || line.run(&options)).unwrap();
    let trace = report.trace.unwrap();
    for stage in 0..3 {
        let mut rounds: Vec<u64> = trace.spans.iter().filter(|span| span.0 == stage).map(|span| span.2).collect();
        rounds.sort_unstable();
        assert!(rounds.iter().copied().eq(0..50), "stage {stage}: {rounds:?}");
    }
    assert!(report.stages.iter().all(|stage| stage.tids.is_empty()), "no worker lives any more");
}
