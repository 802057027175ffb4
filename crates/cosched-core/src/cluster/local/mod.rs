//! The local scheduler: what a node does with the jobs that are there.
//!
//! Rule. A planner of the node's own has its single-node jobs: first as their records have them, then as the cluster's state tells of them
//! (`mirror.rs`). `fill` puts them beside the gangs that span nodes, where a plan of the cluster's holds; else (no lease, a clock
//! that is not good enough, no cluster yet) the node's own plan is all there is, and those that span nodes are left to the operating
//! system. Jobs that a user suspended or that wait for memory stay stopped; the latter go on when they can and nobody
//! plans for the node (`adrift.rs`). An agent watches whether gangs use their slots.
//!
//! The host says which jobs are here, does what `poll_action` says, and calls `settle` when something has changed.

mod mirror;
#[cfg(test)]
mod tests;

use super::adrift::{held, released};
use super::cap::cap;
use super::fill::{fill, without};
use super::plan::Plan as ClusterPlan;
use super::state::{Stage, State};
use crate::agent::{Agent, AgentAction, AgentConfig, AgentInput};
use crate::class::{Class, Shares};
use crate::id::{JobId, NodeId};
use crate::job::{Job, Node, Packing, Policy, Sharing};
use crate::plan::{Disposition, Plan, PlannedJob, Standing};
use crate::planner::{Planner, PlannerAction, PlannerConfig, PlannerError, PlannerInput};
use crate::policy::share::SlotShare;
use crate::reason::Reason;
use crate::sound::Flaw;
use crate::time::Time;
use crate::topology::Topology;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::take;

/// The node to its own planner, which knows no other.
const HERE: NodeId = NodeId(0);

/// What a local scheduler is made for.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The node's CPUs.
    pub cpus: u32,
    /// How these hang together, where gangs have places; of as many CPUs.
    pub topology: Option<Arc<Topology>>,
    /// The length of a slot in nanoseconds, until the cluster says another one; as the settings below.
    pub slot_length_ns: u64,
    /// The policy of jobs that have none of their own.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// Where the node's own gangs get their CPUs.
    pub packing: Packing,
    /// What the classes are worth.
    pub shares: Shares,
    /// Whether the cluster's ceiling holds for all gangs of this node: it is the only one. Else it is that of gangs that span nodes, and in
    /// their plan already.
    pub is_single: bool,
    /// How the jobs are watched.
    pub agent: AgentConfig,
}

impl LocalConfig {
    /// The usual settings, for a node of so many CPUs.
    pub fn new(cpus: u32) -> LocalConfig {
        LocalConfig {
            cpus,
            topology: None,
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
            is_single: false,
            agent: AgentConfig::default(),
        }
    }
}

/// A job's part of this node, as far as the node plans by it. Its host keeps it, so that the job is scheduled the same before the store
/// has answered, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalJob {
    /// Whose job it is.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy, if it has one.
    pub policy: Option<Policy>,
    /// The part of the slots that it has at most.
    pub slot_share: Option<SlotShare>,
    /// Its CPUs here.
    pub cpus: u32,
    /// The memory that it says it needs here; 0 where it says nothing.
    pub memory_bytes: u64,
    /// A user has suspended it.
    pub suspended: bool,
    /// It has parts on other nodes.
    pub spans: bool,
}

/// What is known of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// This node's number.
    pub node: NodeId,
    /// The newest state that is known here, and its number: one that is looked at once is not looked at again.
    pub state: &'a State,
    /// See there.
    pub revision: u64,
    /// Whether the node is in touch with the store.
    pub in_touch: bool,
}

/// What the host has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAction {
    /// What the agent says. That a gang has fallen asleep or woken has taken effect here; the cluster is to hear of it.
    Agent(AgentAction),
    /// The cluster says something else of a job: to be kept.
    Keep(JobId, LocalJob),
    /// The node's own planner cannot do what is wanted of a job: to be logged.
    Refused(JobId, PlannerError),
}

/// A job that is here.
#[derive(Clone, Copy, Debug)]
struct Here {
    job: LocalJob,
    /// It has processes now.
    populated: bool,
    /// It is left to the operating system.
    left: bool,
    /// It uses no CPU, as far as is known here.
    asleep: bool,
    /// How far it has come, and whether it takes part, in the cluster's newest state.
    says: Option<(Stage, Standing)>,
}

