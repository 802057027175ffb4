//! One incarnation of a stage: its code, and how long it takes.

use std::cell::UnsafeCell;

use super::sampler::{LONG_NS, Sampler};
use crate::buffer::Buffer;
use crate::error::Cause;
use crate::exec::thread::guard;
use crate::graph::{Each, Flow};
use crate::monitor::{Doing, Sitting};

/// A stage stays one that is timed at each buffer for so many short rounds.
const SHORT_ROUNDS: u8 = 16;

/// An incarnation of a stage. One worker at a time has it.
#[repr(align(128))]
pub(super) struct Cell(UnsafeCell<Work>);

// SAFETY: what is inside goes from worker to worker (`Each` is Send); its users keep to the rule of `Cell::work`.
unsafe impl Sync for Cell {}

struct Work {
    /// None once it has been cleaned up.
    each: Option<Box<dyn Each>>,
    begun: bool,
    time: Time,
}

/// The time of a stage whose rounds are not all timed.
#[derive(Default)]
struct Time {
    /// Rounds since the last one that was timed.
    untimed: u64,
    /// What a short round takes: a mean that forgets, without outliers.
    short_ns: u64,
    /// The last rounds were long, so each is timed: so many more.
    long: u8,
}

impl Time {
    /// A round was timed: the stage's time, with that of the rounds before that were not timed.
    fn add(&mut self, took_ns: u64) -> u64 {
        if took_ns >= LONG_NS {
            self.long = SHORT_ROUNDS;
        } else {
            self.long = self.long.saturating_sub(1);
            let taken_ns = took_ns.min(4 * self.short_ns + 64);
            self.short_ns = if self.short_ns == 0 { taken_ns } else { (7 * self.short_ns + taken_ns) / 8 };
        }
        took_ns + self.rest_ns()
    }

    /// The time of the rounds that were not timed.
    fn rest_ns(&mut self) -> u64 {
        std::mem::take(&mut self.untimed) * self.short_ns
    }
}

impl Cell {
    pub(super) fn new(each: Box<dyn Each>) -> Cell {
        Cell(UnsafeCell::new(Work { each: Some(each), begun: false, time: Time::default() }))
    }

    /// # Safety
    /// Nobody else uses the cell until the result is given up, and what the one before did with it is seen.
    #[allow(clippy::mut_from_ref)]
    unsafe fn work(&self) -> &mut Work {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }

    /// Begins it (`init`), if it has not begun.
    ///
    /// # Safety
    /// As for all of this: the caller has the cell for itself, and what the one before did is seen.
    #[cold]
    pub(super) unsafe fn begin(&self, stage: usize, sitting: &Sitting) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        let work = unsafe { self.work() };
        if let (false, Some(each)) = (work.begun, &mut work.each) {
            sitting.switch(Doing::Aside(stage));
            guard(|| each.init())?;
            work.begun = true;
        }
        Ok(())
    }

    /// A round on a buffer.
    ///
    /// # Safety
    /// As above.
    #[inline]
    pub(super) unsafe fn round(
        &self,
        buffer: &mut Buffer,
        stage: usize,
        sitting: &Sitting,
        sampler: &mut Sampler,
    ) -> Result<Flow, Cause> {
        // SAFETY: the caller's promise.
        let mut work = unsafe { self.work() };
        if !work.begun {
            // SAFETY: the caller's promise; `work` is not used meanwhile.
            unsafe { self.begin(stage, sitting)? };
            // SAFETY: as above.
            work = unsafe { self.work() };
        }
        let Some(each) = &mut work.each else { return Err(Cause::Stopped) };
        let round = buffer.round();
        let is_long = work.time.long > 0;
        if !is_long && !sampler.samples() {
            work.time.untimed += 1;
            sitting.carries(stage);
            return sitting.round(stage, round, || guard(|| each.round(buffer)));
        }
        let begin = sampler.begin(is_long);
        sitting.carries_since(stage, begin);
        let result = sitting.round(stage, round, || guard(|| each.round(buffer)));
        let took_ns = sampler.end(begin);
        sitting.carries(stage);
        sitting.worked(stage, work.time.add(took_ns));
        result
    }

    /// Ends it (`cleanup`), if it began, and drops what it has.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn end(&self, stage: usize, sitting: &Sitting) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        let work = unsafe { self.work() };
        sitting.switch(Doing::Aside(stage));
        sitting.worked(stage, work.time.rest_ns());
        let Some(mut each) = work.each.take() else { return Ok(()) };
        let result = if work.begun { guard(|| each.cleanup()) } else { Ok(()) };
        let dropped = guard(|| {
            drop(each);
            Ok(())
        });
        result.and(dropped)
    }
}
