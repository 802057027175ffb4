//! Multistage threads: several stages on one thread, in turn.
//!
//! Problem: FG does the stages of a thread strictly in order, so many buffers each as they repeat, and waits where a buffer is
//! missing; the other stages of the thread then stand still though they have work, and where they feed what is waited for,
//! for ever. Rule here: the turns come in order, but
//! - a stage without a buffer is passed over; the thread sleeps only if all its stages have none;
//! - a stage with fewer buffers than it repeats is passed over once if another has a whole turn, so that n reads stay n
//!   reads and n writes n writes as long as there are buffers for it; the next time it does what there is.

use super::shared::Shared;
use super::thread::{Unit, caught};
use super::wait::Waiter;
use crate::error::Cause;
use crate::monitor::{Doing, Sitting};
use crate::queue::{Topic, Which};

/// A stage's place in the order.
#[derive(Clone, Copy, Default)]
struct Seat {
    /// It had something to do, but less than a turn.
    passed_over: bool,
}

/// Works as all these stages until they have ended. The error comes with its stage.
pub(super) fn run_turns(shared: &Shared, units: &mut [Unit], sitting: &Sitting) -> Result<(), (usize, Cause)> {
    let mut seats = vec![Seat::default(); units.len()];
    let mut waiter = Waiter::new(true);
    while !shared.stopping() && units.iter().any(|unit| unit.state(shared).input().is_open()) {
        let full = units.iter().any(|unit| waiting(shared, unit) >= unit.repeat);
        let mut worked = false;
        for (unit, seat) in units.iter_mut().zip(&mut seats) {
            let waiting = waiting(shared, unit);
            seat.passed_over = waiting > 0 && waiting < unit.repeat && full && !seat.passed_over;
            if waiting > 0 && !seat.passed_over {
                sitting.switch(Doing::Work(unit.stage));
                worked |= caught(|| turn(shared, sitting, unit)).map_err(|cause| (unit.stage, cause))?;
            }
        }
        if !worked && !seats.iter().any(|seat| seat.passed_over) {
            sleep(shared, units, &mut waiter, sitting);
        }
    }
    Ok(())
}

/// How many buffers a stage could work on.
fn waiting(shared: &Shared, unit: &Unit) -> usize {
    let inbox = unit.state(shared).input();
    if inbox.is_open() { inbox.len() } else { 0 }
}

/// A stage does its buffers once. Whether there was one.
fn turn(shared: &Shared, sitting: &Sitting, unit: &mut Unit) -> Result<bool, Cause> {
    let state = unit.state(shared);
    let inbox = state.input();
    for done in 0..unit.repeat {
        if shared.stopping() {
            return Ok(true);
        }
        match inbox.try_take(Which::Any) {
            Some(buffer) => unit.work(shared, state, sitting, buffer)?,
            None => return Ok(done > 0),
        }
    }
    Ok(true)
}

/// Until any of the stages has something to do, or all is over. The time is that of the first that has not ended.
fn sleep(shared: &Shared, units: &[Unit], waiter: &mut Waiter, sitting: &Sitting) {
    let over = |unit: &Unit| !unit.state(shared).input().is_open();
    let Some(first) = units.iter().find(|unit| !over(unit)) else { return };
    let sitting = (sitting, first.waits(first.state(shared)), Doing::Work(first.stage));
    waiter.wait(sitting, first.state(shared).input().bell(), Topic::ANY, &shared.awake, || {
        (shared.stopping() || units.iter().all(over) || units.iter().any(|unit| waiting(shared, unit) > 0))
            .then_some(())
    });
}
