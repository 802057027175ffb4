//! A node's scheduler (D3 to D5, D15, D24), and when it next has something to do.

use super::node::{Cpu, Kernel, LEVEL_MAX, Lead, NEVER_NS, NO_PROCESS, State, TICK_NS};
use super::site::Site;
use super::{BOOST, DEMAND, YIELD};
use crate::observe::Observer;

/// The number of ticks between two times that all processes are raised.
const RISE_TICKS: u64 = 1000;

impl<O: Observer, const W: u8, const A: u8> Site<'_, '_, O, W, A> {
    /// The next tick, not before `t`, at which this node's scheduler changes anything; any later time if it is not before `limit_ns`.
    #[inline(always)]
    pub(super) fn next_tick(&mut self, t: u64, limit_ns: u64) -> u64 {
        let node = &mut *self.node;
        if node.next_tick_ns < t {
            node.next_tick_ns = t.div_ceil(TICK_NS) * TICK_NS;
        }
        let next = node.next_tick_ns;
        if node.count == 0 || next > limit_ns {
            return NEVER_NS;
        }
        if A == BOOST && node.cpu != Cpu::Idle {
            return next;
        }
        self.acting_tick(next, limit_ns)
    }

    fn acting_tick(&self, next: u64, limit_ns: u64) -> u64 {
        let node = &*self.node;
        let mut first = NEVER_NS;
        let lowest = node.ready.last().map_or(LEVEL_MAX, |p| self.processes[p as usize].level);
        if node.current != NO_PROCESS {
            let p = &self.processes[node.current as usize];
            if p.level < LEVEL_MAX && node.io_end_ns != NEVER_NS {
                first = (node.io_end_ns.div_ceil(TICK_NS) * TICK_NS).max(next);
            }
            let quantum = self.all.quanta_ns[p.level as usize];
            if p.used_ns >= quantum || self.challenged() {
                return next;
            }
            if node.cpu == Cpu::Run {
                let expires = node.run_start_ns + (quantum - p.used_ns);
                if expires <= limit_ns {
                    first = first.min((expires.div_ceil(TICK_NS) * TICK_NS).max(next));
                }
            }
            if p.level == LEVEL_MAX && lowest == LEVEL_MAX && W != YIELD {
                return first;
            }
        } else if lowest == LEVEL_MAX && W != YIELD {
            return first;
        }
        let rise_ns = RISE_TICKS * TICK_NS;
        first.min(next.div_ceil(rise_ns) * rise_ns)
    }

    /// Whether a ready process preempts the current one at the next tick (D5).
    #[inline]
    fn challenged(&self) -> bool {
        let node = &*self.node;
        let of = |place: u8| &self.processes[place as usize];
        let (Some(best), level) = (node.ready.first().map(of), of(node.current).level) else { return false };
        best.level > level || (level == LEVEL_MAX && best.boosted)
    }

    /// The scheduler runs.
    pub(super) fn tick(&mut self, t: u64) {
        self.node.next_tick_ns = t + TICK_NS;
        if t.is_multiple_of(RISE_TICKS * TICK_NS) {
            self.rise(t);
        }
        let boost_ns = if A == BOOST { self.boost(t) } else { 0 };
        if A == BOOST && self.goes_on(t) {
            if boost_ns > 0 {
                self.stop_run(t);
                self.all.out.cpu.sched_ns += boost_ns;
                self.lead(t, boost_ns, Lead::Scheduler);
            }
            return;
        }
        // The boost's time is taken from the CPU at once, before the switch that it may cause (D15, D22).
        if boost_ns > 0 {
            self.kernel_work(t, Kernel::Scheduler, boost_ns);
        }
        self.schedule(t);
        let stopped = self.node.cpu == Cpu::Stopped;
        if stopped && self.node.current == NO_PROCESS {
            self.dispatch(t);
        }
        if A == DEMAND {
            self.node.noted_job = self.current_job();
            self.node.noted_ns = t;
        }
        if stopped {
            self.start_cpu(t);
        }
    }

    /// Whether the running process simply continues: the usual case under PB, which is worth a fast path.
    #[inline]
    fn goes_on(&self, t: u64) -> bool {
        let node = &*self.node;
        if node.cpu != Cpu::Run {
            return false;
        }
        let p = &self.processes[node.current as usize];
        t >= node.run_start_ns
            && node.kernel.is_empty()
            && p.used_ns + (t - node.run_start_ns) < self.all.quanta_ns[p.level as usize]
            && !self.challenged()
    }

    /// Raises all processes to the highest level; ready ones keep their order (D24).
    fn rise(&mut self, t: u64) {
        self.raise_current(t);
        for place in self.node.table.iter() {
            let p = &mut self.processes[place as usize];
            if p.state != State::Exited {
                p.raise();
            }
        }
    }

    /// Raises the current process to the highest level; what it has used so far counts for the quantum of the old one.
    fn raise_current(&mut self, t: u64) {
        let place = self.node.current;
        if place != NO_PROCESS && self.processes[place as usize].level < LEVEL_MAX {
            self.stop_run(t);
            self.processes[place as usize].raise();
        }
    }

    /// Periodic boost (D15): returns its cost.
    fn boost(&mut self, t: u64) -> u64 {
        let look = self.look(false);
        let mut ns = self.all.params.check_ns * u64::from(look.looked_at);
        if let Some(i) = look.candidate {
            let place = self.node.table.get(i);
            if place == self.node.current {
                self.raise_current(t);
            } else {
                self.boost_ready(place);
                ns += self.all.params.queue_move_ns;
            }
        }
        ns
    }

    /// Quantum and preemption. During kernel work the current process loses its place, and its successor is chosen when that work is
    /// done (D22).
    fn schedule(&mut self, t: u64) {
        let place = self.node.current;
        if place == NO_PROCESS || self.switching(t) {
            return;
        }
        let node = &*self.node;
        let p = &self.processes[place as usize];
        let ran_ns = if node.cpu == Cpu::Run { t.saturating_sub(node.run_start_ns) } else { 0 };
        let preempted = if p.used_ns + ran_ns >= self.all.quanta_ns[p.level as usize] {
            self.expire(t, place)
        } else {
            self.challenged()
        };
        if preempted {
            self.stop_run(t);
            self.append(place);
            self.set_current(NO_PROCESS, t);
        }
    }

    /// The quantum has expired: one level down, to the tail. True if another process is the best now.
    fn expire(&mut self, t: u64, place: u8) -> bool {
        self.stop_run(t);
        let p = &mut self.processes[place as usize];
        p.level = p.level.saturating_sub(1);
        p.used_ns = 0;
        let level = p.level;
        let best = self.node.ready.first().map(|p| self.processes[p as usize].level);
        best.is_some_and(|best| best >= level)
    }

    /// A switch that cannot be interrupted is in progress (D6).
    fn switching(&self, t: u64) -> bool {
        let node = &*self.node;
        match node.cpu {
            Cpu::Switch => true,
            Cpu::Run => node.lead == Lead::Switch && t < node.run_start_ns,
            _ => false,
        }
    }
}
