//! What a stage has done so far. Written by its threads, read by anyone without a lock.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Rounds, and bytes in them.
#[derive(Debug, Default)]
pub(crate) struct Count {
    rounds: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// One more round is done, on so many bytes. For one thread at a time.
    #[inline]
    pub(crate) fn add_alone(&self, bytes: usize) {
        // No locked instruction: nobody else writes.
        self.rounds.store(self.rounds.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes as u64, Relaxed);
    }

    /// The same for several threads at once.
    #[inline]
    fn add(&self, bytes: usize) {
        self.rounds.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// What counts its rounds by itself.
pub(crate) trait Counts: Send + Sync {
    /// Where it counts.
    fn count(&self) -> &Count;
}

/// The counters of one stage, summed over its incarnations. On cache lines of their own: each thread writes its stage's.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    own: Count,
    /// Time in the stage's own code and in handing over.
    pub(crate) busy_ns: AtomicU64,
    /// Time without a buffer of the predecessor.
    pub(crate) wait_in_ns: AtomicU64,
    /// Time of a source without an empty buffer: its successors hold all of them.
    pub(crate) wait_out_ns: AtomicU64,
    /// Whether one thread at a time counts.
    one_at_a_time: AtomicBool,
    /// Incarnations that count by themselves.
    elsewhere: OnceLock<Vec<Arc<dyn Counts>>>,
}

impl Counters {
    /// From now on one thread at a time counts: each has ended before the next begins.
    pub(crate) fn count_one_at_a_time(&self) {
        self.one_at_a_time.store(true, Relaxed);
    }

    /// The stage's incarnations count by themselves.
    pub(crate) fn count_elsewhere(&self, all: Vec<Arc<dyn Counts>>) {
        // Said once, before the graph runs.
        let _ = self.elsewhere.set(all);
    }

    /// One more round is done, on so many bytes.
    #[inline]
    pub(crate) fn round(&self, bytes: usize) {
        if self.one_at_a_time.load(Relaxed) {
            self.own.add_alone(bytes);
        } else {
            self.own.add(bytes);
        }
    }

    /// So much more time, to one of its own.
    #[inline]
    pub(crate) fn add_time(&self, to: &AtomicU64, time_ns: u64) {
        if self.one_at_a_time.load(Relaxed) {
            to.store(to.load(Relaxed) + time_ns, Relaxed);
        } else {
            to.fetch_add(time_ns, Relaxed);
        }
    }

    fn sum(&self, of: impl Fn(&Count) -> u64) -> u64 {
        let elsewhere = self.elsewhere.get().into_iter().flatten();
        of(&self.own) + elsewhere.map(|counts| of(counts.count())).sum::<u64>()
    }

    /// Rounds so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.sum(|count| count.rounds.load(Relaxed))
    }

    /// Bytes in these rounds.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|count| count.bytes.load(Relaxed))
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").field("rounds", &self.rounds()).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
