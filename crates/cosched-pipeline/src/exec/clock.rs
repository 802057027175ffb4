//! What a thread does, and how long: looked at when it begins or ends to wait, not at each buffer.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::shared::Shared;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Nothing for any stage.
    Nothing,
    /// It works as this stage, on one buffer after the other.
    Work(usize),
    /// It waits for a buffer of the stage's predecessors.
    WaitIn(usize),
    /// It waits for an empty buffer, which the stage's successors hold.
    WaitOut(usize),
}

/// The clock of one thread.
pub(crate) struct Clock<'a> {
    shared: &'a Shared,
    doing: Cell<(Doing, Instant)>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Clock<'a> {
        Clock { shared, doing: Cell::new((Doing::Nothing, Instant::now())) }
    }

    /// The thread does something else from now on.
    pub(crate) fn switch(&self, doing: Doing) {
        let now = Instant::now();
        let (before, since) = self.doing.replace((doing, now));
        let counters = |stage: usize| &self.shared.stages[stage].counters;
        let counter = match before {
            Doing::Nothing => return,
            Doing::Work(stage) => &counters(stage).busy_ns,
            Doing::WaitIn(stage) => &counters(stage).wait_in_ns,
            Doing::WaitOut(stage) => &counters(stage).wait_out_ns,
        };
        counter.fetch_add((now - since).as_nanos() as u64, Relaxed);
    }
}

impl Drop for Clock<'_> {
    fn drop(&mut self) {
        self.switch(Doing::Nothing);
    }
}
