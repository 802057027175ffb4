//! A CPU: its present activity, and what it does next (D6, D22).

use super::engine::{Doing, Effect, Sim, Work};
use super::event::Kind;
use super::process::{Mark, Pid, State, Step};
use crate::observe::{Activity, Observer, Slice};
use crate::program::Op;
use cosched_core::Wait;

/// Why a network interface or a device raises an interrupt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interrupt {
    Wake(Pid),
    Demand(Pid),
}

impl<O: Observer> Sim<'_, O> {
    /// Ends a CPU's activity, and accounts for it. The CPU does nothing then.
    pub(super) fn stop(&mut self, cpu: usize) {
        let activity = self.book(cpu);
        let now_ns = self.now_ns;
        let state = &mut self.cpus[cpu];
        let ended = std::mem::take(&mut state.doing);
        state.generation += 1;
        let start_ns = std::mem::replace(&mut state.since_ns, now_ns);
        if let (true, Some(activity)) = (O::TELL && start_ns < now_ns, activity) {
            let process = state.current.map(|pid| (pid.job, pid.task));
            let node = state.node as u32;
            self.observer.slice(Slice { node, start_ns, end_ns: now_ns, activity, process });
        }
        if matches!(ended, Doing::User) {
            self.leave_socket(cpu);
        }
    }

    /// Accounts for a CPU's activity so far; the activity continues.
    pub(super) fn book(&mut self, cpu: usize) -> Option<Activity> {
        let state = &mut self.cpus[cpu];
        let elapsed_ns = self.now_ns - std::mem::replace(&mut state.booked_ns, self.now_ns);
        let activity = match state.doing {
            Doing::Nothing => None,
            Doing::Switch => Some(Activity::Switch),
            Doing::Kernel(Work { effect: Effect::Charge, .. }) => Some(Activity::Scheduler),
            Doing::Kernel(_) => Some(Activity::Interrupt),
            Doing::Load => Some(self.book_load(cpu, elapsed_ns)),
            Doing::User => Some(self.book_user(cpu, elapsed_ns)),
        };
        *self.cpu_time(activity) += elapsed_ns;
        activity
    }

    fn cpu_time(&mut self, activity: Option<Activity>) -> &mut u64 {
        let cpu = &mut self.out.cpu;
        match activity {
            Some(Activity::Compute) => &mut cpu.compute_ns,
            Some(Activity::Message) => &mut cpu.message_ns,
            Some(Activity::Spin) => &mut cpu.spin_ns,
            Some(Activity::Switch) => &mut cpu.switch_ns,
            Some(Activity::Interrupt) => &mut cpu.interrupt_ns,
            Some(Activity::Scheduler) => &mut cpu.sched_ns,
            Some(Activity::Io | Activity::Blocked) | None => &mut cpu.idle_ns,
        }
    }

    /// The current process has used CPU time.
    pub(super) fn use_cpu(&mut self, cpu: usize, elapsed_ns: u64) -> Option<Pid> {
        let Some(pid) = self.cpus[cpu].current else {
            self.broken.get_or_insert(format!("CPU {cpu} runs nobody"));
            return None;
        };
        self.watch_cpu(pid, elapsed_ns);
        self.process(pid).used_ns += elapsed_ns;
        if self.is_fair() {
            let node = self.cpus[cpu].node;
            self.nodes[node].fair.charge(pid, elapsed_ns);
        }
        Some(pid)
    }

    /// Accounts for the time that the current process has run.
    fn book_user(&mut self, cpu: usize, elapsed_ns: u64) -> Activity {
        let Some(pid) = self.use_cpu(cpu, elapsed_ns) else { return Activity::Compute };
        let bandwidth = self.cpus[cpu].memory.bandwidth;
        let process = self.process(pid);
        let mut done_ns = elapsed_ns;
        match &mut process.step {
            Step::Receive { spun_ns, .. } => {
                *spun_ns += elapsed_ns;
                process.waited.0 += elapsed_ns;
                return Activity::Spin;
            }
            Step::Message { left_ns, .. } => {
                *left_ns -= elapsed_ns;
                return Activity::Message;
            }
            Step::Compute { left_ns } => {
                done_ns = bandwidth.done_ns(elapsed_ns, &mut process.begun);
                *left_ns -= done_ns;
            }
            Step::Begin => {}
        }
        process.computed_ns += done_ns;
        Activity::Compute
    }

    /// Begins an activity, for a given time or until it is stopped.
    pub(super) fn begin(&mut self, cpu: usize, doing: Doing, for_ns: Option<u64>) {
        self.stop(cpu);
        let state = &mut self.cpus[cpu];
        state.doing = doing;
        if let Some(ns) = for_ns {
            self.end_after(cpu, ns);
        }
    }

    /// The present activity ends after this time.
    pub(super) fn end_after(&mut self, cpu: usize, ns: u64) {
        let (who, stamp) = ([cpu as u32, 0, 0, 0], self.cpus[cpu].generation);
        // On a host that is a million times slower it may never end.
        self.agenda.push(self.now_ns.saturating_add(ns), Kind::CpuEnd, who, stamp);
    }

    /// A CPU's activity has ended.
    pub(super) fn cpu_end(&mut self, cpu: usize, generation: u64) {
        if self.cpus[cpu].generation != generation {
            return;
        }
        let doing = self.cpus[cpu].doing;
        self.stop(cpu);
        match doing {
            Doing::Kernel(work) if !self.config.finer.interrupt_acts_first => self.effect(work.effect),
            Doing::User => self.limit_reached(cpu),
            Doing::Nothing | Doing::Switch | Doing::Load | Doing::Kernel(_) => {}
        }
        self.resume(cpu);
    }

    /// Decides what an idle CPU does next: kernel work, else its current process, else another one.
    pub(super) fn resume(&mut self, cpu: usize) {
        while matches!(self.cpus[cpu].doing, Doing::Nothing) {
            if let Some(work) = self.cpus[cpu].kernel.pop_front() {
                self.begin(cpu, Doing::Kernel(work), Some(work.cost_ns));
                if self.config.finer.interrupt_acts_first {
                    self.effect(work.effect);
                }
            } else if self.cpus[cpu].current.is_some() && self.cpus[cpu].resched {
                self.choose_again(cpu);
            } else if self.cpus[cpu].current.is_some() {
                self.advance(cpu);
            } else if !self.dispatch(cpu) {
                return;
            }
        }
    }

    /// A process has become ready on this node: idle CPUs choose first, and then those that should choose again.
    pub(super) fn kick(&mut self, node: usize) {
        let own = self.own_idle_cpu(node);
        for cpu in own.into_iter().chain(self.cpus_of(node)) {
            if self.cpus[cpu].current.is_none() {
                self.resume(cpu);
            }
        }
        self.reschedule_node(node);
    }

    /// The CPU on which the next process ran last, if that is idle: no switch has to be paid there.
    fn own_idle_cpu(&mut self, node: usize) -> Option<usize> {
        let next = if self.is_fair() {
            self.nodes[node].fair.choose(None, false)
        } else {
            self.nodes[node].levels.best().map(|(_, pid)| pid)
        };
        let cpu = self.process(next?).last_cpu?;
        self.idle(cpu).then_some(cpu)
    }

    pub(super) fn cpus_of(&self, node: usize) -> std::ops::Range<usize> {
        let count = self.config.cpus_per_node as usize;
        node * count..(node + 1) * count
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
        process.last_cpu = Some(cpu);
        let state = &mut self.cpus[cpu];
        state.current = Some(pid);
        state.resched = false;
        let last = state.last_owner.replace(pid);
        self.enter_cache(cpu, pid.job);
        let cost_ns = match self.params.strategy.is_gang() {
            false => Some(self.params.switch_ns),
            true if self.config.lends() => Some(self.config.local_switch_ns),
            true => None,
        };
        if let Some(cost_ns) = cost_ns.filter(|_| last.is_some_and(|last| last != pid)) {
            self.out.context_switches += 1;
            self.begin(cpu, Doing::Switch, Some(cost_ns));
        }
        true
    }

    /// Takes the CPU from its current process, which stops.
    pub(super) fn take_current(&mut self, cpu: usize, state: State) -> Option<Pid> {
        let pid = self.cpus[cpu].current.take()?;
        let now_ns = self.now_ns;
        if self.is_fair() && state != State::Ready {
            let node = self.cpus[cpu].node;
            self.book_node(node);
            let lag_ns = self.nodes[node].fair.remove(pid, self.config.linux.slice_ns);
            self.process(pid).lag_ns = lag_ns;
        }
        let process = self.process(pid);
        process.state = state;
        process.since_ns = now_ns;
        Some(pid)
    }

    /// Executes all operations of the current process that take no time, up to one that does.
    fn advance(&mut self, cpu: usize) {
        let Some(pid) = self.cpus[cpu].current else { return };
        let skew = self.params.skew;
        let process = self.process(pid);
        match process.step {
            Step::Compute { left_ns: 0 } => {
                process.step = Step::Begin;
                self.step_on(pid);
            }
            Step::Message { left_ns: 0, sends } => {
                process.step = Step::Begin;
                if let Some((to, bytes)) = sends {
                    self.send(pid, to, bytes);
                }
                self.step_on(pid);
            }
            Step::Compute { left_ns } => self.compute(cpu, pid, left_ns),
            Step::Message { left_ns, .. } => self.begin(cpu, Doing::User, Some(left_ns)),
            Step::Receive { from, spun_ns, yielded } => {
                if let Some(bytes) = process.take(from) {
                    let waited_ns = process.end_wait();
                    self.jobs[pid.job as usize].watched.waits += u64::from(waited_ns.is_some());
                    self.grain_received(pid, waited_ns.unwrap_or(0));
                    return self.message_cpu(pid, from, bytes, None);
                }
                let left_ns = self.spin_limit_ns(pid, from, yielded).map(|limit| limit.saturating_sub(spun_ns));
                self.begin(cpu, Doing::User, left_ns);
            }
            Step::Begin => match process.op() {
                None => self.exit(cpu),
                Some(Op::Compute(span)) => {
                    let (node, ns) = (process.node, process.draw_ns(span, skew));
                    let left_ns = self.traffic.as_ref().map_or(ns, |traffic| traffic.paced_ns(node, ns));
                    let process = self.process(pid);
                    process.asked_ns += left_ns;
                    process.step = Step::Compute { left_ns };
                }
                Some(Op::Hold(ns)) => {
                    process.asked_ns += ns;
                    process.step = Step::Compute { left_ns: ns };
                }
                Some(Op::Io(span)) => {
                    let io_ns = process.draw_ns(span, skew);
                    process.slept_ns += io_ns;
                    self.step_on(pid);
                    self.sleep(cpu, io_ns);
                }
                Some(Op::Send { to, bytes }) => self.message_cpu(pid, to, bytes, Some((to, bytes))),
                Some(Op::Receive { from }) => process.step = Step::Receive { from, spun_ns: 0, yielded: false },
                Some(Op::Repeat { .. } | Op::Again) => self.step_on(pid),
            },
        }
    }

    /// A process sends a message to `other` or receives one from it, and pays for that where messages cost CPU time.
    fn message_cpu(&mut self, pid: Pid, other: u32, bytes: u64, sends: Option<(u32, u64)>) {
        let left_ns = self.route(pid, other).map_or(0, |route| match sends {
            Some(_) => route.send_cpu_ns(bytes),
            None => route.receive_cpu_ns(bytes),
        });
        self.process(pid).step = Step::Message { left_ns, sends };
    }

    /// How long a process spins before it does something else; `None`: for ever (D13, D14).
    fn spin_limit_ns(&mut self, pid: Pid, from: u32, yielded: bool) -> Option<u64> {
        self.ask_wait(pid, from);
        let limited = match self.wait_of(pid) {
            Wait::Busy => false,
            Wait::SpinBlock => true,
            Wait::SpinYield => !yielded || self.params.readings.yield_again,
        };
        // A time of 0 would never end: it polls at least once.
        let of_route_ns = self.route(pid, from).and_then(|route| route.poll_ns).map(|ns| ns.max(1));
        let fixed_ns = of_route_ns.unwrap_or(self.params.spin_ns);
        let process = self.process(pid);
        let spin_ns = process.told.map(|(_, spin_ns)| spin_ns).or_else(|| process.own_spin_ns());
        limited.then(|| spin_ns.unwrap_or(fixed_ns))
    }

    /// A computation has ended or a spin time is over; after a computation the process just continues.
    fn limit_reached(&mut self, cpu: usize) {
        let Some(pid) = self.cpus[cpu].current else { return };
        if self.process(pid).awaits().is_none() {
            return;
        }
        match self.wait_of(pid) {
            Wait::Busy => {}
            Wait::SpinBlock => {
                self.out.blocks += 1;
                self.take_current(cpu, State::Blocked);
            }
            Wait::SpinYield => self.give_way(cpu, pid),
        }
    }

    /// The message that the current process waits for has arrived: the process continues if it really runs now.
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
        let (asked_ns, computed_ns, slept_ns) = (process.asked_ns, process.computed_ns, process.slept_ns);
        (process.asked_ns, process.computed_ns, process.slept_ns) = (0, 0, 0);
        if asked_ns != computed_ns {
            self.broken.get_or_insert(format!("{pid:?} computed {computed_ns} ns of {asked_ns} in an iteration"));
        }
        self.out.task_iterations += 1;
        let (nominal_ns, useful_ns) = match self.jobs[pid.job as usize].shape(&self.params) {
            Some(shape) => (shape.iteration_ns(), shape.compute_ns + shape.communicate_ns),
            // The ideal communication of a program is unknown.
            None => (computed_ns + slept_ns, computed_ns),
        };
        self.out.nominal_ns += nominal_ns;
        self.out.useful_ns += useful_ns;
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
        let now_ns = self.now_ns;
        let Some(process) = self.process_if_live(pid) else { return };
        let activity = match process.state {
            State::Io => Activity::Io,
            State::Blocked => Activity::Blocked,
            State::Ready | State::Running(_) | State::Ended => return,
        };
        if let Step::Receive { spun_ns, .. } = &mut process.step {
            *spun_ns = 0;
            let blocked_ns = now_ns - process.since_ns;
            process.waited = (process.waited.0 + blocked_ns, true);
        }
        if activity == Activity::Blocked {
            let since_ns = process.since_ns;
            self.watch_block(pid.job, since_ns);
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

    pub(super) fn idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].current.is_none() && matches!(self.cpus[cpu].doing, Doing::Nothing)
    }

    /// Starts waiting kernel work, unless a switch or other kernel work is in progress.
    pub(super) fn serve_kernel(&mut self, cpu: usize) {
        if self.cpus[cpu].doing.gives_way() {
            self.stop(cpu);
            self.resume(cpu);
        }
    }

    /// Applies the effect of kernel work at its end.
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
                if ready {
                    self.boost(pid, Mark::Demanded);
                    let node = self.process(pid).node as usize;
                    self.reschedule_node(node);
                }
            }
            Effect::Charge => {}
        }
    }
}
