//! A CPU's activities: dispatch, switches, kernel work, and the steps of a process that has the CPU.

use super::books::{IO_ENDS, key};
use super::engine::Engine;
use super::node::{Cpu, Kernel, LEVEL_MAX, Lead, NO_PROCESS, NONE, Phase, Process, State, TICK_NS};
use super::tree::NEVER;
use super::{BLOCK, DEMAND, YIELD};
use crate::draw::skewed_ns;
use crate::observe::{Activity, Observer, Slice};
use cosched_core::{Endpoint, Look, boost_candidate, yield_level};

impl<O: Observer, const W: u8, const A: u8> Engine<'_, O, W, A> {
    #[inline]
    pub(super) fn process(&mut self, n: usize, place: u8) -> &mut Process {
        &mut self.processes[n * self.places + place as usize]
    }

    /// The CPU's present activity has ended.
    pub(super) fn cpu_ends(&mut self, n: usize, t: u64) {
        match self.nodes[n].cpu {
            Cpu::Run(_) => {
                self.stop_run(n, t);
                let place = self.nodes[n].current;
                if self.process(n, place).phase == Phase::Compute {
                    self.begin_io(n, t);
                } else if W == YIELD {
                    self.give_way(n, place);
                } else {
                    self.block(n, place, t);
                }
            }
            Cpu::Kernel(work) => {
                self.tell(n, self.nodes[n].cpu_start_ns, t, kernel_activity(work));
                self.kernel_done(n, work);
            }
            Cpu::Switch => self.tell(n, self.nodes[n].cpu_start_ns, t, Activity::Switch),
            Cpu::Idle | Cpu::Stopped => {}
        }
        self.start_cpu(n, t);
    }

    /// The running process can continue: its message has arrived, now or since its lead.
    pub(super) fn start_cpu_again(&mut self, n: usize, t: u64) {
        self.stop_run(n, t);
        self.start_cpu(n, t);
    }

    /// Starts the next activity of an idle CPU (D6, D22): kernel work, a switch, a process, or nothing.
    pub(super) fn start_cpu(&mut self, n: usize, t: u64) {
        loop {
            if let Some((work, ns)) = self.nodes[n].kernel.pop_front() {
                self.start_kernel(n, t, work, ns);
                return;
            }
            if self.nodes[n].current == NO_PROCESS && !self.dispatch(n, t) {
                self.set_cpu(n, Cpu::Idle, t, NEVER);
                return;
            }
            let ns = self.own(n);
            if ns > 0 {
                self.lead(n, t, ns, Lead::Switch, Cpu::Switch);
                return;
            }
            if self.proceed(n, t) {
                return;
            }
        }
    }

    /// The CPU goes to the current process; returns the cost of the switch, if it is one (D6).
    pub(super) fn own(&mut self, n: usize) -> u64 {
        let place = self.nodes[n].current;
        let job = self.process(n, place).job;
        let last = std::mem::replace(&mut self.nodes[n].last_job, job);
        if last == job || last == NONE {
            return 0;
        }
        self.out.context_switches += 1;
        self.out.cpu.switch_ns += self.params.switch_ns;
        self.params.switch_ns
    }

    fn start_kernel(&mut self, n: usize, t: u64, work: Kernel, ns: u64) {
        match work {
            Kernel::Scheduler => self.out.cpu.sched_ns += ns,
            Kernel::Wake(_) | Kernel::Raise(..) => self.out.cpu.interrupt_ns += ns,
        }
        let node = &self.nodes[n];
        // The same process continues afterwards, unless a tick decides otherwise.
        let goes_on = work == Kernel::Scheduler && node.kernel.is_empty() && node.current != NO_PROCESS;
        if goes_on && node.last_job == self.processes[n * self.places + node.current as usize].job {
            self.lead(n, t, ns, Lead::Scheduler, Cpu::Kernel(work));
        } else {
            self.set_cpu(n, Cpu::Kernel(work), t, t + ns);
        }
    }

    /// An activity before a run: folded into the run if nothing can happen at its end, otherwise an activity of its
    /// own.
    pub(super) fn lead(&mut self, n: usize, t: u64, ns: u64, lead: Lead, alone: Cpu) {
        let place = self.nodes[n].current;
        let p = &self.processes[n * self.places + place as usize];
        let start = t + ns;
        let end = match p.phase {
            Phase::Compute if p.left_ns > 0 => start + p.left_ns,
            Phase::Receive(_) if p.awaits().is_some() => self.spin_end(n, place, start),
            Phase::Compute | Phase::Send | Phase::Receive(_) => {
                self.set_cpu(n, alone, t, start);
                return;
            }
        };
        self.set_cpu(n, Cpu::Run(lead), t, end);
        self.nodes[n].run_start_ns = start;
    }

    #[inline]
    fn set_cpu(&mut self, n: usize, cpu: Cpu, start_ns: u64, end_ns: u64) {
        let node = &mut self.nodes[n];
        (node.cpu, node.cpu_start_ns, node.cpu_end_ns) = (cpu, start_ns, end_ns);
    }

    /// When spinning from `t` on reaches the spin time (D13, D14).
    fn spin_end(&self, n: usize, place: u8, t: u64) -> u64 {
        let p = &self.processes[n * self.places + place as usize];
        match W {
            BLOCK => t + (self.params.spin_ns - p.spun_ns),
            YIELD if !p.yielded => t + (self.params.spin_ns - p.spun_ns),
            _ => NEVER,
        }
    }

    /// The best ready process becomes the current one.
    pub(super) fn dispatch(&mut self, n: usize, t: u64) -> bool {
        if self.nodes[n].ready.is_empty() {
            return false;
        }
        let place = self.nodes[n].ready.remove(0);
        self.set_current(n, place, t);
        let p = self.process(n, place);
        (p.state, p.boosted) = (State::Current, false);
        true
    }

    /// Changes the owner of the CPU; DCS's note of the last tick is updated first (D16).
    pub(super) fn set_current(&mut self, n: usize, place: u8, t: u64) {
        if A == DEMAND {
            self.nodes[n].noted_job = self.noted(n, t);
            self.nodes[n].current_since_ns = t;
        }
        self.nodes[n].current = place;
    }

    /// The job whose process owned the CPU at the last tick before `t`.
    pub(super) fn noted(&self, n: usize, t: u64) -> u32 {
        let node = &self.nodes[n];
        let tick_ns = t.saturating_sub(1) / TICK_NS * TICK_NS;
        // The first tick is tick 1. Ticks that changed something have noted it themselves.
        if tick_ns <= node.noted_ns || node.current_since_ns > tick_ns { node.noted_job } else { self.current_job(n) }
    }

    pub(super) fn current_job(&self, n: usize) -> u32 {
        let current = self.nodes[n].current;
        if current == NO_PROCESS { NONE } else { self.processes[n * self.places + current as usize].job }
    }

    /// Executes all operations of the current process that take no time, up to one that does. False if it gave the CPU
    /// up.
    fn proceed(&mut self, n: usize, t: u64) -> bool {
        loop {
            let place = self.nodes[n].current;
            let p = &mut self.processes[n * self.places + place as usize];
            match p.phase {
                Phase::Compute if p.left_ns > 0 => {
                    let end = t + p.left_ns;
                    self.set_cpu(n, Cpu::Run(Lead::Nothing), t, end);
                    self.nodes[n].run_start_ns = t;
                    return true;
                }
                Phase::Compute => {
                    self.begin_io(n, t);
                    return false;
                }
                Phase::Send => {
                    p.phase = Phase::Receive(0);
                    self.send(n, place, t);
                    if self.processes[n * self.places + place as usize].receives == 0
                        && !self.next_iteration(n, place, t)
                    {
                        return false;
                    }
                }
                Phase::Receive(side) if p.got[side as usize] > 0 => {
                    p.got[side as usize] -= 1;
                    (p.spun_ns, p.yielded) = (0, false);
                    if side + 1 < p.receives {
                        p.phase = Phase::Receive(side + 1);
                    } else if !self.next_iteration(n, place, t) {
                        return false;
                    }
                }
                Phase::Receive(_) => {
                    let end = self.spin_end(n, place, t);
                    self.set_cpu(n, Cpu::Run(Lead::Nothing), t, end);
                    self.nodes[n].run_start_ns = t;
                    return true;
                }
            }
        }
    }

    /// An iteration is complete. False if it was the last one.
    fn next_iteration(&mut self, n: usize, place: u8, t: u64) -> bool {
        self.out.task_iterations += 1;
        let p = self.process(n, place);
        p.iteration += 1;
        let (left, near) = (p.iterations - p.iteration, p.near());
        if left == near {
            let job = p.job;
            self.comes_near(job);
        } else if left == 0 {
            self.exit(n, place, t);
            return false;
        }
        self.begin_iteration(n, place);
        true
    }

    /// Draws computation and I/O of the iteration (D11, D20).
    pub(super) fn begin_iteration(&mut self, n: usize, place: u8) {
        let skew = self.params.skew;
        let p = &mut self.processes[n * self.places + place as usize];
        let shape = &self.shapes[p.job as usize];
        p.phase = Phase::Compute;
        (p.left_ns, p.io_ns) = (shape.compute_ns, shape.io_ns);
        if skew != 0.0 {
            let (u, v) = p.draws.pair(p.iteration);
            (p.left_ns, p.io_ns) = (skewed_ns(p.left_ns, skew, u), skewed_ns(p.io_ns, skew, v));
        }
        self.drawn_ns += p.left_ns;
    }

    /// The current process sleeps until its I/O is done (D12).
    fn begin_io(&mut self, n: usize, t: u64) {
        let place = self.nodes[n].current;
        self.set_current(n, NO_PROCESS, t);
        let p = self.process(n, place);
        (p.state, p.phase, p.since_ns) = (State::Io, Phase::Send, t);
        p.io_ns += t;
        let end = p.io_ns;
        // Among equal ends the lower job comes first (D2); a node has at most one task of a job.
        let base = n * self.places;
        let rank = |place: u8| {
            let p = &self.processes[base + place as usize];
            (p.io_ns, p.job)
        };
        let node = &mut self.nodes[n];
        let at = node.io.iter().position(|other| rank(*other) > rank(place)).unwrap_or(node.io.len());
        node.io.insert(at, place);
        node.io_end_ns = node.io_end_ns.min(end);
    }

    /// Catches up on everything on this node that comes before the present event: ends of I/O, deliveries.
    #[inline]
    pub(super) fn drain(&mut self, n: usize) {
        while key(self.nodes[n].io_end_ns, IO_ENDS) < self.now {
            self.io_ends(n);
        }
        self.drain_messages(n);
    }

    /// The first I/O to end wakes its process; of several that end at the same instant the first gets an idle CPU.
    pub(super) fn io_ends(&mut self, n: usize) {
        let (end, place) = (self.nodes[n].io_end_ns, self.nodes[n].io.remove(0));
        let next = self.nodes[n].io.first().map(|place| self.processes[n * self.places + *place as usize].io_ns);
        self.nodes[n].io_end_ns = next.unwrap_or(NEVER);
        self.woken(n, place);
        if O::TELL {
            let p = self.process(n, place);
            let (start_ns, process) = (p.since_ns, Some((p.job, p.task)));
            let slice = Slice { node: n as u32, start_ns, end_ns: end, activity: Activity::Io, process };
            self.observer.slice(slice);
        }
    }

    /// Moves a process to the head of the highest level, with a full quantum.
    fn woken(&mut self, n: usize, place: u8) {
        let p = self.process(n, place);
        (p.state, p.level, p.used_ns, p.boosted) = (State::Ready, LEVEL_MAX, 0, false);
        self.nodes[n].ready.insert(0, place);
    }

    /// Ends the run of the current process at `t` and accounts for it. True if its lead still has the CPU, alone from
    /// now on.
    pub(super) fn stop_run(&mut self, n: usize, t: u64) -> bool {
        let Cpu::Run(lead) = self.nodes[n].cpu else { return false };
        let start = self.nodes[n].run_start_ns;
        let began = self.nodes[n].cpu_start_ns;
        if t < start {
            let alone = if lead == Lead::Switch { Cpu::Switch } else { Cpu::Kernel(Kernel::Scheduler) };
            self.set_cpu(n, alone, began, start);
            return true;
        }
        let place = self.nodes[n].current;
        let p = &mut self.processes[n * self.places + place as usize];
        let ran = t - start;
        p.used_ns += ran;
        let activity = if p.phase == Phase::Compute {
            p.left_ns -= ran;
            self.out.cpu.compute_ns += ran;
            Activity::Compute
        } else {
            p.spun_ns += ran;
            self.out.cpu.spin_ns += ran;
            Activity::Spin
        };
        if lead != Lead::Nothing {
            self.tell(n, began, start, if lead == Lead::Switch { Activity::Switch } else { Activity::Scheduler });
        }
        self.tell(n, start, t, activity);
        self.set_cpu(n, Cpu::Stopped, t, NEVER);
        false
    }

    /// New kernel work (D22): it stops the running process at once, and waits for a switch or other kernel work.
    pub(super) fn kernel_work(&mut self, n: usize, t: u64, work: Kernel, ns: u64) {
        self.nodes[n].kernel.push_back((work, ns));
        let busy = match self.nodes[n].cpu {
            Cpu::Run(_) => self.stop_run(n, t),
            Cpu::Switch | Cpu::Kernel(_) => true,
            Cpu::Idle | Cpu::Stopped => false,
        };
        if !busy {
            self.start_cpu(n, t);
        }
    }

    fn kernel_done(&mut self, n: usize, work: Kernel) {
        match work {
            Kernel::Scheduler => {}
            Kernel::Wake(place) => {
                if O::TELL {
                    let (since, now) = (self.process(n, place).since_ns, self.now >> 3);
                    let process = Some((self.process(n, place).job, self.process(n, place).task));
                    let slice =
                        Slice { node: n as u32, start_ns: since, end_ns: now, activity: Activity::Blocked, process };
                    self.observer.slice(slice);
                }
                self.woken(n, place);
            }
            Kernel::Raise(place, job) => {
                let p = self.process(n, place);
                if p.job == job && p.state == State::Ready {
                    self.boost_ready(n, place);
                }
            }
        }
    }

    /// SB when the spin time is over (D14).
    fn block(&mut self, n: usize, place: u8, t: u64) {
        self.out.blocks += 1;
        self.set_current(n, NO_PROCESS, t);
        let p = self.process(n, place);
        (p.state, p.since_ns) = (State::Blocked, t);
    }

    /// SY when the spin time is over (D14): the process lowers itself below all others, raises another one, and
    /// continues to spin.
    fn give_way(&mut self, n: usize, place: u8) {
        self.out.yields += 1;
        let base = n * self.places;
        let others = self.nodes[n].table.iter().filter(|p| **p != place).map(|p| &self.processes[base + *p as usize]);
        let own = self.processes[base + place as usize].level;
        let level = yield_level(own, others.filter(|p| p.state != State::Exited).map(|p| p.level));
        let p = self.process(n, place);
        p.yielded = true;
        p.set_level(level);
        let look = self.look(n, true);
        let mut ns = self.params.queue_move_ns + self.params.check_ns * u64::from(look.looked_at);
        if let Some(place) = look.candidate {
            self.boost_ready(n, self.nodes[n].table[place]);
            ns += self.params.queue_move_ns;
        }
        if ns > 0 {
            self.nodes[n].kernel.push_front((Kernel::Scheduler, ns));
        }
    }

    /// Checks the endpoints from the current process on (D15).
    pub(super) fn look(&self, n: usize, but_current: bool) -> Look {
        let node = &self.nodes[n];
        let seen = |i: usize| {
            let p = &self.processes[n * self.places + node.table[i] as usize];
            match (p.state, p.phase) {
                (State::Current | State::Ready, Phase::Receive(side)) if p.got[side as usize] > 0 => Endpoint::Served,
                (State::Current | State::Ready, Phase::Receive(_)) => Endpoint::Waiting,
                (State::Current | State::Ready, _) => Endpoint::Computing,
                _ => Endpoint::Blocked,
            }
        };
        let current = node.table.iter().position(|p| *p == node.current).unwrap_or(0);
        boost_candidate(self.params.heuristic, node.table.len(), current, but_current, seen)
    }

    /// A ready process goes to the head of the highest level.
    pub(super) fn boost_ready(&mut self, n: usize, place: u8) {
        self.out.boosts += 1;
        let ready = &mut self.nodes[n].ready;
        if let Some(at) = ready.iter().position(|p| *p == place) {
            ready.remove(at);
        }
        ready.insert(0, place);
        let p = self.process(n, place);
        p.raise();
        p.boosted = true;
    }

    /// Appends a process to the tail of its level.
    pub(super) fn append(&mut self, n: usize, place: u8) {
        let base = n * self.places;
        let level = self.processes[base + place as usize].level;
        let ready = &self.nodes[n].ready;
        let at = ready.iter().position(|p| self.processes[base + *p as usize].level < level).unwrap_or(ready.len());
        self.nodes[n].ready.insert(at, place);
        self.process(n, place).state = State::Ready;
    }

    /// Removes what was accounted for beyond the end, and accounts for activities in progress.
    pub(super) fn cut(&mut self, n: usize, end_ns: u64) {
        self.now = key(end_ns, 7);
        self.drain(n);
        let busy = self.stop_run(n, end_ns) || matches!(self.nodes[n].cpu, Cpu::Switch | Cpu::Kernel(_));
        if !busy {
            return;
        }
        let over = self.nodes[n].cpu_end_ns.saturating_sub(end_ns);
        let cpu = &mut self.out.cpu;
        let (booked, activity) = match self.nodes[n].cpu {
            Cpu::Switch => (&mut cpu.switch_ns, Activity::Switch),
            Cpu::Kernel(Kernel::Scheduler) => (&mut cpu.sched_ns, Activity::Scheduler),
            _ => (&mut cpu.interrupt_ns, Activity::Interrupt),
        };
        *booked -= over;
        self.tell(n, self.nodes[n].cpu_start_ns, end_ns, activity);
    }

    fn tell(&mut self, n: usize, start_ns: u64, end_ns: u64, activity: Activity) {
        if !O::TELL || start_ns == end_ns {
            return;
        }
        let current = self.nodes[n].current;
        let owner = (current != NO_PROCESS).then(|| self.process(n, current)).map(|p| (p.job, p.task));
        let process = owner.filter(|_| !matches!(activity, Activity::Interrupt | Activity::Scheduler));
        self.observer.slice(Slice { node: n as u32, start_ns, end_ns, activity, process });
    }
}

fn kernel_activity(work: Kernel) -> Activity {
    match work {
        Kernel::Scheduler => Activity::Scheduler,
        Kernel::Wake(_) | Kernel::Raise(..) => Activity::Interrupt,
    }
}
