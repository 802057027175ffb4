//! A worker's own list of buffers that may go on: it takes the newest, others steal the oldest.
//!
//! Chase and Lev's deque, with the orderings of Lê, Pop, Cohen and Zappa Nardelli (PPoPP 2013, figure 1). It never grows: it
//! has room for all buffers of the graph.

use super::padded::Padded;
use super::slot::{from_raw, into_raw};
use super::sync::{AtomicIsize, AtomicPtr, Ordering, fence};
use crate::buffer::{Buffer, Inner};

pub(super) struct Deque {
    /// Where others steal.
    top: Padded<AtomicIsize>,
    /// Where the owner works.
    bottom: Padded<AtomicIsize>,
    slots: Box<[AtomicPtr<Inner>]>,
    /// Nobody steals from it.
    is_private: bool,
}

/// What a theft came to.
pub(super) enum Stolen {
    Nothing,
    /// Someone else was faster; there may be more.
    Lost,
    Buffer(Buffer),
}

impl Deque {
    /// Room for so many. A private one has an owner and no thieves.
    pub(super) fn new(room: usize, is_private: bool) -> Deque {
        let slots = (0..room.max(2).next_power_of_two()).map(|_| AtomicPtr::default()).collect();
        Deque { top: Padded::default(), bottom: Padded::default(), slots, is_private }
    }

    #[inline]
    fn slot(&self, place: isize) -> &AtomicPtr<Inner> {
        &self.slots[place as usize & (self.slots.len() - 1)]
    }

    /// One more. Only for the owner.
    #[inline]
    pub(super) fn push(&self, buffer: Buffer) {
        let bottom = self.bottom.load(Ordering::Relaxed);
        self.slot(bottom).store(into_raw(buffer), Ordering::Relaxed);
        self.bottom.store(bottom + 1, Ordering::Release);
    }

    /// The newest. Only for the owner.
    #[inline]
    pub(super) fn pop(&self) -> Option<Buffer> {
        let bottom = self.bottom.load(Ordering::Relaxed) - 1;
        // Without the fence below, where nobody could take anything: `top` only grows.
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
            // SAFETY: `push` put it there; thieves take only what lies above `bottom` once they have seen it lowered.
            return Some(unsafe { from_raw(raw) });
        }
        // It is the last one, or none is left.
        let mine = top == bottom && self.take_last(top);
        self.bottom.store(bottom + 1, Ordering::Release);
        // SAFETY: `push` put it there, and raising `top` took it: one of all who try succeeds.
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

    /// The oldest. For everyone, and of a private one for its owner.
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
        // SAFETY: `push` put it there, and raising `top` took it: one of all who try succeeds. The slot was not used again
        // before, because there is room for all buffers.
        Stolen::Buffer(unsafe { from_raw(raw) })
    }

    /// Whether it looks empty.
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
