//! What a stage has done so far. Written by its threads, read by anyone without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of one stage, summed over its incarnations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rounds: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Time at work on a buffer.
    pub(crate) busy_ns: AtomicU64,
    /// Time without a buffer of the predecessor.
    pub(crate) wait_in_ns: AtomicU64,
    /// Time of a source without an empty buffer: its successors hold all of them.
    pub(crate) wait_out_ns: AtomicU64,
}

impl Counters {
    /// One more round is done, on so many bytes.
    pub(crate) fn round(&self, bytes: usize) {
        self.rounds.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Rounds so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Relaxed)
    }
}
