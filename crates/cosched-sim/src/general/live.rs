//! The production policy: core's planner of a cluster, and on each node its follower, its local scheduler, and the table and the rule by which
//! the slot thread fills idle CPUs (`filling.rs`).
//!
//! Its decisions are carried out as on a live node: a job that may run is in its node's queue, where the fair scheduler decides; one in
//! the background that was let in runs where the queue is empty; others do not run. Planning takes no
//! time and no node is out of touch: a plan is in effect from the next boundary on. A place is a unit of memory, so the planner admits
//! as many processes to a node as it has places.

use super::config::Config;
use super::engine::{Doing, Sim};
use super::event::Kind;
use super::filling::{Filling, Next};
use super::process::{Pid, State};
use crate::observe::Observer;
use crate::params::ParamsError;
use cosched_core::cluster::{
    self, Action, Capacity, FollowAction, Follower, Input, JobSpec, Known, LocalAction, LocalConfig, LocalJob,
    LocalScheduler, Planner, Want,
};
use cosched_core::fill::LOOK_NS;
use cosched_core::{AgentAction, AgentConfig, Disposition, Flaw, JobId, NodeId, Table, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A node as its daemon sees it.
#[derive(Debug)]
struct Seat {
    node: NodeId,
    follower: Follower,
    local: LocalScheduler,
    /// The jobs that have processes here, and whether each may run.
    here: BTreeMap<u32, Disposition>,
    cpu_ns: BTreeMap<u32, u64>,
    /// The generation of the node's plan that the table of the slot thread was made from.
    generation: u64,
    filling: Filling,
}

impl Seat {
    fn new(node: u32, config: &Config) -> Seat {
        let agent = AgentConfig { idle_after_ns: config.live.idle_after_ns, ..AgentConfig::default() };
        let node = NodeId(node);
        let mut follower = Follower::new(node);
        follower.renewed(Time(0), Time(u64::MAX));
        let local = LocalScheduler::new(LocalConfig { agent, ..LocalConfig::new(config.cpus_per_node) });
        let filling = Filling::new(config.cpus_per_node);
        Seat { node, follower, local, here: BTreeMap::new(), cpu_ns: BTreeMap::new(), generation: 0, filling }
    }

    fn timeout(&self) -> Option<Time> {
        let follower = self.follower.poll_timeout().map(|(at, _)| at);
        [follower, self.local.poll_timeout()].into_iter().flatten().min()
    }

    /// Carries out the follower's decisions.
    fn follow(&mut self, now: Time, planner: &Planner) {
        let mut any = false;
        while let Some(action) = self.follower.poll_action() {
            match action {
                FollowAction::Use(plan) => self.local.use_plan(plan),
                FollowAction::RunNoSlots(_) => self.local.no_slots(),
                FollowAction::StartEarly(job) => self.local.start_early(job),
                FollowAction::Acknowledge(_) | FollowAction::Missed { .. } | FollowAction::Behind(_) => continue,
                FollowAction::Unsound(flaw) => unsound(flaw),
            }
            any = true;
        }
        if any {
            self.refresh(now, planner);
        }
    }

    /// The plan, the state or the set of jobs here has changed.
    fn refresh(&mut self, now: Time, planner: &Planner) {
        let known = Known { node: self.node, state: planner.state(), revision: 0, in_touch: true };
        self.local.settle(now, Some(known));
    }

    /// A job has processes here from now on.
    fn begin(&mut self, job: u32, planner: &Planner) {
        let id = JobId(job.into());
        let Some(record) = planner.state().jobs.get(&id) else { return };
        let parts = record.place.as_ref().map_or(&[][..], |place| &place.parts);
        let Some(part) = parts.iter().find(|part| part.node == self.node) else { return };
        let (class, policy, spans) = (record.spec.class, record.spec.policy, parts.len() > 1);
        let slot_share = record.spec.slot_share;
        let (cpus, memory_bytes) = (part.cpus, part.memory_bytes);
        self.local.begin(
            id,
            LocalJob {
                owner: 0,
                class,
                policy,
                slot_share,
                cpus,
                memory_bytes,
                suspended: false,
                spans,
                exclusive_cores: false,
            },
        );
        // Until a plan that contains it says otherwise.
        self.here.insert(job, Disposition::Stop);
    }

    /// Rebuilds the table if the plan has changed, and switches if that is due; returns whether it was.
    fn switch(&mut self, now: Time) -> bool {
        let plan = self.local.plan();
        let mut table = None;
        if self.generation != plan.generation {
            let here = self.here.keys().map(|job| (JobId((*job).into()), *job)).collect();
            let (compiled, flaw) = Table::compile(plan, here, true, |_| Disposition::Stop);
            if let Some(flaw) = flaw {
                unsound(flaw);
            }
            (self.generation, table) = (plan.generation, Some(compiled));
        }
        self.filling.switch(now, table)
    }
}

/// A daemon reports it and does what is safe; here the results would be worthless.
fn unsound(flaw: Flaw) {
    panic!("the live scheduler contradicts itself: {flaw}");
}

/// The control plane of all nodes.
#[derive(Debug)]
pub(super) struct Control {
    planner: Planner,
    seats: Vec<Seat>,
    /// The nodes on which a gang uses no CPU.
    asleep_on: BTreeMap<u32, BTreeSet<usize>>,
    /// When the control plane wants to be woken, and the stamp of that event.
    armed: (Option<Time>, u64),
}

/// A job that begins, with the node of each of its tasks.
type Start = (u32, Vec<u32>);

/// Whether a job may run on a node, before and now.
struct Moved {
    node: usize,
    job: u32,
    was: Disposition,
    is: Disposition,
}

impl Control {
    pub(super) fn new(config: &Config) -> Result<Control, ParamsError> {
        let (params, live) = (&config.params, &config.live);
        let state = cluster::State {
            config: cluster::Config {
                slot_length_ns: params.quantum_ns,
                policy: live.policy,
                sharing: live.sharing,
                rows_max: params.mpl,
                ceiling_permille: live.ceiling_permille,
                ..cluster::Config::default()
            },
            ..cluster::State::default()
        };
        let wrong =
            |what: String| ParamsError::new("the live planner refuses this machine", what, "give other parameters");
        let mut planner = Planner::new(state).map_err(|e| wrong(e.to_string()))?;
        let places = u64::from(params.mpl) * u64::from(config.cpus_per_node);
        let capacity = Capacity { cpus: config.cpus_per_node, memory_bytes: places, disk_bytes: 0 };
        for node in 0..params.nodes {
            planner.apply(Time(0), Input::Join(NodeId(node), capacity)).map_err(|e| wrong(e.to_string()))?;
        }
        planner.publish(Time(0), Time(0), cosched_core::Reason::Settings);
        let seats = (0..params.nodes).map(|node| Seat::new(node, config)).collect();
        Ok(Control { planner, seats, asleep_on: BTreeMap::new(), armed: (None, 0) })
    }

    /// Does everything that is due now; returns the jobs that begin.
    fn settle(&mut self, now: Time) -> Vec<Start> {
        let mut starts = Vec::new();
        loop {
            let inputs = self.look_at_nodes(now);
            for input in inputs {
                // A gang that has ended meanwhile neither sleeps nor wakes.
                let _ = self.planner.handle(now, now, input);
            }
            if !self.take_actions(now, &mut starts) {
                return starts;
            }
        }
    }

    /// Takes the planner's actions; returns whether there were any.
    fn take_actions(&mut self, now: Time, starts: &mut Vec<Start>) -> bool {
        let mut any = false;
        while let Some(action) = self.planner.poll_action() {
            any = true;
            match action {
                Action::Publish(plan, _) => self.seats.iter_mut().for_each(|seat| seat.follower.see(now, plan.clone())),
                Action::Start(id) => {
                    let place = self.planner.state().jobs.get(&id).and_then(|job| job.place.as_ref());
                    let parts = place.iter().flat_map(|place| &place.parts);
                    let nodes = parts.flat_map(|part| (0..part.cpus).map(|_| part.node.0)).collect();
                    starts.push((id.0 as u32, nodes));
                }
                Action::Wait(..) | Action::Kill(..) | Action::Requeue(..) | Action::GoOnWithout(..) => (),
                Action::Unsound(flaw) => unsound(flaw),
            }
        }
        any
    }

    /// What nodes do and see; returns what the planner has to be told.
    fn look_at_nodes(&mut self, now: Time) -> Vec<Input> {
        let mut said = Vec::new();
        for (node, seat) in self.seats.iter_mut().enumerate() {
            seat.follow(now, &self.planner);
            while let Some(action) = seat.local.poll_action() {
                let LocalAction::Agent(action) = action else { continue };
                match action {
                    AgentAction::Sample { job } => {
                        let used = seat.cpu_ns.get(&(job.0 as u32)).copied().unwrap_or(0);
                        seat.local.cpu_time(now, job, used);
                    }
                    AgentAction::Asleep { job, .. } => said.push((node, job, true)),
                    AgentAction::Awake { job, .. } => said.push((node, job, false)),
                    AgentAction::Set { .. } | AgentAction::Dropped { .. } => (),
                    AgentAction::Unsound(flaw) => unsound(flaw),
                }
                // A job that falls asleep or wakes does so on this node at once.
                seat.refresh(now, &self.planner);
            }
        }
        said.into_iter().filter_map(|(node, job, asleep)| self.sleeps(node, job, asleep)).collect()
    }

    /// A gang is asleep when it is asleep on all of its nodes.
    fn sleeps(&mut self, node: usize, job: JobId, asleep: bool) -> Option<Input> {
        let on = self.asleep_on.entry(job.0 as u32).or_default();
        if !asleep {
            on.clear();
            return Some(Input::Awake(job));
        }
        on.insert(node);
        let place = self.planner.state().jobs.get(&job)?.place.as_ref()?;
        (on.len() == place.parts.len()).then_some(Input::Asleep(job))
    }

    /// The jobs whose permission to run has changed, and the nodes that have switched.
    fn moved(&mut self, now: Time) -> (Vec<Moved>, BTreeSet<usize>) {
        let (mut moved, mut switched) = (Vec::new(), BTreeSet::new());
        for (node, seat) in self.seats.iter_mut().enumerate() {
            if seat.switch(now) {
                switched.insert(node);
            }
            for (job, to) in &mut seat.here {
                let (was, is) = (*to, seat.local.disposition(JobId((*job).into())));
                if was != is {
                    *to = is;
                    moved.push(Moved { node, job: *job, was, is });
                }
            }
        }
        (moved, switched)
    }
}

impl<O: Observer> Sim<'_, O> {
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Whether a process may run now (live).
    pub(super) fn disposition(&self, pid: Pid) -> Option<Disposition> {
        let control = self.live.as_ref()?;
        let node = self.jobs[pid.job as usize].processes.get(pid.task as usize)?.node as usize;
        control.seats[node].here.get(&pid.job).copied()
    }

    /// Passes an input to the control plane, then carries out all its decisions.
    fn control(&mut self, act: impl FnOnce(&mut Control, Time) -> Result<(), String>) {
        for cpu in 0..self.cpus.len() {
            self.book(cpu);
        }
        let now = Time(self.now_ns);
        let Some(control) = &mut self.live else { return };
        if let Err(why) = act(control, now) {
            self.broken.get_or_insert(why);
        }
        let starts = control.settle(now);
        let (moved, switched) = control.moved(now);
        let looks = switched.iter().filter_map(|node| Some((*node, control.seats[*node].filling.first_look(now)?)));
        for (node, (at, stamp)) in looks {
            self.agenda.push(at.0, Kind::Look, [node as u32, 0, 0, 0], stamp);
        }
        self.carry_out(&moved, switched);
        self.arm_control();
        for (job, nodes) in starts {
            self.queue.retain(|other| *other != job);
            self.start(job, nodes);
        }
    }

    pub(super) fn submit(&mut self, job: u32) {
        let run = &self.jobs[job as usize];
        let want = Want::Total { cpus: run.tasks, memory_per_cpu_bytes: 1, disk_bytes: 0 };
        let super::config::Own { policy, slot_share, .. } = run.work.own();
        let spec = JobSpec { policy, slot_share, ..JobSpec::new(JobId(job.into()), run.work.class(), want) };
        self.control(|control, now| {
            let taken = control.planner.handle(now, now, Input::Submit(spec));
            taken.map_err(|e| format!("the planner refuses job {job}: {e}"))
        });
    }

    /// A job has got its nodes.
    pub(super) fn settles(&mut self, job: u32) {
        let nodes: BTreeSet<u32> = self.jobs[job as usize].places.iter().copied().collect();
        self.control(|control, now| {
            for seat in nodes.iter().map(|node| *node as usize) {
                let seat = &mut control.seats[seat];
                seat.begin(job, &control.planner);
                seat.refresh(now, &control.planner);
            }
            Ok(())
        });
    }

    pub(super) fn leaves(&mut self, job: u32) {
        self.control(|control, now| {
            control.asleep_on.remove(&job);
            for seat in &mut control.seats {
                if seat.here.remove(&job).is_some() {
                    seat.cpu_ns.remove(&job);
                    seat.local.end(JobId(job.into()));
                    seat.refresh(now, &control.planner);
                }
            }
            let ended = control.planner.handle(now, now, Input::End(JobId(job.into())));
            ended.map_err(|e| format!("the planner does not know job {job}: {e}"))
        });
    }

    /// A boundary, a plan that takes effect, or a sample.
    pub(super) fn control_event(&mut self, stamp: u64) {
        if self.live.as_ref().is_none_or(|control| control.armed.1 != stamp) {
            return;
        }
        self.control(|control, now| {
            control.armed.0 = None;
            for seat in &mut control.seats {
                seat.follower.handle_timeout(now);
                seat.local.handle_timeout(now);
            }
            Ok(())
        });
    }

    fn arm_control(&mut self) {
        let now = Time(self.now_ns);
        let Some(control) = &mut self.live else { return };
        let next = control.seats.iter().filter_map(Seat::timeout).min();
        let idle = control.seats.iter().all(|seat| seat.here.is_empty());
        let next = next.filter(|at| !idle && at.0 < u64::MAX).map(|at| Time(at.0.max(now.0)));
        if next != control.armed.0 {
            control.armed = (next, control.armed.1 + 1);
            if let Some(at) = next {
                self.agenda.push(at.0, Kind::Gang, [0; 4], control.armed.1);
            }
        }
    }

    /// Processes enter the queues of their nodes or leave them, and all CPUs choose again, also those of `nodes`.
    fn carry_out(&mut self, moved: &[Moved], mut nodes: BTreeSet<usize>) {
        let pids = |sim: &Self, of: &Moved| {
            let here = sim.jobs[of.job as usize].processes.iter().enumerate();
            let here = here.filter(|(_, process)| process.node as usize == of.node);
            here.map(|(task, _)| Pid { job: of.job, task: task as u32 }).collect::<Vec<Pid>>()
        };
        // Those that have just come are not in any queue.
        let known = |sim: &Self, pid: Pid, node: usize| sim.nodes[node].table.contains(&pid);
        for of in moved.iter().filter(|of| of.was == Disposition::Run) {
            for pid in pids(self, of) {
                self.leave_queue(pid);
            }
        }
        for of in moved.iter().filter(|of| of.is == Disposition::Run) {
            for pid in pids(self, of) {
                if known(self, pid, of.node) {
                    self.enter_queue(pid);
                }
            }
        }
        nodes.extend(moved.iter().map(|of| of.node));
        let cpus: Vec<usize> = nodes.into_iter().flat_map(|node| self.cpus_of(node)).collect();
        for cpu in cpus {
            if self.cpus[cpu].current.is_some_and(|pid| self.is_guest(pid)) {
                self.cpus[cpu].resched = true;
            }
            if self.cpus[cpu].doing.gives_way() {
                self.stop(cpu);
                self.resume(cpu);
            }
        }
    }

    /// The probe of a node looks for idle CPUs.
    pub(super) fn look_for_idle(&mut self, node: usize, stamp: u64) {
        let now = Time(self.now_ns);
        let is_idle = |cpu: &usize| {
            let cpu = &self.cpus[*cpu];
            cpu.current.is_none() && matches!(cpu.doing, Doing::Nothing) && now.0 - cpu.since_ns >= LOOK_NS
        };
        let found = self.cpus_of(node).filter(is_idle).collect();
        let Some(control) = &mut self.live else { return };
        let filling = &mut control.seats[node].filling;
        let next = filling.look(now, stamp, found);
        if next != Next::Rest {
            self.agenda.push(filling.next_look(now).0, Kind::Look, [node as u32, 0, 0, 0], stamp);
        }
        if next == Next::Fill {
            for cpu in self.cpus_of(node) {
                self.resume(cpu);
            }
        }
    }

    /// The process that fills a CPU whose node's queue is empty.
    pub(super) fn pick_filler(&self, cpu: usize) -> Option<Pid> {
        let node = self.cpus[cpu].node;
        let seat = &self.live.as_ref()?.seats[node];
        let mut jobs = seat.filling.let_in().filter(|job| seat.here.get(job) == Some(&Disposition::Background));
        jobs.find_map(|job| {
            let mut own = self.jobs[job as usize].processes.iter().enumerate();
            let ready = own.find(|(_, own)| own.node as usize == node && own.state == State::Ready);
            ready.map(|(task, _)| Pid { job, task: task as u32 })
        })
    }

    /// A process has used a CPU (live).
    pub(super) fn sample(&mut self, pid: Pid, ns: u64) {
        let node = self.jobs[pid.job as usize].processes[pid.task as usize].node as usize;
        if let Some(control) = &mut self.live {
            *control.seats[node].cpu_ns.entry(pid.job).or_default() += ns;
        }
    }
}
