//! Future events; of simultaneous events, the one that was scheduled first happens first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The thread of a CPU finishes computing, if the CPU still has this generation.
    Computed { cpu: usize, generation: u64 },
    /// A thread enters a run queue.
    Woken { thread: usize },
    /// A request of a thread is done; `disk` has room again.
    Served { thread: usize, disk: Option<usize> },
    /// A CPU checks which thread should run.
    Tick { cpu: usize },
    /// The load is balanced.
    Balance,
    /// A window of autotune ends.
    Window,
}

#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
}

impl Agenda {
    pub(super) fn push(&mut self, time_ns: u64, event: Event) {
        self.serial += 1;
        self.heap.push(Reverse((time_ns, self.serial, event)));
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((time_ns, _, event))| (time_ns, event))
    }
}
