//! Random graphs: whether stages run on threads or on workers, the results are the same, all buffers come back, and no
//! thread is left. One test alone in its process, because it counts the process's threads and buffers.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use cosched_pipeline::{BoxError, Buffer, Flow, Graph, Kind, Options, Path, Resource, Stage};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[derive(Debug, Clone)]
struct Node {
    kind: Kind,
    incarnations: usize,
    ordered: bool,
    /// Time to sleep at every third buffer, in µs; 0: never.
    slow_us: u64,
}

#[derive(Debug, Clone)]
struct Case {
    /// The stages of each path between its source and its sink.
    paths: Vec<Vec<Node>>,
    source: Vec<Kind>,
    sink: Vec<Kind>,
    /// The kind of a stage that all paths go through after their own stages, if there is one.
    common: Option<Kind>,
    buffers: Vec<usize>,
    rounds: Vec<u64>,
    /// The source returns `Last` with the last block; otherwise `End` after it.
    says_last: bool,
    workers: usize,
    /// Path, stage and round at which a stage fails, and whether it panics.
    fails: Option<(usize, usize, u64, bool)>,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Thread), Just(Kind::Worker), Just(Kind::Worker)]
}

fn node() -> impl Strategy<Value = Node> {
    let incarnations = prop_oneof![3 => Just(1), 1 => 2..4usize];
    let slow_us = prop_oneof![5 => Just(0), 1 => 1..300u64];
    (kind(), incarnations, any::<bool>(), slow_us).prop_map(|(kind, incarnations, ordered, slow_us)| Node {
        kind,
        incarnations,
        ordered,
        slow_us,
    })
}

fn case() -> impl Strategy<Value = Case> {
    (1..4usize).prop_flat_map(|paths| {
        let many = paths..paths + 1;
        (
            prop::collection::vec(prop::collection::vec(node(), 0..5), many.clone()),
            prop::collection::vec(kind(), many.clone()),
            prop::collection::vec(kind(), many.clone()),
            prop::option::of(kind()),
            prop::collection::vec(1..9usize, many.clone()),
            prop::collection::vec(1..150u64, many),
            any::<bool>(),
            1..5usize,
            prop::option::weighted(0.25, (0..paths, 0..5usize, 0..100u64, any::<bool>())),
        )
            .prop_map(|(paths, source, sink, common, buffers, rounds, says_last, workers, fails)| Case {
                paths,
                source,
                sink,
                common,
                buffers,
                rounds,
                says_last,
                workers,
                fails,
            })
    })
}

fn source(name: String, rounds: u64, says_last: bool) -> Stage {
    let mut next = 0;
    Stage::source(name, Resource::Compute, move |buffer: &mut Buffer| {
        if next == rounds {
            return Ok(Flow::End);
        }
        assert!(buffer.is_empty() && buffer.tag() == 0, "an empty buffer is as new");
        buffer.set_tag(next << 8);
        buffer.set_len(8);
        next += 1;
        Ok(if says_last && next == rounds { Flow::Last } else { Flow::Continue })
    })
}

/// A stage that adds to the tag; a single incarnation also checks the order, if the buffers arrive in order.
fn middle(name: String, node: &Node, in_order: bool, fails: Option<(u64, bool)>) -> Stage {
    let Node { incarnations, slow_us, .. } = *node;
    let make = move |_| {
        let mut next = 0;
        move |buffer: &mut Buffer| -> Result<Flow, BoxError> {
            if incarnations == 1 && in_order {
                assert_eq!(buffer.round(), next, "not in order");
                next += 1;
            }
            if let Some((_, panics)) = fails.filter(|(round, _)| *round == buffer.round()) {
                assert!(!panics, "on purpose");
                return Err("on purpose".into());
            }
            if slow_us > 0 && buffer.round().is_multiple_of(3) {
                std::thread::sleep(Duration::from_micros(slow_us));
            }
            buffer.set_tag(buffer.tag() + 1);
            Ok(Flow::Continue)
        }
    };
    Stage::replicated(name, incarnations, Resource::Compute, make).ordered(node.ordered).kind(node.kind)
}

fn sink(name: String, path: usize, to: Sender<(usize, u64)>) -> Stage {
    Stage::compute(name, move |buffer| Ok(to.send((path, buffer.tag()))?))
}

