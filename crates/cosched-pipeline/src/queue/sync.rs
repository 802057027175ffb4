//! What the queues are built from. The tests put a checker of all interleavings (loom) in this file's place, so the queues
//! name nothing of it but what stands here.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::compiler_fence;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::time::Duration;

use cosched_linux::thread::barrier;
use rustix::thread::futex;

/// The fence of who makes it often, between a store and a load: free, because [`heavy_fence`] makes it for both sides. Nothing
/// is promised to a thread that does not call that.
#[inline]
pub(super) fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// The fence of who makes it seldom. Only where [`has_heavy_fence`] has said yes.
pub(super) fn heavy_fence() {
    if barrier::everywhere().is_err() {
        // It was registered, so the kernel may not say no. The other side's stores leave its processor within nanoseconds.
        std::thread::sleep(Duration::from_millis(1));
    }
}

static HAS_HEAVY_FENCE: AtomicBool = AtomicBool::new(false);

/// Whether there is a [`heavy_fence`].
pub(super) fn has_heavy_fence() -> bool {
    HAS_HEAVY_FENCE.load(Ordering::Relaxed)
}

/// Asks the kernel for it, once in a process. `may_take_long`: in a process with threads it takes 5 to 20 ms, and is left for
/// later if that is too long.
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
