//! The scheduler of a node (D3 to D5, D14 to D16, D22 to D24).

use super::engine::{Doing, Effect, Sim, Work};
use super::event::Kind;
use super::levels::{TOP, quantum_ns};
use super::process::{Mark, Pid, State, Step};
use crate::observe::{Decision, Observer};
use crate::strategy::Strategy;
use cosched_core::{Look, OnArrival, boost_candidate, yield_level};

/// The number of ticks after which all processes are raised (D24).
const RAISE_TICKS: u64 = 1000;

impl<O: Observer> Sim<'_, O> {
    /// A new process: the tail of the highest level (D23).
    pub(super) fn ready_new(&mut self, pid: Pid) {
        if self.process(pid).state == State::Ended {
            // A gang's CPU has already run it in its cell, and it had nothing to do.
            return;
        }
        let node = self.process(pid).node as usize;
        self.nodes[node].table.push(pid);
        if self.params.strategy.is_gang() {
            return self.host_may_return(pid);
        }
        if self.is_guest(pid) {
            return self.arm_tick(node);
        }
        self.guests_leave(node);
        if self.is_fair() {
            self.book_node(node);
            self.nodes[node].fair.add_new(pid, self.config.linux.slice_ns);
            self.check_preemption(pid);
        } else {
            self.nodes[node].levels.push_tail(TOP, pid);
        }
        self.arm_tick(node);
    }

    /// A process that slept: the head of the highest level, with a full quantum (D12, D14).
    pub(super) fn ready_woken(&mut self, pid: Pid) {
        let process = self.process(pid);
        (process.state, process.mark) = (State::Ready, Mark::Woken);
        (process.level, process.used_ns) = (TOP, 0);
        let (node, lag_ns) = (process.node as usize, process.lag_ns);
        if self.params.strategy.is_gang() {
            return self.host_may_return(pid);
        }
        self.arm_tick(node);
        if self.is_guest(pid) {
            return;
        }
        self.guests_leave(node);
        if self.is_fair() {
            self.book_node(node);
            self.nodes[node].fair.add_woken(pid, lag_ns, self.config.linux.slice_ns);
            self.check_preemption(pid);
        } else if self.params.strategy == Strategy::Coop {
            self.nodes[node].levels.push_tail(TOP, pid);
        } else {
            self.nodes[node].levels.push_head(TOP, pid);
        }
    }

    /// The process that a CPU without a current process should run.
    pub(super) fn pick(&mut self, cpu: usize) -> Option<Pid> {
        let node = self.cpus[cpu].node;
        if let Some(gang) = self.gang.as_ref().filter(|_| self.params.strategy.is_gang()) {
            return self.pick_of_gang(gang, cpu);
        }
        let queued = if self.is_fair() {
            let fair = &mut self.nodes[node].fair;
            let pid = fair.choose(None, self.config.linux.run_to_parity);
            pid.inspect(|pid| fair.begin(*pid))
        } else {
            self.nodes[node].levels.pop_best()
        };
        queued.or_else(|| self.pick_guest(cpu))
    }

    /// Schedules the next activation of a node's scheduler, if none is scheduled: at a whole number of ticks from 1 on
    /// (D2). It is now if now is such a time and the node has not had its activation yet.
    fn arm_tick(&mut self, node: usize) {
        if self.nodes[node].ticking {
            return;
        }
        let (tick_ns, now_ns) = (self.params.tick_ns, self.now_ns);
        let reverse = self.params.readings.reverse_ties;
        let passed =
            self.ticked.is_some_and(|(at_ns, last)| at_ns == now_ns && (node == last || (node < last) != reverse));
        let first = u64::from(!self.config.finer.tick_at_zero);
        let state = &mut self.nodes[node];
        let since_ns = now_ns.saturating_sub(state.phase_ns) + u64::from(passed);
        let next_ns = state.phase_ns + since_ns.div_ceil(tick_ns).max(first) * tick_ns;
        state.ticking = true;
        self.agenda.push(next_ns, Kind::Tick, [node as u32, 0, 0, 0], 0);
        let number = (next_ns - state.phase_ns) / tick_ns;
        // The tick that is scheduled raises them itself, if it is the one.
        let missed = |from: u64| number.saturating_sub(1) / RAISE_TICKS > from / RAISE_TICKS;
        if state.slept_at.take().is_some_and(missed) && !self.is_fair() {
            self.raise_all(node);
        }
    }

    /// Whether no tick changes anything before a process wakes: none is ready or has a CPU, so none is boosted or preempted.
    fn is_asleep(&self, node: usize) -> bool {
        let state = |pid: &Pid| self.jobs[pid.job as usize].processes[pid.task as usize].state;
        self.cpus_of(node).all(|cpu| self.idle(cpu))
            && self.nodes[node].table.iter().all(|pid| matches!(state(pid), State::Io | State::Blocked))
    }

    /// The activation of a node's scheduler. A node without processes needs none, and one that sleeps none after this one.
    pub(super) fn tick(&mut self, node: usize) {
        self.nodes[node].ticking = false;
        self.ticked = Some((self.now_ns, node));
        if self.nodes[node].table.is_empty() {
            return;
        }
        let number = (self.now_ns - self.nodes[node].phase_ns) / self.params.tick_ns;
        if self.is_asleep(node) {
            self.nodes[node].slept_at = Some(number);
        } else {
            self.arm_tick(node);
        }
        if self.is_fair() {
            if number.is_multiple_of((self.config.linux.tick_ns / self.params.tick_ns).max(1)) {
                self.fair_tick(node);
            }
            self.disturb(node, number);
        } else if number > 0 && number.is_multiple_of(RAISE_TICKS) {
            self.raise_all(node);
        }
        for cpu in self.cpus_of(node) {
            let boosts = self.params.dynamic().1 == OnArrival::Periodic;
            let after = self.params.readings.boost_after_scheduler;
            let mut cost_ns = 0;
            if boosts && !after {
                cost_ns = self.periodic_boost(cpu);
                if !self.config.finer.boost_time_last {
                    self.charge(cpu, std::mem::take(&mut cost_ns));
                }
            }
            self.schedule(cpu);
            if boosts && after {
                cost_ns = self.periodic_boost(cpu);
            }
            self.charge(cpu, cost_ns);
        }
        let noted = self.cpus_of(node).map(|cpu| self.current_or_last(cpu)).collect();
        self.nodes[node].noted = noted;
    }

    /// The CPU does kernel work for a time.
    pub(super) fn charge(&mut self, cpu: usize, cost_ns: u64) {
        if cost_ns > 0 {
            self.cpus[cpu].kernel.push_back(Work { cost_ns, effect: Effect::Charge });
            self.serve_kernel(cpu);
        }
    }

    /// Once a second: all processes get the highest level (D24).
    fn raise_all(&mut self, node: usize) {
        self.nodes[node].levels.raise_all();
        for pid in self.nodes[node].table.clone() {
            self.book_now(pid);
            self.process(pid).set_level(TOP);
        }
    }

    /// Brings the used part of a running process's quantum up to date.
    pub(super) fn book_now(&mut self, pid: Pid) {
        if let State::Running(cpu) = self.process(pid).state {
            self.book(cpu);
        }
    }

    /// Looks whether the current process has used up its quantum, or whether another one must come first. Not during a
    /// switch: it cannot be interrupted (D6). During kernel work the process loses its place, and the work continues.
    fn schedule(&mut self, cpu: usize) {
        let Some(pid) = self.cpus[cpu].current else { return };
        if self.params.strategy == Strategy::Coop {
            return;
        }
        if self.is_fair() || self.is_guest(pid) {
            return self.reschedule_node(self.cpus[cpu].node);
        }
        let finer = self.config.finer;
        match self.cpus[cpu].doing {
            Doing::Switch if !finer.tick_in_switch => return,
            Doing::Kernel(_) if finer.no_tick_in_kernel && self.cpus[cpu].since_ns < self.now_ns => return,
            _ => {}
        }
        self.book_now(pid);
        let solaris = self.params.readings.solaris_quanta;
        let best = self.nodes[self.cpus[cpu].node].levels.best();
        let process = self.process(pid);
        let expired = process.used_ns >= quantum_ns(process.level, solaris);
        if expired {
            process.level = process.level.saturating_sub(1);
            process.used_ns = 0;
        }
        let level = process.level;
        let Some((best_level, best)) = best else { return };
        let preempted = if expired { best_level >= level } else { self.comes_first(best_level, best, level) };
        if preempted {
            self.preempt(cpu, !expired && self.params.readings.preempted_to_head);
        }
    }

    /// Whether the head of the ready processes may preempt a process of this level (D5).
    fn comes_first(&mut self, best_level: u8, best: Pid, level: u8) -> bool {
        let readings = self.params.readings;
        best_level > level
            || best_level == TOP
                && level == TOP
                && match self.process(best).mark {
                    Mark::None => false,
                    Mark::Boosted => !readings.no_boost_tie,
                    Mark::Demanded => !readings.no_dcs_tie,
                    Mark::Woken => readings.wake_tie,
                }
    }

    /// The current process goes back to its level, with the rest of its quantum (D4).
    fn preempt(&mut self, cpu: usize, to_head: bool) {
        if self.cpus[cpu].doing.is_process() {
            self.stop(cpu);
        }
        let Some(pid) = self.take_current(cpu, State::Ready) else { return };
        let level = self.process(pid).level;
        let levels = &mut self.nodes[self.cpus[cpu].node].levels;
        if to_head {
            levels.push_head(level, pid);
        } else {
            levels.push_tail(level, pid);
        }
        self.resume(cpu);
    }

    /// PB (D15): boosts a candidate at once, and returns the cost.
    fn periodic_boost(&mut self, cpu: usize) -> u64 {
        if matches!(self.cpus[cpu].doing, Doing::Switch) && self.config.finer.no_boost_in_switch {
            return 0;
        }
        let current = self.current_or_last(cpu);
        let look = self.look(cpu, current, false);
        self.tell_decision(self.cpus[cpu].node, current, None, look.candidate);
        self.boost_found(cpu, look)
    }

    /// Reports to the observer which process a node boosts.
    pub(super) fn tell_decision(
        &mut self,
        node: usize,
        current: Option<Pid>,
        receiver: Option<Pid>,
        boosted: Option<usize>,
    ) {
        if !O::TELL_DECISIONS {
            return;
        }
        let pids = &self.nodes[node].table;
        let place = |pid: Pid| pids.iter().position(|other| *other == pid);
        let endpoint = |pid: &Pid| self.jobs[pid.job as usize].processes[pid.task as usize].endpoint();
        let table: Vec<_> = pids.iter().map(|pid| (pid.job, pid.task, endpoint(pid))).collect();
        let (current, receiver) = (current.and_then(place), receiver.and_then(place));
        let (time_ns, node) = (self.now_ns, node as u32);
        self.observer.decision(Decision { time_ns, node, table: &table, current, receiver, boosted });
    }

    /// The current process, or with the other reading the last process that had the CPU.
    fn current_or_last(&self, cpu: usize) -> Option<Pid> {
        let state = &self.cpus[cpu];
        let last = state.last_owner.filter(|_| self.config.finer.last_owner_is_current);
        state.current.or(last)
    }

    fn boost_found(&mut self, cpu: usize, look: Look) -> u64 {
        let candidate = look.candidate.map(|place| self.nodes[self.cpus[cpu].node].table[place]);
        let moved = candidate.is_some_and(|pid| self.boost(pid, Mark::Boosted));
        u64::from(look.looked_at) * self.params.check_ns + if moved { self.params.queue_move_ns } else { 0 }
    }

    /// Searches for a candidate from this process on, or from the first in the table.
    fn look(&self, cpu: usize, from: Option<Pid>, but_it: bool) -> Look {
        let table = &self.nodes[self.cpus[cpu].node].table;
        let current = from.and_then(|pid| table.iter().position(|other| *other == pid)).unwrap_or(0);
        let endpoint = |place: usize| {
            let pid: Pid = table[place];
            self.jobs[pid.job as usize].processes[pid.task as usize].endpoint()
        };
        boost_candidate(self.params.heuristic, table.len(), current, but_it, endpoint)
    }

    /// Moves a ready process to the head of the highest level; a running one just gets that level. Returns whether it
    /// was moved.
    pub(super) fn boost(&mut self, pid: Pid, mark: Mark) -> bool {
        if self.is_fair() {
            return self.fair_boost(pid);
        }
        self.book_now(pid);
        let process = self.process(pid);
        let (ready, level, node) = (process.state == State::Ready, process.level, process.node as usize);
        process.set_level(TOP);
        if ready {
            process.mark = mark;
            self.out.boosts += 1;
            let levels = &mut self.nodes[node].levels;
            levels.remove(level, pid);
            levels.push_head(TOP, pid);
        }
        ready
    }

    /// SY (D14): the current process lowers itself below all others and raises one of them.
    pub(super) fn give_way(&mut self, cpu: usize, pid: Pid) {
        self.out.yields += 1;
        if let Step::Receive { spun_ns, yielded, .. } = &mut self.process(pid).step {
            (*spun_ns, *yielded) = (0, true);
        }
        if self.is_fair() {
            return self.fair_yield(cpu, pid);
        }
        let table = &self.nodes[self.cpus[cpu].node].table;
        let level_of = |pid: &Pid| self.jobs[pid.job as usize].processes[pid.task as usize].level;
        let others = table.iter().filter(|other| **other != pid).map(level_of);
        let level = yield_level(level_of(&pid), others);
        let process = self.process(pid);
        process.set_level(level);
        let look = self.look(cpu, Some(pid), true);
        let cost_ns = self.params.queue_move_ns + self.boost_found(cpu, look);
        self.cpus[cpu].kernel.push_front(Work { cost_ns, effect: Effect::Charge });
    }
}
