//! The route of a path's buffers through the stages that run on workers, divided into stations.

use std::sync::Arc;

use super::cell::Cell;
use super::padded::Padded;
use super::sync::{AtomicU64, Ordering};
use super::turnstile::Turnstile;
use crate::buffer::Buffer;

/// Where a buffer goes after a station.
#[derive(Clone, Copy)]
pub(super) enum Onward {
    /// To the next station of its path.
    Station(u32),
    /// Into the queue of a stage that has a thread of its own.
    Thread(usize),
    /// Into the pool of its path, from which a stage with a thread of its own takes it.
    Pool(usize),
    /// Into the pool of its path, which is the station where the path begins; with the path's number of buffers.
    Around(u32, u64),
}

/// How buffers enter a station.
pub(super) enum Entry {
    /// A stage with one incarnation, on one path: in order, and a buffer that is in has exclusive use of it. The common and the
    /// fast case.
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

/// A stage on one of its paths; or a place without a stage, where the order is restored before the queue of a thread.
pub(super) struct Station {
    pub(super) stage: Option<usize>,
    /// Whether the path begins at this station.
    pub(super) begins: bool,
    pub(super) entry: Entry,
    /// Number of buffers that came from threads; each gets the next number.
    arrived: Padded<AtomicU64>,
    /// If the order is not kept: buffers are renumbered as they leave.
    pub(super) renumber: Option<Box<Renumber>>,
    pub(super) onward: Onward,
}

impl Station {
    pub(super) fn new(stage: Option<usize>, entry: Entry, onward: Onward) -> Station {
        Station { stage, begins: false, entry, arrived: Padded::default(), renumber: None, onward }
    }

    /// The turnstile that lets in one buffer at a time, if the station has one.
    #[inline]
    pub(super) fn turnstile(&self) -> Option<&Turnstile> {
        match &self.entry {
            Entry::Plain(plain) => Some(&plain.turnstile),
            Entry::Ordered(turnstile) => Some(turnstile),
            Entry::Any => None,
        }
    }

    /// The station's stage has one incarnation, and is on no other path: it can use the fast case.
    pub(super) fn make_plain(&mut self, cell: &Arc<Cell>) {
        if let (Some(stage), Entry::Ordered(turnstile)) = (self.stage, std::mem::replace(&mut self.entry, Entry::Any)) {
            self.entry = Entry::Plain(Plain { turnstile, stage, cell: cell.clone() });
        }
    }

    /// The number of buffers that wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.turnstile().map_or(0, Turnstile::waiting)
    }

    /// Numbers a buffer that comes from outside.
    pub(super) fn number(&self, here: u32, buffer: &mut Buffer) {
        let token = buffer.token_mut();
        token.number = self.arrived.fetch_add(1, Ordering::AcqRel);
        token.station = here;
    }
}

/// Numbers buffers in the order in which they leave. As in the joins of threads, the mark of the last one moves to the buffer
/// that leaves last.
pub(super) struct Renumber {
    gone: AtomicU64,
    /// The total number of buffers, once the marked one has arrived; before that a number that is never reached.
    total: AtomicU64,
}

impl Renumber {
    pub(super) fn new() -> Renumber {
        Renumber { gone: AtomicU64::new(0), total: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn pass(&self, buffer: &mut Buffer) {
        if buffer.is_last() {
            // Workers whose increment below comes after this one see it.
            self.total.store(buffer.token().number + 1, Ordering::Relaxed);
        }
        let number = self.gone.fetch_add(1, Ordering::AcqRel);
        buffer.token_mut().number = number;
        buffer.set_last(self.total.load(Ordering::Relaxed) == number + 1);
    }
}
