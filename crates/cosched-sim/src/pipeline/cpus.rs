//! The CPUs: which thread runs where.
//!
//! A woken thread goes to its last CPU if that is idle, else to an idle one, else to its last one, where it may preempt. A
//! CPU that becomes idle takes a waiting thread from the longest queue; every `balance_us` the CPU with the greatest load
//! gives a thread to the one with the least, unless that would only reverse the difference, or has failed before.

use super::engine::{Sim, us};
use super::event::Event;
use super::fair::Queue;
use super::thread::{Role, State};
use cosched_core::stage::Class;

/// One CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) queue: Queue,
    /// Incremented when its activity changes: older events are void.
    pub(super) generation: u64,
    /// The last thread that ran on it.
    last: Option<usize>,
    /// A check which thread should run is scheduled.
    ticks: bool,
    /// Its thread has changed its own priority.
    pub(super) look_again: bool,
}

impl Sim<'_> {
    /// Brings a thread's accounts up to date.
    pub(super) fn book(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        let ns = self.now_ns - std::mem::replace(&mut state.since_ns, self.now_ns);
        let runs = state.state == State::Running;
        if runs {
            state.left_ns -= ns.min(state.left_ns);
            self.cpus[state.cpu].queue.charge(ns);
        }
        let (waits, has_buffer) = (state.state == State::Ready, state.load.is_some());
        let Some(stage) = state.stage() else {
            self.hogs_ns += if runs && state.role != Role::Worker { ns } else { 0 };
            return;
        };
        let account = &mut self.books[stage].account;
        account.cpu_ns += if runs { ns } else { 0 };
        account.delay_ns += if waits { ns } else { 0 };
        match (has_buffer, stage) {
            (true, _) => account.busy_ns += ns,
            (false, 0) => account.wait_out_ns += ns,
            (false, _) => account.wait_in_ns += ns,
        }
    }

    /// A thread enters a run queue.
    pub(super) fn woken(&mut self, thread: usize) {
        self.book(thread);
        let cpu = self.place(thread);
        let lag_ns = self.lag_after_sleep(thread);
        let state = &mut self.threads[thread];
        (state.state, state.cpu) = (State::Ready, cpu);
        let attr = state.attr;
        self.book_current(cpu);
        let queue = &mut self.cpus[cpu].queue;
        queue.add(thread, attr, lag_ns);
        if queue.preempts(thread) { self.switch_to(cpu, thread) } else { self.plan_tick(cpu) }
    }

    /// How far a thread that slept is behind the mean. If it was ahead, that has decayed while the others ran.
    fn lag_after_sleep(&self, thread: usize) -> i64 {
        let state = &self.threads[thread];
        let (lag_ns, mean_then_ns) = state.slept;
        if lag_ns >= 0 {
            return lag_ns;
        }
        (lag_ns + self.cpus[state.cpu].queue.mean_ns() - mean_then_ns).min(0)
    }

    fn place(&self, thread: usize) -> usize {
        let state = &self.threads[thread];
        let is_idle = |cpu: usize| {
            let queue = &self.cpus[cpu].queue;
            let only_idle =
                || queue.waiting().chain(queue.current()).all(|t| self.threads[t].attr.class == Class::Idle);
            queue.len() == 0 || (state.attr.class != Class::Idle && only_idle())
        };
        let count = self.cpus.len();
        let near = || (0..count).map(|k| (state.cpu + k) % count).filter(|cpu| state.may_use(*cpu));
        let urgent = |cpu: usize| self.cpus[cpu].queue.current().is_some_and(|t| is_fifo(self.threads[t].attr.class));
        let free = near().find(|cpu| is_idle(*cpu));
        let free = free.or_else(|| near().find(|cpu| is_fifo(state.attr.class) && !urgent(*cpu)));
        free.or_else(|| near().next()).unwrap_or(state.cpu)
    }

    /// A thread that has a CPU goes to sleep, or ends if it was to.
    pub(super) fn sleep(&mut self, thread: usize) {
        let cpu = self.threads[thread].cpu;
        let queue = &mut self.cpus[cpu].queue;
        let lag_ns = queue.remove(thread);
        let state = &mut self.threads[thread];
        state.slept = (lag_ns, queue.mean_ns());
        let ends = state.retires && state.load.is_none();
        state.state = if ends { State::Gone } else { State::Asleep };
        state.interrupted = false;
        self.cpus[cpu].generation += 1;
    }

    /// A CPU without a thread takes one, if necessary from another CPU.
    pub(super) fn dispatch(&mut self, cpu: usize) {
        if self.cpus[cpu].queue.len() == 0 {
            self.steal(cpu);
        }
        if let Some(thread) = self.cpus[cpu].queue.choose() {
            self.switch_to(cpu, thread);
        }
    }

    fn steal(&mut self, cpu: usize) {
        let takes = |thread: &usize| self.threads[*thread].may_use(cpu);
        let waiting = |from: usize| self.cpus[from].queue.waiting().filter(takes).count();
        let Some(from) = (0..self.cpus.len()).max_by_key(|from| (waiting(*from), usize::MAX - from)) else { return };
        let taken = self.cpus[from].queue.waiting().find(takes);
        if let Some(thread) = taken {
            self.migrate(thread, cpu);
        }
    }

    /// Moves a thread that waits for one CPU to another CPU's queue.
    fn migrate(&mut self, thread: usize, to: usize) {
        let from = self.threads[thread].cpu;
        self.book_current(from);
        let lag_ns = self.cpus[from].queue.remove(thread);
        self.threads[thread].cpu = to;
        self.book_current(to);
        self.cpus[to].queue.add(thread, self.threads[thread].attr, lag_ns);
    }

    fn book_current(&mut self, cpu: usize) {
        if let Some(current) = self.cpus[cpu].queue.current() {
            self.book(current);
        }
    }

    /// A CPU switches to a thread of its queue.
    fn switch_to(&mut self, cpu: usize, thread: usize) {
        if let Some(old) = self.cpus[cpu].queue.current().filter(|old| *old != thread) {
            self.book(old);
            let old = &mut self.threads[old];
            (old.state, old.interrupted) = (State::Ready, true);
        }
        self.book(thread);
        self.cpus[cpu].queue.begin(thread);
        let switches = self.cpus[cpu].last.replace(thread) != Some(thread);
        let state = &mut self.threads[thread];
        state.state = State::Running;
        let cold = std::mem::replace(&mut state.interrupted, false) && switches;
        let machine = &self.spec.machine;
        state.left_ns += if switches { us(machine.switch_us) } else { 0 } + if cold { us(machine.cold_us) } else { 0 };
        self.switches += u64::from(switches);
        self.resume(cpu);
    }

    /// The thread of a CPU continues to compute.
    pub(super) fn resume(&mut self, cpu: usize) {
        let Some(thread) = self.cpus[cpu].queue.current() else { return };
        self.cpus[cpu].generation += 1;
        let generation = self.cpus[cpu].generation;
        self.agenda.push(self.now_ns + self.threads[thread].left_ns, Event::Computed { cpu, generation });
        self.plan_tick(cpu);
    }

    /// If a thread waits for a CPU, the next tick checks which thread should have it.
    fn plan_tick(&mut self, cpu: usize) {
        if self.cpus[cpu].queue.is_wanted() && !std::mem::replace(&mut self.cpus[cpu].ticks, true) {
            let tick_ns = us(f64::from(self.spec.machine.tick_us));
            self.agenda.push((self.now_ns / tick_ns + 1) * tick_ns, Event::Tick { cpu });
        }
    }

    pub(super) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].ticks = false;
        self.look(cpu);
        self.plan_tick(cpu);
    }

    /// Chooses the thread that should have this CPU now.
    pub(super) fn look(&mut self, cpu: usize) {
        self.book_current(cpu);
        let queue = &self.cpus[cpu].queue;
        match (queue.choose(), queue.current()) {
            (Some(thread), current) if current != Some(thread) => self.switch_to(cpu, thread),
            (None, _) => self.dispatch(cpu),
            _ => {}
        }
    }

    pub(super) fn balance(&mut self) {
        self.agenda.push(self.now_ns + us(f64::from(self.spec.machine.balance_us)), Event::Balance);
        let load = |cpu: &usize| self.cpus[*cpu].queue.load();
        let all = || 0..self.cpus.len();
        let (Some(to), Some(from)) = (all().min_by_key(load), all().rev().max_by_key(load)) else { return };
        let half = (load(&from) - load(&to)) / 2;
        // Each failure halves the weight that is assumed for a thread, as in the kernel (detach_tasks).
        let fits = |thread: &usize| {
            let state = &self.threads[*thread];
            state.may_use(to) && state.attr.weight() >> self.unbalanced.min(3) <= half
        };
        if half == 0 {
            return;
        }
        let moved = self.cpus[from].queue.waiting().find(fits);
        match moved {
            Some(thread) => {
                self.unbalanced = 0;
                self.migrate(thread, to);
                self.look(to);
                self.plan_tick(to);
            }
            None => self.unbalanced += 1,
        }
    }

    /// A thread has new attributes or other CPUs from now on.
    pub(super) fn reschedule(&mut self, thread: usize) {
        let state = &self.threads[thread];
        if !matches!(state.state, State::Ready | State::Running) {
            return;
        }
        let (cpu, attr) = (state.cpu, state.attr);
        if state.may_use(cpu) {
            self.book_current(cpu);
            self.cpus[cpu].queue.change(thread, attr);
            return self.look(cpu);
        }
        self.book(thread);
        let target = self.place(thread);
        if self.cpus[cpu].queue.current() == Some(thread) {
            self.cpus[cpu].generation += 1;
            self.threads[thread].interrupted = true;
        }
        self.threads[thread].state = State::Ready;
        self.migrate(thread, target);
        self.dispatch_if_free(cpu);
        self.look(target);
        self.plan_tick(target);
    }

    fn dispatch_if_free(&mut self, cpu: usize) {
        if self.cpus[cpu].queue.current().is_none() {
            self.dispatch(cpu);
        }
    }
}

fn is_fifo(class: Class) -> bool {
    matches!(class, Class::Fifo(_))
}
