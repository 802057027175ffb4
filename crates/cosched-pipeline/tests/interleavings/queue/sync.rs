//! Replaces the library's `queue/sync.rs`: the same names from loom.

use std::mem::MaybeUninit;

use loom::cell::UnsafeCell;
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use loom::sync::{Condvar, Mutex};

/// Loom has no fence that one thread makes for another: both make one. What is checked is which side makes a
/// fence when.
pub(super) fn light_fence() {
    fence(Ordering::SeqCst);
}

pub(super) fn heavy_fence() {
    fence(Ordering::SeqCst);
}

pub(super) fn has_heavy_fence() -> bool {
    true
}

/// Like the kernel's: checking the word and going to sleep are atomic, under a lock that wakers take too.
#[derive(Default)]
pub(super) struct Futex {
    word: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Futex {
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    pub(super) fn sleep_while(&self, value: u32) {
        let locked = self.lock.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.changed.wait(locked).unwrap());
        }
    }

    pub(super) fn wake(&self, count: u32) {
        let _locked = self.lock.lock().unwrap();
        if count == 1 {
            self.changed.notify_one();
        } else {
            self.changed.notify_all();
        }
    }
}

pub(super) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    pub(super) fn new() -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    pub(super) unsafe fn fill(&self, value: T) {
        // SAFETY: loom checks that no other thread uses the slot.
        self.0.with_mut(|slot| unsafe { (*slot).write(value) });
    }

    pub(super) unsafe fn empty(&self) -> T {
        // SAFETY: loom checks that no other thread uses the slot; the ring ensures that it is filled.
        self.0.with_mut(|slot| unsafe { (*slot).assume_init_read() })
    }
}
