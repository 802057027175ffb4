//! A worker at work: it carries a buffer from station to station.

use std::sync::atomic::Ordering;

use super::plan::Access;
use super::sampler::Sampler;
use super::station::{Onward, Station};
use super::{Crew, Desk};
use crate::buffer::Buffer;
use crate::error::Cause;
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
        self.sampler.next_buffer();
        let next = loop {
            if self.shared.stopping() {
                break None;
            }
            let station = &self.crew.stations[buffer.token().station as usize];
            if let Err(cause) = self.work(station, &mut buffer) {
                self.shared.fail(station.stage, cause);
                break None;
            }
            match self.leave(station, buffer) {
                Then::Go(next) => buffer = next,
                Then::Next(next) => break Some(next),
                Then::Nothing => break None,
            }
        };
        self.sitting.carries_nothing();
        let several = self.crew.several.load(Ordering::Relaxed);
        let now = self.sampler.buffer_done(several);
        if now != several {
            self.set_several(now);
        }
        next
    }

    /// A round of the station's stage.
    #[inline]
    fn work(&mut self, station: &Station, buffer: &mut Buffer) -> Result<(), Cause> {
        let Some(stage) = station.stage else { return Ok(()) };
        let Some(room) = &self.crew.rooms[stage] else { return Ok(()) };
        if buffer.carries_block() {
            let cell = match room.access {
                Access::Alone => 0,
                Access::Own => self.number,
                Access::Free(_) => buffer.token().incarnation as usize,
            };
            // SAFETY: the turnstile has let in this buffer alone, the permit was given to it alone, or the cell is this
            // worker's own; and whoever had it before has left before.
            let flow = unsafe { room.cells[cell].round(buffer, stage, self.sitting, &mut self.sampler) }?;
            match flow {
                Flow::Continue => {}
                flow if !station.begins => return Err(misuse(flow)),
                Flow::Last => buffer.mark_last(),
                Flow::End => buffer.make_caboose(),
            }
            if self.sampler.was_long() && !self.crew.several.load(Ordering::Relaxed) {
                self.set_several(true);
            }
        }
        if station.begins {
            buffer.set_round(buffer.token().number);
        }
        if buffer.carries_block() {
            self.shared.stages[stage].counters.round(buffer.len());
        }
        Ok(())
    }

    /// The buffer leaves the station for the next one, and the next buffer of the station may come.
    #[inline]
    fn leave(&mut self, station: &Station, mut buffer: Buffer) -> Then {
        let (number, incarnation) = (buffer.token().number, buffer.token().incarnation);
        let ends = station.begins && buffer.is_last();
        if let Some(renumber) = &station.renumber {
            renumber.pass(&mut buffer);
        }
        let then = match station.onward {
            Onward::Station(next) => {
                buffer.token_mut().station = next;
                self.crew.admit(buffer).map_or(Then::Nothing, Then::Go)
            }
            _ => self.leave_workers(station, buffer),
        };
        let freed = match self.crew.room(station).map(|room| &room.access) {
            Some(Access::Free(permits)) => self.free(station, permits, incarnation),
            _ => None,
        };
        let follows = match &station.turnstile {
            Some(turnstile) if !ends => turnstile.open(number + 1),
            _ => None,
        };
        let follows = follows.and_then(|buffer| self.crew.access(station, buffer));
        self.choose(then, freed, follows)
    }

    /// A buffer leaves the stages that run on workers, at the end of a run of its path.
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
    fn free(&self, station: &Station, permits: &super::permits::Permits, incarnation: u32) -> Option<Buffer> {
        let stage = station.stage?;
        if incarnation >= self.crew.wanted[stage].load(Ordering::Relaxed) {
            permits.withdraw(incarnation, || incarnation < self.crew.wanted[stage].load(Ordering::SeqCst))
        } else {
            permits.free(incarnation)
        }
    }

    /// Of the buffers that may go on, carries one and keeps the others.
    #[inline]
    fn choose(&mut self, then: Then, freed: Option<Buffer>, follows: Option<Buffer>) -> Then {
        let mut then = then;
        let mut kept = false;
        for other in [follows, freed].into_iter().flatten() {
            match then {
                Then::Nothing => then = Then::Next(other),
                _ => {
                    self.desk.deque.push(other);
                    kept = true;
                }
            }
        }
        if kept {
            self.announce();
        }
        then
    }

    /// Puts a buffer that may go on on the worker's list.
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
        if several && !self.desk.deque.is_empty() {
            self.announce();
        }
    }
}
