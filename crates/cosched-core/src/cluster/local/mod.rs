//! The local scheduler: how a node runs the jobs that it has.
//!
//! Rule. The node's own planner has its single-node jobs: first as the host's records describe them, then as the cluster's state does
//! (`mirror.rs`). While a plan of the cluster is in force, `fill` adds these jobs to the gangs that span nodes. Otherwise (no lease, a clock
//! that is not good enough, no cluster yet) only the node's own plan applies, and gangs that span nodes are left to the operating
//! system. Jobs that a user suspended or that wait for memory stay stopped; the latter continue when there is room and no planner
//! reaches the node (`adrift.rs`). An agent watches whether gangs use their slots.
//!
//! The host reports which jobs are on the node, carries out the actions of `poll_action`, and calls `settle` after a change.

mod mirror;
#[cfg(test)]
mod tests;

use super::adrift::{held, released};
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

/// This node in its own planner, which has no other nodes.
const THIS_NODE: NodeId = NodeId(0);

/// The parameters of a local scheduler.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The node's CPUs.
    pub cpus: u32,
    /// Their topology, where gangs have places; it must have as many CPUs.
    pub topology: Option<Arc<Topology>>,
    /// The length of a slot in nanoseconds. This and the next four fields apply until the cluster's state has other values.
    pub slot_length_ns: u64,
    /// The policy of jobs that have none of their own.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// How the node's own gangs are placed on its CPUs.
    pub packing: Packing,
    /// The classes' shares.
    pub shares: Shares,
    /// Whether this is the cluster's only node, so that its ceiling applies to all gangs. Otherwise the ceiling applies to gangs that span nodes,
    /// and their plan already observes it.
    pub is_single: bool,
    /// The parameters of the agent, which watches the jobs.
    pub agent: AgentConfig,
}

impl LocalConfig {
    /// The defaults, for a node with this number of CPUs.
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

/// A job's part on this node, as the node plans with it. The host keeps it on disk, so that the job is scheduled the same before the store
/// has answered, or without a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalJob {
    /// The owner's user ID.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy, if it has one.
    pub policy: Option<Policy>,
    /// The largest part of the slots that it may have.
    pub slot_share: Option<SlotShare>,
    /// Its CPUs on this node.
    pub cpus: u32,
    /// The memory that it requested on this node; 0 if it requested none.
    pub memory_bytes: u64,
    /// A user has suspended it.
    pub suspended: bool,
    /// It has parts on other nodes.
    pub spans: bool,
    /// It has its cores to itself.
    pub exclusive_cores: bool,
}

/// The node's knowledge of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// This node's number.
    pub node: NodeId,
    /// The newest state known here. A state is evaluated once; its revision identifies it.
    pub state: &'a State,
    /// The revision of `state`.
    pub revision: u64,
    /// Whether the node is connected to the store.
    pub in_touch: bool,
}

/// What the host has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAction {
    /// An action of the agent. When a gang has fallen asleep or woken, that has taken effect on this node; the host has to report it to the cluster.
    Agent(AgentAction),
    /// The cluster has changed a job: the host has to keep the new description.
    Keep(JobId, LocalJob),
    /// The node's own planner cannot carry out a change of a job; for the log.
    Refused(JobId, PlannerError),
}

/// A job on this node.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    job: LocalJob,
    /// It has processes now.
    populated: bool,
    /// It is left to the operating system.
    left: bool,
    /// It uses no CPU, as far as this node knows.
    asleep: bool,
    /// Its stage and standing in the cluster's newest state.
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
    is_single: bool,
    tracked: BTreeMap<JobId, Tracked>,
    plan: Arc<Plan>,
    set: BTreeMap<JobId, Disposition>,
    early: BTreeSet<JobId>,
    /// The revision of the last state that was evaluated, and whether the node was connected then; `None` if something has changed here since.
    followed: Option<(u64, bool)>,
    /// The own planner has had inputs since its last plan.
    is_noted: bool,
    /// A new plan has to be made.
    is_stale: bool,
    actions: VecDeque<LocalAction>,
    alter: fn(&mut Plan),
}

