//! Where all threads of a graph meet before the first buffer moves, so that a stage whose `init` fails ends the graph
//! before any work has been done.

use super::sync::{AtomicU32, Futex, Ordering};

/// Opens when all parties have arrived, or when `open` is called.
pub(crate) struct Gate {
    missing: AtomicU32,
    open: Futex,
}

impl Gate {
    /// A gate for this number of parties.
    pub(crate) fn new(parties: u32) -> Gate {
        Gate { missing: AtomicU32::new(parties), open: Futex::default() }
    }

    /// Registers the caller's arrival and waits for the others.
    pub(crate) fn pass(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open();
        }
        while self.open.word().load(Ordering::Acquire) == 0 {
            self.open.sleep_while(0);
        }
    }

    /// Opens the gate: no thread waits from now on.
    pub(crate) fn open(&self) {
        self.open.word().store(1, Ordering::Release);
        self.open.wake(u32::MAX >> 1);
    }
}

/// The number of active incarnations of a stage; the inactive ones sleep here.
pub(crate) struct Working(Futex);

/// The count after the release: all incarnations are active.
const RELEASED: u32 = u32::MAX;

impl Working {
    pub(crate) fn new(count: usize) -> Working {
        let working = Working(Futex::default());
        working.set(count);
        working
    }

    /// Sets the number. No effect after the release, which may happen concurrently on another thread.
    pub(crate) fn set(&self, count: usize) {
        let change = |now| (now != RELEASED).then_some(count as u32);
        if self.0.word().fetch_update(Ordering::AcqRel, Ordering::Relaxed, change).is_ok() {
            self.0.wake(u32::MAX >> 1);
        }
    }

    /// The number of active incarnations.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0.word().load(Ordering::Acquire) as usize
    }

    /// Blocks the incarnation with this index until it is active.
    pub(crate) fn wait(&self, incarnation: usize) {
        loop {
            let count = self.count();
            if count > incarnation {
                return;
            }
            self.0.sleep_while(count as u32);
        }
    }

    /// Wakes all incarnations, so that they can end.
    pub(crate) fn release(&self) {
        self.0.word().swap(RELEASED, Ordering::AcqRel);
        self.0.wake(u32::MAX >> 1);
    }
}
