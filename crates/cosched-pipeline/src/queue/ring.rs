//! A ring between one thread that puts and one that takes: no lock, no wait, no locked instruction.
//!
//! Problem: a pipeline hands over a pointer per stage and buffer; a lock there costs more than the hand-off. Rule: each side
//! has a count of its own, on a cache line of its own, and remembers what it last saw of the other's. The taker looks at the
//! putter's count only when it has taken all that it knew of; the putter at the taker's only once in a round of the ring,
//! because a path has no more buffers than the ring has room. Source: Lamport 1983, "Specifying concurrent program modules"
//! (the two counts); Lee et al. 2010, "A lock-free, cache-efficient shared ring buffer" (remembering them).

use super::sync::{AtomicUsize, Ordering, Slot};

/// Two lines: the processor fetches them in pairs.
#[repr(align(128))]
struct Side {
    /// How many this side has put or taken. Written by this side only.
    count: AtomicUsize,
    /// What this side last saw of the other's count. Used by this side only.
    seen: AtomicUsize,
}

/// The ring. What is left in it is dropped with it.
pub(crate) struct Ring<T> {
    put: Side,
    take: Side,
    slots: Box<[Slot<T>]>,
}

// SAFETY: a value goes from one thread to another, so it must be Send; the slots are used as `put` and `take` say.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above; the ring owns its values.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    /// A ring with room for at least so many.
    pub(crate) fn new(room: usize) -> Ring<T> {
        let side = || Side { count: AtomicUsize::new(0), seen: AtomicUsize::new(0) };
        let slots = (0..room.next_power_of_two()).map(|_| Slot::new()).collect();
        Ring { put: side(), take: side(), slots }
    }

    fn slot(&self, count: usize) -> &Slot<T> {
        &self.slots[count & (self.slots.len() - 1)]
    }

    /// Puts a value in.
    ///
    /// # Panics
    /// If the ring is full: more buffers than its paths have.
    ///
    /// # Safety
    /// Calls of `put` follow each other: each has happened before the next begins.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, value: T) {
        let count = self.put.count.load(Ordering::Relaxed);
        if count.wrapping_sub(self.put.seen.load(Ordering::Relaxed)) == self.slots.len() {
            let taken = self.take.count.load(Ordering::Acquire);
            assert!(count.wrapping_sub(taken) < self.slots.len(), "more buffers arrive than the paths have");
            self.put.seen.store(taken, Ordering::Relaxed);
        }
        // SAFETY: the taker has emptied this slot (its count says so), and does not look at it before it sees the new count.
        unsafe { self.slot(count).fill(value) };
        self.put.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// Takes the oldest value out.
    ///
    /// # Safety
    /// Calls of `take` follow each other: each has happened before the next begins.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> Option<T> {
        let count = self.take.count.load(Ordering::Relaxed);
        if count == self.take.seen.load(Ordering::Relaxed) {
            let put = self.put.count.load(Ordering::Acquire);
            if count == put {
                return None;
            }
            self.take.seen.store(put, Ordering::Relaxed);
        }
        // SAFETY: the putter has filled this slot (its count said so), and does not look at it before it sees the new count.
        let value = unsafe { self.slot(count).empty() };
        self.take.count.store(count.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    /// How many are in it. Anyone may ask; by the time of the answer it may be another number.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let taken = self.take.count.load(Ordering::Relaxed);
        let len = self.put.count.load(Ordering::Relaxed).wrapping_sub(taken);
        // The two counts are not read at once.
        if len > self.slots.len() { 0 } else { len }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: nobody else has it any more.
        while let Some(value) = unsafe { self.take() } {
            drop(value);
        }
    }
}
