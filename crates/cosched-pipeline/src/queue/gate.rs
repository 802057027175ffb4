//! Where all threads of a graph meet before the first buffer moves: a stage that cannot begin ends the graph while nothing
//! has been done.

use super::sync::{AtomicU32, Futex, Ordering};

/// Opens when all have come, or when it is opened.
pub(crate) struct Gate {
    missing: AtomicU32,
    open: Futex,
}

impl Gate {
    /// A gate that waits for so many.
    pub(crate) fn new(parties: u32) -> Gate {
        Gate { missing: AtomicU32::new(parties), open: Futex::default() }
    }

    /// One has come; waits for the others.
    pub(crate) fn pass(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open();
        }
        while self.open.word().load(Ordering::Acquire) == 0 {
            self.open.sleep_while(0);
        }
    }

    /// Nobody waits from now on.
    pub(crate) fn open(&self) {
        self.open.word().store(1, Ordering::Release);
        self.open.wake(u32::MAX >> 1);
    }
}

/// How many incarnations of a stage are to work; the others sleep here.
pub(crate) struct Working(Futex);

/// The count of those who were released: nobody is to rest any more.
const RELEASED: u32 = u32::MAX;

impl Working {
    pub(crate) fn new(count: usize) -> Working {
        let working = Working(Futex::default());
        working.set(count);
        working
    }

    /// So many from now on. Does nothing after the release, which may come at the same time from another thread.
    pub(crate) fn set(&self, count: usize) {
        let change = |now| (now != RELEASED).then_some(count as u32);
        if self.0.word().fetch_update(Ordering::AcqRel, Ordering::Relaxed, change).is_ok() {
            self.0.wake(u32::MAX >> 1);
        }
    }

    /// How many.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0.word().load(Ordering::Acquire) as usize
    }

    /// The incarnation with this number sleeps until it is to work.
    pub(crate) fn wait(&self, incarnation: usize) {
        loop {
            let count = self.count();
            if count > incarnation {
                return;
            }
            self.0.sleep_while(count as u32);
        }
    }

    /// All go on: to end.
    pub(crate) fn release(&self) {
        self.0.word().swap(RELEASED, Ordering::AcqRel);
        self.0.wake(u32::MAX >> 1);
    }
}
