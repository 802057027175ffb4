//! A CPU's activities: dispatch, switches, kernel work, and the steps of a process that has the CPU.

use super::books::key;
use super::node::{Cpu, Kernel, LEVEL_MAX, Lead, NEVER_NS, NO_PROCESS, NONE, Phase, State, TICK_NS};
use super::site::Site;
use super::{BLOCK, DEMAND, YIELD};
use crate::draw::skewed_ns;
use crate::observe::{Activity, Observer, Slice};
use cosched_core::{Endpoint, Look, boost_candidate, yield_level};

impl<O: Observer, const W: u8, const A: u8> Site<'_, '_, O, W, A> {
    /// The CPU's present activity has ended.
    #[inline]
    pub(super) fn cpu_ends(&mut self, t: u64) {
        match self.node.cpu {
            Cpu::Run => {
                self.stop_run(t);
                let place = self.node.current;
                if self.processes[place as usize].phase == Phase::Compute {
                    self.begin_io(t);
                } else if W == YIELD {
                    self.give_way(place);
                } else {
                    self.block(place, t);
                }
            }
            Cpu::Kernel => {
                let work = self.node.work;
                self.tell(self.node.cpu_start_ns, t, kernel_activity(work));
                self.kernel_done(work);
            }
            Cpu::Switch => self.tell(self.node.cpu_start_ns, t, Activity::Switch),
            Cpu::Idle | Cpu::Stopped => {}
        }
        self.start_cpu(t);
    }

    /// The running process can continue: its message has arrived, now or since its lead.
    pub(super) fn start_cpu_again(&mut self, t: u64) {
        self.stop_run(t);
        self.start_cpu(t);
    }

    /// Starts the next activity of an idle CPU (D6, D22): kernel work, a switch, a process, or nothing.
    pub(super) fn start_cpu(&mut self, t: u64) {
        // When a job has ended, the engine continues here.
        while self.all.ended.is_none() {
            if let Some((work, ns)) = self.node.kernel.pop_front() {
                self.start_kernel(t, work, ns);
                return;
            }
            if self.node.current == NO_PROCESS && !self.dispatch(t) {
                self.set_cpu(Cpu::Idle, t, NEVER_NS);
                return;
            }
            let ns = self.own();
            if ns > 0 {
                self.lead(t, ns, Lead::Switch);
                return;
            }
            if self.proceed(t) {
                return;
            }
        }
    }

    /// The CPU goes to the current process; returns the cost of the switch, if it is one (D6).
    #[inline]
    pub(super) fn own(&mut self) -> u64 {
        let place = self.node.current;
        let job = self.processes[place as usize].job;
        let last = std::mem::replace(&mut self.node.last_job, job);
        if last == job || last == NONE {
            return 0;
        }
        self.all.out.context_switches += 1;
        self.all.out.cpu.switch_ns += self.all.params.switch_ns;
        self.all.params.switch_ns
    }

    fn start_kernel(&mut self, t: u64, work: Kernel, ns: u64) {
        match work {
            Kernel::Scheduler => self.all.out.cpu.sched_ns += ns,
            Kernel::Wake(_) | Kernel::Raise(..) => self.all.out.cpu.interrupt_ns += ns,
        }
        let node = &*self.node;
        // The same process continues afterwards, unless a tick decides otherwise.
        let goes_on = work == Kernel::Scheduler && node.kernel.is_empty() && node.current != NO_PROCESS;
        if goes_on && node.last_job == self.processes[node.current as usize].job {
            self.lead(t, ns, Lead::Scheduler);
        } else {
            self.node.work = work;
            self.set_cpu(Cpu::Kernel, t, t + ns);
        }
    }

    /// An activity before a run: folded into the run if nothing can happen at its end, otherwise an activity of its
    /// own.
    #[inline]
    pub(super) fn lead(&mut self, t: u64, ns: u64, lead: Lead) {
        let place = self.node.current;
        let p = &self.processes[place as usize];
        let start = t + ns;
        let end = match p.phase {
            Phase::Compute if p.left_ns > 0 => start + p.left_ns,
            Phase::Receive(_) if p.awaits().is_some() => self.spin_end(place, start),
            Phase::Compute | Phase::Send | Phase::Receive(_) => {
                self.alone(lead, t, start);
                return;
            }
        };
        self.set_cpu(Cpu::Run, t, end);
        (self.node.lead, self.node.run_start_ns) = (lead, start);
    }

    /// A switch or the scheduler's work that is not folded into a run.
    fn alone(&mut self, lead: Lead, start_ns: u64, end_ns: u64) {
        self.node.work = Kernel::Scheduler;
        self.set_cpu(if lead == Lead::Switch { Cpu::Switch } else { Cpu::Kernel }, start_ns, end_ns);
    }

