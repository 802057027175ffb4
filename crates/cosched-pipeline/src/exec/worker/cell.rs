//! One incarnation of a stage: its code, and how long it takes.

use std::cell::UnsafeCell;

use super::sampler::{LONG_NS, Sampler};
use crate::buffer::Buffer;
use crate::counters::{Count, Counts};
use crate::error::{BoxError, Cause};
use crate::exec::thread::guard;
use crate::graph::{Each, Flow};
use crate::monitor::{Doing, Sitting};

/// Of so many rounds one at least is timed.
const QUICK_MAX: u64 = 256;

/// A round of a stage, for those that watch.
pub(super) struct Visit<'a> {
    pub(super) stage: usize,
    /// The round's number, where the buffer does not have it yet.
    pub(super) begins: Option<u64>,
    pub(super) sitting: &'a Sitting<'a>,
}

impl Visit<'_> {
    #[inline]
    fn round(&self, each: &mut dyn Each, buffer: &mut Buffer) -> Result<Flow, BoxError> {
        let round = self.begins.unwrap_or(buffer.round());
        self.sitting.round(self.stage, round, || each.round(buffer))
    }
}

/// What comes of a round that is not to be timed.
pub(super) enum Quick {
    /// The stage goes on.
    Continues,
    /// It said something else.
    Says(Result<Flow, BoxError>),
    /// Nothing was done: the round is to be timed, or is the first.
    NotNow,
}

/// An incarnation of a stage. One worker at a time has it. What it needs at each buffer lies on one cache line.
#[repr(C, align(128))]
pub(super) struct Cell {
    work: UnsafeCell<Work>,
    /// Its rounds, and bytes in them. Who has the cell writes, anyone reads.
    count: Count,
}

const _: () = assert!(size_of::<Work>() + size_of::<Count>() <= 64, "the line is full");

// SAFETY: what is inside goes from worker to worker (`Each` is Send); its users keep to the rule of `Cell::work`.
unsafe impl Sync for Cell {}

impl Counts for Cell {
    fn count(&self) -> &Count {
        &self.count
    }
}

struct Work {
    /// None once it has been cleaned up.
    each: Option<Box<dyn Each>>,
    /// What an untimed round takes: a mean that forgets, without outliers.
    round_ns: u64,
    /// Untimed rounds until the next one that is timed, of so many. 0 also before the first.
    quick: u32,
    quick_of: u32,
    begun: bool,
}

impl Work {
    /// A round was timed: the stage's time, with that of the rounds before that were not timed. Decides when the next one is.
    fn add(&mut self, took_ns: u64) -> u64 {
        let rest_ns = self.rest_ns();
        self.quick = (LONG_NS / took_ns.max(1)).min(QUICK_MAX) as u32;
        self.quick_of = self.quick;
        self.round_ns = match self.round_ns {
            0 => took_ns,
            // The processor was perhaps taken away; that was this round, and not those before.
            mean_ns => (3 * mean_ns + took_ns.min(4 * mean_ns + 64)) / 4,
        };
        took_ns + rest_ns
    }

    /// The time of the rounds that were not timed.
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

    /// A round on so many bytes is done. For who has the cell.
    #[inline]
    pub(super) fn round_done(&self, bytes: usize) {
        self.count.add_alone(bytes);
    }

    /// # Safety
    /// Nobody else uses the cell until the result is given up, and what the one before did with it is seen.
    #[allow(clippy::mut_from_ref)]
    unsafe fn work(&self) -> &mut Work {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.work.get() }
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

    /// A round on a buffer that is not timed. A panic of the stage goes through.
    ///
    /// # Safety
    /// As above.
    #[inline]
    pub(super) unsafe fn quick_round(&self, buffer: &mut Buffer, visit: Visit, sampler: &Sampler) -> Quick {
        // SAFETY: the caller's promise.
        let work = unsafe { self.work() };
        let Some(each) = work.each.as_mut().filter(|_| work.quick > 0 && !sampler.samples()) else {
            return Quick::NotNow;
        };
        work.quick -= 1;
        visit.sitting.carries(visit.stage);
        match visit.round(&mut **each, buffer) {
            Ok(Flow::Continue) => Quick::Continues,
            said => Quick::Says(said),
        }
    }

    /// A round on a buffer, timed. A panic of the stage goes through.
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
        // SAFETY: the caller's promise.
        unsafe { self.begin(visit.stage, visit.sitting)? };
        // SAFETY: as above.
        let work = unsafe { self.work() };
        let Some(each) = &mut work.each else { return Err(Cause::Stopped) };
        let begin = sampler.begin(work.round_ns >= LONG_NS);
        visit.sitting.carries_since(visit.stage, begin);
        let result = visit.round(&mut **each, buffer);
        let took_ns = sampler.end(begin);
        visit.sitting.carries(visit.stage);
        visit.sitting.worked(visit.stage, work.add(took_ns));
        result.map_err(Cause::Stage)
    }

    /// Ends it (`cleanup`), if it began, and drops what it has.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn end(&self, stage: usize, sitting: &Sitting) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        let work = unsafe { self.work() };
        sitting.switch(Doing::Aside(stage));
        sitting.worked(stage, work.rest_ns());
        let Some(mut each) = work.each.take() else { return Ok(()) };
        let result = if work.begun { guard(|| each.cleanup()) } else { Ok(()) };
        let dropped = guard(|| {
            drop(each);
            Ok(())
        });
        result.and(dropped)
    }
}
