//! What a thread knows of its row of calls (thread.rs).

use crate::descriptors::Descriptors;
use crate::work::Work;
use core::cell::{Cell, RefCell};

/// The row, and what is known of the thread from earlier ones.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) active: Cell<bool>,
    pub(crate) calls: Cell<u32>,
    pub(crate) start_ns: Cell<u64>,
    /// The begin of the last call that asked for events, and the end of the last call.
    pub(crate) called_ns: Cell<u64>,
    pub(crate) last_ns: Cell<u64>,
    pub(crate) work: Work,
    /// The CPU time, and when it was read.
    pub(crate) cpu_ns: Cell<u64>,
    pub(crate) cpu_at_ns: Cell<u64>,
    pub(crate) asleep_ns: Cell<u64>,
    /// How often the thread had blocked at the row's begin, and after its last block here.
    pub(crate) voluntary: Cell<u64>,
    /// Whether it blocked, and whether the last block ended by its time limit.
    pub(crate) blocked: Cell<bool>,
    pub(crate) timed_out: Cell<bool>,
    /// Whether it is counted among the sleepers, and the doorbell's value before the program's last poll.
    pub(crate) announced: Cell<bool>,
    pub(crate) bell: Cell<u32>,
    /// Its progress loop reports when it finds something, though perhaps not everything.
    pub(crate) tells: Cell<bool>,
    /// Calls that must not block: another descriptor is ready, and the program has to get to it.
    pub(crate) grace: Cell<u32>,
    /// Whether the row contains calls of sched_yield, and others.
    pub(crate) yields: Cell<bool>,
    pub(crate) asks: Cell<bool>,
    /// Above 0: waits usually end by descriptors.
    pub(crate) by_descriptor: Cell<i8>,
    pub(crate) descriptors: RefCell<Descriptors>,
}
