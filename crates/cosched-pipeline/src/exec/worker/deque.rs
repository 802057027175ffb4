//! A worker's own list of buffers that may proceed: it takes the newest, other workers steal the oldest.
//!
//! Chase and Lev's deque, with the orderings of Lê, Pop, Cohen and Zappa Nardelli (PPoPP 2013, figure 1). It never grows,
//! because it has room for all buffers of the graph.

use super::padded::Padded;
use super::slot::{from_raw, into_raw};
use super::sync::{AtomicIsize, AtomicPtr, Ordering, fence};
use crate::buffer::{Buffer, Inner};

pub(super) struct Deque {
    /// The end from which others steal.
    top: Padded<AtomicIsize>,
    /// The end at which the owner pushes and pops.
    bottom: Padded<AtomicIsize>,
    slots: Box<[AtomicPtr<Inner>]>,
    /// No other worker steals from it.
    is_private: bool,
}

/// The result of an attempt to steal.
pub(super) enum Stolen {
    Nothing,
    /// Another worker was faster; the deque may have more buffers.
    Lost,
    Buffer(Buffer),
}

impl Deque {
    /// A deque with room for `room` buffers. Only the owner takes from a private one.
    pub(super) fn new(room: usize, is_private: bool) -> Deque {
        let slots = (0..room.max(2).next_power_of_two()).map(|_| AtomicPtr::default()).collect();
        Deque { top: Padded::default(), bottom: Padded::default(), slots, is_private }
    }

    #[inline]
    fn slot(&self, place: isize) -> &AtomicPtr<Inner> {
        &self.slots[place as usize & (self.slots.len() - 1)]
    }

    /// Adds a buffer. Only for the owner.
    #[inline]
    pub(super) fn push(&self, buffer: Buffer) {
        let bottom = self.bottom.load(Ordering::Relaxed);
        self.slot(bottom).store(into_raw(buffer), Ordering::Relaxed);
        self.bottom.store(bottom + 1, Ordering::Release);
    }

    /// Takes the newest buffer. Only for the owner.
    #[inline]
    pub(super) fn pop(&self) -> Option<Buffer> {
        let bottom = self.bottom.load(Ordering::Relaxed) - 1;
        // An early return without the fence below where the deque is empty: `top` only grows.
        if self.top.load(Ordering::Relaxed) > bottom {
            return None;
        }
        // As in `push`: a thief that sees this sees what was pushed before.
        self.bottom.store(bottom, Ordering::Release);
        if !self.is_private {
            fence(Ordering::SeqCst);
        }
        let top = self.top.load(Ordering::Relaxed);
        let raw = self.slot(bottom).load(Ordering::Relaxed);
        if top < bottom {
            // SAFETY: `push` put it there; thieves that have seen the lowered `bottom` take only what is above it.
            return Some(unsafe { from_raw(raw) });
        }
        // It is the last one, or the deque is empty.
        let mine = top == bottom && self.take_last(top);
        self.bottom.store(bottom + 1, Ordering::Release);
        // SAFETY: `push` put it there, and raising `top` took it: only one of all workers that try succeeds.
        mine.then(|| unsafe { from_raw(raw) })
    }

    #[inline]
    fn take_last(&self, top: isize) -> bool {
        if self.is_private {
            self.top.store(top + 1, Ordering::Relaxed);
            return true;
        }
        self.top.compare_exchange(top, top + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Takes the oldest buffer. For all workers; of a private deque only for its owner.
    pub(super) fn steal(&self) -> Stolen {
        let top = self.top.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let bottom = self.bottom.load(Ordering::Acquire);
        if top >= bottom {
            return Stolen::Nothing;
        }
        let raw = self.slot(top).load(Ordering::Relaxed);
        if self.top.compare_exchange(top, top + 1, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Stolen::Lost;
        }
        // SAFETY: `push` put it there, and raising `top` took it: only one of all workers that try succeeds. The slot was
        // not reused before, because the deque has room for all buffers.
        Stolen::Buffer(unsafe { from_raw(raw) })
    }

    /// Whether it appears to be empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bottom.load(Ordering::Relaxed) <= self.top.load(Ordering::Relaxed)
    }
}

impl Drop for Deque {
    fn drop(&mut self) {
        while let Some(buffer) = self.pop() {
            drop(buffer);
        }
    }
}
