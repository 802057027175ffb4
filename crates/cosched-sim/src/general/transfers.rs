//! Messages on a platform: each waits for the latency of its way, then its flow shares the links with all others.

use super::engine::Sim;
use super::event::{Event, Kind};
use super::process::Pid;
use super::traffic::Transfer;
use crate::observe::Observer;

impl<O: Observer> Sim<'_, O> {
    /// A process sends a message on a platform.
    pub(super) fn send_over_platform(&mut self, pid: Pid, to: u32, bytes: u64) {
        let from_node = self.process(pid).node;
        let to_node = self.process(Pid { job: pid.job, task: to }).node;
        let Some(traffic) = &mut self.traffic else { return };
        let (latency_ns, wanted) = traffic.message(from_node, to_node, bytes);
        let transfer = Transfer { sent_ns: self.now_ns, bytes, wanted: Some(wanted), arrived: false };
        let number = traffic.sent([pid.job, pid.task, to], transfer);
        let who = [to_node, pid.job, to, pid.task];
        self.agenda.push(self.now_ns + latency_ns, Kind::Flow, who, number);
    }

    /// A message's latency is over: its flow starts.
    pub(super) fn flow(&mut self, Event { who: [_, job, to, from], stamp, .. }: Event) {
        let (pair, now_ns) = ([job, from, to], self.now_ns);
        let Some(traffic) = &mut self.traffic else { return };
        if let Some(wanted) = traffic.transfer(pair, stamp).and_then(|transfer| transfer.wanted.take()) {
            traffic.flows.start(now_ns, wanted, (pair, stamp));
        }
        self.share_soon();
    }

    /// Many flows start and end at one time: rates are found once, after all of them.
    fn share_soon(&mut self) {
        let Some(traffic) = &mut self.traffic else { return };
        if !std::mem::replace(&mut traffic.sharing, true) {
            self.agenda.push(self.now_ns, Kind::Share, [0; 4], 0);
        }
    }

    /// Finds the rates of flows, and when the next one ends.
    pub(super) fn share(&mut self) {
        let Some(traffic) = &mut self.traffic else { return };
        traffic.sharing = false;
        traffic.flows.share(self.now_ns);
        let next = traffic.flows.next_end_ns();
        if next != traffic.next {
            traffic.next = next;
            traffic.events += 1;
            if let Some(next_ns) = next {
                self.agenda.push(next_ns, Kind::FlowsEnd, [0; 4], traffic.events);
            }
        }
    }

    /// Flows end, unless they got other rates since the event was scheduled.
    pub(super) fn flows_end(&mut self, number: u64) {
        let Some(traffic) = self.traffic.as_mut().filter(|traffic| traffic.events == number) else { return };
        traffic.next = None;
        while let Some(([job, from, to], number)) = traffic.flows.ended(self.now_ns) {
            for Transfer { sent_ns, bytes, .. } in traffic.arrived([job, from, to], number) {
                let node = self.jobs[job as usize].processes[to as usize].node;
                self.agenda.push_message(self.now_ns, Kind::Delivered, [node, job, to, from], sent_ns, bytes);
            }
        }
        self.share_soon();
    }
}
