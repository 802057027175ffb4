//! What is going to happen; of simultaneous events, what was planned first happens first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// What the thread of a CPU computes comes to its end, if the CPU has still this generation.
    Computed { cpu: usize, generation: u64 },
    /// A thread comes into a run queue.
    Woken { thread: usize },
    /// A request of a thread is done; `disk` has room again.
    Served { thread: usize, disk: Option<usize> },
    /// A CPU looks who should run.
    Tick { cpu: usize },
    /// The load is spread.
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