    /// The current process runs until this time.
    #[inline]
    fn run(&mut self, start_ns: u64, end_ns: u64) {
        self.set_cpu(Cpu::Run, start_ns, end_ns);
        (self.node.lead, self.node.run_start_ns) = (Lead::Nothing, start_ns);
    }

    #[inline]
    fn set_cpu(&mut self, cpu: Cpu, start_ns: u64, end_ns: u64) {
        let node = &mut *self.node;
        (node.cpu, node.cpu_start_ns, node.cpu_end_ns) = (cpu, start_ns, end_ns);
    }

    /// When spinning from `t` on reaches the spin time (D13, D14).
    #[inline]
    fn spin_end(&self, place: u8, t: u64) -> u64 {
        let p = &self.processes[place as usize];
        match W {
            BLOCK => t + (self.all.params.spin_ns - p.spun_ns),
            YIELD if !p.yielded => t + (self.all.params.spin_ns - p.spun_ns),
            _ => NEVER_NS,
        }
    }

    /// The best ready process becomes the current one.
    #[inline]
    pub(super) fn dispatch(&mut self, t: u64) -> bool {
        if self.node.ready.is_empty() {
            return false;
        }
        let place = self.node.ready.remove(0);
        self.set_current(place, t);
        let p = &mut self.processes[place as usize];
        (p.state, p.boosted) = (State::Current, false);
        true
    }

    /// Changes the owner of the CPU; DCS's note of the last tick is updated first (D16).
    pub(super) fn set_current(&mut self, place: u8, t: u64) {
        if A == DEMAND {
            self.node.noted_job = self.noted(t);
            self.node.current_since_ns = t;
        }
        self.node.current = place;
    }

    /// The job whose process owned the CPU at the last tick before `t`.
    pub(super) fn noted(&self, t: u64) -> u32 {
        let node = &*self.node;
        let tick_ns = t.saturating_sub(1) / TICK_NS * TICK_NS;
        // The first tick is tick 1. Ticks that changed something have noted it themselves.
        if tick_ns <= node.noted_ns || node.current_since_ns > tick_ns { node.noted_job } else { self.current_job() }
    }

    pub(super) fn current_job(&self) -> u32 {
        let current = self.node.current;
        if current == NO_PROCESS { NONE } else { self.processes[current as usize].job }
    }

    /// Executes all operations of the current process that take no time, up to one that does. False if it gave the CPU
    /// up.
    #[inline]
    fn proceed(&mut self, t: u64) -> bool {
        loop {
            let place = self.node.current;
            let p = &mut self.processes[place as usize];
            match p.phase {
                Phase::Compute if p.left_ns > 0 => {
                    let end = t + p.left_ns;
                    self.run(t, end);
                    return true;
                }
                Phase::Compute => {
                    self.begin_io(t);
                    return false;
                }
                Phase::Send => {
                    p.phase = Phase::Receive(0);
                    self.send(place, t);
                    if self.processes[place as usize].receives == 0 && !self.next_iteration(place, t) {
                        return false;
                    }
                }
                Phase::Receive(side) if p.got[side as usize] > 0 => {
                    p.got[side as usize] -= 1;
                    (p.spun_ns, p.yielded) = (0, false);
                    if side + 1 < p.receives {
                        p.phase = Phase::Receive(side + 1);
                    } else if !self.next_iteration(place, t) {
                        return false;
                    }
                }
                Phase::Receive(_) => {
                    let end = self.spin_end(place, t);
                    self.run(t, end);
                    return true;
                }
            }
        }
    }

    /// An iteration is complete. False if it was the last one.
    #[inline]
    fn next_iteration(&mut self, place: u8, t: u64) -> bool {
        self.all.out.task_iterations += 1;
        let (p, task) = (&self.processes[place as usize], &mut self.tasks[place as usize]);
        task.iteration += 1;
        let (left, near) = (task.iterations - task.iteration, p.near());
        if left == near {
            self.all.comes_near(p.job);
        } else if left == 0 {
            self.exit(place, t);
            return false;
        }
        self.begin_iteration(place);
        true
    }

    /// Draws computation and I/O of the iteration (D11, D20).
    pub(super) fn begin_iteration(&mut self, place: u8) {
        let skew = self.all.params.skew;
        let (p, task) = (&mut self.processes[place as usize], &self.tasks[place as usize]);
        p.phase = Phase::Compute;
        (p.left_ns, p.io_ns) = (task.compute_ns, task.io_ns);
        if skew != 0.0 {
            let (u, v) = task.draws.pair(task.iteration);
            (p.left_ns, p.io_ns) = (skewed_ns(p.left_ns, skew, u), skewed_ns(p.io_ns, skew, v));
        }
        self.all.drawn_ns += p.left_ns;
    }

