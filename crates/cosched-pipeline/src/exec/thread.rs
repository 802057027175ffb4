//! A thread of a running graph, from init to cleanup: it runs one stage, or several in turn.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::port::Port;
use super::shared::{Shared, StageState};
use super::turns::run_turns;
use super::wait::Waiter;
use crate::buffer::Buffer;
use crate::error::{BoxError, Cause};
use crate::graph::{Body, Each, Flow};
use crate::monitor::{Doing, Tracker};
use crate::queue::{Topic, Which};

/// A stage, or one of its incarnations, on a thread.
pub(crate) struct Unit {
    pub(super) stage: usize,
    incarnation: usize,
    each: Box<dyn Each>,
    /// How many buffers it processes in its turn on a shared thread.
    pub(super) repeat: usize,
}

impl Unit {
    pub(crate) fn new(stage: usize, incarnation: usize, each: Box<dyn Each>, repeat: usize) -> Unit {
        Unit { stage, incarnation, each, repeat }
    }

    pub(super) fn state<'a>(&self, shared: &'a Shared) -> &'a StageState {
        &shared.stages[self.stage]
    }

    /// How its thread's time without work is accounted.
    pub(super) fn waits(&self, state: &StageState) -> Doing {
        if state.source { Doing::WaitOut(self.stage) } else { Doing::WaitIn(self.stage) }
    }

    /// Works on a buffer and conveys it. The stage's code may panic.
    #[inline]
    pub(super) fn work(
        &mut self,
        shared: &Shared,
        state: &StageState,
        tracker: &Tracker,
        mut buffer: Buffer,
    ) -> Result<(), Cause> {
        let source = state.source;
        if source {
            buffer.recycle();
        } else if buffer.is_last() {
            state.close(buffer.path());
        }
        if buffer.carries_block() {
            let round = if source { state.counters.rounds() } else { buffer.round() };
            match tracker.round(self.stage, round, || self.each.round(&mut buffer)).map_err(Cause::Stage)? {
                Flow::Continue => {}
                flow if !source => return Err(misuse(flow)),
                Flow::Last => buffer.mark_last(),
                Flow::End => buffer.make_caboose(),
            }
        }
        if buffer.carries_block() {
            state.counters.round(buffer.len());
        }
        tracker.conveys(self.stage, || shared.output_len(self.stage, buffer.path()));
        shared.convey(self.stage, buffer);
        Ok(())
    }

    /// An inactive incarnation sleeps until it is activated, or until the stage ends.
    fn rest(&self, shared: &Shared, state: &StageState, tracker: &Tracker) {
        tracker.switch(Doing::Nothing);
        // It may have been woken for a buffer, which another incarnation has to take now.
        if state.incoming.len() > 0 {
            state.incoming.bell().ring(Topic::ANY, &shared.awake);
        }
        shared.awake.sub();
        state.working.wait(self.incarnation);
        shared.awake.add();
        tracker.switch(Doing::Work(self.stage));
    }
}

#[cold]
pub(super) fn misuse(flow: Flow) -> Cause {
    Cause::Misuse(format!("it said {flow:?}, which only the beginning of a path may"))
}

enum Job {
    Units(Vec<Unit>),
    Body(usize, Box<dyn Body>),
}

/// The work of one thread.
pub(crate) struct Lane {
    name: String,
    /// The name of the thread, if stages share it.
    pub(super) shared: Option<String>,
    /// An incarnation that is active only if the graph's number of incarnations is raised.
    pub(super) reserve: bool,
    job: Job,
}

impl Lane {
    pub(super) fn body(name: String, stage: usize, body: Box<dyn Body>) -> Lane {
        Lane { name, shared: None, reserve: false, job: Job::Body(stage, body) }
    }

    pub(super) fn units(name: String, shared: Option<String>, reserve: bool, unit: Unit) -> Lane {
        Lane { name: shared.clone().unwrap_or(name), shared, reserve, job: Job::Units(vec![unit]) }
    }

    /// Adds a stage to a shared thread.
    pub(super) fn add(&mut self, unit: Unit) {
        if let Job::Units(units) = &mut self.job {
            units.push(unit);
        }
    }

    /// The thread's name as the kernel shows it: at most 15 bytes.
    pub(crate) fn name(&self) -> String {
        let printable: String = self.name.chars().filter(|c| *c != '\0').collect();
        let end = printable.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 15).last();
        printable[..end.unwrap_or(0)].to_owned()
    }

    /// The body of the thread.
    pub(crate) fn run(self, shared: &Shared) {
        let stage = match &self.job {
            Job::Units(units) => units[0].stage,
            Job::Body(stage, _) => *stage,
        };
        // Panics of the stages' own code are caught where it is called; this catches panics when a body is dropped, and
        // in our own code.
        let result = guard(|| {
            match self.job {
                Job::Units(units) => run_units(shared, units, self.reserve),
                Job::Body(stage, body) => run_body(shared, stage, body),
            }
            Ok(())
        });
        if let Err(cause) = result {
            shared.fail(Some(stage), cause);
        }
        shared.awake.sub();
        shared.watch.ended();
    }
}

