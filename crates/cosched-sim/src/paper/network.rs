//! Network interfaces (D9): a message passes the sender's interface, the wire and the receiver's interface, each side
//! first in, first out. The time of a delivery is known as soon as the message is sent, unless a message that reaches the
//! interface earlier is sent later; so deliveries are computed when messages are sent, and caught up on when they are
//! needed.

use super::books::{DELIVERED, due};
use super::node::{Cpu, Incoming, Kernel, NONE, Phase, State};
use super::site::Site;
use super::tree::NEVER;
use super::{BLOCK, DEMAND};
use crate::observe::{Message, Observer};
use cosched_core::interrupts;

impl<O: Observer, const W: u8, const A: u8> Site<'_, '_, O, W, A> {
    /// The process sends its messages of an iteration: right, then left (D11).
    pub(super) fn send(&mut self, place: u8, t: u64) {
        for (direction, (to_node, to)) in self.tasks[place as usize].out.into_iter().enumerate() {
            if to_node == NONE {
                continue;
            }
            self.node.send_free_ns = self.node.send_free_ns.max(t) + self.all.params.send_ns;
            let reaches_ns = self.node.send_free_ns + self.all.params.wire_ns;
            // A message sent to the right arrives from the left.
            let message = Incoming { delivered_ns: 0, reaches_ns, sent_ns: t, to, side: direction as u8 };
            self.all.outbox.push((to_node, message));
        }
    }

    /// Inserts a message at its place; returns the key of its delivery if that matters at once.
    #[inline(always)]
    pub(super) fn insert(&mut self, mut message: Incoming) -> u64 {
        let node = &mut *self.node;
        let (reaches_ns, delivered_ns) =
            node.incoming.last().map_or((0, node.receive_free_ns), |m| (m.reaches_ns, m.delivered_ns));
        if node.incoming.is_empty() || reaches_ns < message.reaches_ns {
            message.delivered_ns = delivered_ns.max(message.reaches_ns) + self.all.params.receive_ns;
            node.incoming.push(message);
            return self.watch_message(&message);
        }
        let at = self.insert_before(message);
        self.watch_message(&self.node.incoming[at])
    }

    /// Others may reach the interface after it. Of messages that arrive at the same time, the one with the lower job, task, sender
    /// comes first (D2).
    fn insert_before(&mut self, message: Incoming) -> usize {
        let order = |m: &Incoming| {
            let (job, task) = (self.processes[m.to as usize].job, self.tasks[m.to as usize].task);
            (m.reaches_ns, job, task, self.all.sender(job, task, m.side))
        };
        let node = &mut *self.node;
        let at = node.incoming.iter().rposition(|m| order(m) <= order(&message)).map_or(0, |i| i + 1);
        node.incoming.insert(at, message);
        let mut free_ns = if at == 0 { node.receive_free_ns } else { node.incoming[at - 1].delivered_ns };
        for m in &mut node.incoming[at..] {
            free_ns = free_ns.max(m.reaches_ns) + self.all.params.receive_ns;
            m.delivered_ns = free_ns;
        }
        at
    }

    /// Key of the next delivery that matters at once: to the running process that spins for it, to one that has blocked
    /// for it, and under DCS to any process.
    #[inline(always)]
    pub(super) fn watch_key(&self) -> u64 {
        let node = &*self.node;
        let (mut first, mut awaited) = (NEVER, W == BLOCK && node.blocked > 0);
        if node.cpu == Cpu::Run
            && let p = &self.processes[node.current as usize]
            && let Phase::Receive(side) = p.phase
        {
            awaited = true;
            if p.got[side as usize] > 0 {
                // It arrived during the lead.
                first = due(node.run_start_ns, 0);
            }
        }
        if A == DEMAND {
            return first.min(due(node.delivered_ns(), DELIVERED));
        }
        if awaited { self.awaited_key(first) } else { first }
    }

    /// The first of `first` and the messages that matter.
    fn awaited_key(&self, mut first: u64) -> u64 {
        for m in self.node.incoming.iter() {
            // Messages are delivered in this order.
            if due(m.delivered_ns, DELIVERED) >= first {
                break;
            }
            first = first.min(self.watch_message(m));
        }
        first
    }

    #[inline]
    fn watch_message(&self, m: &Incoming) -> u64 {
        let (node, at) = (&self.node, due(m.delivered_ns, DELIVERED));
        if A == DEMAND {
            return at;
        }
        let p = &self.processes[m.to as usize];
        if p.phase != Phase::Receive(m.side) {
            NEVER
        } else if m.to == node.current && node.cpu == Cpu::Run {
            at.max(due(node.run_start_ns, 0))
        } else if W == BLOCK && p.state == State::Blocked {
            at
        } else {
            NEVER
        }
    }

    /// The first message is in its endpoint.
    #[inline]
    pub(super) fn take_in(&mut self, m: Incoming) {
        self.node.incoming.pop();
        self.node.receive_free_ns = m.delivered_ns;
        self.all.out.messages += 1;
        self.processes[m.to as usize].got[m.side as usize] += 1;
        if O::TELL {
            self.tell_message(m);
        }
    }

    fn tell_message(&mut self, m: Incoming) {
        let (job, task) = (self.processes[m.to as usize].job, self.tasks[m.to as usize].task);
        let from = self.all.sender(job, task, m.side);
        let from_node = self.all.live[job as usize].at[from as usize].0;
        let message = Message {
            job,
            from: (from, from_node),
            to: (task, self.n),
            sent_ns: m.sent_ns,
            delivered_ns: m.delivered_ns,
        };
        self.all.observer.message(message);
    }

    /// Handles a delivery that matters.
    pub(super) fn delivery(&mut self, t: u64) {
        let Some(m) = self.node.incoming.first().copied().filter(|m| m.delivered_ns == t) else { return };
        self.take_in(m);
        let interrupt_ns = self.all.params.interrupt_ns + self.all.params.queue_move_ns;
        let node = &*self.node;
        let p = &self.processes[m.to as usize];
        let (job, awaited) = (p.job, p.phase == Phase::Receive(m.side));
        if awaited && p.state == State::Blocked {
            self.processes[m.to as usize].state = State::Waking;
            self.node.blocked -= 1;
            self.all.out.interrupts += 1;
            self.kernel_work(t, Kernel::Wake(m.to), interrupt_ns);
            return;
        }
        if awaited && m.to == node.current && node.cpu == Cpu::Run && t >= node.run_start_ns {
            self.stop_run(t);
            self.start_cpu(t);
        }
        if A == DEMAND {
            let p = &self.processes[m.to as usize];
            let gone = p.job != job || matches!(p.state, State::Blocked | State::Waking | State::Exited | State::Free);
            if interrupts(self.noted(t) == job, gone) {
                self.all.out.interrupts += 1;
                self.kernel_work(t, Kernel::Raise(m.to, job), interrupt_ns);
            }
        }
    }
}
