//! What a daemon does with the cluster's plan on its node, in small: its own planner for single-node jobs, `fill`, and an
//! agent that says at every boundary what each job may do.
//!
//! Without a plan that holds (no lease, a bad clock) all jobs are left to the operating system, but those that a user
//! suspended or that wait for memory stay stopped; these go on when they can and nobody plans (core `adrift.rs`).

use super::processes::{Local, Processes};
use cosched_core::cluster::{Plan as ClusterPlan, PlannedJob, Stage, State, fill};
use cosched_core::{
    Agent, AgentAction, AgentConfig, AgentInput, Class, Disposition, Job, JobId, Node, NodeId, Packing, Plan, Planner,
    PlannerConfig, PlannerInput, Policy, Shares, Sharing, Standing, Time,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A slot as it begins on a node, or as it goes on under another plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotBegins {
    /// The cluster's plan that is followed.
    pub plan: Arc<ClusterPlan>,
    /// The slot; 0 always where all slots of the plan are the same.
    pub slot: u64,
    /// The gangs that own CPUs now, with how many.
    pub own: BTreeMap<JobId, u32>,
    /// Gangs that were started before their plan holds.
    pub early: BTreeSet<JobId>,
}

/// A way in which the harness itself is broken on purpose, to show that somebody notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mangle {
    /// Every gang has every turn.
    AllAtOnce,
    /// Turns are one slot late.
    OneLate,
}

/// The part of a daemon that runs jobs by plans.
#[derive(Debug)]
pub struct Driver {
    node: NodeId,
    own: Planner,
    agent: Agent,
    /// The plan in use, or the last one.
    plan: Option<Arc<ClusterPlan>>,
    slots: bool,
    shares: Shares,
    filled: Arc<Plan>,
    set: BTreeMap<JobId, Disposition>,
    early: BTreeSet<JobId>,
    released: BTreeSet<JobId>,
    shown: Option<SlotBegins>,
    mangle: Option<Mangle>,
}