impl LocalScheduler {
    /// A scheduler without jobs and without a plan of the cluster.
    pub fn new(config: LocalConfig) -> LocalScheduler {
        let own = Planner::new(PlannerConfig {
            nodes: vec![Node { id: THIS_NODE, cpus: config.cpus }],
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
            agent: Agent::new(AgentConfig { node: THIS_NODE, ..config.agent }),
            cluster: None,
            slots: true,
            shares: config.shares,
            is_single: config.is_single,
            tracked: BTreeMap::new(),
            set: BTreeMap::new(),
            early: BTreeSet::new(),
            followed: None,
            is_noted: false,
            is_stale: false,
            actions: VecDeque::new(),
            alter: |_| (),
        }
    }

    /// Remembers the columns that a job had, before it begins here.
    pub fn remember_place(&mut self, id: JobId, columns: Vec<u32>) {
        self.own.remember_place(id, columns);
    }

    /// The same scheduler, but every plan is changed by `alter`: for tests that faults in plans are detected.
    pub fn altered_by(self, alter: fn(&mut Plan)) -> LocalScheduler {
        LocalScheduler { alter, ..self }
    }

    /// The node's plan: the gangs that span nodes and its own jobs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The cluster's plan in use; `None` while gangs that span nodes have no slots.
    pub fn cluster_plan(&self) -> Option<&Arc<ClusterPlan>> {
        self.cluster.as_ref()
    }

    /// Whether gangs have slots: the clock is good enough for them.
    pub fn has_slots(&self) -> bool {
        self.slots
    }

    /// The cores of this node, where gangs have places.
    pub fn cores(&self) -> Option<u32> {
        self.own.cores()
    }

    /// The gangs that run before their plan is in force.
    pub fn early(&self) -> &BTreeSet<JobId> {
        &self.early
    }

    /// A job on this node, as the node plans with it.
    pub fn job(&self, id: JobId) -> Option<&LocalJob> {
        self.tracked.get(&id).map(|tracked| &tracked.job)
    }

    /// Whether a gang on this node uses no CPU.
    pub fn is_asleep(&self, id: JobId) -> bool {
        self.tracked.get(&id).is_some_and(|tracked| tracked.asleep)
    }

    /// A job has a place on this node, or was found on it.
    pub fn begin(&mut self, id: JobId, job: LocalJob) {
        self.tracked.insert(id, Tracked { job, populated: true, left: false, asleep: false, says: None });
        (self.is_stale, self.followed) = (true, None);
        if !job.spans {
            self.submit(id, &job);
        }
    }

    /// A job is no longer on this node.
    pub fn end(&mut self, id: JobId) {
        if self.tracked.remove(&id).is_some_and(|tracked| !tracked.job.spans && !tracked.left) {
            // The planner does not have a job that it refused.
            let _ = self.own.note(PlannerInput::End(id));
            self.is_noted = true;
        }
        self.early.remove(&id);
        self.is_stale = true;
    }

    /// A job on this node has processes now, or has none, and then uses no memory.
    pub fn populated(&mut self, id: JobId, populated: bool) {
        if let Some(tracked) = self.tracked.get_mut(&id) {
            self.is_stale |= tracked.populated != populated;
            tracked.populated = populated;
        }
    }

    /// A job on this node is left to the operating system until it ends: no plan of the cluster has room for it, and what the cluster's
    /// state says of a job of this number may be about another one.
    pub fn leave(&mut self, id: JobId) {
        let Some(tracked) = self.tracked.get_mut(&id).filter(|tracked| !tracked.left) else { return };
        (tracked.left, tracked.says, self.is_stale) = (true, None, true);
        if !tracked.job.spans {
            self.note(id, PlannerInput::End(id));
        }
    }

    /// A user suspends a job on this node, or resumes it, before the cluster's state shows it.
    pub fn suspend(&mut self, id: JobId, suspended: bool) {
        let Some(tracked) = self.tracked.get_mut(&id).filter(|tracked| tracked.job.suspended != suspended) else {
            return;
        };
        tracked.job.suspended = suspended;
        let (job, left) = (tracked.job, tracked.left);
        if !left {
            self.note_standing(id, &job);
        }
        self.actions.push_back(LocalAction::Keep(id, job));
        self.is_stale = true;
    }

    /// The policy that auto has chosen for a job.
    pub fn choose(&mut self, id: JobId, policy: Policy, reason: Reason) {
        if self.tracked.get(&id).is_some_and(|tracked| !tracked.job.spans && !tracked.left) {
            self.note(id, PlannerInput::Choice(id, policy, reason));
        }
    }

    /// Follows this plan of the cluster. Early gangs that it does not contain continue to run early until a later plan contains them.
    pub fn use_plan(&mut self, plan: Arc<ClusterPlan>) {
        self.early.retain(|id| !plan.jobs.contains_key(id));
        (self.cluster, self.is_stale, self.followed) = (Some(plan), true, None);
    }

    /// Gangs that span nodes are left to the operating system.
    pub fn no_slots(&mut self) {
        self.early.clear();
        (self.cluster, self.is_stale, self.followed) = (None, true, None);
    }

    /// Lets a gang run before its plan is in force.
    pub fn start_early(&mut self, id: JobId) {
        self.early.insert(id);
        self.is_stale = true;
    }

    /// Whether the clock is good enough for slots. Also to be called when the clock was set: times that are now too far in the future are corrected.
    pub fn clock(&mut self, now: Time, is_good: bool) {
        self.slots = is_good;
        self.agent.handle(now, AgentInput::Plan(Arc::clone(&self.plan)));
    }

    /// Applies what has changed. Returns whether there is a new plan. While nothing is known of the cluster, the node's own plan is the
    /// whole plan.
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
        // Plans come from two planners, the node may fall back to one of them, and the store may lose its data: it counts generations for itself.
        plan.generation = self.plan.generation + 1;
        self.plan = Arc::new(plan);
        self.set.retain(|id, _| self.plan.jobs.contains_key(id));
        self.agent.handle(now, AgentInput::Plan(Arc::clone(&self.plan)));
        true
    }

