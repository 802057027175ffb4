//! A node's scheduler (D3 to D5, D15, D24), and when it next has something to do.

use super::engine::Engine;
use super::node::{Cpu, Kernel, LEVEL_MAX, Lead, NO_PROCESS, State, TICK_NS};
use super::tree::NEVER;
use super::{BOOST, DEMAND, YIELD};
use crate::observe::Observer;

/// The number of ticks between two times that all processes are raised.
const RISE_TICKS: u64 = 1000;

impl<O: Observer, const W: u8, const A: u8> Engine<'_, O, W, A> {
    /// The next tick, not before `t`, at which this node's scheduler changes anything; any later time if it is not before `limit_ns`.
    #[inline]
    pub(super) fn next_tick(&mut self, n: usize, t: u64, limit_ns: u64) -> u64 {
        let node = &mut self.nodes[n];
        if node.next_tick_ns < t {
            node.next_tick_ns = t.div_ceil(TICK_NS) * TICK_NS;
        }
        let next = node.next_tick_ns;
        if node.count == 0 || next > limit_ns {
            return NEVER;
        }
        if A == BOOST && node.cpu != Cpu::Idle {
            return next;
        }
        self.acting_tick(n, next, limit_ns)
    }

    fn acting_tick(&self, n: usize, next: u64, limit_ns: u64) -> u64 {
        let node = &self.nodes[n];
        let mut first = NEVER;
        let base = n * self.places;
        let lowest = node.ready.last().map_or(LEVEL_MAX, |p| self.processes[base + *p as usize].level);
        if node.current != NO_PROCESS {
            let p = &self.processes[base + node.current as usize];
            if p.level < LEVEL_MAX && node.io_end_ns != NEVER {
                first = (node.io_end_ns.div_ceil(TICK_NS) * TICK_NS).max(next);
            }
            let quantum = self.quanta_ns[p.level as usize];
            if p.used_ns >= quantum || self.challenged(n) {
                return next;
            }
            if matches!(node.cpu, Cpu::Run(_)) {
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
    fn challenged(&self, n: usize) -> bool {
        let node = &self.nodes[n];
        let of = |place: u8| &self.processes[n * self.places + place as usize];
        let (Some(best), level) = (node.ready.first().map(|p| of(*p)), of(node.current).level) else { return false };
        best.level > level || (level == LEVEL_MAX && best.boosted)
    }

    /// The scheduler runs.
    pub(super) fn tick(&mut self, n: usize, t: u64) {
        self.nodes[n].next_tick_ns = t + TICK_NS;
        if t.is_multiple_of(RISE_TICKS * TICK_NS) {
            self.rise(n, t);
        }
        let boost_ns = if A == BOOST { self.boost(n, t) } else { 0 };
        if A == BOOST && self.goes_on(n, t) {
            if boost_ns > 0 {
                self.stop_run(n, t);
                self.out.cpu.sched_ns += boost_ns;
                self.lead(n, t, boost_ns, Lead::Scheduler, Cpu::Kernel(Kernel::Scheduler));
            }
            return;
        }
        // The boost's time is taken from the CPU at once, before the switch that it may cause (D15, D22).
        if boost_ns > 0 {
            self.kernel_work(n, t, Kernel::Scheduler, boost_ns);
        }
        self.schedule(n, t);
        let stopped = self.nodes[n].cpu == Cpu::Stopped;
        if stopped && self.nodes[n].current == NO_PROCESS {
            self.dispatch(n, t);
        }
        if A == DEMAND {
            self.nodes[n].noted_job = self.current_job(n);
            self.nodes[n].noted_ns = t;
        }
        if stopped {
            self.start_cpu(n, t);
        }
    }

    /// Whether the running process simply continues: the usual case under PB, which is worth a fast path.
    #[inline]
    fn goes_on(&self, n: usize, t: u64) -> bool {
        let node = &self.nodes[n];
        let Cpu::Run(_) = node.cpu else { return false };
        let p = &self.processes[n * self.places + node.current as usize];
        t >= node.run_start_ns
            && node.kernel.is_empty()
            && p.used_ns + (t - node.run_start_ns) < self.quanta_ns[p.level as usize]
            && !self.challenged(n)
    }

    /// Raises all processes to the highest level; ready ones keep their order (D24).
    fn rise(&mut self, n: usize, t: u64) {
        self.raise_current(n, t);
        let base = n * self.places;
        for place in self.nodes[n].table.iter() {
            let p = &mut self.processes[base + *place as usize];
            if p.state != State::Exited {
                p.raise();
            }
        }
    }

    /// Raises the current process to the highest level; what it has used so far counts for the quantum of the old one.
    fn raise_current(&mut self, n: usize, t: u64) {
        let place = self.nodes[n].current;
        if place != NO_PROCESS && self.process(n, place).level < LEVEL_MAX {
            self.stop_run(n, t);
            self.process(n, place).raise();
        }
    }

    /// Periodic boost (D15): returns its cost.
    fn boost(&mut self, n: usize, t: u64) -> u64 {
        let look = self.look(n, false);
        let mut ns = self.params.check_ns * u64::from(look.looked_at);
        if let Some(i) = look.candidate {
            let place = self.nodes[n].table[i];
            if place == self.nodes[n].current {
                self.raise_current(n, t);
            } else {
                self.boost_ready(n, place);
                ns += self.params.queue_move_ns;
            }
        }
        ns
    }

    /// Quantum and preemption. During kernel work the current process loses its place, and its successor is chosen when that work is
    /// done (D22).
    fn schedule(&mut self, n: usize, t: u64) {
        let place = self.nodes[n].current;
        if place == NO_PROCESS || self.switching(n, t) {
            return;
        }
        let node = &self.nodes[n];
        let p = &self.processes[n * self.places + place as usize];
        let ran_ns = if matches!(node.cpu, Cpu::Run(_)) { t.saturating_sub(node.run_start_ns) } else { 0 };
        let preempted = if p.used_ns + ran_ns >= self.quanta_ns[p.level as usize] {
            self.expire(n, t, place)
        } else {
            self.challenged(n)
        };
        if preempted {
            self.stop_run(n, t);
            self.append(n, place);
            self.set_current(n, NO_PROCESS, t);
        }
    }

    /// The quantum has expired: one level down, to the tail. True if another process is the best now.
    fn expire(&mut self, n: usize, t: u64, place: u8) -> bool {
        self.stop_run(n, t);
        let p = self.process(n, place);
        p.level = p.level.saturating_sub(1);
        p.used_ns = 0;
        let level = p.level;
        let best = self.nodes[n].ready.first().map(|p| self.processes[n * self.places + *p as usize].level);
        best.is_some_and(|best| best >= level)
    }

    /// A switch that cannot be interrupted is in progress (D6).
    fn switching(&self, n: usize, t: u64) -> bool {
        let node = &self.nodes[n];
        match node.cpu {
            Cpu::Switch => true,
            Cpu::Run(Lead::Switch) => t < node.run_start_ns,
            _ => false,
        }
    }
}
