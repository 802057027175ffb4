//! The simulation itself: threads take buffers through their stages.

use super::books::Books;
use super::cpus::Cpu;
use super::device::Device;
use super::drive::Driver;
use super::event::{Agenda, Event};
use super::outcome::PipelineOutcome;
use super::settings::Priorities;
use super::spec::{PipelineError, PipelineSpec, StageKind};
use super::thread::{Load, Phase, Role, State, Thread};
use crate::draw::Draws;

/// Simulated time after which a pipeline counts as endless, s.
pub const MAX_SIM_S: u64 = 100_000;

/// Streams of random numbers: a stage's CPU time and its time on the device.
const CPU: u64 = 0;
const WAIT: u64 = 2;

pub(super) struct Sim<'a> {
    pub(super) spec: &'a PipelineSpec,
    pub(super) now_ns: u64,
    pub(super) agenda: Agenda,
    pub(super) threads: Vec<Thread>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) books: Vec<Books>,
    pub(super) devices: Vec<Device>,
    /// Workers that wait for a buffer.
    pub(super) idle_workers: Vec<usize>,
    /// The numbers of rounds that have begun, and that have ended.
    pub(super) begun: u64,
    pub(super) done: u64,
    pub(super) driver: Driver,
    pub(super) hogs_ns: u64,
    pub(super) switches: u64,
    pub(super) events: u64,
    /// The number of consecutive load balances that moved no thread.
    pub(super) unbalanced: u32,
}

/// Simulates a pipeline to its end.
pub fn simulate(spec: &PipelineSpec, priorities: Priorities) -> Result<PipelineOutcome, PipelineError> {
    spec.check()?;
    let mut sim = Sim::new(spec, priorities);
    sim.start();
    while sim.done < spec.rounds {
        let Some((time_ns, event)) = sim.agenda.pop() else { return Err(sim.endless()) };
        if time_ns > MAX_SIM_S * 1_000_000_000 {
            return Err(sim.endless());
        }
        sim.now_ns = time_ns;
        sim.events += 1;
        sim.handle(event);
    }
    Ok(sim.outcome())
}

pub(super) fn us(us: f64) -> u64 {
    (us * 1e3 + 0.5) as u64
}

