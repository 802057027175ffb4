//! The local scheduler: what a node does by the cluster's plans for the jobs that are there.
//!
//! Rule. A planner of the node's own has its single-node jobs, as the cluster's plan tells of them; `fill` puts them beside the gangs
//! that span nodes; an agent says at every boundary what each job may do. Without a plan that holds (no lease, a bad clock) all
//! jobs are left to the operating system, but those that a user suspended or that wait for memory stay stopped; these go on
//! when they can and nobody plans (`adrift.rs`).

use super::fill::fill;
use super::plan::{Plan as ClusterPlan, PlannedJob};
use super::state::{Stage, State};
use crate::agent::{Agent, AgentAction, AgentConfig, AgentInput};
use crate::class::{Class, Shares};
use crate::id::{JobId, NodeId};
use crate::job::{Job, Node, Packing, Policy, Sharing};
use crate::plan::{Disposition, Plan, Standing};
use crate::planner::{Planner, PlannerAction, PlannerConfig, PlannerInput};
use crate::policy::SLOT_LENGTH_NS;
use crate::sound::Flaw;
use crate::time::Time;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Whether a job has processes on the node.
pub type Lives<'a> = &'a dyn Fn(JobId) -> bool;

/// The local scheduler of a node.
#[derive(Debug)]
pub struct LocalScheduler {
    node: NodeId,
    own: Planner,
    agent: Agent,
    plan: Option<Arc<ClusterPlan>>,
    slots: bool,
    shares: Shares,
    filled: Arc<Plan>,
    set: BTreeMap<JobId, Disposition>,
    early: BTreeSet<JobId>,
    released: BTreeSet<JobId>,
    flaws: VecDeque<Flaw>,
    alter: fn(&mut Plan),
}

