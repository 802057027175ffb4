//! The state of a simulation, and its loop.

use super::auto::Watched;
use super::config::{Config, Work as Job};
use super::contention::CpuMemory;
use super::custom::Custom;
use super::estimate::Estimator;
use super::event::{Agenda, Event, Kind};
use super::fair::Fair;
use super::gang::Gang;
use super::levels::Levels;
use super::live::Control;
use super::network::Interface;
use super::process::{Pid, Process};
use super::traffic::Traffic;
use crate::draw::Draws;
use crate::error::SimError;
use crate::job::Shape;
use crate::observe::{Activity, JobChange, Observer};
use crate::outcome::{JobTimes, Outcome, Progress};
use crate::params::{Params, ParamsError};
use crate::platform::Platform;
use crate::program::{Code, Totals};
use crate::strategy::{BatchQueue, Strategy};
use cosched_core::Wait;
use std::collections::VecDeque;

/// The number of events between two calls of the watcher.
const WATCH_EVENTS: u64 = 1 << 16;

/// The time between two checks for a deadlock, while only clocks advance.
const DEADLOCK_CHECK_NS: u64 = 1_000_000_000;

/// The latest permitted arrival, so that times stay far from overflow.
const ARRIVAL_NS_MAX: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// A piece of kernel work (D22). Its effect happens at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) cost_ns: u64,
    pub(super) effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// An interrupt that wakes a process that is blocked or asleep for I/O.
    Wake(Pid),
    /// An interrupt of DCS that moves a process to the head of the highest level.
    Demand(Pid),
    /// No effect: PB and yields act first and take their time afterwards.
    Charge,
}

/// A CPU's activity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Doing {
    #[default]
    Nothing,
    Switch,
    Kernel(Work),
    /// The current process loads its data into the cache.
    Load,
    /// The current process runs.
    User,
}

impl Doing {
    /// Whether it is the current process's own, which another process may end.
    pub(super) fn is_process(&self) -> bool {
        matches!(self, Doing::User | Doing::Load)
    }

    /// Whether the CPU can be given to another process at once.
    pub(super) fn gives_way(&self) -> bool {
        self.is_process() || matches!(self, Doing::Nothing)
    }
}

#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) node: usize,
    pub(super) current: Option<Pid>,
    /// The last process that had it, for the cost of switches (D6).
    pub(super) last_owner: Option<Pid>,
    pub(super) doing: Doing,
    /// When the activity began.
    pub(super) since_ns: u64,
    /// The time up to which the activity is accounted for.
    pub(super) booked_ns: u64,
    /// Incremented with each activity, so that end events of stopped activities can be recognised.
    pub(super) generation: u64,
    /// It should choose again as soon as it can.
    pub(super) resched: bool,
    /// Waiting kernel work.
    pub(super) kernel: VecDeque<Work>,
    pub(super) memory: CpuMemory,
}

#[derive(Debug)]
pub(super) struct Node {
    /// Ready processes (the paper's model).
    pub(super) levels: Levels,
    /// Runnable processes (the fair scheduler).
    pub(super) fair: Fair,
    /// Live processes in the order of their arrival (D15).
    pub(super) table: Vec<Pid>,
    /// Places of jobs that have not ended (D7, D25).
    pub(super) places_used: u32,
    /// The processes that had the CPUs at the last tick, as far as the network interface knows (D16).
    pub(super) noted: Vec<Option<Pid>>,
    pub(super) interface: Interface,
    /// An activation of the scheduler is scheduled.
    pub(super) ticking: bool,
    /// The number of the last tick, if no other is scheduled because all its processes sleep.
    pub(super) slept_at: Option<u64>,
    /// The offset of its ticks (D2).
    pub(super) phase_ns: u64,
}

/// A job and, while it has its nodes, its processes.
#[derive(Debug)]
pub(super) struct JobRun {
    pub(super) work: Job,
    pub(super) tasks: u32,
    /// Its estimated run time, where the queue is backfilled.
    pub(super) estimate_ns: u64,
    /// The expected totals over all tasks.
    pub(super) expected: Totals,
    /// The CPU (gangs) or the node of each task, ascending.
    pub(super) places: Vec<u32>,
    pub(super) processes: Vec<Process>,
    /// Tasks that have not ended.
    pub(super) left: u32,
    pub(super) messages: u64,
    pub(super) times: JobTimes,
    /// Its observed behaviour and the resulting choice (auto).
    pub(super) watched: Watched,
}

