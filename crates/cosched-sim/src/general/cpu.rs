//! A CPU: what it does now, and what it does next (D6, D22).

use super::code::Op;
use super::engine::{Doing, Effect, Sim, Work};
use super::event::Kind;
use super::process::{Mark, Pid, State, Step};
use crate::observe::{Activity, Observer, Slice};
use cosched_core::Wait;

/// Why a network interface or a device interrupts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interrupt {
    Wake(Pid),
    Demand(Pid),
}

impl<O: Observer> Sim<'_, O> {
    /// Ends what a CPU does, and books it. The CPU does nothing then.
    pub(super) fn stop(&mut self, cpu: usize) {
        let now_ns = self.now_ns;
        let state = &mut self.cpus[cpu];
        let (doing, start_ns) = (state.doing, state.since_ns);
        state.doing = Doing::Nothing;
        state.since_ns = now_ns;
        state.generation += 1;
        let elapsed_ns = now_ns - start_ns;
        if elapsed_ns == 0 {
            return;
        }
        let activity = match doing {
            Doing::Nothing => None,
            Doing::Switch => Some(Activity::Switch),
            Doing::Kernel(Work { effect: Effect::Charge, .. }) => Some(Activity::Scheduler),
            Doing::Kernel(_) => Some(Activity::Interrupt),
            Doing::User => Some(self.book_user(cpu, elapsed_ns)),
        };
        *self.cpu_time(activity) += elapsed_ns;
        if let (true, Some(activity)) = (O::TELL, activity) {
            let state = &self.cpus[cpu];
            let process = state.current.map(|pid| (pid.job, pid.task));
            let node = state.node as u32;
            self.observer.slice(Slice { node, start_ns, end_ns: now_ns, activity, process });
        }
    }

    fn cpu_time(&mut self, activity: Option<Activity>) -> &mut u64 {
        let cpu = &mut self.out.cpu;
        match activity {
            Some(Activity::Compute) => &mut cpu.compute_ns,
            Some(Activity::Spin) => &mut cpu.spin_ns,
            Some(Activity::Switch) => &mut cpu.switch_ns,
            Some(Activity::Interrupt) => &mut cpu.interrupt_ns,
            Some(Activity::Scheduler) => &mut cpu.sched_ns,
            Some(Activity::Io | Activity::Blocked) | None => &mut cpu.idle_ns,
        }
    }

    /// The current process has run for a time.
    fn book_user(&mut self, cpu: usize, elapsed_ns: u64) -> Activity {
        let Some(pid) = self.cpus[cpu].current else {
            self.broken.get_or_insert(format!("CPU {cpu} runs nobody"));
            return Activity::Compute;
        };
        let process = self.process(pid);
        process.used_ns += elapsed_ns;
        match &mut process.step {
            Step::Receive { spun_ns, .. } => {
                *spun_ns += elapsed_ns;
                return Activity::Spin;
            }
            Step::Compute { left_ns } => *left_ns -= elapsed_ns,
            Step::Begin => {}
        }
        process.computed_ns += elapsed_ns;
        Activity::Compute
    }

    /// Begins something, for a time or until it is stopped.
    pub(super) fn begin(&mut self, cpu: usize, doing: Doing, for_ns: Option<u64>) {
        self.stop(cpu);
        let state = &mut self.cpus[cpu];
        state.doing = doing;
        if let Some(ns) = for_ns {
            let (who, stamp) = ([cpu as u32, 0, 0, 0], state.generation);
            self.agenda.push(self.now_ns + ns, Kind::CpuEnd, who, stamp);
        }
    }

    /// What a CPU does has come to its end.
    pub(super) fn cpu_end(&mut self, cpu: usize, generation: u64) {
        if self.cpus[cpu].generation != generation {
            return;
        }
        let doing = self.cpus[cpu].doing;
        self.stop(cpu);
        match doing {
            Doing::Kernel(work) => self.effect(work.effect),
            Doing::User => self.limit_reached(cpu),
            Doing::Nothing | Doing::Switch => {}
        }
        self.resume(cpu);
    }

    /// Decides what a CPU that does nothing does next: kernel work, else its current process, else another one.
    pub(super) fn resume(&mut self, cpu: usize) {
        while matches!(self.cpus[cpu].doing, Doing::Nothing) {
            if let Some(work) = self.cpus[cpu].kernel.pop_front() {
                self.begin(cpu, Doing::Kernel(work), Some(work.cost_ns));
            } else if self.cpus[cpu].current.is_some() {
                self.advance(cpu);
            } else if !self.dispatch(cpu) {
                return;
            }
        }
    }

    /// If a CPU of this node has nothing to do, it looks again.
    pub(super) fn kick(&mut self, node: usize) {
        for cpu in self.cpus_of(node) {
            if self.cpus[cpu].current.is_none() {
                self.resume(cpu);
            }
        }
    }

    pub(super) fn cpus_of(&self, node: usize) -> std::ops::Range<usize> {
        node..node + 1
    }

    /// Gives a CPU to the best ready process, if there is one; a switch may have to come first (D6).
    fn dispatch(&mut self, cpu: usize) -> bool {
        let Some(pid) = self.pick(cpu) else {
            if self.params.readings.free_switch_from_idle {
                self.cpus[cpu].last_owner = None;
            }
            return false;
        };
        let process = self.process(pid);
        process.state = State::Running(cpu);
        process.mark = Mark::None;
        let state = &mut self.cpus[cpu];
        state.current = Some(pid);
        let last = state.last_owner.replace(pid);
        if self.gang.is_none() && last.is_some_and(|last| last != pid) {
            self.out.context_switches += 1;
            self.begin(cpu, Doing::Switch, Some(self.params.switch_ns));
        }
        true
    }

    /// Takes the CPU from its current process, which stops.
    pub(super) fn take_current(&mut self, cpu: usize, state: State) -> Option<Pid> {
        let pid = self.cpus[cpu].current.take()?;
        let now_ns = self.now_ns;
        let process = self.process(pid);
        process.state = state;
        process.since_ns = now_ns;
        Some(pid)
    }

    /// Lets the current process do all that takes no time, up to something that does.
    fn advance(&mut self, cpu: usize) {
        let Some(pid) = self.cpus[cpu].current else { return };
        let skew = self.params.skew;
        let process = self.process(pid);
        match process.step {
            Step::Compute { left_ns: 0 } => {
                process.step = Step::Begin;
                self.step_on(pid);
            }
            Step::Compute { left_ns } => self.begin(cpu, Doing::User, Some(left_ns)),
            Step::Receive { from, spun_ns, yielded } => {
                if process.take(from) {
                    process.step = Step::Begin;
                    return self.step_on(pid);
                }
                let left_ns = self.spin_limit_ns(yielded).map(|limit| limit.saturating_sub(spun_ns));
                self.begin(cpu, Doing::User, left_ns);
            }
            Step::Begin => match process.op() {
                None => self.exit(cpu),
                Some(Op::Compute(span)) => {
                    let left_ns = process.draw_ns(span, skew);
                    process.asked_ns += left_ns;
                    process.step = Step::Compute { left_ns };
                }
                Some(Op::Io(span)) => {
                    let io_ns = process.draw_ns(span, skew);
                    self.step_on(pid);
                    self.sleep(cpu, io_ns);
                }
                Some(Op::Send { to, .. }) => {
                    self.send(pid, to);
                    self.step_on(pid);
                }
                Some(Op::Receive { from }) => process.step = Step::Receive { from, spun_ns: 0, yielded: false },
                Some(Op::Repeat { .. } | Op::Again) => self.step_on(pid),
            },
        }
    }

    /// How long a process spins before it does something else; `None` for ever (D13, D14).
    fn spin_limit_ns(&self, yielded: bool) -> Option<u64> {
        let limited = match self.wait() {
            Wait::Busy => false,
            Wait::SpinBlock => true,
            Wait::SpinYield => !yielded || self.params.readings.yield_again,
        };
        limited.then_some(self.params.spin_ns)
    }

    /// A computation has ended or a spin time is over; a computation's process just goes on.
    fn limit_reached(&mut self, cpu: usize) {
        let Some(pid) = self.cpus[cpu].current else { return };
        if self.process(pid).awaits().is_none() {
            return;
        }
        match self.wait() {
            Wait::Busy => {}
            Wait::SpinBlock => {
                self.out.blocks += 1;
                self.take_current(cpu, State::Blocked);
            }
            Wait::SpinYield => self.give_way(cpu, pid),
        }
    }

    /// The message that the current process waits for has come: it goes on if it really runs now.
    pub(super) fn consume(&mut self, cpu: usize) {
        if matches!(self.cpus[cpu].doing, Doing::User) {
            self.stop(cpu);
            self.resume(cpu);
        }
    }

    fn step_on(&mut self, pid: Pid) {
        if self.process(pid).step_on() {
            self.iteration_done(pid);
        }
    }

    fn iteration_done(&mut self, pid: Pid) {
        let process = self.process(pid);
        process.iterations += 1;
        let (asked_ns, computed_ns) = (process.asked_ns, process.computed_ns);
        (process.asked_ns, process.computed_ns) = (0, 0);
        if asked_ns != computed_ns {
            self.broken.get_or_insert(format!("{pid:?} computed {computed_ns} ns of {asked_ns} in an iteration"));
        }
        let shape = &self.jobs[pid.job as usize].shape;
        self.out.task_iterations += 1;
        self.out.nominal_ns += shape.iteration_ns();
        self.out.useful_ns += shape.compute_ns + shape.communicate_ns;
    }

    /// The current process does I/O (D12).
    fn sleep(&mut self, cpu: usize, io_ns: u64) {
        let Some(pid) = self.take_current(cpu, State::Io) else { return };
        let who = [self.process(pid).node, pid.job, pid.task, 0];
        self.agenda.push(self.now_ns + io_ns, Kind::IoDone, who, 0);
    }

    pub(super) fn io_done(&mut self, pid: Pid) {
        let node = self.process(pid).node as usize;
        if self.params.readings.io_interrupt {
            self.interrupt(node, Interrupt::Wake(pid));
        } else {
            self.wake(pid);
            self.kick(node);
        }
    }

    /// Makes a sleeping process ready (D12, D14).
    pub(super) fn wake(&mut self, pid: Pid) {
        let Some(process) = self.process_if_live(pid) else { return };
        let activity = match process.state {
            State::Io => Activity::Io,
            State::Blocked => Activity::Blocked,
            State::Ready | State::Running(_) | State::Ended => return,
        };
        if let Step::Receive { spun_ns, .. } = &mut process.step {
            *spun_ns = 0;
        }
        self.tell_sleep(pid, activity);
        self.ready_woken(pid);
    }

    /// An interrupt: it stops what a process does, but not a switch or other kernel work (D22).
    pub(super) fn interrupt(&mut self, node: usize, why: Interrupt) {
        self.out.interrupts += 1;
        let cost_ns = self.params.interrupt_ns + self.params.queue_move_ns;
        let effect = match why {
            Interrupt::Wake(pid) => Effect::Wake(pid),
            Interrupt::Demand(pid) => Effect::Demand(pid),
        };
        let cpu = self.cpus_of(node).find(|cpu| self.idle(*cpu)).unwrap_or(self.cpus_of(node).start);
        self.cpus[cpu].kernel.push_back(Work { cost_ns, effect });
        self.serve_kernel(cpu);
    }

    fn idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].current.is_none() && matches!(self.cpus[cpu].doing, Doing::Nothing)
    }

    /// Lets kernel work that waits begin, unless a switch or other kernel work is under way.
    pub(super) fn serve_kernel(&mut self, cpu: usize) {
        if matches!(self.cpus[cpu].doing, Doing::User | Doing::Nothing) {
            self.stop(cpu);
            self.resume(cpu);
        }
    }

    /// What kernel work does at its end.
    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Wake(pid) => {
                self.wake(pid);
                if let Some(node) = self.process_if_live(pid).map(|process| process.node as usize) {
                    self.kick(node);
                }
            }
            Effect::Demand(pid) => {
                let ready = self.process_if_live(pid).is_some_and(|process| process.state == State::Ready);
                if ready && self.gang.is_none() {
                    self.boost(pid, Mark::Demanded);
                }
            }
            Effect::Charge => {}
        }
    }
}
