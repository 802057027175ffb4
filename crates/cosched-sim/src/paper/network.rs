//! Network interfaces (D9): a message passes the sender's interface, the wire and the receiver's interface, each side
//! first in, first out. The time of a delivery is known as soon as the message is sent, unless a message that reaches the
//! interface earlier is sent later; so deliveries are computed when messages are sent, and caught up on when they are
//! needed.

use super::books::{DELIVERED, key};
use super::engine::Engine;
use super::node::{Cpu, Incoming, Kernel, NONE, Phase, State};
use super::tree::NEVER;
use super::{BLOCK, DEMAND};
use crate::observe::{Message, Observer};
use cosched_core::interrupts;

impl<O: Observer, const W: u8, const A: u8> Engine<'_, O, W, A> {
    /// The process sends its messages of an iteration: right, then left (D11).
    pub(super) fn send(&mut self, n: usize, place: u8, t: u64) {
        let out = self.processes[n * self.places + place as usize].out;
        for (direction, (to_node, to)) in out.into_iter().enumerate() {
            if to_node == NONE {
                continue;
            }
            let node = &mut self.nodes[n];
            node.send_free_ns = node.send_free_ns.max(t) + self.params.send_ns;
            let reaches_ns = node.send_free_ns + self.params.wire_ns;
            self.sent += 1;
            // A message sent to the right arrives from the left.
            let message = Incoming { delivered_ns: 0, reaches_ns, sent_ns: t, to, side: direction as u8 };
            let to_node = to_node as usize;
            let message = self.insert(to_node, message);
            // The sender's own key is set when its event is done. If messages are delayed by this one, their check will
            // be in vain.
            let watch = self.watch_message(to_node, &message);
            if watch < self.keys[to_node] {
                self.set_key(to_node, watch);
            }
        }
    }

    /// Inserts a message at its place; returns it with the time of its delivery.
    fn insert(&mut self, n: usize, message: Incoming) -> Incoming {
        let (base, receive_ns) = (n * self.places, self.params.receive_ns);
        // Of messages that arrive at the same time, the one with the lower job, task, sender comes first (D2).
        let order = |m: &Incoming| {
            let p = &self.processes[base + m.to as usize];
            let tasks = self.jobs[p.job as usize].tasks;
            let from = if m.side == 0 { (p.task + tasks - 1) % tasks } else { (p.task + 1) % tasks };
            (p.job, p.task, from)
        };
        let behind = |m: &Incoming| {
            m.reaches_ns > message.reaches_ns || (m.reaches_ns == message.reaches_ns && order(m) > order(&message))
        };
        let node = &self.nodes[n];
        let at = node.incoming.iter().rposition(|m| !behind(m)).map_or(0, |i| i + 1);
        let node = &mut self.nodes[n];
        node.incoming.insert(at, message);
        let mut free_ns = if at == 0 { node.receive_free_ns } else { node.incoming[at - 1].delivered_ns };
        for m in &mut node.incoming[at..] {
            free_ns = free_ns.max(m.reaches_ns) + receive_ns;
            m.delivered_ns = free_ns;
        }
        node.incoming[at]
    }

    /// Key of the next delivery that matters at once: to the running process that spins for it, to one that has blocked
    /// for it, and under DCS to any process.
    #[inline]
    pub(super) fn watch_key(&self, n: usize) -> u64 {
        let node = &self.nodes[n];
        let mut first = NEVER;
        if let Cpu::Run(_) = node.cpu {
            let p = &self.processes[n * self.places + node.current as usize];
            if matches!(p.phase, Phase::Receive(side) if p.got[side as usize] > 0) {
                // It arrived during the lead.
                first = key(node.run_start_ns, 0);
            }
        }
        node.incoming.iter().fold(first, |first, m| first.min(self.watch_message(n, m)))
    }

    #[inline]
    fn watch_message(&self, n: usize, m: &Incoming) -> u64 {
        let (node, at) = (&self.nodes[n], key(m.delivered_ns, DELIVERED));
        if A == DEMAND {
            return at;
        }
        let p = &self.processes[n * self.places + m.to as usize];
        if p.phase != Phase::Receive(m.side) {
            NEVER
        } else if m.to == node.current && matches!(node.cpu, Cpu::Run(_)) {
            at.max(key(node.run_start_ns, 0))
        } else if W == BLOCK && p.state == State::Blocked {
            at
        } else {
            NEVER
        }
    }

    /// Handles deliveries before the present event.
    #[inline]
    pub(super) fn drain_messages(&mut self, n: usize) {
        while let Some(m) = self.nodes[n].incoming.first().copied() {
            if key(m.delivered_ns, DELIVERED) >= self.now {
                break;
            }
            self.take_in(n, m);
        }
    }

    fn take_in(&mut self, n: usize, m: Incoming) {
        self.nodes[n].incoming.pop();
        self.nodes[n].receive_free_ns = m.delivered_ns;
        self.out.messages += 1;
        self.process(n, m.to).got[m.side as usize] += 1;
        if O::TELL {
            self.tell_message(n, m);
        }
    }

    fn tell_message(&mut self, n: usize, m: Incoming) {
        let p = &self.processes[n * self.places + m.to as usize];
        let tasks = self.jobs[p.job as usize].tasks;
        let from = if m.side == 0 { (p.task + tasks - 1) % tasks } else { (p.task + 1) % tasks };
        let from_node = self.live[p.job as usize].at[from as usize].0;
        let message = Message {
            job: p.job,
            from: (from, from_node),
            to: (p.task, n as u32),
            sent_ns: m.sent_ns,
            delivered_ns: m.delivered_ns,
        };
        self.observer.message(message);
    }

    /// Handles a delivery that matters.
    pub(super) fn delivery(&mut self, n: usize, t: u64) {
        let Some(m) = self.nodes[n].incoming.first().copied().filter(|m| m.delivered_ns == t) else { return };
        self.take_in(n, m);
        let interrupt_ns = self.params.interrupt_ns + self.params.queue_move_ns;
        let node = &self.nodes[n];
        let p = &self.processes[n * self.places + m.to as usize];
        let (job, awaited) = (p.job, p.phase == Phase::Receive(m.side));
        if awaited && p.state == State::Blocked {
            self.process(n, m.to).state = State::Waking;
            self.out.interrupts += 1;
            self.kernel_work(n, t, Kernel::Wake(m.to), interrupt_ns);
            return;
        }
        if awaited && m.to == node.current && matches!(node.cpu, Cpu::Run(_)) && t >= node.run_start_ns {
            self.stop_run(n, t);
            self.start_cpu(n, t);
        }
        if A == DEMAND {
            let p = &self.processes[n * self.places + m.to as usize];
            let gone = p.job != job || matches!(p.state, State::Blocked | State::Waking | State::Exited | State::Free);
            if interrupts(self.noted(n, t) == job, gone) {
                self.out.interrupts += 1;
                self.kernel_work(n, t, Kernel::Raise(m.to, job), interrupt_ns);
            }
        }
    }
}