/// The local scheduler of a node.
#[derive(Debug)]
pub struct LocalScheduler {
    own: Planner,
    agent: Agent,
    /// The cluster's plan in use.
    cluster: Option<Arc<ClusterPlan>>,
    /// Whether the clock is good enough for slots.
    slots: bool,
    shares: Shares,
    ceiling_permille: u32,
    is_single: bool,
    here: BTreeMap<JobId, Here>,
    plan: Arc<Plan>,
    set: BTreeMap<JobId, Disposition>,
    early: BTreeSet<JobId>,
    /// Which state was followed last, and whether the node was in touch then; `None` when something has changed here since.
    followed: Option<(u64, bool)>,
    /// The own planner was told something.
    is_noted: bool,
    /// Another plan than the present one is due.
    is_stale: bool,
    actions: VecDeque<LocalAction>,
    alter: fn(&mut Plan),
}

impl LocalScheduler {
    /// One without jobs and without a plan of the cluster's.
    pub fn new(config: LocalConfig) -> LocalScheduler {
        let own = Planner::new(PlannerConfig {
            nodes: vec![Node { id: HERE, cpus: config.cpus }],
            slot_length_ns: config.slot_length_ns,
            policy: config.policy,
            sharing: config.sharing,
            packing: config.packing,
            shares: config.shares,
        });
        let own = match config.topology {
            Some(topology) => own.with_places(topology),
            None => own,
        };
        LocalScheduler {
            plan: Arc::clone(own.plan()),
            own,
            agent: Agent::new(AgentConfig { node: HERE, ..config.agent }),
            cluster: None,
            slots: true,
            shares: config.shares,
            ceiling_permille: 1000,
            is_single: config.is_single,
            here: BTreeMap::new(),
            set: BTreeMap::new(),
            early: BTreeSet::new(),
            followed: None,
            is_noted: false,
            is_stale: false,
            actions: VecDeque::new(),
            alter: |_| (),
        }
    }

    /// A job that is about to begin here had this place, by its columns.
    pub fn remember_place(&mut self, id: JobId, columns: Vec<u32>) {
        self.own.remember_place(id, columns);
    }

    /// The same, but that what it has planned is changed by `alter`: to show that somebody notices.
    pub fn altered_by(self, alter: fn(&mut Plan)) -> LocalScheduler {
        LocalScheduler { alter, ..self }
    }

    /// What the node does: the gangs that span nodes and its own jobs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The cluster's plan in use; none while gangs that span nodes have no slots.
    pub fn cluster_plan(&self) -> Option<&Arc<ClusterPlan>> {
        self.cluster.as_ref()
    }

    /// Whether gangs have slots: the clock is good enough for them.
    pub fn has_slots(&self) -> bool {
        self.slots
    }

    /// The gangs that run before their plan holds.
    pub fn early(&self) -> &BTreeSet<JobId> {
        &self.early
    }

    /// A job that is here, as the node plans by it.
    pub fn job(&self, id: JobId) -> Option<&LocalJob> {
        self.here.get(&id).map(|here| &here.job)
    }

    /// Whether a gang that is here uses no CPU.
    pub fn is_asleep(&self, id: JobId) -> bool {
        self.here.get(&id).is_some_and(|here| here.asleep)
    }

    /// A job has a place here, or was found here.
    pub fn begin(&mut self, id: JobId, job: LocalJob) {
        self.here.insert(id, Here { job, populated: true, left: false, asleep: false, says: None });
        (self.is_stale, self.followed) = (true, None);
        if !job.spans {
            self.submit(id, &job);
        }
    }

    /// A job is not here any more.
    pub fn end(&mut self, id: JobId) {
        if self.here.remove(&id).is_some_and(|here| !here.job.spans && !here.left) {
            // One that was refused is not there.
            let _ = self.own.note(PlannerInput::End(id));
            self.is_noted = true;
        }
        self.early.remove(&id);
        self.is_stale = true;
    }

    /// A job that is here has processes now, or none: it uses no memory then.
    pub fn populated(&mut self, id: JobId, populated: bool) {
        if let Some(here) = self.here.get_mut(&id) {
            self.is_stale |= here.populated != populated;
            here.populated = populated;
        }
    }