impl JobRun {
    fn new(index: usize, work: &Job, config: &Config, estimator: Option<&Estimator<'_>>) -> Result<JobRun, SimError> {
        let tasks = work.tasks();
        if tasks == 0 {
            return Err(SimError::NoTasks { index });
        }
        if tasks > config.cpus() {
            return Err(SimError::TooLarge { index, tasks, places: config.cpus() });
        }
        if work.arrival_ns() > ARRIVAL_NS_MAX {
            let what = format!("job {index} arrives after more than 100 years");
            return Err(ParamsError::new(what, "that is surely a mistake", "check the unit of its arrival").into());
        }
        let codes = work.codes(&config.params).map_err(|error| SimError::Program { index, error })?;
        let mut expected = Totals::default();
        for of_task in codes.iter().map(Code::totals) {
            expected.iterations += of_task.iterations;
            expected.sends += of_task.sends;
            expected.receives += of_task.receives;
        }
        let estimate_ns = match work {
            Job::Paper(spec) => spec.exec_ns,
            Job::Program(job) => job.estimate_ns.or_else(|| Some(estimator?.of(&codes))).unwrap_or(0),
        };
        Ok(JobRun {
            work: work.clone(),
            tasks,
            estimate_ns,
            expected,
            places: Vec::new(),
            processes: Vec::new(),
            left: tasks,
            messages: 0,
            times: JobTimes::default(),
            watched: Watched::new(),
        })
    }

    /// The parts of an iteration of one of the paper's jobs.
    pub(super) fn shape(&self, params: &Params) -> Option<Shape> {
        match &self.work {
            Job::Paper(spec) => Some(Shape::new(spec, params)),
            Job::Program(_) => None,
        }
    }
}

/// A simulation.
pub(super) struct Sim<'a, O> {
    pub(super) config: Config,
    pub(super) params: Params,
    pub(super) observer: &'a mut O,
    pub(super) now_ns: u64,
    pub(super) agenda: Agenda,
    pub(super) jobs: Vec<JobRun>,
    /// The arrival queue.
    pub(super) queue: VecDeque<u32>,
    pub(super) nodes: Vec<Node>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) gang: Option<Gang>,
    pub(super) live: Option<Control>,
    pub(super) out: Outcome,
    pub(super) jobs_ended: u64,
    pub(super) sent: u64,
    /// The last activation of a scheduler: its time and its node.
    pub(super) ticked: Option<(u64, usize)>,
    /// The time up to which `free_while_waiting_ns` is accounted for.
    pub(super) waiting_since_ns: u64,
    /// When the last check for a deadlock was done.
    pub(super) deadlock_checked_ns: u64,
    /// Whether admission is in progress, and whether it was requested again.
    pub(super) admitting: (bool, bool),
    /// The first violated law.
    pub(super) broken: Option<String>,
    /// Decides instead of the strategy, and what it decided that cannot be.
    pub(super) custom: Option<&'a mut dyn Custom>,
    pub(super) refused: Option<String>,
    /// The messages under way on a platform.
    pub(super) traffic: Option<Traffic<'a>>,
}

