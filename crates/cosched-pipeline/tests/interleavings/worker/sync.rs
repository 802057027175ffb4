//! Replaces the library's `exec/worker/sync.rs`: the same names from loom.

use std::time::Duration;

use loom::sync::Condvar;
pub(super) use loom::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(super) use loom::sync::{Mutex, MutexGuard};

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

    /// The models have no time, so no time limit either.
    pub(super) fn sleep_while(&self, value: u32, limit: Option<Duration>) -> bool {
        assert!(limit.is_none());
        let locked = self.lock.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.changed.wait(locked).unwrap());
        }
        true
    }

    pub(super) fn wake(&self) {
        let _locked = self.lock.lock().unwrap();
        self.changed.notify_one();
    }
}
