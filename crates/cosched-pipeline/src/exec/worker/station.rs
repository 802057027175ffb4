//! The way of a path's buffers through the stages that run on workers, cut into stations.

use std::sync::Arc;

use super::cell::Cell;
use super::padded::Padded;
use super::sync::{AtomicU64, Ordering};
use super::turnstile::Turnstile;
use crate::buffer::Buffer;

/// Where a buffer goes from a station.
#[derive(Clone, Copy)]
pub(super) enum Onward {
    /// To the next station of its path.
    Station(u32),
    /// Into the queue of a stage that has a thread of its own.
    Thread(usize),
    /// Into the pool of its path, from which a stage takes that has a thread of its own.
    Pool(usize),
    /// Into the pool of its path, which is the station where the path begins. The path has so many buffers.
    Around(u32, u64),
}

/// How buffers come into a station.
pub(super) enum Entry {
    /// A stage with one incarnation, on one path: in order, and who is in has it for itself. The common case, and the fast one.
    Plain(Plain),
    /// One at a time, in order.
    Ordered(Turnstile),
    /// A stage with several incarnations: in any order.
    Any,
}

/// A stage with one incarnation, on one path.
pub(super) struct Plain {
    pub(super) turnstile: Turnstile,
    pub(super) stage: usize,
    pub(super) cell: Arc<Cell>,
}

/// A stage on one of its paths; or a place without a stage, where the order is restored before a thread's queue.
pub(super) struct Station {
    pub(super) stage: Option<usize>,
    /// Whether the path begins here.
    pub(super) begins: bool,
    pub(super) entry: Entry,
    /// Buffers that come from threads, each of which gets the next number.
    arrived: Padded<AtomicU64>,
    /// Where the order is not kept: the buffers are numbered again as they leave.
    pub(super) renumber: Option<Box<Renumber>>,
    pub(super) onward: Onward,
}

impl Station {
    pub(super) fn new(stage: Option<usize>, entry: Entry, onward: Onward) -> Station {
        Station { stage, begins: false, entry, arrived: Padded::default(), renumber: None, onward }
    }

    /// Where one buffer goes in at a time.
    #[inline]
    pub(super) fn turnstile(&self) -> Option<&Turnstile> {
        match &self.entry {
            Entry::Plain(plain) => Some(&plain.turnstile),
            Entry::Ordered(turnstile) => Some(turnstile),
            Entry::Any => None,
        }
    }

    /// It has a stage with one incarnation, which is on no other path.
    pub(super) fn make_plain(&mut self, cell: &Arc<Cell>) {
        if let (Some(stage), Entry::Ordered(turnstile)) = (self.stage, std::mem::replace(&mut self.entry, Entry::Any)) {
            self.entry = Entry::Plain(Plain { turnstile, stage, cell: cell.clone() });
        }
    }

    /// How many buffers wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.turnstile().map_or(0, Turnstile::waiting)
    }

    /// Gives a buffer that comes from outside its number.
    pub(super) fn number(&self, here: u32, buffer: &mut Buffer) {
        let token = buffer.token_mut();
        token.number = self.arrived.fetch_add(1, Ordering::AcqRel);
        token.station = here;
    }
}

/// Numbers in the order of leaving. As in the joins of threads the mark of the last one goes to whichever leaves last.
pub(super) struct Renumber {
    gone: AtomicU64,
    /// How many there are, once the marked one has come; before that a number that is never reached.
    total: AtomicU64,
}

impl Renumber {
    pub(super) fn new() -> Renumber {
        Renumber { gone: AtomicU64::new(0), total: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn pass(&self, buffer: &mut Buffer) {
        if buffer.is_last() {
            // Who counts behind this one's count below sees it.
            self.total.store(buffer.token().number + 1, Ordering::Relaxed);
        }
        let number = self.gone.fetch_add(1, Ordering::AcqRel);
        buffer.token_mut().number = number;
        buffer.set_last(self.total.load(Ordering::Relaxed) == number + 1);
    }
}
