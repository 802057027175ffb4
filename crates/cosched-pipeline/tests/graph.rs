//! Graphs of every kind run to their end, and their data arrives: with all stages on threads, all on workers, and mixed.

use std::sync::mpsc::{Receiver, Sender, channel};

use cosched_pipeline::{BoxError, Buffer, Cause, Flow, Graph, Kind, Options, Path, Pipeline, Port, Resource, Stage};

/// How the stages run: all of one kind, or each by its default.
const HOW: [Option<Kind>; 3] = [Some(Kind::Thread), Some(Kind::Worker), None];

fn run_as(stage: Stage, how: Option<Kind>) -> Stage {
    match how {
        Some(kind) => stage.kind(kind),
        None => stage,
    }
}

/// A source of the numbers below `n`, as tags.
fn numbers(name: &str, n: u64, how: Option<Kind>) -> Stage {
    let mut next = 0;
    let each = move |buffer: &mut Buffer| {
        if next == n {
            return Ok(Flow::End);
        }
        buffer.set_tag(next);
        buffer.set_len(8);
        next += 1;
        Ok(Flow::Continue)
    };
    run_as(Stage::source(name, Resource::Io, each), how)
}

/// A sink that reports the tags.
fn tell(name: &str, to: Sender<u64>, how: Option<Kind>) -> Stage {
    run_as(Stage::blocking(name, Resource::Io, move |buffer| Ok(to.send(buffer.tag())?)), how)
}

fn all(from: &Receiver<u64>) -> Vec<u64> {
    from.try_iter().collect()
}

#[test]
fn several_incarnations_keep_the_order_if_they_are_to() {
    for (how, ordered) in HOW.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let (to, from) = channel();
        let stage = Stage::replicated("work", 3, Resource::Compute, |_| {
            |buffer: &mut Buffer| -> Result<Flow, BoxError> {
                if buffer.tag().is_multiple_of(3) {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                Ok(Flow::Continue)
            }
        });
        let line = Pipeline::new("fork").buffers(6, 64).stage(numbers("read", 100, how));
        let line = line.stage(run_as(stage.ordered(ordered), how));
        let report = line.stage(tell("write", to, how)).run(&Options::default()).unwrap();
        let mut got = all(&from);
        if !ordered {
            got.sort_unstable();
        }
        assert_eq!(got, (0..100).collect::<Vec<_>>(), "ordered: {ordered}, {how:?}");
        assert!(report.stages.iter().all(|stage| stage.rounds == 100), "{report:?}");
    }
}

#[test]
fn two_paths_meet_in_a_body() {
    for how in HOW {
        let (to, from) = channel();
        let mut graph = Graph::new("merge");
        let (odd, even) = (graph.stage(numbers("odd", 50, how)), graph.stage(numbers("even", 30, how)));
        let merge = graph.stage(Stage::body("merge", Resource::Compute, |port: &mut Port| {
            let paths = port.paths().to_vec();
            let mut sum = 0;
            for path in &paths[..2] {
                while let Some(buffer) = port.accept_from(*path) {
                    if buffer.carries_block() {
                        sum += buffer.tag();
                    }
                    port.convey(buffer);
                }
            }
            let mut out = port.accept_from(paths[2]).ok_or("stopped")?;
            out.set_tag(sum);
            out.mark_last();
            port.convey(out);
            Ok(())
        }));
        let write = graph.stage(tell("write", to, how));
        graph.path(Path::new("odd").buffers(2, 16).through([odd, merge]));
        graph.path(Path::new("even").buffers(2, 16).through([even, merge]));
        graph.path(Path::new("out").buffers(2, 16).through([merge, write]));
        assert_eq!(graph.memory_bytes(), 96);
        graph.run(&Options::default()).unwrap();
        assert_eq!(all(&from), [49 * 50 / 2 + 29 * 30 / 2]);
    }
}

#[test]
fn stages_share_a_thread_and_repeat() {
    for kind in [Kind::Thread, Kind::Worker] {
        let (to, from) = channel();
        let read = numbers("read", 9, None).on_thread("io").repeat(2);
        let line = Pipeline::new("repeat").buffers(4, 64).stage(read);
        let line = line.stage(Stage::compute("work", |_| Ok(())).kind(kind));
        line.stage(tell("write", to, None).on_thread("io").repeat(2)).run(&Options::default()).unwrap();
        assert_eq!(all(&from), (0..9).collect::<Vec<_>>());
    }
}

#[test]
fn an_error_and_a_panic_end_it_with_the_stage_s_name() {
    let bad = |panics: bool| {
        Stage::compute("sort", move |buffer| {
            if buffer.tag() == 5 {
                assert!(!panics, "on purpose");
                return Err("on purpose".into());
            }
            Ok(())
        })
    };
    for (how, panics) in HOW.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let line = Pipeline::new("fails").buffers(3, 64).stage(numbers("read", 1_000_000, how));
        let failure = line.stage(run_as(bad(panics), how)).run(&Options::default()).unwrap_err();
        assert_eq!(failure.stage.as_deref(), Some("sort"));
        assert_eq!(matches!(failure.cause, Cause::Panic(_)), panics);
        assert!(failure.to_string().contains("on purpose"), "{failure}");
        assert_eq!(failure.report.stages[1].rounds, 5);
    }
}

#[test]
fn a_body_that_keeps_a_buffer_or_leaves_early_is_told() {
    let keep = Stage::body("keep", Resource::Io, |port: &mut Port| {
        let kept = port.accept();
        while let Some(buffer) = port.accept() {
            port.convey(buffer);
        }
        drop(kept);
        Ok(())
    });
    let leave = Stage::body("leave", Resource::Io, |_: &mut Port| Ok(()));
    for (stage, what) in [(keep, "while holding 1 buffers"), (leave, "before path 'body' had ended")] {
        let line = Pipeline::new("body").buffers(3, 64).stage(numbers("read", 10, None)).stage(stage);
        let failure = line.run(&Options::default()).unwrap_err();
        assert!(failure.to_string().contains(what), "{failure}");
    }
}
