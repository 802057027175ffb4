//! A thread of a running graph: one stage or, in turn, several; from init to cleanup.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::port::Port;
use super::shared::Shared;
use crate::buffer::Buffer;
use crate::error::{BoxError, Cause};
use crate::graph::{Body, Each, Flow};
use crate::monitor::{Doing, Sitting};
use crate::queue::Which;

/// A stage (or one of its incarnations) on a thread.
pub(crate) struct Unit {
    stage: usize,
    each: Box<dyn Each>,
    repeat: usize,
    done: bool,
}

impl Unit {
    pub(crate) fn new(stage: usize, each: Box<dyn Each>, repeat: usize) -> Unit {
        Unit { stage, each, repeat, done: false }
    }

    /// Accepts a buffer, works on it, conveys it.
    fn step(&mut self, shared: &Shared, sitting: &Sitting) -> Result<(), Cause> {
        let state = &shared.stages[self.stage];
        let (inbox, waits) = if state.is_source() {
            (&state.empty, Doing::WaitOut(self.stage))
        } else {
            (&state.incoming, Doing::WaitIn(self.stage))
        };
        let Some(mut buffer) = sitting.during(waits, 0, || inbox.take(Which::Any)) else {
            self.done = true;
            return Ok(());
        };
        if buffer.is_last() {
            inbox.close(buffer.path());
        }
        if buffer.carries_block() {
            let round = if state.is_source() { state.counters.rounds() } else { buffer.round() };
            let flow = guard(|| sitting.during(Doing::Work(self.stage), round, || self.each.round(&mut buffer)))?;
            self.follow(flow, state.is_source(), &mut buffer)?;
        }
        if buffer.carries_block() {
            state.counters.round(buffer.len());
        }
        sitting.conveys(self.stage, || shared.output_len(self.stage, buffer.path()));
        shared.convey(self.stage, buffer);
        self.done = !inbox.is_open();
        Ok(())
    }

    fn follow(&self, flow: Flow, source: bool, buffer: &mut Buffer) -> Result<(), Cause> {
        match flow {
            Flow::Continue => {}
            _ if !source => {
                return Err(Cause::Misuse(format!("it said {flow:?}, which only the beginning of a path may")));
            }
            Flow::Last => buffer.mark_last(),
            Flow::End => buffer.make_caboose(),
        }
        Ok(())
    }
}

enum Job {
    Units(Vec<Unit>),
    Body(usize, Box<dyn Body>),
}

/// What one thread does.
pub(crate) struct Lane {
    name: String,
    /// The name that stages gave for the thread that they share.
    pub(crate) shared: Option<String>,
    job: Job,
}

impl Lane {
    pub(crate) fn body(name: String, stage: usize, body: Box<dyn Body>) -> Lane {
        Lane { name, shared: None, job: Job::Body(stage, body) }
    }

    pub(crate) fn units(name: String, shared: Option<String>, unit: Unit) -> Lane {
        Lane { name: shared.clone().unwrap_or(name), shared, job: Job::Units(vec![unit]) }
    }

    /// One more stage for a shared thread.
    pub(crate) fn add(&mut self, unit: Unit) {
        if let Job::Units(units) = &mut self.job {
            units.push(unit);
        }
    }

    /// The thread's name, as the kernel shows it: 15 bytes.
    pub(crate) fn name(&self) -> String {
        let printable: String = self.name.chars().filter(|c| *c != '\0').collect();
        let end = printable.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 15).last();
        printable[..end.unwrap_or(0)].to_owned()
    }

    /// The thread's life.
    pub(crate) fn run(self, shared: &Shared) {
        match self.job {
            Job::Units(units) => run_units(shared, units),
            Job::Body(stage, body) => run_body(shared, stage, body),
        }
        shared.watch.ended();
    }
}

fn run_units(shared: &Shared, mut units: Vec<Unit>) {
    let stages: Vec<usize> = units.iter().map(|unit| unit.stage).collect();
    let sitting = shared.watch.sit(&stages);
    let mut begun = 0;
    for unit in &mut units {
        if let Err(cause) = guard(|| unit.each.init()) {
            shared.fail(Some(unit.stage), cause);
            break;
        }
        begun += 1;
    }
    while !shared.stopping() && units.iter().any(|unit| !unit.done) {
        turn(shared, &sitting, &mut units);
    }
    for unit in &mut units[..begun] {
        if let Err(cause) = guard(|| unit.each.cleanup()) {
            shared.fail(Some(unit.stage), cause);
        }
    }
}

/// Each stage does its buffers once.
fn turn(shared: &Shared, sitting: &Sitting, units: &mut [Unit]) {
    for unit in units {
        for _ in 0..unit.repeat {
            if unit.done || shared.stopping() {
                break;
            }
            if let Err(cause) = unit.step(shared, sitting) {
                shared.fail(Some(unit.stage), cause);
            }
        }
    }
}

fn run_body(shared: &Shared, stage: usize, mut body: Box<dyn Body>) {
    let sitting = shared.watch.sit(&[stage]);
    match guard(|| body.init()) {
        Err(cause) => shared.fail(Some(stage), cause),
        Ok(()) => {
            let mut port = Port::new(shared, stage, &sitting);
            let result = guard(|| body.run(&mut port));
            let complaint = if shared.stopping() { None } else { port.complaint() };
            if let Err(cause) = result.and(complaint.map_or(Ok(()), |what| Err(Cause::Misuse(what)))) {
                shared.fail(Some(stage), cause);
            }
            if let Err(cause) = guard(|| body.cleanup()) {
                shared.fail(Some(stage), cause);
            }
        }
    }
}

/// Calls a stage's code: an error and a panic are both causes.
fn guard<T>(code: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Cause> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => result.map_err(Cause::Stage),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Cause::Panic(text.unwrap_or_else(|| "without a message".to_owned())))
        }
    }
}
