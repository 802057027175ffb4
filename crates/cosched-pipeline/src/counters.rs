//! What a stage has done so far. Written by its threads, and read without a lock from any thread.

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
    /// Counts one more round, on `bytes` bytes. Only one thread may call this at a time.
    #[inline]
    pub(crate) fn add_alone(&self, bytes: usize) {
        // No locked instruction is needed: there is no other writer.
        self.rounds.store(self.rounds.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes as u64, Relaxed);
    }

    /// The same for several concurrent threads.
    #[inline]
    fn add(&self, bytes: usize) {
        self.rounds.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// Something that counts its rounds itself.
pub(crate) trait Counts: Send + Sync {
    /// Its counts.
    fn count(&self) -> &Count;
}

/// The counters of one stage, summed over its incarnations. Aligned to cache lines of their own, because each stage's
/// thread writes them.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    own: Count,
    /// Time in the stage's own code and in handing buffers over.
    pub(crate) busy_ns: AtomicU64,
    /// Time spent waiting for a buffer of the predecessor.
    pub(crate) wait_in_ns: AtomicU64,
    /// Time that a source spent waiting for an empty buffer, because its successors hold all of them.
    pub(crate) wait_out_ns: AtomicU64,
    /// Whether only one thread at a time counts, so that no atomic additions are needed.
    one_at_a_time: AtomicBool,
    /// Incarnations that count their rounds themselves.
    incarnations: OnceLock<Vec<Arc<dyn Counts>>>,
}

impl Counters {
    /// From now on only one thread at a time counts: each thread's calls have ended before the next thread's begin.
    pub(crate) fn count_one_at_a_time(&self) {
        self.one_at_a_time.store(true, Relaxed);
    }

    /// The stage's incarnations count their rounds themselves.
    pub(crate) fn count_by_incarnation(&self, all: Vec<Arc<dyn Counts>>) {
        // Set once, before the graph runs.
        let _ = self.incarnations.set(all);
    }

    /// Counts one more round, on `bytes` bytes.
    #[inline]
    pub(crate) fn round(&self, bytes: usize) {
        if self.one_at_a_time.load(Relaxed) {
            self.own.add_alone(bytes);
        } else {
            self.own.add(bytes);
        }
    }

    /// Adds `time_ns` to one of the times of these counters.
    #[inline]
    pub(crate) fn add_time(&self, to: &AtomicU64, time_ns: u64) {
        if self.one_at_a_time.load(Relaxed) {
            to.store(to.load(Relaxed) + time_ns, Relaxed);
        } else {
            to.fetch_add(time_ns, Relaxed);
        }
    }

    fn sum(&self, of: impl Fn(&Count) -> u64) -> u64 {
        let incarnations = self.incarnations.get().into_iter().flatten();
        of(&self.own) + incarnations.map(|counts| of(counts.count())).sum::<u64>()
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