impl LocalScheduler {
    /// One without a plan, for a node of so many CPUs. The agent announces every boundary.
    pub fn new(node: NodeId, cpus: u32, agent: AgentConfig) -> LocalScheduler {
        let own = Planner::new(PlannerConfig {
            nodes: vec![Node { id: node, cpus }],
            slot_length_ns: *SLOT_LENGTH_NS.start(),
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        let filled = Arc::clone(own.plan());
        LocalScheduler {
            node,
            own,
            agent: Agent::new(AgentConfig { node, drive_boundaries: true, ..agent }),
            plan: None,
            slots: false,
            shares: Shares::default(),
            filled,
            set: BTreeMap::new(),
            early: BTreeSet::new(),
            released: BTreeSet::new(),
            flaws: VecDeque::new(),
            alter: |_| (),
        }
    }

    /// The same, but that what it has planned is changed by `alter`: to show that somebody notices.
    pub fn altered_by(self, alter: fn(&mut Plan)) -> LocalScheduler {
        LocalScheduler { alter, ..self }
    }

    /// Whose plans it follows.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The cluster's plan in use or the last one, and whether there are slots.
    pub fn plan(&self) -> (Option<&Arc<ClusterPlan>>, bool) {
        (self.plan.as_ref(), self.slots)
    }

    /// What the node does: the gangs that span nodes and its own.
    pub fn filled(&self) -> &Arc<Plan> {
        &self.filled
    }

    /// The gangs that run before their plan holds.
    pub fn early(&self) -> &BTreeSet<JobId> {
        &self.early
    }

    /// Runs by this plan.
    pub fn use_plan(&mut self, now: Time, plan: Arc<ClusterPlan>, shares: Shares, lives: Lives) {
        (self.plan, self.slots, self.shares) = (Some(plan), true, shares);
        self.refresh(now, lives);
    }

    /// Leaves all jobs to the operating system.
    pub fn no_slots(&mut self, now: Time, lives: Lives) {
        self.slots = false;
        self.refresh(now, lives);
    }

    /// What users have decided since the last plan, and who waits for memory, counts also while there are no slots; not what a copy of
    /// the store says that was put back, by which a job has not begun.
    pub fn know(&mut self, now: Time, state: &State, lives: Lives) {
        let Some(plan) = self.plan.as_ref().filter(|_| !self.slots) else { return };
        let node = self.node;
        let known = |id: &JobId| {
            let job = state.jobs.get(id)?;
            let is_here = job.place.as_ref()?.parts.iter().any(|part| part.node == node);
            is_here.then_some((job.standing, job.stage))
        };
        let is_news = |(id, job): (&JobId, &PlannedJob)| known(id).is_some_and(|of| of != (job.standing, job.stage));
        if plan.jobs.iter().any(is_news) {
            let mut plan = ClusterPlan::clone(plan);
            for (id, job) in &mut plan.jobs {
                (job.standing, job.stage) = known(id).unwrap_or((job.standing, job.stage));
            }
            self.plan = Some(Arc::new(plan));
            self.refresh(now, lives);
        }
    }

    /// Lets a gang run before its plan holds.
    pub fn start_early(&mut self, job: JobId) {
        self.early.insert(job);
    }

    /// These go on, though the last plan holds them: nobody plans for the node now. Counts from the next plan or change on.
    pub fn release(&mut self, jobs: BTreeSet<JobId>) {
        self.released = jobs;
    }

    /// Jobs came or went here, or the clock was set.
    pub fn refresh(&mut self, now: Time, lives: Lives) {
        self.tend(now, lives);
        let Some(plan) = &self.plan else { return };
        self.early.retain(|job| plan.jobs.get(job).is_none_or(|job| job.home.is_none()));
        let (mut filled, flaw) = fill(plan, self.node, self.own.plan(), &self.shares, &self.released);
        if self.slots {
            self.flaws.extend(flaw);
        } else {
            // What users have decided since the last plan may contradict its slots, which are not used.
            filled.drop_slots();
        }
        (self.alter)(&mut filled);
        // Also when the store has lost its data and generations begin anew.
        filled.generation = self.filled.generation + 1;
        self.filled = Arc::new(filled);
        self.set.retain(|job, _| self.filled.jobs.contains_key(job));
        self.agent.handle(now, AgentInput::Plan(Arc::clone(&self.filled)));
    }

    /// Tells the own planner of the single-node jobs here, as the cluster's plan has them.
    fn tend(&mut self, now: Time, lives: Lives) {
        let Some(plan) = self.plan.clone() else { return };
        let node = self.node;
        let alone = |job: &PlannedJob| matches!(&job.parts[..], [part] if part.node == node);
        let stays = |job: &PlannedJob| alone(job) && matches!(job.stage, Stage::Ready | Stage::Waiting(_));
        let wanted: BTreeMap<JobId, &PlannedJob> =
            plan.jobs.iter().filter(|(id, job)| stays(job) && lives(**id)).map(|(id, job)| (*id, job)).collect();
        for input in [
            PlannerInput::MachinePolicy(plan.policy),
            PlannerInput::MachineSharing(plan.sharing),
            PlannerInput::SlotLength(plan.slot_length_ns),
            PlannerInput::Shares(self.shares),
        ] {
            self.tell(now, input);
        }
        let gone: Vec<JobId> = self.own.plan().jobs.keys().copied().filter(|id| !wanted.contains_key(id)).collect();
        gone.into_iter().for_each(|id| self.tell(now, PlannerInput::End(id)));
        for (id, job) in wanted {
            self.tend_job(now, id, job);
        }
    }

    fn tend_job(&mut self, now: Time, id: JobId, job: &PlannedJob) {
        if !self.own.plan().jobs.contains_key(&id) {
            let cpus = job.parts[0].cpus;
            let policy = Some(job.policy);
            self.tell(
                now,
                PlannerInput::Submit(Job { id, owner: 0, class: job.class, policy, cpus, node: Some(self.node) }),
            );
        }
        let cpus = job.parts[0].cpus;
        if self.own.plan().jobs.get(&id).is_some_and(|known| known.cpus != cpus) {
            self.tell(now, PlannerInput::Cpus(id, cpus));
        }
        let known = self.own.plan().jobs.get(&id).map(|known| (known.class, known.policy, known.standing));
        let (class, policy, standing) = known.unwrap_or((Class::Batch, Policy::Gang, Standing::Scheduled));
        if class != job.class {
            self.tell(now, PlannerInput::Class(id, job.class));
        }
        if policy != job.policy {
            self.tell(now, PlannerInput::JobPolicy(id, Some(job.policy)));
        }
        match job.standing {
            wanted if wanted == standing => (),
            Standing::Scheduled => self.tell(now, PlannerInput::Resume(id)),
            Standing::Suspended => self.tell(now, PlannerInput::Suspend(id)),
            Standing::Asleep => {
                self.tell(now, PlannerInput::Resume(id));
                self.tell(now, PlannerInput::Asleep(id));
            }
        }
    }

    fn tell(&mut self, now: Time, input: PlannerInput) {
        // What it refuses shows in what it then plans.
        let _ = self.own.handle(now, input);
        while let Some(action) = self.own.poll_action() {
            if let PlannerAction::Unsound(flaw) = action {
                self.flaws.push_back(flaw);
            }
        }
    }

    /// When the driver wants to be woken, by the wall clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.agent.poll_timeout().map(|(at, _)| at)
    }

    /// It is `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.agent.handle_timeout(now);
    }

