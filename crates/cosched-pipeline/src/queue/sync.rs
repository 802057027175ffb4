//! What the queues are built from. The tests put a checker of all interleavings (loom) in this file's place, so the queues
//! name nothing of it but what stands here.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::atomic::{compiler_fence, fence};

use rustix::thread::{MembarrierCommand, futex, membarrier};

/// Whether [`heavy_fence`] makes all other threads of the process pass a fence, so that [`light_fence`] need not be one.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// To be called before any queue is used by several threads: asks the kernel for fences on behalf of other threads.
pub(crate) fn prepare() {
    if !ASYMMETRIC.load(Ordering::Relaxed) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() {
        ASYMMETRIC.store(true, Ordering::Relaxed);
    }
}

/// The fence of whoever hands something over, on the fast path. Together with [`heavy_fence`] it is a fence between a store
/// and a load (membarrier(2)); the price is with whoever is about to sleep.
#[inline]
pub(super) fn light_fence() {
    if ASYMMETRIC.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The fence of whoever is about to sleep.
pub(super) fn heavy_fence() {
    fence(Ordering::SeqCst);
    if ASYMMETRIC.load(Ordering::Relaxed) && membarrier(MembarrierCommand::PrivateExpedited).is_err() {
        // Registered and yet refused: a filter of system calls came between. From here on all fences are whole ones; what
        // others are just storing is seen after a moment.
        ASYMMETRIC.store(false, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

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