impl Driver {
    /// A driver without a plan.
    pub fn new(node: NodeId, cpus: u32, agent: AgentConfig, mangle: Option<Mangle>) -> Driver {
        let own = Planner::new(PlannerConfig {
            nodes: vec![Node { id: node, cpus }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        let filled = Arc::clone(own.plan());
        let agent = Agent::new(AgentConfig { node, drive_boundaries: true, ..agent });
        Driver {
            node,
            own,
            agent,
            plan: None,
            slots: false,
            shares: Shares::default(),
            filled,
            set: BTreeMap::new(),
            early: BTreeSet::new(),
            released: BTreeSet::new(),
            shown: None,
            mangle,
        }
    }

    /// Whose plans it follows.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The plan in use or the last one, and whether there are slots.
    pub fn plan(&self) -> (Option<&Arc<ClusterPlan>>, bool) {
        (self.plan.as_ref(), self.slots)
    }

    /// The length of the node's cycle, in nanoseconds.
    pub fn cycle_ns(&self) -> u64 {
        self.filled.slot_length_ns * self.filled.turns.len() as u64
    }

    /// Runs by this plan.
    pub fn use_plan(&mut self, now: Time, plan: Arc<ClusterPlan>, shares: Shares, here: &Processes) {
        (self.plan, self.slots, self.shares) = (Some(plan), true, shares);
        self.refresh(now, here);
    }

    /// Leaves all jobs to the operating system.
    pub fn no_slots(&mut self, now: Time, here: &Processes) {
        self.slots = false;
        self.refresh(now, here);
    }

    /// What users have decided since the last plan, and who waits for memory, counts also while there are no slots; not what a copy of
    /// the store says that was put back, by which a job has not begun.
    pub fn know(&mut self, now: Time, state: &State, here: &Processes) {
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
            self.refresh(now, here);
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
    pub fn refresh(&mut self, now: Time, here: &Processes) {
        self.tend(now, here);
        let Some(plan) = &self.plan else { return };
        self.early.retain(|job| plan.jobs.get(job).is_none_or(|job| job.home.is_none()));
        let mut filled = fill(plan, self.node, self.own.plan(), &self.shares, &self.released);
        if !self.slots {
            // Plans of nobody: what is stopped for another reason than slots stays so.
            filled.turns.clear();
            filled.jobs.values_mut().for_each(|job| (job.policy, job.turns, job.home) = (Policy::Local, 0, None));
        }
        match self.mangle {
            Some(Mangle::AllAtOnce) => {
                let all: Vec<JobId> = filled.jobs.iter().filter(|(_, j)| j.home.is_some()).map(|(id, _)| *id).collect();
                filled.turns.iter_mut().for_each(|turn| turn.run.clone_from(&all));
            }
            Some(Mangle::OneLate) if !filled.turns.is_empty() => filled.turns.rotate_right(1),
            _ => (),
        }
        // Also when the store has lost its data and generations begin anew.
        filled.generation = self.filled.generation + 1;
        self.filled = Arc::new(filled);
        self.set.retain(|job, _| self.filled.jobs.contains_key(job));
        self.agent.handle(now, AgentInput::Plan(Arc::clone(&self.filled)));
    }

    /// Tells the own planner of the single-node jobs here, as the cluster's plan has them.
    fn tend(&mut self, now: Time, here: &Processes) {
        let Some(plan) = self.plan.clone() else { return };
        let node = self.node;
        let alone = |job: &PlannedJob| matches!(&job.parts[..], [part] if part.node == node);
        let stays = |job: &PlannedJob| alone(job) && matches!(job.stage, Stage::Ready | Stage::Waiting(_));
        let wanted: BTreeMap<JobId, &PlannedJob> = plan
            .jobs
            .iter()
            .filter(|(id, job)| stays(job) && here.parts.get(id).is_some_and(Local::is_alive))
            .map(|(id, job)| (*id, job))
            .collect();
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
        while self.own.poll_action().is_some() {}
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

    /// What the host has to do, except for what jobs may do, which [`Driver::disposition`] tells.
    pub fn poll_action(&mut self) -> Option<AgentAction> {
        loop {
            match self.agent.poll_action()? {
                AgentAction::Set { job, to, .. } => drop(self.set.insert(job, to)),
                other => return Some(other),
            }
        }
    }

    /// What a job may do now.
    pub fn disposition(&self, id: JobId, part: &Local) -> Disposition {
        let known = self.set.get(&id).copied();
        let spanning = self.slots && part.spans && !self.early.contains(&id) && part.dies_at.is_none();
        match known {
            Some(_) if self.early.contains(&id) => Disposition::Run,
            Some(to) => to,
            // Its plan does not hold yet, and others have its CPUs until then.
            None if spanning => Disposition::Stop,
            None => Disposition::Run,
        }
    }

    /// Whether a job is stopped by a user, or waits for memory, as far as is known here.
    pub fn is_held(&self, id: JobId) -> bool {
        self.filled.jobs.get(&id).is_some_and(|job| job.standing == Standing::Suspended)
    }

    /// Tells the present slot once more, for those who look at how long a plan is in use.
    pub fn show_again(&mut self) {
        self.shown = None;
    }

    /// The slot that has begun, if that was not told yet.
    pub fn slot(&mut self, now: Time) -> Option<SlotBegins> {
        let plan = self.plan.as_ref().filter(|_| self.slots)?;
        let owns = |(id, to): (&JobId, &Disposition)| {
            let job = &self.filled.jobs.get(id)?;
            (*to == Disposition::Run && job.home.is_some() && job.turns > 0).then_some((*id, job.cpus))
        };
        let slot = if self.filled.turns.len() > 1 { self.filled.slot_at(now) } else { 0 };
        let own = self.set.iter().filter_map(owns).collect();
        let begins = SlotBegins { plan: Arc::clone(plan), slot, own, early: self.early.clone() };
        let same = self.shown.as_ref().is_some_and(|shown| {
            let of = |s: &SlotBegins| (s.plan.generation, s.slot);
            of(shown) == of(&begins) && shown.own == begins.own && shown.early == begins.early
        });
        if same {
            return None;
        }
        self.shown = Some(begins.clone());
        Some(begins)
    }
}
