//! One node while it handles an event.
//!
//! Problem: an event that can reach all nodes looks each of them up again at every step. Rule: an event sees one node and what
//! all nodes share. Its messages wait in an outbox, since no other node needs them before the window ends; the end of a job is
//! noted, and left to the engine.

use super::books::{CPU_ENDS, DELIVERED, IO_ENDS, TICK, due};
use super::node::{Cpu, Incoming, NO_PROCESS, Node, Process, State, Task};
use super::tree::NEVER;
use crate::job::JobSpec;
use crate::observe::Observer;
use crate::outcome::Outcome;
use crate::params::Params;

/// A running job.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// Its tasks' nodes and their places there.
    pub(super) at: Vec<(u32, u8)>,
    /// Tasks that have not ended.
    pub(super) alive: u32,
    /// Tasks that are not near their end.
    pub(super) far: u32,
    /// The task that was last found to end too late for a window.
    pub(super) late: usize,
}

/// What all nodes share.
pub(super) struct Shared<'a, O> {
    pub(super) params: Params,
    pub(super) jobs: &'a [JobSpec],
    pub(super) observer: &'a mut O,
    pub(super) quanta_ns: [u64; 60],
    /// Key of the event in progress.
    pub(super) now: u64,
    pub(super) live: Vec<Live>,
    /// Jobs all of whose tasks are near their end.
    pub(super) ending: Vec<u32>,
    /// The job whose last task has ended in this event.
    pub(super) ended: Option<u32>,
    /// Messages on their way to nodes.
    pub(super) outbox: Vec<(u32, Incoming)>,
    /// The total of all computation that was drawn, to compare with what was done.
    pub(super) drawn_ns: u64,
    pub(super) out: Outcome,
}

pub(super) struct Site<'s, 'a, O, const W: u8, const A: u8> {
    pub(super) n: u32,
    pub(super) node: &'s mut Node,
    /// Its places.
    pub(super) processes: &'s mut [Process],
    pub(super) tasks: &'s mut [Task],
    pub(super) all: &'s mut Shared<'a, O>,
}

impl<O: Observer, const W: u8, const A: u8> Site<'_, '_, O, W, A> {
    /// Handles what is due at this key.
    #[inline(always)]
    pub(super) fn event(&mut self, event: u64) {
        let time_ns = event >> 3;
        self.all.now = event;
        self.all.out.events += 1;
        self.drain();
        match event & 7 {
            TICK => self.tick(time_ns),
            IO_ENDS => {
                self.io_ends();
                self.start_cpu(time_ns);
            }
            DELIVERED => self.delivery(time_ns),
            _ if self.node.cpu_end_ns == time_ns => self.cpu_ends(time_ns),
            _ => self.start_cpu_again(time_ns),
        }
    }

    /// When the node next does something that matters.
    #[inline(always)]
    pub(super) fn next_key(&mut self, time_ns: u64) -> u64 {
        let io = if self.node.cpu == Cpu::Idle { due(self.node.io_end_ns, IO_ENDS) } else { NEVER };
        let first = due(self.node.cpu_end_ns, CPU_ENDS).min(io).min(self.watch_key());
        first.min(due(self.next_tick(time_ns, first >> 3), TICK))
    }

    /// Catches up on everything on this node that comes before the present event: ends of I/O, deliveries.
    #[inline(always)]
    pub(super) fn drain(&mut self) {
        while due(self.node.io_end_ns, IO_ENDS) < self.all.now {
            self.io_ends();
        }
        if self.node.delivered_ns() <= self.all.now >> 3 {
            self.drain_messages();
        }
    }

    fn drain_messages(&mut self) {
        while due(self.node.delivered_ns(), DELIVERED) < self.all.now {
            let m = self.node.incoming[0];
            self.take_in(m);
        }
    }

    /// Checks the state of the node after an event.
    pub(super) fn check(&self) {
        let (n, node) = (self.n, &self.node);
        let of = |place: u8| &self.processes[place as usize];
        for place in node.table.iter() {
            let ready = node.ready.iter().filter(|p| *p == place).count();
            let expected = usize::from(of(place).state == State::Ready);
            assert_eq!(ready, expected, "node {n}, place {place}: {:?}", of(place));
            assert_eq!(of(place).state == State::Current, node.current == place, "node {n}");
        }
        assert!(node.ready.iter().is_sorted_by(|a, b| of(*a).level >= of(*b).level), "node {n}: levels out of order");
        assert!(
            node.io.iter().is_sorted_by_key(|p| of(p).io_ns) && node.incoming.is_sorted_by_key(|m| m.reaches_ns),
            "node {n}"
        );
        assert_eq!(node.table.len(), node.count as usize);
        assert!(
            node.cpu != Cpu::Idle || (node.current == NO_PROCESS && node.ready.is_empty()),
            "node {n} idles with work"
        );
    }
}
