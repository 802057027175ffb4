//! What the workers' lists and rendezvous are built from. The tests put a checker of all interleavings (loom) in this file's
//! place, so they name nothing of it but what stands here.

pub(super) use std::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(super) use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// A word on which a thread sleeps.
#[derive(Default)]
pub(super) struct Futex(AtomicU32);

impl Futex {
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sleeps while the word has this value, and not longer than `limit`; false when that is over. May return true for no
    /// reason.
    pub(super) fn sleep_while(&self, value: u32, limit: Option<Duration>) -> bool {
        let limit =
            limit.map(|limit| Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() });
        futex::wait(&self.0, futex::Flags::PRIVATE, value, limit.as_ref()) != Err(Errno::TIMEDOUT)
    }

    /// Wakes who sleeps.
    pub(super) fn wake(&self) {
        // It fails for addresses that are not ours only.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }
}
