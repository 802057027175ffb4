//! What the queues are built from. The tests put a checker of all interleavings (loom) in this file's place, so the queues
//! name nothing of it but what stands here.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
pub(super) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use rustix::thread::futex;

/// Between a store and a load that are both `SeqCst`: these are in one order that all threads agree upon, so nothing has to be
/// done. The checker does not know that, and has a fence here.
#[inline]
pub(super) fn in_one_order() {}

/// A word on which threads sleep.
#[derive(Default)]
pub(super) struct Futex(AtomicU32);

impl Futex {
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sleeps while the word has this value. May return for no reason.
    pub(super) fn sleep_while(&self, value: u32) {
        // Interrupted, changed or woken: the caller looks again in any case.
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, value, None);
    }

    /// Wakes so many of those who sleep.
    pub(super) fn wake(&self, count: u32) {
        // It fails for addresses that are not ours only.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, count);
    }
}

/// Room for one value, of which the owner knows whether it is there.
pub(super) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    pub(super) fn new() -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// Nobody else uses the slot at this time, and it is empty (what is in it would be lost).
    #[inline]
    pub(super) unsafe fn fill(&self, value: T) {
        // SAFETY: the caller alone uses the slot.
        unsafe { (*self.0.get()).write(value) };
    }

    /// # Safety
    /// Nobody else uses the slot at this time, and it was filled and not emptied since.
    #[inline]
    pub(super) unsafe fn empty(&self) -> T {
        // SAFETY: the caller alone uses the slot, and a value is in it.
        unsafe { (*self.0.get()).assume_init_read() }
    }
}
