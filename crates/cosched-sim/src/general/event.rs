//! Future events, in the order of D2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Kinds of events, in the order in which simultaneous ones run (D2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A CPU's activity ends. Concerns: node, CPU of the node. Stamp: the CPU's generation.
    CpuEnd,
    /// Concerns: node, job, task.
    IoDone,
    /// A message's latency is over (platforms). Concerns as for `Delivered`. Stamp: its number in its stream.
    Flow,
    /// Flows end (platforms). Stamp: the number of this event.
    FlowsEnd,
    /// A message is in its endpoint. Concerns: node, job, receiver, sender. Stamp: when it was sent.
    Delivered,
    /// A message reaches the receiver's network interface. The rest as for `Delivered`.
    AtInterface,
    /// Concerns: 0, job.
    Arrival,
    /// A gang's quantum or switch ends. Stamp: the gang's generation.
    Gang,
    /// A node's scheduler becomes active. Concerns: node.
    Tick,
    /// A node's probe looks for idle CPUs (live). Concerns: node. Stamp: the number of the node's switches.
    Look,
    /// Flows have started or ended at this time (platforms): rates are found.
    Share,
}

/// An event. The order of the fields is the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) time_ns: u64,
    pub(super) kind: Kind,
    /// Node, job, task, sender, as far as the kind has them.
    pub(super) who: [u32; 4],
    /// The order of scheduling: the last tie-breaker.
    serial: u64,
    /// Depends on the kind.
    pub(super) stamp: u64,
    /// The size of a message.
    pub(super) bytes: u64,
}

/// All future events.
#[derive(Debug)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Event>>,
    serial: u64,
    /// All bits set if ties are resolved in the reverse order.
    mask: u32,
}

impl Agenda {
    pub(super) fn new(reverse_ties: bool) -> Agenda {
        Agenda { heap: BinaryHeap::new(), serial: 0, mask: if reverse_ties { u32::MAX } else { 0 } }
    }

    pub(super) fn push(&mut self, time_ns: u64, kind: Kind, who: [u32; 4], stamp: u64) {
        self.push_message(time_ns, kind, who, stamp, 0);
    }

    /// Schedules an event of a message of this size.
    pub(super) fn push_message(&mut self, time_ns: u64, kind: Kind, who: [u32; 4], stamp: u64, bytes: u64) {
        self.serial += 1;
        let event = Event { time_ns, kind, who: self.masked(who), serial: self.serial, stamp, bytes };
        self.heap.push(Reverse(event));
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let Reverse(event) = self.heap.pop()?;
        Some(Event { who: self.masked(event.who), ..event })
    }

    fn masked(&self, who: [u32; 4]) -> [u32; 4] {
        who.map(|number| number ^ self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(reverse: bool) -> Vec<(Kind, u32)> {
        let mut agenda = Agenda::new(reverse);
        for (time, kind, node) in [(5, Kind::Tick, 0), (5, Kind::CpuEnd, 2), (5, Kind::CpuEnd, 1), (4, Kind::Gang, 9)] {
            agenda.push(time, kind, [node, 0, 0, 0], 0);
        }
        std::iter::from_fn(|| agenda.pop()).map(|e| (e.kind, e.who[0])).collect()
    }

    #[test]
    fn simultaneous_events_run_by_kind_then_node() {
        let rest = [(Kind::CpuEnd, 1), (Kind::CpuEnd, 2)];
        assert_eq!(order(false), [(Kind::Gang, 9), rest[0], rest[1], (Kind::Tick, 0)]);
        assert_eq!(order(true), [(Kind::Gang, 9), rest[1], rest[0], (Kind::Tick, 0)]);
    }
}
