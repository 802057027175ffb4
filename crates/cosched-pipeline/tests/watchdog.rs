//! The watchdog names the stage that holds a buffer for too long, and ends a run only if configured
//! to.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use common::{bounded, numbers};
use cosched_pipeline::{
    BoxError, Buffer, Cause, Each, Failure, Flow, Graph, Options, Path, Pipeline, Port, Resource, Stage,
};

fn options(limit_ms: u64) -> Options {
    let mut options = Options::default();
    options.stall_limit = Some(Duration::from_millis(limit_ms));
    options
}

/// Works on block 2 until the flag is set; the other blocks pass.
fn stuck(name: &str, free: &Arc<AtomicBool>) -> Stage {
    let free = free.clone();
    Stage::blocking(name, Resource::Io, move |buffer| {
        while buffer.tag() == 2 && !free.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })
}

fn names_of_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect()
}

#[test]
fn a_stage_that_does_not_come_back_is_named_and_left_behind() {
    bounded(|| {
        let free = Arc::new(AtomicBool::new(false));
        let line =
            Pipeline::new("cst-stuck").buffers(3, 64).stage(numbers("read", 100)).stage(stuck("cst-sleeps", &free));
        let line = line.stage(Stage::blocking("cst-writes", Resource::Io, |_| Ok(())));
        let began = Instant::now();
        let failure = line.run(&options(150)).unwrap_err();
        assert!(began.elapsed() > Duration::from_millis(150));
        assert_eq!(failure.stage.as_deref(), Some("cst-sleeps"));
        let Cause::Stalled(words) = &failure.cause else { panic!("{failure}") };
        assert!(words.contains("stage 'cst-sleeps' works on block 2 for"), "{words}");
        let stall = &failure.report.stalls[0];
        assert_eq!((stall.stage.as_str(), stall.what.as_str(), stall.over), ("cst-sleeps", "works on block 2", false));
        assert!(
            failure.report.text().contains("stuck: stage 'cst-sleeps' works on block 2"),
            "{}",
            failure.report.text()
        );
        let ours = |names: &[String]| names.iter().filter(|name| name.starts_with("cst-")).count();
        assert_eq!(ours(&names_of_threads()), 1, "only the stuck thread is left: {:?}", names_of_threads());
        free.store(true, SeqCst);
        let began = Instant::now();
        while ours(&names_of_threads()) > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "it ends when its stage comes back");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn slow_is_not_stuck() {
    bounded(|| {
        let line = Pipeline::new("cst-slow").buffers(3, 64).stage(numbers("read", 8));
        let line = line.stage(Stage::blocking("sleeps", Resource::Io, |_| {
            std::thread::sleep(Duration::from_millis(60));
            Ok(())
        }));
        let report = line.run(&options(300)).unwrap();
        assert_eq!((report.rounds, report.stalls.len()), (8, 0), "8 x 60 ms are more than the limit, one is not");
    });
}

#[test]
fn a_stall_that_ends_is_told_and_hurts_nobody() {
    bounded(|| {
        let free = Arc::new(AtomicBool::new(false));
        let line = Pipeline::new("cst-late").buffers(3, 64).stage(numbers("read", 6)).stage(stuck("late", &free));
        let mut options = Options::default();
        options.stall_warning = Some(Duration::from_millis(40));
        let running = line.start(&options).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        let now = running.snapshot();
        assert!(now.stages[1].busy_s > 0.05, "what goes on is in the snapshot: {:?}", now.stages[1]);
        assert!(now.stalls.len() == 1 && !now.stalls[0].over && now.stalls[0].held_s >= 0.04, "{:?}", now.stalls);
        free.store(true, SeqCst);
        let report = running.wait().unwrap();
        assert_eq!(report.rounds, 6);
        assert!(report.stalls.len() == 1 && report.stalls[0].over, "{:?}", report.stalls);
    });
}

/// Takes three buffers before it returns one.
fn hoarder() -> Stage {
    Stage::body("hoards", Resource::Compute, |port: &mut Port| {
        let mut held = Vec::new();
        while let Some(buffer) = port.accept() {
            held.push(buffer);
            if held.len() == 3 {
                held.drain(..).for_each(|buffer| port.convey(buffer));
            }
        }
        held.drain(..).for_each(|buffer| port.convey(buffer));
        Ok(())
    })
}

#[test]
fn a_graph_in_which_all_wait_names_who_holds_the_buffers() {
    bounded(|| {
        let line = |buffers| Pipeline::new("cst-hoard").buffers(buffers, 64).stage(numbers("read", 9)).stage(hoarder());
        assert_eq!(line(3).run(&options(200)).unwrap().rounds, 9, "three are enough");
        let failure: Failure = line(2).run(&options(200)).unwrap_err();
        assert_eq!(failure.stage.as_deref(), Some("hoards"));
        let words = failure.to_string();
        assert!(words.contains("holds 2 buffers and waits for more") && words.contains("nothing will move"), "{words}");
        assert!(failure.report.stalls[0].what.starts_with("holds 2 buffers"), "{:?}", failure.report.stalls);
    });
}

/// Takes all buffers of one path before those of the other; `order` has the paths' indices among
/// the stage's paths.
fn in_order(name: &str, order: [usize; 2]) -> Stage {
    Stage::body(name, Resource::Compute, move |port: &mut Port| {
        let paths = port.paths().to_vec();
        for index in order {
            while let Some(buffer) = port.accept_from(paths[index]) {
                port.convey(buffer);
            }
        }
        Ok(())
    })
}

#[test]
fn two_bodies_that_wait_for_each_other_are_named() {
    bounded(|| {
        let graph = |second: [usize; 2]| {
            let mut graph = Graph::new("cst-opposite");
            let (there, back) = (graph.stage(numbers("there", 5)), graph.stage(numbers("back", 5)));
            let (first, second) = (graph.stage(in_order("first", [0, 1])), graph.stage(in_order("second", second)));
            graph.path(Path::new("there").buffers(2, 64).through([there, second, first]));
            graph.path(Path::new("back").buffers(2, 64).through([back, first, second]));
            graph
        };
        assert!(graph([0, 1]).run(&options(200)).is_ok(), "in the same order they come through");
        let failure = graph([1, 0]).run(&options(200)).unwrap_err();
        assert!(matches!(failure.cause, Cause::Stalled(_)), "{failure}");
        assert!(["first", "second"].contains(&failure.stage.as_deref().unwrap_or_default()), "{failure}");
        let words = failure.to_string();
        assert!(words.contains("waits for a block, as all others do") && words.contains("same order"), "{words}");
    });
}

/// Does not return from its `init` until the flag is set.
struct Begins(Arc<AtomicBool>);

impl Each for Begins {
    fn init(&mut self) -> Result<(), BoxError> {
        while !self.0.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn round(&mut self, _: &mut Buffer) -> Result<Flow, BoxError> {
        Ok(Flow::Continue)
    }
}

#[test]
fn a_stage_that_never_begins_is_named_too() {
    bounded(|| {
        let free = Arc::new(AtomicBool::new(false));
        let begins = Stage::each("begins", Resource::Io, Begins(free.clone()));
        let line = Pipeline::new("cst-init").buffers(3, 64).stage(numbers("read", 4)).stage(begins);
        let failure = line.run(&options(150)).unwrap_err();
        free.store(true, SeqCst);
        assert!(failure.to_string().contains("stage 'begins' is in its init or cleanup for"), "{failure}");
    });
}

#[test]
fn one_incarnation_that_is_stuck_is_seen_while_the_others_go_on() {
    bounded(|| {
        let free = Arc::new(AtomicBool::new(false));
        let there = free.clone();
        let work = Stage::replicated("sort", 2, Resource::Io, move |_| {
            let free = there.clone();
            move |buffer: &mut Buffer| -> Result<Flow, BoxError> {
                while buffer.tag() == 2 && !free.load(SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(Duration::from_millis(1));
                Ok(Flow::Continue)
            }
        });
        let line = Pipeline::new("cst-one").buffers(4, 64).stage(numbers("read", u64::MAX));
        let failure = line.stage(work.ordered(false)).run(&options(200)).unwrap_err();
        free.store(true, SeqCst);
        assert_eq!(failure.stage.as_deref(), Some("sort"));
        assert!(failure.to_string().contains("works on block 2"), "{failure}");
        assert!(failure.report.rounds > 20, "the other one went on: {}", failure.report.rounds);
    });
}

#[test]
fn a_stage_on_the_workers_is_named_too() {
    bounded(|| {
        let free = Arc::new(AtomicBool::new(false));
        let there = free.clone();
        let stuck = Stage::compute("sorts", move |buffer| {
            while buffer.tag() == 3 && !there.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        let line = Pipeline::new("cst-worker").buffers(3, 64).stage(numbers("read", 100)).stage(stuck);
        let failure = line.stage(Stage::compute("merges", |_| Ok(()))).run(&options(200)).unwrap_err();
        free.store(true, SeqCst);
        assert_eq!(failure.stage.as_deref(), Some("sorts"), "{failure}");
        assert!(failure.to_string().contains("stage 'sorts' works on block 3 for"), "{failure}");
    });
}
