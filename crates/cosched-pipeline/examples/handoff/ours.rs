//! This library: a thread per stage, or run-to-completion on one worker per CPU.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cosched_pipeline::{Buffer, Flow, Kind, Options, Pipeline, Resource, Stage};

use crate::Cell;
use crate::work::work;

/// The time from the first call of the first stage to the last call of the last one: it does not include creating threads,
/// buffers and a report, which is not part of the hand-off.
pub(crate) fn run(cell: &Cell, kind: Kind) -> Duration {
    let (rounds, steps) = (cell.rounds, cell.work_steps);
    let (begin, end) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let (began, ended) = (begin.clone(), end.clone());
    let mut done = 0;
    let source = Stage::source("0", Resource::Compute, move |buffer: &mut Buffer| {
        if done == 0 {
            began.get_or_init(Instant::now);
        }
        work(steps);
        buffer.set_tag(1);
        done += 1;
        Ok(if done == rounds { Flow::Last } else { Flow::Continue })
    });
    let mut line = Pipeline::new("handoff").buffers(cell.buffers, 4096).stage(source.kind(kind));
    for stage in 1..cell.stages {
        let ended = ended.clone();
        let is_last = stage + 1 == cell.stages;
        let mut done = 0;
        let stage = Stage::blocking(stage.to_string(), Resource::Compute, move |buffer| {
            work(steps);
            buffer.set_tag(buffer.tag() + 1);
            done += 1;
            if is_last && done == rounds {
                ended.get_or_init(Instant::now);
            }
            Ok(())
        });
        line = line.stage(stage.kind(kind));
    }
    line.run(&Options::default()).expect("the pipeline runs");
    let at = |of: &OnceLock<Instant>| *of.get().expect("there are two stages, and both have run");
    at(&end) - at(&begin)
}