    fn planned(&mut self, known: Option<Known>) -> Plan {
        let (continuing, held) = known.map(|known| self.held(&known)).unwrap_or_default();
        match (&self.cluster, known) {
            (Some(cluster), Some(known)) => {
                let (filled, flaw) = fill(cluster, known.node, self.own.plan(), &self.shares, &continuing);
                if let Some(flaw) = flaw {
                    self.unsound(flaw);
                }
                filled
            }
            _ => without(self.own.plan(), &held, &self.shares),
        }
    }

    /// Of the jobs that are held on this node because of a lack of memory: those that continue, because no planner reaches this node and they
    /// fit into memory, and the others.
    fn held(&self, known: &Known) -> (BTreeSet<JobId>, BTreeSet<JobId>) {
        let lives = |id: JobId| self.tracked.get(&id).is_some_and(|tracked| tracked.populated);
        let continuing = match known.in_touch {
            true => BTreeSet::new(),
            false => released(known.state, known.node, lives),
        };
        let others = &held(known.state, known.node) - &continuing;
        (continuing, others)
    }

    fn unsound(&mut self, flaw: Flaw) {
        self.actions.push_back(LocalAction::Agent(AgentAction::Unsound(flaw)));
    }

    fn submit(&mut self, id: JobId, job: &LocalJob) {
        let LocalJob { owner, class, policy, cpus, .. } = *job;
        self.note(id, PlannerInput::Submit(Job { id, owner, class, policy, cpus, node: Some(THIS_NODE) }));
        if job.slot_share.is_some() {
            self.note(id, PlannerInput::Share(id, job.slot_share));
        }
        if job.exclusive_cores {
            self.note(id, PlannerInput::WholeCores(id));
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

    /// When [`LocalScheduler::handle_timeout`] is to be called, by the wall clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.agent.poll_timeout().map(|(at, _)| at)
    }

    /// Time has passed; it is now `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.agent.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.agent.handle_timeout(now);
        }
    }

    /// A job's CPU time, as measured.
    pub fn cpu_time(&mut self, now: Time, job: JobId, cpu_time_ns: u64) {
        self.agent.handle(now, AgentInput::CpuTime { job, cpu_time_ns });
    }

    /// The next action for the host, except for what jobs may do: that is in [`LocalScheduler::disposition`].
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
        let Some(tracked) = self.tracked.get_mut(&id) else { return };
        tracked.asleep = asleep;
        if !tracked.job.spans && !tracked.left {
            self.note(id, if asleep { PlannerInput::Asleep(id) } else { PlannerInput::Awake(id) });
        }
    }

    /// What a job may do now, for hosts where the agent changes over at slot boundaries.
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

    /// What a job may do that is not in this node's plan.
    pub fn unplanned(&self, id: JobId) -> Disposition {
        let spanning = self.tracked.get(&id).filter(|tracked| tracked.job.spans);
        match spanning.and_then(|tracked| tracked.says) {
            Some((Stage::Waiting(_), _) | (Stage::Ready, Standing::Suspended)) => Disposition::Stop,
            // It has begun before its plan has arrived: until then the CPUs belong to other jobs.
            Some((Stage::Ready, _)) if self.cluster.is_some() && !self.early.contains(&id) => match self.plan.sharing {
                Sharing::Strict => Disposition::Stop,
                Sharing::Soft | Sharing::Paired => Disposition::Background,
            },
            _ => Disposition::Run,
        }
    }

    /// The gangs that own CPUs now, for hosts where the agent changes over at slot boundaries.
    pub fn owners(&self) -> impl Iterator<Item = (JobId, &PlannedJob)> {
        let owns = |(id, to): (&JobId, &Disposition)| {
            let job = self.plan.jobs.get(id)?;
            (self.slots && *to == Disposition::Run && job.home.is_some() && job.turns > 0).then_some((*id, job))
        };
        self.set.iter().filter_map(owns)
    }
}