    /// The current process has ended.
    fn exit(&mut self, place: u8, t: u64) {
        self.set_current(NO_PROCESS, t);
        let p = &mut self.processes[place as usize];
        p.state = State::Exited;
        let live = &mut self.all.live[p.job as usize];
        live.alive -= 1;
        if live.alive == 0 {
            self.all.ended = Some(p.job);
            self.node.cpu = Cpu::Stopped;
        }
    }

    /// The current process sleeps until its I/O is done (D12).
    #[inline]
    fn begin_io(&mut self, t: u64) {
        let place = self.node.current;
        self.set_current(NO_PROCESS, t);
        let p = &mut self.processes[place as usize];
        (p.state, p.phase, p.since_ns) = (State::Io, Phase::Send, t);
        p.io_ns += t;
        let end = p.io_ns;
        // Among equal ends the lower job comes first (D2); a node has at most one task of a job.
        let rank = |place: u8| {
            let p = &self.processes[place as usize];
            (p.io_ns, p.job)
        };
        let node = &mut *self.node;
        let own = rank(place);
        let at = node.io.iter().position(|other| rank(other) > own).unwrap_or(node.io.len());
        node.io.insert(at, place);
        node.io_end_ns = node.io_end_ns.min(end);
    }

    /// The first I/O to end wakes its process; of several that end at the same instant the first gets an idle CPU.
    pub(super) fn io_ends(&mut self) {
        let (end, place) = (self.node.io_end_ns, self.node.io.remove(0));
        let next = self.node.io.first().map(|place| self.processes[place as usize].io_ns);
        self.node.io_end_ns = next.unwrap_or(NEVER_NS);
        self.woken(place);
        if O::TELL {
            let (start_ns, process) = (self.processes[place as usize].since_ns, self.name(place));
            let slice = Slice { node: self.n, start_ns, end_ns: end, activity: Activity::Io, process };
            self.all.observer.slice(slice);
        }
    }

    /// Moves a process to the head of the highest level, with a full quantum.
    fn woken(&mut self, place: u8) {
        let p = &mut self.processes[place as usize];
        (p.state, p.level, p.used_ns, p.boosted) = (State::Ready, LEVEL_MAX, 0, false);
        self.node.ready.insert(0, place);
    }

    /// Ends the run of the current process at `t` and accounts for it. True if its lead still has the CPU, alone from
    /// now on.
    #[inline]
    pub(super) fn stop_run(&mut self, t: u64) -> bool {
        if self.node.cpu != Cpu::Run {
            return false;
        }
        let (lead, start, began) = (self.node.lead, self.node.run_start_ns, self.node.cpu_start_ns);
        if t < start {
            self.alone(lead, began, start);
            return true;
        }
        let place = self.node.current;
        let p = &mut self.processes[place as usize];
        let ran = t - start;
        p.used_ns += ran;
        let activity = if p.phase == Phase::Compute {
            p.left_ns -= ran;
            self.all.out.cpu.compute_ns += ran;
            Activity::Compute
        } else {
            p.spun_ns += ran;
            self.all.out.cpu.spin_ns += ran;
            Activity::Spin
        };
        if lead != Lead::Nothing {
            self.tell(began, start, if lead == Lead::Switch { Activity::Switch } else { Activity::Scheduler });
        }
        self.tell(start, t, activity);
        self.set_cpu(Cpu::Stopped, t, NEVER_NS);
        false
    }

    /// New kernel work (D22): it stops the running process at once, and waits for a switch or other kernel work.
    pub(super) fn kernel_work(&mut self, t: u64, work: Kernel, ns: u64) {
        let busy = match self.node.cpu {
            Cpu::Run => self.stop_run(t),
            Cpu::Switch | Cpu::Kernel => true,
            Cpu::Idle | Cpu::Stopped => false,
        };
        if !busy && self.node.kernel.is_empty() {
            self.start_kernel(t, work, ns);
            return;
        }
        self.node.kernel.push_back((work, ns));
        if !busy {
            self.start_cpu(t);
        }
    }

    fn kernel_done(&mut self, work: Kernel) {
        match work {
            Kernel::Scheduler => {}
            Kernel::Wake(place) => {
                if O::TELL {
                    let (since, now) = (self.processes[place as usize].since_ns, self.all.now >> 3);
                    let (activity, process) = (Activity::Blocked, self.name(place));
                    let slice = Slice { node: self.n, start_ns: since, end_ns: now, activity, process };
                    self.all.observer.slice(slice);
                }
                self.woken(place);
            }
            Kernel::Raise(place, job) => {
                let p = &mut self.processes[place as usize];
                if p.job == job && p.state == State::Ready {
                    self.boost_ready(place);
                }
            }
        }
    }

