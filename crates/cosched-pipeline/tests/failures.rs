//! After any failure, in any place: the pipeline ends with the stage's name, all buffers are back, no thread is left, and
//! every stage whose `init` ran is cleaned up. One test alone in its process, because it counts the process's threads and
//! buffers.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use cosched_pipeline::{
    Body, BoxError, Buffer, Cause, Each, Failure, Flow, Graph, Kind, Options, Path, Port, Resource, Stage, StageId,
};

const ROUNDS: u64 = 40;
const BUFFERS: usize = 4;

/// Where a stage fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Init,
    Round(u64),
    Cleanup,
    /// In its drop, which cannot return an error.
    Drop,
    Nowhere,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Position {
    Source,
    Middle,
    Replicated,
    Body,
    Sink,
}

const POSITIONS: [Position; 5] =
    [Position::Source, Position::Middle, Position::Replicated, Position::Body, Position::Sink];
const PLACES: [Place; 6] =
    [Place::Init, Place::Round(0), Place::Round(7), Place::Round(ROUNDS - 1), Place::Cleanup, Place::Drop];

#[derive(Debug, Clone, Copy)]
struct Case {
    position: Position,
    place: Place,
    panics: bool,
    kind: Kind,
    /// Source and sink share a thread.
    shares: bool,
}

/// How often stages were initialised and cleaned up.
#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    cleaned: AtomicUsize,
}

/// A stage that fails as specified.
struct Failing {
    place: Place,
    panics: bool,
    source: bool,
    round: u64,
    counts: Arc<Counts>,
}

impl Failing {
    fn at(&self, place: Place) -> Result<(), BoxError> {
        if self.place != place {
            return Ok(());
        }
        assert!(!self.panics, "on purpose");
        Err("on purpose".into())
    }

    fn begins(&self) -> Result<(), BoxError> {
        self.at(Place::Init)?;
        self.counts.begun.fetch_add(1, SeqCst);
        Ok(())
    }

    fn cleans(&self) -> Result<(), BoxError> {
        self.counts.cleaned.fetch_add(1, SeqCst);
        self.at(Place::Cleanup)
    }
}

impl Each for Failing {
    fn init(&mut self) -> Result<(), BoxError> {
        self.begins()
    }

    fn round(&mut self, buffer: &mut Buffer) -> Result<Flow, BoxError> {
        let round = if self.source { self.round } else { buffer.round() };
        self.at(Place::Round(round))?;
        self.round += 1;
        if !self.source {
            return Ok(Flow::Continue);
        }
        buffer.set_len(8);
        Ok(if round + 1 == ROUNDS { Flow::Last } else { Flow::Continue })
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.cleans()
    }
}

impl Body for Failing {
    fn init(&mut self) -> Result<(), BoxError> {
        self.begins()
    }

    fn run(&mut self, port: &mut Port) -> Result<(), BoxError> {
        // It holds one buffer while it takes the next.
        let mut held: Option<Buffer> = None;
        while let Some(buffer) = port.accept() {
            self.at(Place::Round(buffer.round()))?;
            if let Some(before) = held.replace(buffer) {
                port.convey(before);
            }
        }
        held.into_iter().for_each(|buffer| port.convey(buffer));
        Ok(())
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.cleans()
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        if self.place == Place::Drop && self.counts.begun.load(SeqCst) > 0 {
            self.place = Place::Nowhere;
            panic!("on purpose");
        }
    }
}