impl<'a, O: Observer> Sim<'a, O> {
    pub(super) fn new(
        config: Config,
        platform: Option<&'a Platform>,
        works: &[Job],
        observer: &'a mut O,
        custom: Option<&'a mut dyn Custom>,
    ) -> Result<Sim<'a, O>, SimError> {
        config.check()?;
        let params = config.params;
        let backfills = params.strategy == Strategy::Batch(BatchQueue::Easy);
        let estimator = backfills.then(|| Estimator::new(&config, platform));
        let run = |(index, work)| JobRun::new(index, work, &config, estimator.as_ref());
        let jobs: Vec<JobRun> = works.iter().enumerate().map(run).collect::<Result<_, _>>()?;
        let mut agenda = Agenda::new(params.readings.reverse_ties);
        for (index, work) in works.iter().enumerate() {
            agenda.push(work.arrival_ns(), Kind::Arrival, [0, index as u32, 0, 0], 0);
        }
        let cpus_per_node = config.cpus_per_node as usize;
        let live = (params.strategy == Strategy::Live).then(|| Control::new(&config)).transpose()?;
        Ok(Sim {
            config,
            params,
            observer,
            now_ns: 0,
            agenda,
            jobs,
            queue: VecDeque::new(),
            nodes: (0..params.nodes as usize).map(|node| new_node(&params, node)).collect(),
            cpus: (0..config.cpus() as usize).map(|cpu| Cpu { node: cpu / cpus_per_node, ..Cpu::default() }).collect(),
            live,
            gang: params.strategy.has_rows().then(|| Gang::new(config.cpus())),
            out: Outcome::default(),
            jobs_ended: 0,
            sent: 0,
            ticked: None,
            waiting_since_ns: 0,
            deadlock_checked_ns: 0,
            admitting: (false, false),
            broken: None,
            custom,
            refused: None,
            traffic: platform.map(|platform| Traffic::new(platform, params.nodes)).transpose()?,
        })
    }

    /// Runs the simulation to its end.
    pub(super) fn run(mut self, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, SimError> {
        while self.jobs_ended < self.jobs.len() as u64 {
            let Some(event) = self.agenda.pop() else { return Err(self.stuck()) };
            if self.params.end_ns.is_some_and(|end| event.time_ns > end) {
                // A node that sleeps has no tick at which that would be seen.
                let Some(deadlock @ SimError::Deadlock { .. }) = self.deadlock() else { break };
                return Err(deadlock);
            }
            self.now_ns = event.time_ns;
            if event.kind > Kind::Tick {
                let last = if self.params.readings.reverse_ties { 0 } else { self.nodes.len() - 1 };
                self.ticked = Some((self.now_ns, last));
            }
            let ended = self.jobs_ended;
            self.handle(event);
            self.out.events += 1;
            if matches!(event.kind, Kind::Tick | Kind::Gang)
                && self.now_ns - self.deadlock_checked_ns >= DEADLOCK_CHECK_NS
            {
                self.deadlock_checked_ns = self.now_ns;
                if let Some(error) = self.deadlock() {
                    return Err(error);
                }
            }
            if self.params.check_invariants {
                let all = ended != self.jobs_ended || matches!(event.kind, Kind::Arrival | Kind::Gang);
                self.check_queues((!all).then(|| self.node_of(event)));
            }
            if let Some(what) = self.refused.take() {
                return Err(SimError::Strategy(what));
            }
            if let Some(what) = self.broken.take() {
                return Err(SimError::Broken(what));
            }
            if self.out.events.is_multiple_of(WATCH_EVENTS) && !watch(self.progress()) {
                return Err(SimError::Stopped);
            }
        }
        self.finish()
    }

    fn handle(&mut self, event: Event) {
        let [node, job, task, sender] = event.who;
        match event.kind {
            Kind::CpuEnd => self.cpu_end(node as usize, event.stamp),
            Kind::IoDone => self.io_done(Pid { job, task }),
            Kind::Flow => self.flow(event),
            Kind::FlowsEnd => self.flows_end(event.stamp),
            Kind::Delivered => self.delivered(Pid { job, task }, sender, event.stamp, event.bytes),
            Kind::AtInterface => self.at_interface(event.who, event.stamp, event.bytes),
            Kind::Arrival => self.arrive(job),
            Kind::Gang => self.gang_event(event.stamp),
            Kind::Tick => self.tick(node as usize),
            Kind::Look => self.look_for_idle(node as usize, event.stamp),
            Kind::Share => self.share(),
        }
    }

    /// The node to which an event of a node belongs.
    fn node_of(&self, event: Event) -> usize {
        let number = event.who[0] as usize;
        if event.kind == Kind::CpuEnd { self.cpus[number].node } else { number }
    }

    fn progress(&self) -> Progress {
        let all = self.jobs.iter().map(|job| job.expected.iterations).sum();
        Progress {
            time_ns: self.now_ns,
            events: self.out.events,
            task_iterations: (self.out.task_iterations, all),
            jobs: (self.jobs_ended, self.jobs.len() as u64),
        }
    }

    fn finish(mut self) -> Result<Outcome, SimError> {
        let complete = self.jobs_ended == self.jobs.len() as u64;
        if let Some(end_ns) = self.params.end_ns.filter(|_| !complete) {
            self.now_ns = end_ns;
        }
        self.account_waiting();
        for cpu in 0..self.cpus.len() {
            self.stop(cpu);
        }
        self.out.sim_end_ns = self.now_ns;
        self.out.jobs = self.jobs.iter().map(|job| job.times).collect();
        match self.check_conservation(complete) {
            Some(what) => Err(SimError::Broken(what)),
            None => Ok(self.out),
        }
    }

    pub(super) fn wait(&self) -> Wait {
        self.config.wait()
    }

    pub(super) fn process(&mut self, pid: Pid) -> &mut Process {
        &mut self.jobs[pid.job as usize].processes[pid.task as usize]
    }

    /// A place is a column of the matrix or a node.
    pub(super) fn node_of_place(&self, place: u32) -> u32 {
        if self.gang.is_some() { place / self.config.cpus_per_node } else { place }
    }

    /// A process, unless its job has ended.
    pub(super) fn process_if_live(&mut self, pid: Pid) -> Option<&mut Process> {
        self.jobs[pid.job as usize].processes.get_mut(pid.task as usize)
    }

    pub(super) fn tell_job(&mut self, job: u32, change: JobChange) {
        if O::TELL {
            let nodes: Vec<u32> =
                self.jobs[job as usize].places.iter().map(|place| self.node_of_place(*place)).collect();
            let row = self.gang.as_ref().and_then(|gang| gang.row_of(job));
            self.observer.job(self.now_ns, job, change, &nodes, row);
        }
    }

    /// Reports a sleep that ends now to the observer.
    pub(super) fn tell_sleep(&mut self, pid: Pid, activity: Activity) {
        if O::TELL {
            let (node, start_ns) = (self.process(pid).node, self.process(pid).since_ns);
            let process = Some((pid.job, pid.task));
            let slice = crate::observe::Slice { node, start_ns, end_ns: self.now_ns, activity, process };
            self.observer.slice(slice);
        }
    }
}

fn new_node(params: &Params, node: usize) -> Node {
    let phase = Draws::new(params.seed, u64::MAX, node as u64).unit(0, 0);
    let phase_ns = if params.readings.random_phase { (phase * params.tick_ns as f64) as u64 } else { 0 };
    Node {
        levels: Levels::new(),
        fair: Fair::default(),
        table: Vec::new(),
        places_used: 0,
        noted: vec![None],
        interface: Interface::default(),
        ticking: false,
        slept_at: None,
        phase_ns,
    }
}
