//! A ring buffer for one thread that puts and one that takes: no lock, no blocking, no locked instruction.
//!
//! Problem: a pipeline hands over one pointer per stage and buffer; a lock would cost more than the hand-off. Rule: each
//! side has a count of its own, on a cache line of its own, and remembers the other's count as it last saw it. The taker
//! reads the putter's count only when it has taken all buffers that it knew of; the putter reads the taker's only once per
//! round of the ring, because a path has no more buffers than the ring has slots. Sources: Lamport 1983, "Specifying
//! concurrent program modules" (the two counts); Lee et al. 2010, "A lock-free, cache-efficient shared ring buffer"
//! (remembering them).

use super::sync::{AtomicUsize, Ordering, Slot};

/// Two lines: the CPU fetches them in pairs.
#[repr(align(128))]
struct Side {
    /// The number of values that this side has put or taken. Written by this side only.
    count: AtomicUsize,
    /// The other side's count as last seen. Used by this side only.
    seen: AtomicUsize,
}

/// The ring. Values that are left in it are dropped with it.
pub(crate) struct Ring<T> {
    put: Side,
    take: Side,
    slots: Box<[Slot<T>]>,
}

// SAFETY: a value moves from one thread to another, so it must be Send; the slots are used as `put` and `take` require.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above; the ring owns its values.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    /// A ring with room for at least `room` values.
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
    /// If the ring is full, that is, if more buffers arrive than its paths have.
    ///
    /// # Safety
    /// Calls of `put` are serialised: each happens before the next one.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, value: T) {
        let count = self.put.count.load(Ordering::Relaxed);
        if count.wrapping_sub(self.put.seen.load(Ordering::Relaxed)) == self.slots.len() {
            let taken = self.take.count.load(Ordering::Acquire);
            assert!(count.wrapping_sub(taken) < self.slots.len(), "more buffers arrive than the paths have");
            self.put.seen.store(taken, Ordering::Relaxed);
        }
        // SAFETY: the taker has emptied this slot (its count says so), and does not access it before it sees the new count.
        unsafe { self.slot(count).fill(value) };
        self.put.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// Takes the oldest value out.
    ///
    /// # Safety
    /// Calls of `take` are serialised: each happens before the next one.
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
        // SAFETY: the putter has filled this slot (its count said so), and does not access it before it sees the new count.
        let value = unsafe { self.slot(count).empty() };
        self.take.count.store(count.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    /// The number of values in the ring. May be called from any thread; the result may be outdated when it returns.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let taken = self.take.count.load(Ordering::Relaxed);
        let len = self.put.count.load(Ordering::Relaxed).wrapping_sub(taken);
        // The two counts are not read atomically together.
        if len > self.slots.len() { 0 } else { len }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the ring is being dropped, so no other thread has access.
        while let Some(value) = unsafe { self.take() } {
            drop(value);
        }
    }
}