    /// A job's CPU time.
    pub fn cpu_time(&mut self, now: Time, job: JobId, cpu_time_ns: u64) {
        self.agent.handle(now, AgentInput::CpuTime { job, cpu_time_ns });
    }

    /// What the host has to do, except for what jobs may do, which [`LocalScheduler::disposition`] tells.
    pub fn poll_action(&mut self) -> Option<AgentAction> {
        if let Some(flaw) = self.flaws.pop_front() {
            return Some(AgentAction::Unsound(flaw));
        }
        loop {
            match self.agent.poll_action()? {
                AgentAction::Set { job, to, .. } => drop(self.set.insert(job, to)),
                other => return Some(other),
            }
        }
    }

    /// What a job may do now. One that `waits` for the plan that has it stays stopped until that holds: others have its CPUs.
    pub fn disposition(&self, id: JobId, waits: bool) -> Disposition {
        match self.set.get(&id) {
            Some(_) if self.early.contains(&id) => Disposition::Run,
            Some(to) => *to,
            None if self.slots && waits && !self.early.contains(&id) => Disposition::Stop,
            None => Disposition::Run,
        }
    }

    /// The gangs that own CPUs now.
    pub fn owners(&self) -> impl Iterator<Item = (JobId, &crate::plan::PlannedJob)> {
        let owns = |(id, to): (&JobId, &Disposition)| {
            let job = self.filled.jobs.get(id)?;
            (*to == Disposition::Run && job.home.is_some() && job.turns > 0).then_some((*id, job))
        };
        self.set.iter().filter_map(owns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Input, JobSpec, NodeWant, OnNodeLoss, Planner as ClusterPlanner, Want, two_nodes};
    use super::*;
    use crate::Reason;

    const HERE: NodeId = NodeId(0);

    /// Two nodes of two CPUs: job 1 has both CPUs of both, job 2 one of node 0.
    fn cluster() -> ClusterPlanner {
        let mut planner = two_nodes(2);
        for (id, nodes, cpus) in [(1, &[0, 1][..], 2), (2, &[0][..], 1)] {
            let want = |node: &u32| NodeWant { node: NodeId(*node), cpus, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 };
            let want = Want::PerNode(nodes.iter().map(want).collect());
            let (class, on_node_loss) = (Class::Batch, OnNodeLoss::Kill);
            let spec = JobSpec { id: JobId(id), owner: 0, class, policy: None, want, queue: 0, on_node_loss };
            planner.handle(Time(0), Time(0), Input::Submit(spec)).unwrap();
        }
        planner
    }

    fn local() -> LocalScheduler {
        LocalScheduler::new(HERE, 2, AgentConfig::default())
    }

    fn drain(local: &mut LocalScheduler) {
        while let Some(action) = local.poll_action() {
            assert!(!matches!(action, AgentAction::Unsound(_)), "{action:?}");
        }
    }

    #[test]
    fn a_part_that_waits_for_its_plan_is_stopped_while_there_are_slots() {
        let mut local = local();
        let id = JobId(9);
        assert_eq!(local.disposition(id, true), Disposition::Run, "nobody has slots yet");
        local.use_plan(Time(0), Arc::clone(cluster().plan()), Shares::default(), &|_| true);
        drain(&mut local);
        assert_eq!((local.disposition(id, true), local.disposition(id, false)), (Disposition::Stop, Disposition::Run));
        local.start_early(id);
        assert_eq!(local.disposition(id, true), Disposition::Run);
        let other = JobId(10);
        assert_eq!(local.disposition(other, true), Disposition::Stop);
        local.no_slots(Time(1), &|_| true);
        drain(&mut local);
        assert_eq!(local.disposition(other, true), Disposition::Run);
    }

    #[test]
    fn who_has_processes_here_is_planned_here() {
        let mut local = local();
        local.use_plan(Time(0), Arc::clone(cluster().plan()), Shares::default(), &|id| id != JobId(2));
        drain(&mut local);
        assert_eq!(local.filled().jobs.keys().copied().collect::<Vec<_>>(), [JobId(1)]);
        local.refresh(Time(1), &|_| true);
        drain(&mut local);
        assert_eq!(local.filled().jobs.keys().copied().collect::<Vec<_>>(), [JobId(1), JobId(2)]);
    }

    #[test]
    fn what_a_user_has_decided_counts_also_while_there_are_no_slots() {
        let mut planner = cluster();
        let mut local = local();
        local.use_plan(Time(0), Arc::clone(planner.plan()), Shares::default(), &|_| true);
        planner.handle(Time(1), Time(1), Input::Suspend(JobId(2))).unwrap();
        local.know(Time(1), planner.state(), &|_| true);
        assert_eq!(local.filled().jobs[&JobId(2)].standing, Standing::Scheduled, "the next plan is about to tell");
        local.no_slots(Time(2), &|_| true);
        local.know(Time(2), planner.state(), &|_| true);
        drain(&mut local);
        assert_eq!(local.filled().jobs[&JobId(2)].standing, Standing::Suspended);
        assert_eq!(local.disposition(JobId(2), false), Disposition::Stop);
        assert_eq!(local.disposition(JobId(1), false), Disposition::Run);
    }

    /// What has no place any more by a copy of the store that was put back goes on.
    #[test]
    fn a_state_that_does_not_know_a_job_changes_nothing_of_it() {
        let mut local = local();
        local.use_plan(Time(0), Arc::clone(cluster().plan()), Shares::default(), &|_| true);
        local.no_slots(Time(1), &|_| true);
        local.know(Time(2), &State::default(), &|_| true);
        drain(&mut local);
        assert_eq!(local.filled().jobs[&JobId(2)].standing, Standing::Scheduled);
        assert_eq!(local.disposition(JobId(2), false), Disposition::Run);
    }

    #[test]
    fn a_flaw_of_what_was_made_here_is_told_once() {
        let mut local = local();
        local.flaws.push_back(Flaw::Order(3));
        assert_eq!(local.poll_action(), Some(AgentAction::Unsound(Flaw::Order(3))));
        assert_eq!(local.poll_action(), None);
        let job = Job { id: JobId(1), owner: 0, class: Class::Batch, policy: None, cpus: 99, node: Some(HERE) };
        local.tell(Time(0), PlannerInput::Submit(job));
        assert_eq!(local.poll_action(), None, "a refusal is none: {}", Reason::Arrival);
    }
}