    /// SB when the spin time is over (D14).
    fn block(&mut self, place: u8, t: u64) {
        self.all.out.blocks += 1;
        self.set_current(NO_PROCESS, t);
        let p = &mut self.processes[place as usize];
        (p.state, p.since_ns) = (State::Blocked, t);
        self.node.blocked += 1;
    }

    /// SY when the spin time is over (D14): the process lowers itself below all others, raises another one, and
    /// continues to spin.
    fn give_way(&mut self, place: u8) {
        self.all.out.yields += 1;
        let others = self.node.table.iter().filter(|p| *p != place).map(|p| &self.processes[p as usize]);
        let own = self.processes[place as usize].level;
        let level = yield_level(own, others.filter(|p| p.state != State::Exited).map(|p| p.level));
        let p = &mut self.processes[place as usize];
        p.yielded = true;
        p.set_level(level);
        let look = self.look(true);
        let mut ns = self.all.params.queue_move_ns + self.all.params.check_ns * u64::from(look.looked_at);
        if let Some(place) = look.candidate {
            self.boost_ready(self.node.table.get(place));
            ns += self.all.params.queue_move_ns;
        }
        if ns > 0 {
            self.node.kernel.push_front((Kernel::Scheduler, ns));
        }
    }

    /// Checks the endpoints from the current process on (D15).
    pub(super) fn look(&self, but_current: bool) -> Look {
        let node = &*self.node;
        let seen = |i: usize| {
            let p = &self.processes[node.table.get(i) as usize];
            match (p.state, p.phase) {
                (State::Current | State::Ready, Phase::Receive(side)) if p.got[side as usize] > 0 => Endpoint::Served,
                (State::Current | State::Ready, Phase::Receive(_)) => Endpoint::Waiting,
                (State::Current | State::Ready, _) => Endpoint::Computing,
                _ => Endpoint::Blocked,
            }
        };
        let current = node.table.position(node.current).unwrap_or(0);
        boost_candidate(self.all.params.heuristic, node.table.len(), current, but_current, seen)
    }

    /// A ready process goes to the head of the highest level.
    pub(super) fn boost_ready(&mut self, place: u8) {
        self.all.out.boosts += 1;
        let ready = &mut self.node.ready;
        if let Some(at) = ready.position(place) {
            ready.remove(at);
        }
        ready.insert(0, place);
        let p = &mut self.processes[place as usize];
        p.raise();
        p.boosted = true;
    }

    /// Appends a process to the tail of its level.
    pub(super) fn append(&mut self, place: u8) {
        let level = self.processes[place as usize].level;
        let ready = self.node.ready;
        let at = ready.iter().position(|p| self.processes[p as usize].level < level).unwrap_or(ready.len());
        self.node.ready.insert(at, place);
        self.processes[place as usize].state = State::Ready;
    }

    /// Removes what was accounted for beyond the end, and accounts for activities in progress.
    pub(super) fn cut(&mut self, end_ns: u64) {
        self.all.now = key(end_ns, 7);
        self.drain();
        let busy = self.stop_run(end_ns) || matches!(self.node.cpu, Cpu::Switch | Cpu::Kernel);
        if !busy {
            return;
        }
        let over = self.node.cpu_end_ns.saturating_sub(end_ns);
        let cpu = &mut self.all.out.cpu;
        let (booked, activity) = match (self.node.cpu, self.node.work) {
            (Cpu::Switch, _) => (&mut cpu.switch_ns, Activity::Switch),
            (_, Kernel::Scheduler) => (&mut cpu.sched_ns, Activity::Scheduler),
            _ => (&mut cpu.interrupt_ns, Activity::Interrupt),
        };
        *booked -= over;
        self.tell(self.node.cpu_start_ns, end_ns, activity);
    }

    fn tell(&mut self, start_ns: u64, end_ns: u64, activity: Activity) {
        if !O::TELL || start_ns == end_ns {
            return;
        }
        let current = self.node.current;
        let owner = (current != NO_PROCESS).then(|| self.name(current)).flatten();
        let process = owner.filter(|_| !matches!(activity, Activity::Interrupt | Activity::Scheduler));
        self.all.observer.slice(Slice { node: self.n, start_ns, end_ns, activity, process });
    }

    /// A process for observers: job and task.
    fn name(&self, place: u8) -> Option<(u32, u32)> {
        Some((self.processes[place as usize].job, self.tasks[place as usize].task))
    }
}

fn kernel_activity(work: Kernel) -> Activity {
    match work {
        Kernel::Scheduler => Activity::Scheduler,
        Kernel::Wake(_) | Kernel::Raise(..) => Activity::Interrupt,
    }
}
