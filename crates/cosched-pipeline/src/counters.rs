//! What a stage has done so far. Written by its threads, read by anyone without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The counters of one stage, summed over its incarnations. On cache lines of their own: each thread writes its stage's.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) rounds: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Time in the stage's own code and in handing over.
    pub(crate) busy_ns: AtomicU64,
    /// Time without a buffer of the predecessor.
    pub(crate) wait_in_ns: AtomicU64,
    /// Time of a source without an empty buffer: its successors hold all of them.
    pub(crate) wait_out_ns: AtomicU64,
    /// Whether one thread at a time counts.
    one_at_a_time: AtomicBool,
}

impl Counters {
    /// From now on one thread at a time counts rounds: each has ended before the next begins.
    pub(crate) fn count_one_at_a_time(&self) {
        self.one_at_a_time.store(true, Relaxed);
    }

    /// One more round is done, on so many bytes, and one thread at a time counts.
    #[inline]
    pub(crate) fn round_alone(&self, bytes: usize) {
        // No locked instruction: nobody else writes.
        self.rounds.store(self.rounds.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes as u64, Relaxed);
    }

    /// One more round is done, on so many bytes.
    #[inline]
    pub(crate) fn round(&self, bytes: usize) {
        if self.one_at_a_time.load(Relaxed) {
            self.round_alone(bytes);
        } else {
            let bytes = bytes as u64;
            self.rounds.fetch_add(1, Relaxed);
            self.bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Rounds so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Relaxed)
    }
}
