//! One incarnation of a stage: its code, and the time that it takes.

use std::cell::UnsafeCell;

use super::sampler::{LONG_NS, Sampler};
use crate::buffer::Buffer;
use crate::counters::{Count, Counts};
use crate::error::{BoxError, Cause};
use crate::exec::thread::guard;
use crate::graph::{Each, Flow};
use crate::monitor::{Doing, Tracker};

/// At least one round in this number of rounds is timed.
const QUICK_MAX: u64 = 256;

/// A round of a stage, for the watchers.
pub(super) struct Visit<'a> {
    pub(super) stage: usize,
    /// The round's number, if the buffer does not have it yet.
    pub(super) begins: Option<u64>,
    pub(super) tracker: &'a Tracker<'a>,
}

impl Visit<'_> {
    #[inline]
    fn round(&self, each: &mut dyn Each, buffer: &mut Buffer) -> Result<Flow, BoxError> {
        let round = self.begins.unwrap_or(buffer.round());
        self.tracker.round(self.stage, round, || each.round(buffer))
    }
}

/// The result of a round that need not be timed.
pub(super) enum Quick {
    /// The stage returned `Continue`.
    Continues,
    /// The stage returned something else.
    Says(Result<Flow, BoxError>),
    /// Nothing was done: the round has to be timed, or it is the first.
    NotNow,
}

/// An incarnation of a stage. One worker at a time uses it. The data that it needs for each buffer is on one cache line.
#[repr(C, align(128))]
pub(super) struct Cell {
    work: UnsafeCell<Work>,
    /// Its rounds and their bytes. Written by the worker that uses the cell, read from any thread.
    count: Count,
}

const _: () = assert!(size_of::<Work>() + size_of::<Count>() <= 64, "the line is full");

// SAFETY: the contents move from worker to worker (`Each` is Send); users follow the rule of `Cell::work`.
unsafe impl Sync for Cell {}

impl Counts for Cell {
    fn count(&self) -> &Count {
        &self.count
    }
}

struct Work {
    /// None after it has been cleaned up.
    each: Option<Box<dyn Each>>,
    /// The time of an untimed round: a decaying mean, without outliers.
    round_ns: u64,
    /// Untimed rounds that are left until the next timed one, out of `quick_of`. Also 0 before the first round.
    quick: u32,
    quick_of: u32,
    begun: bool,
}

impl Work {
    /// A round was timed. Returns the stage's time, including the estimate for the untimed rounds before it, and decides when
    /// to time again.
    fn add(&mut self, took_ns: u64) -> u64 {
        let rest_ns = self.rest_ns();
        self.quick = (LONG_NS / took_ns.max(1)).min(QUICK_MAX) as u32;
        self.quick_of = self.quick;
        self.round_ns = match self.round_ns {
            0 => took_ns,
            // If this round was much longer, the thread was perhaps preempted; that applies to this round and not to the
            // untimed ones before it.
            mean_ns => (3 * mean_ns + took_ns.min(4 * mean_ns + 64)) / 4,
        };
        took_ns + rest_ns
    }

    /// The estimated time of the rounds that were not timed.
    fn rest_ns(&mut self) -> u64 {
        let untimed = self.quick_of - self.quick;
        self.quick_of = self.quick;
        u64::from(untimed) * self.round_ns
    }
}

impl Cell {
    pub(super) fn new(each: Box<dyn Each>) -> Cell {
        let work = Work { each: Some(each), round_ns: 0, quick: 0, quick_of: 0, begun: false };
        Cell { work: UnsafeCell::new(work), count: Count::default() }
    }

    /// Counts a round on `bytes` bytes. Only for the worker that uses the cell.
    #[inline]
    pub(super) fn round_done(&self, bytes: usize) {
        self.count.add_alone(bytes);
    }

    /// # Safety
    /// The caller has exclusive use of the cell until it drops the result, and sees all effects of the previous user.
    #[allow(clippy::mut_from_ref)]
    unsafe fn work(&self) -> &mut Work {
        // SAFETY: guaranteed by the caller.
        unsafe { &mut *self.work.get() }
    }

    /// Calls `init`, if it has not been called yet.
    ///
    /// # Safety
    /// As for all methods here: the caller has exclusive use of the cell, and sees all effects of the previous user.
    #[cold]
    pub(super) unsafe fn begin(&self, stage: usize, tracker: &Tracker) -> Result<(), Cause> {
        // SAFETY: guaranteed by the caller.
        let work = unsafe { self.work() };
        if let (false, Some(each)) = (work.begun, &mut work.each) {
            tracker.switch(Doing::Aside(stage));
            guard(|| each.init())?;
            work.begun = true;
        }
        Ok(())
    }

    /// A round on a buffer, untimed. Panics of the stage propagate.
    ///
    /// # Safety
    /// As above.
    #[inline]
    pub(super) unsafe fn quick_round(&self, buffer: &mut Buffer, visit: Visit, sampler: &Sampler) -> Quick {
        // SAFETY: guaranteed by the caller.
        let work = unsafe { self.work() };
        let Some(each) = work.each.as_mut().filter(|_| work.quick > 0 && !sampler.samples) else {
            return Quick::NotNow;
        };
        work.quick -= 1;
        visit.tracker.carries(visit.stage);
        match visit.round(&mut **each, buffer) {
            Ok(Flow::Continue) => Quick::Continues,
            said => Quick::Says(said),
        }
    }

    /// A round on a buffer, timed. Panics of the stage propagate.
    ///
    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn round_with_care(
        &self,
        buffer: &mut Buffer,
        visit: Visit,
        sampler: &mut Sampler,
    ) -> Result<Flow, Cause> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.begin(visit.stage, visit.tracker)? };
        // SAFETY: as above.
        let work = unsafe { self.work() };
        let Some(each) = &mut work.each else { return Err(Cause::Stopped) };
        let begin = sampler.begin(work.round_ns >= LONG_NS);
        visit.tracker.carries_since(visit.stage, begin);
        let result = visit.round(&mut **each, buffer);
        let took_ns = sampler.end(begin);
        visit.tracker.carries(visit.stage);
        visit.tracker.worked(visit.stage, work.add(took_ns));
        result.map_err(Cause::Stage)
    }

    /// Calls `cleanup`, if `init` had been called, and drops the stage's code.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn end(&self, stage: usize, tracker: &Tracker) -> Result<(), Cause> {
        // SAFETY: guaranteed by the caller.
        let work = unsafe { self.work() };
        tracker.switch(Doing::Aside(stage));
        tracker.worked(stage, work.rest_ns());
        let Some(mut each) = work.each.take() else { return Ok(()) };
        let result = if work.begun { guard(|| each.cleanup()) } else { Ok(()) };
        let dropped = guard(|| {
            drop(each);
            Ok(())
        });
        result.and(dropped)
    }
}
