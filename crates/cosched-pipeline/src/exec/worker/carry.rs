//! The work of a worker: it carries a buffer from station to station.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::cell::{Cell, Quick, Visit};
use super::permits::Permits;
use super::plan::Access;
use super::sampler::Sampler;
use super::station::{Entry, Onward, Plain, Station};
use super::{Crew, Desk};
use crate::buffer::{Buffer, Token};
use crate::error::Cause;
use crate::exec::shared::Shared;
use crate::exec::thread::{misuse, panicked};
use crate::graph::Flow;
use crate::monitor::Tracker;

/// A worker.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared,
    pub(super) crew: &'a Crew,
    pub(super) desk: &'a Desk,
    pub(super) number: usize,
    pub(super) tracker: &'a Tracker<'a>,
    pub(super) sampler: Sampler,
}

/// What a worker does next.
enum Then<'a> {
    /// Carries the same buffer through the next station.
    Go(Buffer, &'a Station),
    /// Carries another buffer, or the same one in the next round of its path.
    Next(Buffer),
    /// Takes a buffer from a list.
    Nothing,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, number: usize, tracker: &'a Tracker<'a>) -> Worker<'a> {
        let crew = &shared.crew;
        Worker { shared, crew, desk: &crew.desks[number], number, tracker, sampler: Sampler::new() }
    }

    /// Carries a buffer as far as possible. Returns the buffer to carry next, if it has come across one. A panic ends the
    /// graph.
    pub(super) fn carry(&mut self, buffer: Buffer) -> Option<Buffer> {
        self.sampler.next_buffer();
        // The guard is around the whole way of the buffer and not around each stage: no state of ours is left inconsistent by
        // a panic in a stage.
        let next = catch_unwind(AssertUnwindSafe(|| self.carry_on(buffer))).unwrap_or_else(|panic| {
            self.shared.fail(self.tracker.stage(), panicked(&*panic));
            None
        });
        self.tracker.carries_nothing();
        let several = self.crew.several.load(Ordering::Relaxed);
        let now = self.sampler.buffer_done(several);
        if now != several {
            self.set_several(now);
        }
        next
    }

    fn carry_on(&mut self, mut buffer: Buffer) -> Option<Buffer> {
        let stations = &self.crew.stations;
        let mut station = &stations[buffer.token().station as usize];
        while !self.shared.stopping() {
            let then = match &station.entry {
                Entry::Plain(plain) => {
                    let number = buffer.token().number;
                    if !self.work(station, plain, &mut buffer) {
                        return None;
                    }
                    let ends = station.begins && buffer.is_last();
                    let then = self.move_on(station, buffer);
                    let follows = if ends { None } else { plain.turnstile.open(number + 1) };
                    self.choose(then, follows)
                }
                Entry::Ordered(_) | Entry::Any => self.pass_slowly(station, buffer),
            };
            match then {
                Then::Go(same, to) => (buffer, station) = (same, to),
                Then::Next(next) => return Some(next),
                Then::Nothing => return None,
            }
        }
        None
    }

    /// A round of a stage with one incarnation on one path. False if it ends the graph.
    #[inline]
    fn work(&mut self, station: &Station, plain: &Plain, buffer: &mut Buffer) -> bool {
        let number = buffer.token().number;
        if buffer.carries_block() {
            // SAFETY: the turnstile has let in only this buffer, and the previous one has left.
            let quick =
                unsafe { plain.cell.quick_round(buffer, self.visit(station, plain.stage, number), &self.sampler) };
            if !matches!(quick, Quick::Continues) {
                // SAFETY: as above.
                if !unsafe { self.take_care(station, plain.stage, &plain.cell, quick, buffer) } {
                    return false;
                }
            }
            if buffer.carries_block() {
                plain.cell.round_done(buffer.len());
            }
        }
        if station.begins {
            buffer.set_round(number);
        }
        true
    }

    /// Of two buffers that may proceed, carries its own one and keeps the other on the list.
    #[inline]
    fn choose(&self, then: Then<'a>, other: Option<Buffer>) -> Then<'a> {
        match (then, other) {
            (then, None) => then,
            (Then::Nothing, Some(other)) => Then::Next(other),
            (then, Some(other)) => {
                self.keep(other);
                then
            }
        }
    }

    /// The same for all other kinds of stations.
    #[inline(never)]
    fn pass_slowly(&mut self, station: &'a Station, mut buffer: Buffer) -> Then<'a> {
        let Token { number, incarnation, .. } = *buffer.token();
        let room = self.crew.room(station);
        if let (Some(stage), Some(room), true) = (station.stage, room, buffer.carries_block()) {
            let cell = match room.access {
                Access::Alone => 0,
                Access::Own => self.number,
                Access::Free(_) => incarnation as usize,
            };
            let cell = &room.cells[cell];
            // SAFETY: the permit was given to this buffer alone, or the cell is this worker's own; and the previous user of
            // the cell has left it.
            let quick = unsafe { cell.quick_round(&mut buffer, self.visit(station, stage, number), &self.sampler) };
            // SAFETY: as above.
            if !unsafe { self.take_care(station, stage, cell, quick, &mut buffer) } {
                return Then::Nothing;
            }
            if buffer.carries_block() {
                cell.round_done(buffer.len());
            }
        }
        if station.begins {
            buffer.set_round(number);
        }
        let ends = station.begins && buffer.is_last();
        if let Some(renumber) = &station.renumber {
            renumber.pass(&mut buffer);
        }
        let then = self.move_on(station, buffer);
        let freed = match room.map(|room| &room.access) {
            Some(Access::Free(permits)) => self.free(station, permits, incarnation),
            _ => None,
        };
        let follows = if ends { None } else { station.turnstile().and_then(|turnstile| turnstile.open(number + 1)) };
        let follows = follows.and_then(|buffer| self.crew.access(station, buffer));
        let then = self.choose(then, follows);
        self.choose(then, freed)
    }

    /// A round of a stage, for the watchers. At the beginning of a path the buffer does not have its round's number before
    /// that.
    #[inline]
    fn visit(&self, station: &Station, stage: usize, number: u64) -> Visit<'a> {
        Visit { stage, begins: station.begins.then_some(number), tracker: self.tracker }
    }

    /// Does the round, unless it has been done already because it need not be timed; then acts on what the stage returned.
    /// False if that ends the graph.
    ///
    /// # Safety
    /// The buffer has exclusive use of the cell, and sees all effects of the previous user.
    #[inline(never)]
    unsafe fn take_care(
        &mut self,
        station: &Station,
        stage: usize,
        cell: &Cell,
        quick: Quick,
        buffer: &mut Buffer,
    ) -> bool {
        let number = buffer.token().number;
        let said = match quick {
            Quick::Continues => return true,
            Quick::Says(said) => said.map_err(Cause::Stage),
            Quick::NotNow => {
                // SAFETY: guaranteed by the caller.
                let said =
                    unsafe { cell.round_with_care(buffer, self.visit(station, stage, number), &mut self.sampler) };
                if self.sampler.was_long() && !self.crew.several.load(Ordering::Relaxed) {
                    self.set_several(true);
                }
                said
            }
        };
        match said {
            Ok(Flow::Continue) => return true,
            Ok(flow) if !station.begins => self.shared.fail(Some(stage), misuse(flow)),
            Ok(Flow::Last) => {
                buffer.mark_last();
                return true;
            }
            Ok(Flow::End) => {
                buffer.make_caboose();
                return true;
            }
            Err(cause) => self.shared.fail(Some(stage), cause),
        }
        false
    }

    /// Moves a buffer on from a station to its next place.
    #[inline]
    fn move_on(&mut self, station: &Station, mut buffer: Buffer) -> Then<'a> {
        let Onward::Station(next) = station.onward else { return self.leave_workers(station, buffer) };
        buffer.token_mut().station = next;
        let to = &self.crew.stations[next as usize];
        let admitted = match &to.entry {
            Entry::Plain(plain) => plain.turnstile.arrive(buffer),
            _ => self.crew.admit(buffer),
        };
        admitted.map_or(Then::Nothing, |buffer| Then::Go(buffer, to))
    }

    /// Takes a buffer out of the stages that run on workers, at the end of a run of its path.
    #[inline(never)]
    fn leave_workers(&mut self, station: &Station, mut buffer: Buffer) -> Then<'a> {
        let last = buffer.is_last();
        let then = match station.onward {
            Onward::Thread(stage) => {
                self.shared.stages[stage].incoming.put(buffer);
                Then::Nothing
            }
            Onward::Pool(stage) => {
                buffer.recycle();
                self.shared.stages[stage].empty.put(buffer);
                Then::Nothing
            }
            Onward::Around(begin, buffers) => {
                buffer.recycle();
                let token = buffer.token_mut();
                (token.station, token.number) = (begin, token.number + buffers);
                self.around(buffer)
            }
            Onward::Station(_) => Then::Nothing,
        };
        if last {
            self.crew.close();
        }
        then
    }

    /// Returns an empty buffer to the beginning of its path. If the worker has the path's next round on its list, the two
    /// buffers are exchanged: the one that was used last is still in the cache.
    fn around(&mut self, mut buffer: Buffer) -> Then<'a> {
        let Some(mut kept) = self.desk.deque.pop() else {
            return self.crew.admit(buffer).map_or(Then::Nothing, Then::Next);
        };
        if kept.token().station == buffer.token().station {
            std::mem::swap(kept.token_mut(), buffer.token_mut());
            // Its number is not the next one: the other buffer's round comes first.
            if let Some(kept) = self.crew.admit(kept) {
                self.keep(kept);
            }
            return Then::Next(buffer);
        }
        if let Some(buffer) = self.crew.admit(buffer) {
            self.keep(buffer);
        }
        Then::Next(kept)
    }

    /// An incarnation has become free; it takes the next buffer, unless more incarnations are active than wanted.
    fn free(&self, station: &Station, permits: &Permits, incarnation: u32) -> Option<Buffer> {
        let stage = station.stage?;
        if incarnation >= self.crew.wanted[stage].load(Ordering::Relaxed) {
            permits.withdraw(incarnation, || incarnation < self.crew.wanted[stage].load(Ordering::Relaxed))
        } else {
            permits.free(incarnation)
        }
    }

    /// Puts a buffer that may proceed on the worker's list.
    #[inline]
    pub(super) fn keep(&self, buffer: Buffer) {
        self.desk.deque.push(buffer);
        self.announce();
    }

    /// Tells the other workers that the worker's list has a buffer.
    #[inline]
    pub(super) fn announce(&self) {
        if self.crew.several.load(Ordering::Relaxed) {
            self.crew.idle.notify(&self.shared.awake);
        }
    }

    fn set_several(&self, several: bool) {
        self.crew.several.store(several, Ordering::Relaxed);
        if several && self.crew.is_more() {
            self.announce();
        }
    }
}