fn graph(case: &Case, to: &Sender<(usize, u64)>) -> Graph {
    let mut graph = Graph::new("random");
    let common = case.common.map(|kind| {
        let stage = Stage::compute("common", |buffer| {
            buffer.set_tag(buffer.tag() + 1);
            Ok(())
        });
        graph.stage(stage.kind(kind))
    });
    for (index, nodes) in case.paths.iter().enumerate() {
        let rounds = case.rounds[index];
        let begin = source(format!("source {index}"), rounds, case.says_last).kind(case.source[index]);
        let mut stages = vec![graph.stage(begin)];
        let mut in_order = true;
        for (place, node) in nodes.iter().enumerate() {
            let fails = case.fails.filter(|(path, stage, ..)| (*path, *stage) == (index, place));
            let fails = fails.map(|(.., round, panics)| (round, panics));
            stages.push(graph.stage(middle(format!("stage {index}.{place}"), node, in_order, fails)));
            in_order &= node.ordered || node.incarnations == 1;
        }
        stages.extend(common);
        let end = sink(format!("sink {index}"), index, to.clone()).kind(case.sink[index]);
        stages.push(graph.stage(end));
        graph.path(Path::new(format!("path {index}")).buffers(case.buffers[index], 16).through(stages));
    }
    graph
}

/// The name of the stage that will fail, if its round is reached.
fn culprit(case: &Case) -> Option<String> {
    let (path, stage, round, _) = case.fails?;
    (stage < case.paths[path].len() && round < case.rounds[path]).then(|| format!("stage {path}.{stage}"))
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let (to, from) = channel();
    let mut options = Options::default();
    options.workers = Some(case.workers);
    let result = graph(case, &to).run(&options);
    drop(to);
    let got: Vec<(usize, u64)> = from.try_iter().collect();
    match (result, culprit(case)) {
        (Err(failure), Some(culprit)) => {
            prop_assert_eq!(failure.stage.as_deref(), Some(culprit.as_str()));
            prop_assert!(failure.to_string().contains("on purpose"), "{}", failure);
        }
        (Err(failure), None) => prop_assert!(false, "{}", failure),
        (Ok(_), Some(culprit)) => prop_assert!(false, "{} did not fail", culprit),
        (Ok(report), None) => {
            for stage in report.stages.iter().filter(|stage| stage.name != "common") {
                let path = stage.name.split([' ', '.']).nth(1).and_then(|path| path.parse::<usize>().ok()).unwrap_or(0);
                prop_assert_eq!(stage.rounds, case.rounds[path], "{}", stage.name);
                prop_assert_eq!(stage.queue, 0, "{}", stage.name);
            }
            for (index, nodes) in case.paths.iter().enumerate() {
                let passed = nodes.len() as u64 + u64::from(case.common.is_some());
                let mut tags: Vec<u64> = got.iter().filter(|(path, _)| *path == index).map(|(_, tag)| *tag).collect();
                if nodes.iter().any(|node| !node.ordered && node.incarnations > 1) {
                    tags.sort_unstable();
                }
                let wanted: Vec<u64> = (0..case.rounds[index]).map(|round| (round << 8) + passed).collect();
                prop_assert_eq!(tags, wanted, "path {}", index);
            }
        }
    }
    prop_assert_eq!(Buffer::alive(), 0, "buffers are left");
    Ok(())
}

/// Ends the process: a hang would continue, and the panic hook is silent because of the stages that panic on purpose.
fn fail(what: &str) -> ! {
    eprintln!("{what}");
    std::process::exit(1)
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// The number of threads of the process, once there are at most `few`. A thread that has been joined is listed for a moment
/// longer.
fn threads_but(few: usize) -> usize {
    let begin = Instant::now();
    while threads() > few && begin.elapsed() < Duration::from_secs(2) {
        std::thread::yield_now();
    }
    threads()
}

#[test]
fn random_graphs_do_the_same_on_threads_and_on_workers() {
    // Anything that a hang leaves running ends with the process.
    let (done, result) = channel();
    let before = threads() + 1;
    let limit = Duration::from_secs(std::env::var("CST_RANDOM_S").ok().and_then(|s| s.parse().ok()).unwrap_or(4));
    let now = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let shown = now.clone();
    std::thread::spawn(move || {
        std::panic::set_hook(Box::new(|_| {}));
        let mut runner = TestRunner::new(Config {
            cases: u32::MAX,
            max_shrink_time: 5000,
            failure_persistence: None,
            ..Config::default()
        });
        let begin = Instant::now();
        let outcome = runner.run(&case(), |case| {
            if begin.elapsed() > limit {
                return Err(TestCaseError::fail("time is over"));
            }
            *shown.lock().unwrap() = format!("{case:?}");
            check(&case)?;
            prop_assert_eq!(threads_but(before), before, "threads are left");
            Ok(())
        });
        done.send(outcome.err().map_or(String::new(), |error| error.to_string()))
    });
    let mut seen = String::new();
    loop {
        match result.recv_timeout(Duration::from_secs(20)) {
            Ok(error) if error.contains("time is over") || error.is_empty() => return,
            Ok(error) => fail(&error),
            Err(_) => {
                let case = now.lock().unwrap().clone();
                if case == seen {
                    fail(&format!("it hangs: {case}"));
                }
                seen = case;
            }
        }
    }
}
