//! The priority of the daemon's main thread (decision 0090), which its driver's rounds and the reads of its connections keep within its budget.

use cosched_linux::realtime::Pace;
use std::cell::RefCell;
use std::time::Instant;

thread_local! {
    static PACE: RefCell<Option<Pace>> = const { RefCell::new(None) };
}

/// Raises the calling thread; `limit` has to follow.
pub(crate) fn begin() {
    PACE.set(Some(Pace::begin()));
}

pub(crate) fn limit() {
    PACE.with_borrow_mut(|pace| pace.iter_mut().for_each(Pace::limit));
}

pub(crate) fn end() {
    PACE.take();
}

/// To be called with every piece of work that another process can cause. On other threads it has no effect.
pub(crate) fn heed() {
    PACE.with_borrow_mut(|pace| pace.iter_mut().for_each(Pace::heed));
}

/// When `heed` has to be called again.
pub(crate) fn due() -> Option<Instant> {
    PACE.with_borrow(|pace| pace.as_ref()?.due())
}
