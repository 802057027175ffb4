//! A worker at work: it carries a buffer from station to station.

use std::sync::atomic::Ordering;

use super::cell::{Cell, Said, Visit};
use super::permits::Permits;
use super::plan::Access;
use super::sampler::Sampler;
use super::station::{Entry, Onward, Plain, Station};
use super::{Crew, Desk};
use crate::buffer::{Buffer, Token};
use crate::exec::shared::Shared;
use crate::exec::thread::misuse;
use crate::graph::Flow;
use crate::monitor::Sitting;

/// A worker.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared,
    pub(super) crew: &'a Crew,
    pub(super) desk: &'a Desk,
    pub(super) number: usize,
    pub(super) sitting: &'a Sitting<'a>,
    pub(super) sampler: Sampler,
}

/// What a worker carries next.
enum Then {
    /// The same buffer, through the next station.
    Go(Buffer),
    /// Another one, or the same in the next round of its path.
    Next(Buffer),
    /// Something from a list.
    Nothing,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared, number: usize, sitting: &'a Sitting<'a>) -> Worker<'a> {
        let crew = &shared.crew;
        Worker { shared, crew, desk: &crew.desks[number], number, sitting, sampler: Sampler::new() }
    }

    /// Carries a buffer as far as it goes. Returns the one to carry next, if it came upon one.
    pub(super) fn carry(&mut self, mut buffer: Buffer) -> Option<Buffer> {
        let crew = self.crew;
        self.sampler.next_buffer();
        let next = loop {
            if self.shared.stopping() {
                break None;
            }
            let station = &crew.stations[buffer.token().station as usize];
            let then = match &station.entry {
                Entry::Plain(plain) => self.pass(station, plain, buffer),
                Entry::Ordered(_) | Entry::Any => self.pass_slowly(station, buffer),
            };
            match then {
                Then::Go(next) => buffer = next,
                Then::Next(next) => break Some(next),
                Then::Nothing => break None,
            }
        };
        self.sitting.carries_nothing();
        let several = crew.several.load(Ordering::Relaxed);
        let now = self.sampler.buffer_done(several);
        if now != several {
            self.set_several(now);
        }
        next
    }

    /// Through a stage with one incarnation on one path, and to the next station. The next buffer of the stage may come then.
    #[inline]
    fn pass(&mut self, station: &Station, plain: &Plain, mut buffer: Buffer) -> Then {
        let number = buffer.token().number;
        if buffer.carries_block() {
            // SAFETY: the turnstile has let in this buffer alone, and the one before has left before.
            let said =
                unsafe { plain.cell.quick_round(&mut buffer, self.visit(station, plain.stage, number), &self.sampler) };
            if !matches!(said, Some(Ok(()))) {
                // SAFETY: as above.
                if !unsafe { self.take_care(station, plain.stage, &plain.cell, said, &mut buffer) } {
                    return Then::Nothing;
                }
            }
            if buffer.carries_block() {
                plain.cell.round_done(buffer.len());
            }
        }
        let mut ends = false;
        if station.begins {
            buffer.set_round(number);
            ends = buffer.is_last();
        }
        let then = match station.onward {
            Onward::Station(next) => {
                buffer.token_mut().station = next;
                match &self.crew.stations[next as usize].entry {
                    Entry::Plain(plain) => plain.turnstile.arrive(buffer),
                    _ => self.crew.admit(buffer),
                }
                .map_or(Then::Nothing, Then::Go)
            }
            _ => self.leave_workers(station, buffer),
        };
        if ends {
            return then;
        }
        match (then, plain.turnstile.open(number + 1)) {
            (then, None) => then,
            (Then::Nothing, Some(follows)) => Then::Next(follows),
            (then, Some(follows)) => {
                self.keep(follows);
                then
            }
        }
    }

    /// The same for all other stations.
    #[inline(never)]
    fn pass_slowly(&mut self, station: &Station, mut buffer: Buffer) -> Then {
        let Token { number, incarnation, .. } = *buffer.token();
        let room = self.crew.room(station);
        if let (Some(stage), Some(room), true) = (station.stage, room, buffer.carries_block()) {
            let cell = match room.access {
                Access::Alone => 0,
                Access::Own => self.number,
                Access::Free(_) => incarnation as usize,
            };
            let cell = &room.cells[cell];
            // SAFETY: the permit was given to this buffer alone, or the cell is this worker's own; and whoever had it before
            // has left before.
            let said = unsafe { cell.quick_round(&mut buffer, self.visit(station, stage, number), &self.sampler) };
            // SAFETY: as above.
            if !unsafe { self.take_care(station, stage, cell, said, &mut buffer) } {
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
        let mut then = self.move_on(station, buffer);
        let freed = match room.map(|room| &room.access) {
            Some(Access::Free(permits)) => self.free(station, permits, incarnation),
            _ => None,
        };
        let follows = if ends { None } else { station.turnstile().and_then(|turnstile| turnstile.open(number + 1)) };
        let follows = follows.and_then(|buffer| self.crew.access(station, buffer));
        for other in [follows, freed].into_iter().flatten() {
            match then {
                Then::Nothing => then = Then::Next(other),
                _ => self.keep(other),
            }
        }
        then
    }

    /// A round of a stage, for those that watch. At the beginning of a path the buffer gets its round only then.
    #[inline]
    fn visit(&self, station: &Station, stage: usize, number: u64) -> Visit<'a> {
        Visit { stage, begins: station.begins.then_some(number), sitting: self.sitting }
    }

    /// Does the round, if it has not been done because it is to be timed; then follows what the stage said. False if that ends
    /// everything.
    ///
    /// # Safety
    /// The buffer has the cell for itself, and what the one before did with it is seen.
    #[inline(never)]
    unsafe fn take_care(
        &mut self,
        station: &Station,
        stage: usize,
        cell: &Cell,
        said: Option<Result<(), Box<Said>>>,
        buffer: &mut Buffer,
    ) -> bool {
        let number = buffer.token().number;
        let said = said.unwrap_or_else(|| {
            // SAFETY: the caller's promise.
            let said = unsafe { cell.round_with_care(buffer, self.visit(station, stage, number), &mut self.sampler) };
            if self.sampler.was_long() && !self.crew.several.load(Ordering::Relaxed) {
                self.set_several(true);
            }
            said
        });
        match said.map_err(|said| *said) {
            Ok(()) | Err(Said::Flow(Flow::Continue)) => return true,
            Err(Said::Flow(flow)) if !station.begins => self.shared.fail(Some(stage), misuse(flow)),
            Err(Said::Flow(Flow::Last)) => {
                buffer.mark_last();
                return true;
            }
            Err(Said::Flow(Flow::End)) => {
                buffer.make_caboose();
                return true;
            }
            Err(Said::Failed(cause)) => self.shared.fail(Some(stage), cause),
        }
        false
    }

    /// A buffer leaves a station for where it goes next.
    fn move_on(&mut self, station: &Station, mut buffer: Buffer) -> Then {
        match station.onward {
            Onward::Station(next) => {
                buffer.token_mut().station = next;
                self.crew.admit(buffer).map_or(Then::Nothing, Then::Go)
            }
            _ => self.leave_workers(station, buffer),
        }
    }

    /// A buffer leaves the stages that run on workers, at the end of a run of its path.
    #[inline(never)]
    fn leave_workers(&mut self, station: &Station, mut buffer: Buffer) -> Then {
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

    /// An empty buffer comes back to its path's beginning. If the worker has the path's next round on its list, the two
    /// buffers change places: what was used last is still in the cache.
    fn around(&mut self, mut buffer: Buffer) -> Then {
        let Some(mut kept) = self.desk.deque.pop() else {
            return self.crew.admit(buffer).map_or(Then::Nothing, Then::Next);
        };
        if kept.token().station == buffer.token().station {
            std::mem::swap(kept.token_mut(), buffer.token_mut());
            // Its number is not yet next: the other's round comes before.
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

    /// An incarnation is free again; unless there are more of them than there are to be, it takes the next buffer.
    fn free(&self, station: &Station, permits: &Permits, incarnation: u32) -> Option<Buffer> {
        let stage = station.stage?;
        if incarnation >= self.crew.wanted[stage].load(Ordering::Relaxed) {
            permits.withdraw(incarnation, || incarnation < self.crew.wanted[stage].load(Ordering::Relaxed))
        } else {
            permits.free(incarnation)
        }
    }

    /// Puts a buffer that may go on on the worker's list.
    #[inline]
    pub(super) fn keep(&self, buffer: Buffer) {
        self.desk.deque.push(buffer);
        self.announce();
    }

    /// Tells the others that there is something on the worker's list.
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
