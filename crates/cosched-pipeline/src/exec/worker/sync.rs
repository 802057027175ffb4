//! The primitives of the workers' lists and rendezvous. The tests replace this file by a model checker of all interleavings
//! (loom), so the rest of the module uses only what is exported here.

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

    /// Sleeps while the word has this value, for at most `limit`; false if that time has passed. May return true spuriously.
    pub(super) fn sleep_while(&self, value: u32, limit: Option<Duration>) -> bool {
        let limit =
            limit.map(|limit| Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() });
        futex::wait(&self.0, futex::Flags::PRIVATE, value, limit.as_ref()) != Err(Errno::TIMEDOUT)
    }

    /// Wakes one sleeping thread.
    pub(super) fn wake(&self) {
        // It fails only for addresses that are not mapped.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }
}