fn graph(case: &Case, counts: &Arc<Counts>) -> Graph {
    let failing = |position: Position, number: usize| Failing {
        place: if position == case.position && number == 0 { case.place } else { Place::Nowhere },
        panics: case.panics,
        source: position == Position::Source,
        round: 0,
        counts: counts.clone(),
    };
    let each = |position| Stage::each(format!("{position:?}"), Resource::Compute, failing(position, 0)).kind(case.kind);
    let share = |stage: Stage| if case.shares { stage.on_thread("both").repeat(2) } else { stage };
    let (of_replicated, number) = (failing(Position::Replicated, 0), AtomicUsize::new(0));
    let (place, panics, counts) = (of_replicated.place, of_replicated.panics, counts.clone());
    let replicated = Stage::replicated("Replicated", 2, Resource::Compute, move |_| Failing {
        // In a round any of them may fail; in `init`, `cleanup` and drop the first one.
        place: if matches!(place, Place::Round(_)) || number.fetch_add(1, SeqCst) == 0 {
            place
        } else {
            Place::Nowhere
        },
        panics,
        source: false,
        round: 0,
        counts: counts.clone(),
    });
    drop(of_replicated);
    let mut graph = Graph::new("failing");
    let stages: Vec<StageId> = graph.stages([
        share(each(Position::Source)),
        each(Position::Middle),
        replicated.kind(case.kind),
        Stage::body("Body", Resource::Compute, failing(Position::Body, 0)),
        share(each(Position::Sink)),
    ]);
    graph.path(Path::new("p").buffers(BUFFERS, 64).through(stages));
    graph
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for position in POSITIONS {
        for place in PLACES {
            for panics in [false, true] {
                for (kind, shares) in [(Kind::Thread, false), (Kind::Thread, true), (Kind::Worker, false)] {
                    if panics || place != Place::Drop {
                        cases.push(Case { position, place, panics, kind, shares });
                    }
                }
            }
        }
    }
    cases
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// Joined threads may stay in the kernel's list for a moment.
fn only_these_threads(before: usize, what: &str) {
    let begin = Instant::now();
    while threads() > before {
        assert!(begin.elapsed() < Duration::from_secs(5), "threads are left: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.workers = Some(2);
    options
}

fn check_failure(case: &Case, failure: &Failure, counts: &Counts) {
    assert_eq!(failure.stage, Some(format!("{:?}", case.position)), "{failure}");
    assert_eq!(matches!(failure.cause, Cause::Panic(_)), case.panics, "{failure}");
    assert_eq!(matches!(failure.cause, Cause::Stage(_)), !case.panics, "{failure}");
    assert!(failure.to_string().contains("on purpose"), "{failure}");
    let rounds: Vec<u64> = failure.report.stages.iter().map(|stage| stage.rounds).collect();
    match case.place {
        Place::Init => assert_eq!(rounds, [0; 5], "nothing moves before all have begun"),
        Place::Round(round) => {
            let place = POSITIONS.iter().position(|position| *position == case.position).unwrap();
            // The other incarnation continues with the buffers behind; none of these overtakes.
            let ahead = if case.position == Position::Replicated { BUFFERS as u64 } else { 0 };
            assert!(rounds[place] <= round + ahead, "{rounds:?}");
            assert!(rounds[place + 1..].iter().all(|rounds| *rounds <= round), "{rounds:?}");
        }
        // A stage may have ended, and fail in its cleanup, while the stages after it still work.
        _ => assert!(rounds.is_sorted_by(|before, behind| before >= behind), "{rounds:?}"),
    }
    assert_eq!(counts.begun.load(SeqCst), counts.cleaned.load(SeqCst), "who has begun is cleaned up");
}

fn every_failure_ends_it_cleanly() {
    let before = threads();
    for case in cases() {
        let counts = Arc::new(Counts::default());
        let what = format!("{case:?}");
        let result = std::panic::catch_unwind(|| {
            let failure = graph(&case, &counts).run(&options()).unwrap_err();
            check_failure(&case, &failure, &counts);
        });
        assert!(result.is_ok(), "{what}");
        assert_eq!(Buffer::alive(), 0, "buffers are left: {what}");
        only_these_threads(before, &what);
    }
}

/// A graph that would run forever, with threads in all kinds of waits.
fn endless() -> Graph {
    let mut graph = Graph::new("endless");
    let source = graph.stage(Stage::source("source", Resource::Io, |_: &mut Buffer| Ok(Flow::Continue)));
    let slow = graph.stage(Stage::blocking("slow", Resource::Io, |_| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }));
    let work = graph.stage(Stage::replicated("work", 2, Resource::Compute, |_| |_: &mut Buffer| Ok(Flow::Continue)));
    let never = graph.stage(Stage::body("never", Resource::Io, |port: &mut Port| {
        let paths = port.paths().to_vec();
        // The first path is busy, the second one never brings anything: the stage waits in vain although buffers are queued
        // for it.
        if let Some(buffer) = port.accept_from(paths[1]) {
            port.convey(buffer);
        }
        Ok(())
    }));
    let silent = graph.stage(Stage::body("silent", Resource::Io, |port: &mut Port| {
        let held = port.accept();
        while !port.stopping() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        Ok(())
    }));
    graph.path(Path::new("busy").buffers(3, 64).through([source, work, slow, never]));
    graph.path(Path::new("silent").buffers(1, 64).through([silent, never]));
    graph
}

fn stopping_and_dropping_end_it() {
    let before = threads();
    for wait in [Duration::ZERO, Duration::from_millis(20)] {
        let running = endless().start(&options()).unwrap();
        std::thread::sleep(wait);
        running.stop();
        let failure = running.wait().unwrap_err();
        assert!(failure.stage.is_none() && matches!(failure.cause, Cause::Stopped), "{failure}");
        let running = endless().start(&options()).unwrap();
        std::thread::sleep(wait);
        drop(running);
        assert_eq!(Buffer::alive(), 0);
        only_these_threads(before, "stopped and dropped");
    }
}

fn a_stopped_gate_opens() {
    let before = threads();
    let slow = |name: &str| {
        struct Slow;
        impl Each for Slow {
            fn init(&mut self) -> Result<(), BoxError> {
                std::thread::sleep(Duration::from_millis(50));
                Ok(())
            }
            fn round(&mut self, _: &mut Buffer) -> Result<Flow, BoxError> {
                Ok(Flow::Last)
            }
        }
        Stage::each(name, Resource::Io, Slow)
    };
    let line = cosched_pipeline::Pipeline::new("gate").buffers(1, 64).stage(slow("source"));
    let running = line.stage(Stage::blocking("sink", Resource::Io, |_| Ok(()))).start(&options()).unwrap();
    running.stop();
    let failure = running.wait().unwrap_err();
    assert!(failure.report.stages.iter().all(|stage| stage.rounds == 0), "{failure}");
    assert_eq!(Buffer::alive(), 0);
    only_these_threads(before, "the gate");
}

#[test]
fn all_ends_are_clean() {
    // Hundreds of stages panic on purpose.
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("on purpose") {
            show(panic);
        }
    }));
    common::bounded(|| {
        every_failure_ends_it_cleanly();
        stopping_and_dropping_end_it();
        a_stopped_gate_opens();
    });
}
