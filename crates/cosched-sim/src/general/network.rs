//! Messages: the sender's interface, the wire, the receiver's interface, the endpoint (D9).

use super::cpu::Interrupt;
use super::engine::Sim;
use super::event::Kind;
use super::messages::Route;
use super::process::{Pid, State};
use crate::observe::{Message, Observer};
use cosched_core::OnArrival;

/// A network interface: until when each of its sides is busy. It works whatever the CPU does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interface {
    sending_until_ns: u64,
    receiving_until_ns: u64,
}

impl<O: Observer> Sim<'_, O> {
    /// A process passes a message to its interface, which takes messages first come, first served.
    pub(super) fn send(&mut self, pid: Pid, to: u32, bytes: u64) {
        let now_ns = self.now_ns;
        self.sent += 1;
        if self.traffic.is_some() {
            return self.send_over_platform(pid, to, bytes);
        }
        if let Some(route) = self.route(pid, to) {
            return self.send_by(route, pid, to, bytes);
        }
        let node = self.process(pid).node as usize;
        let interface = &mut self.nodes[node].interface;
        let sent_ns = interface.sending_until_ns.max(now_ns) + self.params.send_ns;
        interface.sending_until_ns = sent_ns;
        let who = [self.process(Pid { job: pid.job, task: to }).node, pid.job, to, pid.task];
        self.agenda.push_message(sent_ns + self.config.wire_ns(bytes), Kind::AtInterface, who, now_ns, bytes);
    }

    /// The route between two tasks of a job, if routes have costs of their own.
    pub(super) fn route(&mut self, pid: Pid, other: u32) -> Option<Route> {
        let messages = self.config.messages?;
        let node = self.process(pid).node;
        let other = self.process(Pid { job: pid.job, task: other }).node;
        Some(*messages.route(node, other))
    }

    /// A message leaves through memory, or through its node's link when that is free. Its first byte reaches the other
    /// link while its last bytes still leave: a single message occupies both links for the same time.
    fn send_by(&mut self, route: Route, pid: Pid, to: u32, bytes: u64) {
        let now_ns = self.now_ns;
        let from_node = self.process(pid).node;
        let receiver = self.process(Pid { job: pid.job, task: to });
        let who = [receiver.node, pid.job, to, pid.task];
        if receiver.node == from_node {
            let done_ns = receiver.memory_until_ns.max(now_ns + route.flight_ns() + route.link_ns(bytes));
            receiver.memory_until_ns = done_ns;
            return self.agenda.push_message(done_ns, Kind::Delivered, who, now_ns, bytes);
        }
        let interface = &mut self.nodes[from_node as usize].interface;
        let begin_ns = interface.sending_until_ns.max(now_ns);
        interface.sending_until_ns = begin_ns + route.link_ns(bytes);
        self.agenda.push_message(begin_ns + route.flight_ns(), Kind::AtInterface, who, now_ns, bytes);
    }

    pub(super) fn at_interface(&mut self, who: [u32; 4], sent_ns: u64, bytes: u64) {
        let receive_ns = self.config.messages.map_or(self.params.receive_ns, |of| of.network.link_ns(bytes));
        let interface = &mut self.nodes[who[0] as usize].interface;
        let done_ns = interface.receiving_until_ns.max(self.now_ns) + receive_ns;
        interface.receiving_until_ns = done_ns;
        self.agenda.push_message(done_ns, Kind::Delivered, who, sent_ns, bytes);
    }

    /// A message is in its endpoint.
    pub(super) fn delivered(&mut self, to: Pid, from: u32, sent_ns: u64, bytes: u64) {
        self.out.messages += 1;
        self.jobs[to.job as usize].messages += 1;
        if O::TELL {
            self.tell_message(to, from, sent_ns);
        }
        let any_wakes = self.params.readings.any_message_wakes;
        let unread = self.process(to).deliver(from, bytes);
        let receiver = self.process(to);
        let awaited = receiver.awaits() == Some(from) && unread == 1;
        let node = receiver.node as usize;
        match receiver.state {
            State::Running(cpu) if awaited => self.consume(cpu),
            State::Blocked if awaited || any_wakes => {
                self.interrupt(node, Interrupt::Wake(to));
            }
            _ => {}
        }
        if self.params.dynamic().1 == OnArrival::Interrupt {
            self.demand(to, node);
        }
    }

    /// DCS (D16), after a running process has consumed the message that it waited for, and perhaps has ended.
    fn demand(&mut self, to: Pid, node: usize) {
        let before = self.config.finer.demand_before_consuming;
        let unreachable = match self.process_if_live(to).map(|receiver| receiver.state) {
            Some(State::Blocked) => true,
            // It was alive when its message arrived, since otherwise no process would have sent it one.
            Some(State::Ended) | None => !before,
            Some(State::Ready | State::Running(_) | State::Io) => false,
        };
        let noted = self.nodes[node].noted.contains(&Some(to));
        let interrupts = cosched_core::interrupts(noted, unreachable);
        if O::TELL_DECISIONS {
            let believed = self.nodes[node].noted.iter().copied().flatten().next();
            let place = self.nodes[node].table.iter().position(|pid| *pid == to);
            self.tell_decision(node, believed, Some(to), place.filter(|_| interrupts));
        }
        if interrupts {
            self.interrupt(node, Interrupt::Demand(to));
        }
    }

    fn tell_message(&mut self, to: Pid, from: u32, sent_ns: u64) {
        let node_of = |task: u32| self.jobs[to.job as usize].processes[task as usize].node;
        let message = Message {
            job: to.job,
            from: (from, node_of(from)),
            to: (to.task, node_of(to.task)),
            sent_ns,
            delivered_ns: self.now_ns,
        };
        self.observer.message(message);
    }
}
