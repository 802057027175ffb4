//! Multistage threads: the order of the turns, and that no stage waits for another one's queue.

mod common;

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use common::{bounded, numbers};
use cosched_pipeline::{Buffer, Flow, Graph, Options, Path, Pipeline, Port, Resource, Stage};

/// A stage that reports its name and the round.
fn tell(name: &'static str, to: &Sender<(&'static str, u64)>) -> Stage {
    let to = to.clone();
    Stage::blocking(name, Resource::Io, move |buffer| Ok(to.send((name, buffer.round()))?))
}

/// A source that reports its name and the round.
fn tells(name: &'static str, rounds: u64, to: &Sender<(&'static str, u64)>) -> Stage {
    let (to, mut round) = (to.clone(), 0);
    Stage::source(name, Resource::Io, move |_: &mut Buffer| {
        to.send((name, round))?;
        round += 1;
        Ok(if round == rounds { Flow::Last } else { Flow::Continue })
    })
}

#[test]
fn each_stage_does_its_buffers_in_its_turn() {
    let got = bounded(|| {
        let (to, from) = channel();
        let on = |stage: Stage, repeat| stage.on_thread("all").repeat(repeat);
        let line = Pipeline::new("turns").buffers(4, 8).stage(on(tells("r", 7, &to), 2));
        let line = line.stage(on(tell("c", &to), 1)).stage(on(tell("w", &to), 2));
        line.run(&Options::default()).unwrap();
        drop(to);
        from.iter().map(|(name, round)| format!("{name}{round}")).collect::<Vec<_>>().join(" ")
    });
    // Two reads, one computation; then w has one of the two buffers of its turn and is skipped once, because r has a whole
    // turn; and so on.
    assert_eq!(got, "r0 r1 c0 r2 r3 c1 w0 w1 r4 r5 c2 c3 w2 w3 r6 c4 c5 w4 w5 c6 w6");
}

#[test]
fn a_stage_does_not_wait_for_the_queue_of_another() {
    let got = bounded(|| {
        let (to, from) = channel();
        let mut graph = Graph::new("turns");
        let mut left = 3;
        let slow = graph.stage(Stage::source("slow source", Resource::Io, move |_: &mut Buffer| {
            std::thread::sleep(Duration::from_millis(100));
            left -= 1;
            Ok(if left == 0 { Flow::Last } else { Flow::Continue })
        }));
        let fast = graph.stage(numbers("fast source", 50));
        // In FG's order the thread would wait 100 ms for each buffer of "slow" before it processes one of "fast".
        let of_slow = graph.stage(tell("slow", &to).on_thread("both"));
        let of_fast = graph.stage(tell("fast", &to).on_thread("both"));
        graph.path(Path::new("slow").buffers(2, 8).through([slow, of_slow]));
        graph.path(Path::new("fast").buffers(2, 8).through([fast, of_fast]));
        graph.run(&Options::default()).unwrap();
        drop(to);
        from.iter().collect::<Vec<_>>()
    });
    let last_fast = got.iter().rposition(|(name, _)| *name == "fast").unwrap();
    let last_slow = got.iter().rposition(|(name, _)| *name == "slow").unwrap();
    assert!(last_fast < last_slow, "50 fast buffers waited for 3 slow ones: {got:?}");
    assert_eq!(got.len(), 53);
}

#[test]
fn a_turn_that_cannot_be_whole_is_done_in_part() {
    bounded(|| {
        let (to, from) = channel();
        // Both buffers go to "holds", which keeps one until the next arrives: so there can never be two reads or two writes
        // in a turn.
        let holds = Stage::body("holds", Resource::Compute, |port: &mut Port| {
            let mut held: Option<Buffer> = None;
            while let Some(buffer) = port.accept() {
                held.replace(buffer).into_iter().for_each(|before| port.convey(before));
            }
            held.into_iter().for_each(|buffer| port.convey(buffer));
            Ok(())
        });
        let line = Pipeline::new("turns").buffers(2, 8).stage(tells("r", 20, &to).on_thread("io").repeat(2));
        let line = line.stage(holds.holds(1)).stage(tell("w", &to).on_thread("io").repeat(2));
        let report = line.run(&Options::default()).unwrap();
        drop(to);
        assert_eq!(from.iter().count(), 40);
        assert!(report.stages.iter().all(|stage| stage.rounds == 20));
    });
}

#[test]
fn a_stage_on_a_shared_thread_fails_under_its_own_name() {
    bounded(|| {
        let bad =
            Stage::blocking(
                "bad",
                Resource::Io,
                |buffer| {
                    if buffer.round() == 3 { Err("on purpose".into()) } else { Ok(()) }
                },
            );
        let line = Pipeline::new("turns").buffers(2, 8).stage(numbers("r", 20).on_thread("io"));
        let failure = line.stage(bad.on_thread("io")).run(&Options::default()).unwrap_err();
        assert_eq!(failure.stage.as_deref(), Some("bad"));
    });
}