    /// A job that is here is left to the operating system for the rest of its life: no plan of the cluster's has room for it,
    /// and what the cluster says of a job of this number may be said of another one.
    pub fn leave(&mut self, id: JobId) {
        let Some(here) = self.here.get_mut(&id).filter(|here| !here.left) else { return };
        (here.left, here.says, self.is_stale) = (true, None, true);
        if !here.job.spans {
            self.note(id, PlannerInput::End(id));
        }
    }

    /// A user suspends a job that is here, or lets it go on, before the cluster has said so.
    pub fn suspend(&mut self, id: JobId, suspended: bool) {
        let Some(here) = self.here.get_mut(&id).filter(|here| here.job.suspended != suspended) else { return };
        here.job.suspended = suspended;
        let (job, left) = (here.job, here.left);
        if !left {
            self.note_standing(id, &job);
        }
        self.actions.push_back(LocalAction::Keep(id, job));
        self.is_stale = true;
    }

    /// What auto has chosen for a job.
    pub fn choose(&mut self, id: JobId, policy: Policy, reason: Reason) {
        if self.here.get(&id).is_some_and(|here| !here.job.spans && !here.left) {
            self.note(id, PlannerInput::Choice(id, policy, reason));
        }
    }

    /// Runs by this plan of the cluster's. Gangs that it does not have go on early until a later plan has them.
    pub fn use_plan(&mut self, plan: Arc<ClusterPlan>) {
        self.early.retain(|id| !plan.jobs.contains_key(id));
        (self.cluster, self.is_stale, self.followed) = (Some(plan), true, None);
    }

    /// Gangs that span nodes are left to the operating system.
    pub fn no_slots(&mut self) {
        self.early.clear();
        (self.cluster, self.is_stale, self.followed) = (None, true, None);
    }

    /// Lets a gang run before its plan holds.
    pub fn start_early(&mut self, id: JobId) {
        self.early.insert(id);
        self.is_stale = true;
    }

    /// Whether the clock is good enough for slots. Also to be called when it was set: times in a future that has moved away are set right.
    pub fn clock(&mut self, now: Time, is_good: bool) {
        self.slots = is_good;
        self.agent.handle(now, AgentInput::Plan(Arc::clone(&self.plan)));
    }

    /// Lets what has changed take effect; whether there is another plan. Before anything is known of the cluster the node's own plan is all
    /// there is.
    pub fn settle(&mut self, now: Time, known: Option<Known>) -> bool {
        if let Some(known) = &known {
            self.follow(known);
        }
        if take(&mut self.is_noted) {
            self.own.plan_noted(now);
            while let Some(action) = self.own.poll_action() {
                match action {
                    PlannerAction::Publish(..) => self.is_stale = true,
                    PlannerAction::Unsound(flaw) => self.unsound(flaw),
                }
            }
        }
        if !take(&mut self.is_stale) {
            return false;
        }
        let mut plan = self.planned(known);
        (self.alter)(&mut plan);
        // Two planners make it, and the node may fall back to one of them, or the store may lose its data: it counts for itself.
        plan.generation = self.plan.generation + 1;
        self.plan = Arc::new(plan);
        self.set.retain(|id, _| self.plan.jobs.contains_key(id));
        self.agent.handle(now, AgentInput::Plan(Arc::clone(&self.plan)));
        true
    }

    fn planned(&mut self, known: Option<Known>) -> Plan {
        let (goes_on, held) = known.map(|known| self.held(&known)).unwrap_or_default();
        let plan = match (&self.cluster, known) {
            (Some(cluster), Some(known)) => {
                let (filled, flaw) = fill(cluster, known.node, self.own.plan(), &self.shares, &goes_on);
                if let Some(flaw) = flaw {
                    self.unsound(flaw);
                }
                filled
            }
            _ => without(self.own.plan(), &held, &self.shares),
        };
        if self.is_single { cap(plan, self.ceiling_permille) } else { plan }
    }

    /// Of the jobs that are held here for want of memory those that go on, because nobody plans for this node now and they have room,
    /// and the others.
    fn held(&self, known: &Known) -> (BTreeSet<JobId>, BTreeSet<JobId>) {
        let lives = |id: JobId| self.here.get(&id).is_some_and(|here| here.populated);
        let goes_on = match known.in_touch {
            true => BTreeSet::new(),
            false => released(known.state, known.node, lives),
        };
        let others = &held(known.state, known.node) - &goes_on;
        (goes_on, others)
    }

