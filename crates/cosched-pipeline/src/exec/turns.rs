//! Multistage threads: several stages on one thread, in turn.
//!
//! Problem: FG runs the stages of a thread strictly in order, each for its number of repeats, and waits where a buffer is
//! missing. Meanwhile the other stages of the thread stand still though they have work; if they feed the stage that is waited
//! for, the thread waits forever. Rule here: the stages take turns in order, but
//! - a stage without a buffer is skipped; the thread sleeps only if none of its stages has a buffer;
//! - a stage with fewer buffers than its number of repeats is skipped once if another one has enough for a whole turn, so that
//!   n reads stay n reads, and n writes n writes, as long as there are enough buffers; at its next turn it processes what it
//!   has.

use super::shared::Shared;
use super::thread::{Unit, caught};
use super::wait::Waiter;
use crate::error::Cause;
use crate::monitor::{Doing, Tracker};
use crate::queue::{Topic, Which};

/// The state of one stage in the order of turns.
#[derive(Clone, Copy, Default)]
struct Seat {
    /// It was skipped, because it had fewer buffers than a whole turn.
    passed_over: bool,
}

/// Runs all these stages until they have ended. The error comes with the stage that failed.
pub(super) fn run_turns(shared: &Shared, units: &mut [Unit], tracker: &Tracker) -> Result<(), (usize, Cause)> {
    let mut seats = vec![Seat::default(); units.len()];
    let mut waiter = Waiter::new(true);
    while !shared.stopping() && units.iter().any(|unit| unit.state(shared).input().is_open()) {
        let full = units.iter().any(|unit| waiting(shared, unit) >= unit.repeat);
        let mut worked = false;
        for (unit, seat) in units.iter_mut().zip(&mut seats) {
            let waiting = waiting(shared, unit);
            seat.passed_over = waiting > 0 && waiting < unit.repeat && full && !seat.passed_over;
            if waiting > 0 && !seat.passed_over {
                tracker.switch(Doing::Work(unit.stage));
                worked |= caught(|| turn(shared, tracker, unit)).map_err(|cause| (unit.stage, cause))?;
            }
        }
        if !worked && !seats.iter().any(|seat| seat.passed_over) {
            sleep(shared, units, &mut waiter, tracker);
        }
    }
    Ok(())
}

/// The number of buffers that wait for a stage; 0 once it has ended.
fn waiting(shared: &Shared, unit: &Unit) -> usize {
    let inbox = unit.state(shared).input();
    if inbox.is_open() { inbox.len() } else { 0 }
}

/// Gives a stage its turn. False if it had no buffer.
fn turn(shared: &Shared, tracker: &Tracker, unit: &mut Unit) -> Result<bool, Cause> {
    let state = unit.state(shared);
    let inbox = state.input();
    for done in 0..unit.repeat {
        if shared.stopping() {
            return Ok(true);
        }
        match inbox.try_take(Which::Any) {
            Some(buffer) => unit.work(shared, state, tracker, buffer)?,
            None => return Ok(done > 0),
        }
    }
    Ok(true)
}

/// Sleeps until a stage has a buffer or all have ended. The time is accounted to the first stage that has not ended.
fn sleep(shared: &Shared, units: &[Unit], waiter: &mut Waiter, tracker: &Tracker) {
    let over = |unit: &Unit| !unit.state(shared).input().is_open();
    let Some(first) = units.iter().find(|unit| !over(unit)) else { return };
    let tracker = (tracker, first.waits(first.state(shared)), Doing::Work(first.stage));
    waiter.wait(tracker, first.state(shared).input().bell(), Topic::ANY, &shared.awake, || {
        (shared.stopping() || units.iter().all(over) || units.iter().any(|unit| waiting(shared, unit) > 0))
            .then_some(())
    });
}