fn run_units(shared: &Shared, mut units: Vec<Unit>, reserve: bool) {
    if reserve {
        let state = units[0].state(shared);
        shared.awake.sub();
        state.working.wait(units[0].incarnation);
        shared.awake.add();
        if shared.stopping() || !state.input().is_open() {
            return;
        }
    }
    let stages: Vec<usize> = units.iter().map(|unit| unit.stage).collect();
    let tracker = shared.watch.track(&stages);
    let mut begun = 0;
    for unit in &mut units {
        tracker.switch(Doing::Aside(unit.stage));
        if let Err(cause) = guard(|| unit.each.init()) {
            shared.fail(Some(unit.stage), cause);
            break;
        }
        begun += 1;
    }
    tracker.switch(Doing::Nothing);
    if begun == units.len() && !reserve {
        shared.gate.pass();
    }
    if !shared.stopping() {
        let result = match &mut units[..] {
            [unit] => caught(|| run_one(shared, unit, &tracker)).map_err(|cause| (unit.stage, cause)),
            units => run_turns(shared, units, &tracker),
        };
        if let Err((stage, cause)) = result {
            shared.fail(Some(stage), cause);
        }
    }
    for (place, mut unit) in units.into_iter().enumerate() {
        tracker.switch(Doing::Aside(unit.stage));
        let stage = unit.stage;
        let cleaned = if place < begun { guard(|| unit.each.cleanup()) } else { Ok(()) };
        let dropped = caught(|| {
            drop(unit);
            Ok(())
        });
        if let Err(cause) = cleaned.and(dropped) {
            shared.fail(Some(stage), cause);
        }
    }
}

/// Runs a stage on a thread of its own.
fn run_one(shared: &Shared, unit: &mut Unit, tracker: &Tracker) -> Result<(), Cause> {
    let state = unit.state(shared);
    let inbox = state.input();
    let mut waiter = Waiter::new(state.incarnations == 1);
    tracker.switch(Doing::Work(unit.stage));
    while !shared.stopping() {
        if state.has_reserve && unit.incarnation >= state.working.count() {
            unit.rest(shared, state, tracker);
            continue;
        }
        let buffer = match inbox.try_take(Which::Any) {
            Some(buffer) => buffer,
            None if !inbox.is_open() => break,
            None => {
                let doing = (tracker, unit.waits(state), Doing::Work(unit.stage));
                let ready = || match inbox.try_take(Which::Any) {
                    None if shared.stopping() || !inbox.is_open() => Some(None),
                    None => None,
                    buffer => Some(buffer),
                };
                match waiter.wait(doing, inbox.bell(), Topic::ANY, &shared.awake, ready) {
                    Some(buffer) => buffer,
                    None => break,
                }
            }
        };
        unit.work(shared, state, tracker, buffer)?;
    }
    Ok(())
}

fn run_body(shared: &Shared, stage: usize, mut body: Box<dyn Body>) {
    let tracker = shared.watch.track(&[stage]);
    tracker.switch(Doing::Aside(stage));
    match guard(|| body.init()) {
        Err(cause) => shared.fail(Some(stage), cause),
        Ok(()) => {
            tracker.switch(Doing::Nothing);
            shared.gate.pass();
            if !shared.stopping()
                && let Err(cause) = body_runs(shared, stage, &tracker, &mut *body)
            {
                shared.fail(Some(stage), cause);
            }
            if let Err(cause) = guard(|| body.cleanup()) {
                shared.fail(Some(stage), cause);
            }
        }
    }
}

fn body_runs(shared: &Shared, stage: usize, tracker: &Tracker, body: &mut dyn Body) -> Result<(), Cause> {
    tracker.switch(Doing::Work(stage));
    let mut port = Port::new(shared, stage, tracker);
    let result = guard(|| body.run(&mut port));
    tracker.switch(Doing::Aside(stage));
    result?;
    match port.complaint() {
        Some(what) if !shared.stopping() => Err(Cause::Misuse(what)),
        _ => Ok(()),
    }
}

/// Calls a stage's code: an error and a panic both become a cause.
#[inline]
pub(super) fn guard<T>(code: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Cause> {
    caught(|| code().map_err(Cause::Stage))
}

/// Runs code that may call a stage's code. A panic becomes a cause.
#[inline]
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

#[cold]
pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> Cause {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Cause::Panic(text.unwrap_or_else(|| "without a message".to_owned()))
}
