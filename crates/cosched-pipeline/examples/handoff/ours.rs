//! This library, thread per stage.

use std::time::{Duration, Instant};

use cosched_pipeline::{Buffer, Flow, Kind, Options, Pipeline, Resource, Stage};

use crate::Cell;
use crate::work::{steps_per_us, work};

pub(crate) fn run(cell: &Cell) -> Duration {
    steps_per_us();
    let (rounds, work_us) = (cell.rounds, cell.work_us);
    let mut done = 0;
    let source = Stage::source("0", Resource::Compute, move |_: &mut Buffer| {
        work(work_us);
        done += 1;
        Ok(if done == rounds { Flow::Last } else { Flow::Continue })
    });
    let mut line = Pipeline::new("handoff").buffers(cell.buffers, 4096).stage(source.kind(Kind::Thread));
    for stage in 1..cell.stages {
        let stage = Stage::blocking(stage.to_string(), Resource::Compute, move |_| {
            work(work_us);
            Ok(())
        });
        line = line.stage(stage);
    }
    let begin = Instant::now();
    line.run(&Options::default()).expect("the pipeline runs");
    begin.elapsed()
}
