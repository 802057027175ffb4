//! A node with the fair scheduler of Linux, and what coscheduling means on it.
//!
//! Spin block is as in the paper: the woken process may preempt at once, like any woken process. Spin yield is
//! `sched_yield`. A boost (PB, DCS) puts a process before all others and preempts at once, like a change of priority.

use super::config::NodeModel;
use super::engine::{Effect, Sim, Work};
use super::process::{Pid, State};
use crate::draw::{Draws, skewed_ns};
use crate::observe::Observer;
use crate::strategy::Strategy;

impl<O: Observer> Sim<'_, O> {
    pub(super) fn is_fair(&self) -> bool {
        let own = self.params.strategy.is_gang() || self.params.strategy == Strategy::Coop;
        !own && (self.config.model == NodeModel::Linux || self.is_live())
    }

    /// Brings the CPU time of running processes up to date, because everything that follows depends on the mean.
    pub(super) fn book_node(&mut self, node: usize) {
        for cpu in self.cpus_of(node) {
            self.book(cpu);
        }
    }

    /// The fair scheduler's tick: used-up slices are renewed, and their owners step back.
    pub(super) fn fair_tick(&mut self, node: usize) {
        self.book_node(node);
        for cpu in self.cpus_of(node) {
            self.renew_slice(cpu);
        }
        self.reschedule_node(node);
    }

    fn renew_slice(&mut self, cpu: usize) {
        let (node, current) = (self.cpus[cpu].node, self.cpus[cpu].current);
        let ended = |pid| self.nodes[node].fair.renew(pid, self.config.linux.slice_ns);
        self.cpus[cpu].resched |= current.is_some_and(ended);
    }

    /// Noise at an activation of a node, as its number draws it.
    pub(super) fn disturb(&mut self, node: usize, activation: u64) {
        let Some(noise) = self.config.linux.noise else { return };
        for cpu in self.cpus_of(node) {
            let draws = Draws::new(self.params.seed, u64::MAX, cpu as u64);
            if draws.unit(activation, 0) * (noise.every_ns as f64) < self.params.tick_ns as f64 {
                self.book_node(node);
                self.renew_slice(cpu);
                self.charge(cpu, skewed_ns(noise.work_ns, 2.0, draws.unit(activation, 1)));
                self.reschedule_node(node);
            }
        }
    }

    /// A process has become ready: it may preempt where it ran last, if no CPU is idle.
    pub(super) fn check_preemption(&mut self, pid: Pid) {
        let process = self.process(pid);
        let (node, cpu) = (process.node as usize, process.last_cpu);
        if process.state != State::Ready {
            return;
        }
        let cpu = cpu.unwrap_or(self.cpus_of(node).start);
        let Some(current) = self.cpus[cpu].current else { return };
        self.renew_slice(cpu);
        let chosen = self.nodes[node].fair.choose(Some(current), self.config.linux.run_to_parity);
        self.cpus[cpu].resched |= chosen == Some(pid);
    }

    /// CPUs that should choose again do so now, unless they are in a switch or in the kernel: then at its end.
    pub(super) fn reschedule_node(&mut self, node: usize) {
        for cpu in self.cpus_of(node) {
            if self.cpus[cpu].resched && self.cpus[cpu].doing.is_process() {
                self.stop(cpu);
                self.resume(cpu);
            }
        }
    }

    /// A CPU chooses again: its current process continues or goes back. Gangs: a guest leaves when its host is ready.
    pub(super) fn choose_again(&mut self, cpu: usize) {
        self.cpus[cpu].resched = false;
        let Some(pid) = self.cpus[cpu].current else { return };
        let node = self.cpus[cpu].node;
        if self.params.strategy.is_gang() {
            if self.host_is_ready(cpu) {
                self.take_current(cpu, State::Ready);
            }
            return;
        }
        if self.is_guest(pid) {
            if self.is_live() || self.anybody_queued(node) {
                self.take_current(cpu, State::Ready);
            }
            return;
        }
        if !self.is_fair() {
            return;
        }
        if self.nodes[node].fair.choose(Some(pid), self.config.linux.run_to_parity) != Some(pid) {
            self.nodes[node].fair.put_back(pid);
            self.take_current(cpu, State::Ready);
        }
    }

    /// `sched_yield`, at the cost of a queue move.
    pub(super) fn fair_yield(&mut self, cpu: usize, pid: Pid) {
        let (node, slice_ns) = (self.cpus[cpu].node, self.config.linux.slice_ns);
        self.nodes[node].fair.renew(pid, slice_ns);
        self.nodes[node].fair.give_way(pid, slice_ns);
        let work = Work { cost_ns: self.params.queue_move_ns, effect: Effect::Charge };
        self.cpus[cpu].resched = true;
        self.cpus[cpu].kernel.push_front(work);
    }

    /// Boost: before all others, at once.
    pub(super) fn fair_boost(&mut self, pid: Pid) -> bool {
        let process = self.process(pid);
        let (ready, node, last) = (process.state == State::Ready, process.node as usize, process.last_cpu);
        if ready {
            self.out.boosts += 1;
            self.book_node(node);
            self.nodes[node].fair.put_first(pid);
            let cpu = last.unwrap_or(self.cpus_of(node).start);
            self.cpus[cpu].resched = true;
        }
        ready
    }
}
