//! The primitives of the queues. The tests replace this file by a model checker of all interleavings (loom), so the queues use
//! only what is exported here.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::compiler_fence;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::time::Duration;

use cosched_linux::thread::barrier;
use rustix::thread::futex;

/// The fence of the side that needs it often, between a store and a load: free, because [`heavy_fence`] acts for both sides.
/// It orders nothing with respect to a thread that does not call `heavy_fence`.
#[inline]
pub(super) fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// The fence of the side that needs it rarely. Only to be called if [`has_heavy_fence`] is true.
pub(super) fn heavy_fence() {
    if barrier::everywhere().is_err() {
        // The process is registered, so the kernel should not refuse. If it does, the other side's stores leave its CPU within
        // nanoseconds.
        std::thread::sleep(Duration::from_millis(1));
    }
}

static HAS_HEAVY_FENCE: AtomicBool = AtomicBool::new(false);

/// Whether [`heavy_fence`] may be used.
pub(super) fn has_heavy_fence() -> bool {
    HAS_HEAVY_FENCE.load(Ordering::Relaxed)
}

/// Registers with the kernel for it, once per process. `may_take_long`: in a process with several threads it takes 5 to 20 ms;
/// if false, that is left for a later call.
pub(crate) fn prepare_heavy_fence(may_take_long: bool) {
    let is_alone = || std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if !has_heavy_fence() && (may_take_long || is_alone()) && barrier::register().is_ok() {
        HAS_HEAVY_FENCE.store(true, Ordering::Relaxed);
    }
}

/// A word on which threads sleep.
#[derive(Default)]
pub(super) struct Futex(AtomicU32);

impl Futex {
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sleeps while the word has this value. May return spuriously.
    pub(super) fn sleep_while(&self, value: u32) {
        // Interrupted, changed or woken: the caller checks again in any case.
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, value, None);
    }

    /// Wakes at most this number of the threads that sleep on the word.
    pub(super) fn wake(&self, count: u32) {
        // It fails only for addresses that are not mapped.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, count);
    }
}

/// Room for one value; its owner knows whether it is filled.
pub(super) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    pub(super) fn new() -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// No other thread uses the slot at this time, and it is empty (a value in it would be leaked).
    #[inline]
    pub(super) unsafe fn fill(&self, value: T) {
        // SAFETY: the caller has exclusive use of the slot.
        unsafe { (*self.0.get()).write(value) };
    }

    /// # Safety
    /// No other thread uses the slot at this time, and it has been filled and not emptied since.
    #[inline]
    pub(super) unsafe fn empty(&self) -> T {
        // SAFETY: the caller has exclusive use of the slot, and it contains a value.
        unsafe { (*self.0.get()).assume_init_read() }
    }
}
