//! What a stage has done so far. Written by its threads, read by anyone without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The counters of one stage, summed over its incarnations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rounds: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Time in the stage's own code.
    pub(crate) busy_ns: AtomicU64,
    /// Time without a buffer of the predecessor.
    pub(crate) wait_in_ns: AtomicU64,
    /// Time of a source without an empty buffer: its successors hold all of them.
    pub(crate) wait_out_ns: AtomicU64,
    /// The kernel's ids of its threads that live.
    pub(crate) tids: Mutex<Vec<i32>>,
}

impl Counters {
    /// Does something and adds the time that it took to one of the counters.
    pub(crate) fn timed<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        counter.fetch_add(begin.elapsed().as_nanos() as u64, Relaxed);
        result
    }

    /// One more round is done, on so many bytes.
    pub(crate) fn round(&self, bytes: usize) {
        self.rounds.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// A thread of the stage begins.
    pub(crate) fn enter(&self, tid: i32) {
        self.tids.lock().unwrap_or_else(PoisonError::into_inner).push(tid);
    }

    /// A thread of the stage ends.
    pub(crate) fn leave(&self, tid: i32) {
        self.tids.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != tid);
    }
}