    fn unsound(&mut self, flaw: Flaw) {
        self.actions.push_back(LocalAction::Agent(AgentAction::Unsound(flaw)));
    }

    fn submit(&mut self, id: JobId, job: &LocalJob) {
        let LocalJob { owner, class, policy, cpus, .. } = *job;
        self.note(id, PlannerInput::Submit(Job { id, owner, class, policy, cpus, node: Some(HERE) }));
        if job.slot_share.is_some() {
            self.note(id, PlannerInput::Share(id, job.slot_share));
        }
        if job.suspended {
            self.note(id, PlannerInput::Suspend(id));
        } else if self.is_asleep(id) {
            self.note(id, PlannerInput::Asleep(id));
        }
    }

    fn note_standing(&mut self, id: JobId, job: &LocalJob) {
        if !job.spans {
            self.note(id, if job.suspended { PlannerInput::Suspend(id) } else { PlannerInput::Resume(id) });
        }
    }

    fn note(&mut self, id: JobId, input: PlannerInput) {
        match self.own.note(input) {
            Ok(()) => self.is_noted = true,
            Err(e) => self.actions.push_back(LocalAction::Refused(id, e)),
        }
    }

    /// When the host is to call [`LocalScheduler::handle_timeout`], by the wall clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.agent.poll_timeout().map(|(at, _)| at)
    }

    /// It is `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.agent.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.agent.handle_timeout(now);
        }
    }

    /// A job's CPU time.
    pub fn cpu_time(&mut self, now: Time, job: JobId, cpu_time_ns: u64) {
        self.agent.handle(now, AgentInput::CpuTime { job, cpu_time_ns });
    }

    /// What the host has to do, except for what jobs may do, which [`LocalScheduler::disposition`] tells.
    pub fn poll_action(&mut self) -> Option<LocalAction> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        loop {
            match self.agent.poll_action()? {
                AgentAction::Set { job, to, .. } => drop(self.set.insert(job, to)),
                action => {
                    match action {
                        AgentAction::Asleep { job, .. } => self.sleeps(job, true),
                        AgentAction::Awake { job, .. } => self.sleeps(job, false),
                        _ => (),
                    }
                    return Some(LocalAction::Agent(action));
                }
            }
        }
    }

    fn sleeps(&mut self, id: JobId, asleep: bool) {
        let Some(here) = self.here.get_mut(&id) else { return };
        here.asleep = asleep;
        if !here.job.spans && !here.left {
            self.note(id, if asleep { PlannerInput::Asleep(id) } else { PlannerInput::Awake(id) });
        }
    }

    /// What a job may do now, where the agent drives the boundaries.
    pub fn disposition(&self, id: JobId) -> Disposition {
        match self.set.get(&id) {
            Some(_) if !self.slots => match self.plan.jobs.get(&id).map(|job| job.standing) {
                Some(Standing::Suspended) => Disposition::Stop,
                _ => Disposition::Run,
            },
            Some(to) => *to,
            None => self.unplanned(id),
        }
    }

    /// What a job does that the plan of this node does not have.
    pub fn unplanned(&self, id: JobId) -> Disposition {
        let spanning = self.here.get(&id).filter(|here| here.job.spans);
        match spanning.and_then(|here| here.says) {
            Some((Stage::Waiting(_), _) | (Stage::Ready, Standing::Suspended)) => Disposition::Stop,
            // It has begun, and its plan is still to come: until then the CPUs are others'.
            Some((Stage::Ready, _)) if self.cluster.is_some() && !self.early.contains(&id) => match self.plan.sharing {
                Sharing::Strict => Disposition::Stop,
                Sharing::Soft | Sharing::Paired => Disposition::Background,
            },
            _ => Disposition::Run,
        }
    }

    /// The gangs that own CPUs now, where the agent drives the boundaries.
    pub fn owners(&self) -> impl Iterator<Item = (JobId, &PlannedJob)> {
        let owns = |(id, to): (&JobId, &Disposition)| {
            let job = self.plan.jobs.get(id)?;
            (self.slots && *to == Disposition::Run && job.home.is_some() && job.turns > 0).then_some((*id, job))
        };
        self.set.iter().filter_map(owns)
    }
}