impl<'a> Sim<'a> {
    fn new(spec: &'a PipelineSpec, priorities: Priorities) -> Sim<'a> {
        Sim {
            spec,
            now_ns: 0,
            agenda: Agenda::default(),
            threads: Vec::new(),
            cpus: (0..spec.machine.cpus).map(|_| Cpu::default()).collect(),
            books: spec.stages.iter().map(|_| Books::default()).collect(),
            devices: spec.disks.iter().map(|disk| Device::new(disk.parallel)).collect(),
            idle_workers: Vec::new(),
            begun: 0,
            done: 0,
            driver: Driver::new(spec, priorities),
            hogs_ns: 0,
            switches: 0,
            events: 0,
            unbalanced: 0,
        }
    }

    fn endless(&self) -> PipelineError {
        let time_s = self.now_ns / 1_000_000_000;
        PipelineError::Endless { rounds: self.done, of: self.spec.rounds, time_s }
    }

    fn start(&mut self) {
        // The pool: a buffer that waits there has no round yet.
        for _ in 0..self.spec.buffers {
            self.books[0].push(0, 0);
        }
        self.start_threads();
        self.agenda.push(us(f64::from(self.spec.machine.balance_us)), Event::Balance);
        if let Some(window_ns) = self.driver.window_ns() {
            self.agenda.push(window_ns, Event::Window);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Computed { cpu, generation } if self.cpus[cpu].generation == generation => self.computed(cpu),
            Event::Computed { .. } => {}
            Event::Woken { thread } => self.woken(thread),
            Event::Served { thread, disk } => self.served(thread, disk),
            Event::Tick { cpu } => self.tick(cpu),
            Event::Balance => self.balance(),
            Event::Window => self.end_of_window(),
        }
    }

    /// The thread of a CPU has finished computing, and continues until it computes again or sleeps.
    fn computed(&mut self, cpu: usize) {
        let Some(thread) = self.cpus[cpu].queue.current() else { return };
        self.book(thread);
        while self.threads[thread].left_ns == 0 {
            if !self.step(thread) {
                self.cpus[cpu].look_again = false;
                self.sleep(thread);
                return self.dispatch(cpu);
            }
        }
        self.resume(cpu);
        if std::mem::take(&mut self.cpus[cpu].look_again) {
            self.look(cpu);
        }
    }

    /// One step of a thread that has a CPU; returns whether it continues without a wait.
    fn step(&mut self, thread: usize) -> bool {
        match self.threads[thread].phase {
            Phase::Accept => self.accept(thread),
            Phase::First => self.use_device(thread),
            Phase::Device => {
                let half_ns = self.threads[thread].load.map_or(0, |(_, load)| load.half_ns);
                let thread = &mut self.threads[thread];
                (thread.phase, thread.left_ns) = (Phase::Second, half_ns);
                true
            }
            Phase::Second => self.convey(thread),
        }
    }

    fn accept(&mut self, thread: usize) -> bool {
        let found = match self.threads[thread].role {
            Role::Hog { busy_ns, until_ns, .. } => {
                let goes_on = self.now_ns < until_ns;
                let state = &mut self.threads[thread];
                (state.left_ns, state.phase) = (if goes_on { busy_ns } else { 0 }, Phase::First);
                state.retires = !goes_on;
                return goes_on;
            }
            Role::Stage(_) if self.threads[thread].retires => return false,
            Role::Stage(stage) => self.take(stage).map(|round| (stage, round)),
            // The stage furthest downstream first: rounds in progress are finished first.
            Role::Worker => (0..self.books.len()).rev().find_map(|stage| Some((stage, self.take_as_worker(stage)?))),
        };
        match found {
            Some((stage, round)) => self.begin_round(thread, stage, round),
            None => self.be_hungry(thread),
        }
        found.is_some()
    }

    /// Takes a buffer from the queue of a stage; from the pool only while rounds are left.
    fn take(&mut self, stage: usize) -> Option<u64> {
        if stage > 0 {
            return self.books[stage].pop(self.now_ns);
        }
        if self.begun == self.spec.rounds {
            return None;
        }
        self.books[0].pop(self.now_ns)?;
        self.begun += 1;
        Some(self.begun - 1)
    }

    fn take_as_worker(&mut self, stage: usize) -> Option<u64> {
        self.has_room(stage).then(|| self.take(stage))?
    }

    /// Whether one more worker may execute this stage.
    fn has_room(&self, stage: usize) -> bool {
        self.spec.stages[stage].kind == StageKind::Worker && self.books[stage].working < self.driver.incarnations(stage)
    }

    fn begin_round(&mut self, thread: usize, stage: usize, round: u64) {
        let load = self.draw(stage, round);
        self.books[stage].working += 1;
        let state = &mut self.threads[thread];
        (state.load, state.phase, state.left_ns) = (Some((stage, load)), Phase::First, load.half_ns);
    }

    /// A round's times in a stage: the same whatever the priorities are.
    fn draw(&self, stage: usize, round: u64) -> Load {
        let spec = &self.spec.stages[stage];
        let draws = Draws::new(self.spec.seed, stage as u64, 0);
        let factor = |kind: u64| lognormal(spec.cv, draws.unit(round, kind), draws.unit(round, kind + 1));
        let rate = spec.disk.as_ref().and_then(|name| self.spec.disks.iter().find(|disk| disk.name == *name));
        let moved_us = rate.map_or(0.0, |disk| if spec.mb > 0.0 { spec.mb / disk.mb_per_s * 1e6 } else { 0.0 });
        let half_ns = us(spec.cpu_us * factor(CPU) / 2.0);
        Load { round, half_ns, wait_ns: us((spec.wait_us + moved_us) * factor(WAIT)) }
    }

    fn be_hungry(&mut self, thread: usize) {
        match self.threads[thread].role {
            Role::Stage(stage) => self.books[stage].hungry.push_back(thread),
            _ => self.idle_workers.push(thread),
        }
    }

    fn use_device(&mut self, thread: usize) -> bool {
        let now_ns = self.now_ns;
        if let Role::Hog { sleep_ns, .. } = self.threads[thread].role {
            self.threads[thread].phase = Phase::Accept;
            if sleep_ns > 0 {
                self.agenda.push(now_ns + sleep_ns, Event::Served { thread, disk: None });
            }
            return sleep_ns == 0;
        }
        let Some((stage, load)) = self.threads[thread].load else { return false };
        if load.wait_ns == 0 {
            self.threads[thread].phase = Phase::Device;
            return true;
        }
        self.threads[thread].phase = Phase::Device;
        let name = self.spec.stages[stage].disk.as_ref();
        let disk = name.and_then(|name| self.spec.disks.iter().position(|disk| disk.name == *name));
        if disk.is_none_or(|disk| self.devices[disk].ask(thread, load.wait_ns)) {
            self.agenda.push(now_ns + load.wait_ns, Event::Served { thread, disk });
        }
        false
    }

    fn served(&mut self, thread: usize, disk: Option<usize>) {
        if let Some((next, ns)) = disk.and_then(|disk| self.devices[disk].done()) {
            self.agenda.push(self.now_ns + ns, Event::Served { thread: next, disk });
        }
        self.wake(thread);
    }

    fn convey(&mut self, thread: usize) -> bool {
        let Some((stage, load)) = self.threads[thread].load.take() else { return false };
        self.threads[thread].phase = Phase::Accept;
        let books = &mut self.books[stage];
        books.account.rounds += 1;
        books.working -= 1;
        let next = stage + 1;
        if next == self.books.len() {
            self.done += 1;
            self.put(0, 0);
        } else {
            self.adjust(thread, self.books[next].queue.len());
            if self.carries_on(thread, next) {
                self.begin_round(thread, next, load.round);
            } else {
                self.put(next, load.round);
            }
        }
        // A buffer for which there was no room in this stage may have room now.
        if self.has_room(stage) && !self.books[stage].queue.is_empty() {
            self.call_worker();
        }
        true
    }

    /// A worker keeps its buffer for the next stage if no other buffer waits there.
    fn carries_on(&self, thread: usize, next: usize) -> bool {
        self.threads[thread].role == Role::Worker && self.has_room(next) && self.books[next].queue.is_empty()
    }

    /// Puts a buffer in front of a stage, and wakes a thread that waits for it.
    fn put(&mut self, stage: usize, round: u64) {
        self.books[stage].push(self.now_ns, round);
        if self.has_room(stage) {
            self.call_worker();
        } else if let Some(thread) = self.books[stage].hungry.pop_front() {
            self.wake(thread);
        }
    }

    fn call_worker(&mut self) {
        if let Some(worker) = self.idle_workers.pop() {
            self.wake(worker);
        }
    }

    /// A sleeping thread enters a run queue soon.
    pub(super) fn wake(&mut self, thread: usize) {
        self.book(thread);
        self.threads[thread].state = State::Waking;
        self.agenda.push(self.now_ns + us(self.spec.machine.wake_us), Event::Woken { thread });
    }
}

/// A factor of mean 1 with this coefficient of variation, from two numbers in [0, 1).
fn lognormal(cv: f64, u: f64, v: f64) -> f64 {
    if cv == 0.0 {
        return 1.0;
    }
    let variance = libm::log1p(cv * cv);
    let normal = libm::sqrt(-2.0 * libm::log(1.0 - u)) * libm::cos(std::f64::consts::TAU * v);
    libm::exp(libm::sqrt(variance) * normal - variance / 2.0)
}
