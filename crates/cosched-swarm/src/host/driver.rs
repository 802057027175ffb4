//! What a daemon does with the cluster's plan on its node: core's local scheduler, and what invariants are told of it.

use super::processes::{Local, Processes};
use cosched_core::cluster::{LocalScheduler, Plan as ClusterPlan, State};
use cosched_core::{AgentAction, AgentConfig, Disposition, JobId, NodeId, Plan, Shares, Standing, Time};
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

fn all_at_once(plan: &mut Plan) {
    let all: Vec<JobId> = plan.jobs.iter().filter(|(_, job)| job.home.is_some()).map(|(id, _)| *id).collect();
    plan.turns.iter_mut().for_each(|turn| turn.run.clone_from(&all));
}

fn one_late(plan: &mut Plan) {
    if !plan.turns.is_empty() {
        plan.turns.rotate_right(1);
    }
}

/// The part of a daemon that runs jobs by plans.
#[derive(Debug)]
pub struct Driver {
    local: LocalScheduler,
    shown: Option<SlotBegins>,
}

impl Driver {
    /// A driver without a plan.
    pub fn new(node: NodeId, cpus: u32, agent: AgentConfig, mangle: Option<Mangle>) -> Driver {
        let local = LocalScheduler::new(node, cpus, agent);
        let local = match mangle {
            Some(Mangle::AllAtOnce) => local.altered_by(all_at_once),
            Some(Mangle::OneLate) => local.altered_by(one_late),
            None => local,
        };
        Driver { local, shown: None }
    }

    /// Whose plans it follows.
    pub fn node(&self) -> NodeId {
        self.local.node()
    }

    /// The plan in use or the last one, and whether there are slots.
    pub fn plan(&self) -> (Option<&Arc<ClusterPlan>>, bool) {
        self.local.plan()
    }

    /// The length of the node's cycle, in nanoseconds.
    pub fn cycle_ns(&self) -> u64 {
        let filled = self.local.filled();
        filled.slot_length_ns * filled.turns.len() as u64
    }

    /// Runs by this plan.
    pub fn use_plan(&mut self, now: Time, plan: Arc<ClusterPlan>, shares: Shares, here: &Processes) {
        self.local.use_plan(now, plan, shares, &|id| here.lives(id));
    }

    /// Leaves all jobs to the operating system.
    pub fn no_slots(&mut self, now: Time, here: &Processes) {
        self.local.no_slots(now, &|id| here.lives(id));
    }

    /// What users have decided since the last plan counts also while there are no slots.
    pub fn know(&mut self, now: Time, state: &State, here: &Processes) {
        self.local.know(now, state, &|id| here.lives(id));
    }

    /// Lets a gang run before its plan holds.
    pub fn start_early(&mut self, job: JobId) {
        self.local.start_early(job);
    }

    /// Jobs came or went here, or the clock was set; these go on, though the last plan holds them.
    pub fn refresh(&mut self, now: Time, released: BTreeSet<JobId>, here: &Processes) {
        self.local.release(released);
        self.local.refresh(now, &|id| here.lives(id));
    }

    /// When the driver wants to be woken, by the wall clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.local.poll_timeout()
    }

    /// It is `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.local.handle_timeout(now);
    }

    /// A job's CPU time.
    pub fn cpu_time(&mut self, now: Time, job: JobId, cpu_time_ns: u64) {
        self.local.cpu_time(now, job, cpu_time_ns);
    }

    /// What the host has to do, except for what jobs may do, which [`Driver::disposition`] tells.
    pub fn poll_action(&mut self) -> Option<AgentAction> {
        self.local.poll_action()
    }

    /// What a job may do now.
    pub fn disposition(&self, id: JobId, part: &Local) -> Disposition {
        self.local.disposition(id, part.spans && part.dies_at.is_none())
    }

    /// Whether a job is stopped by a user, or waits for memory, as far as is known here.
    pub fn is_held(&self, id: JobId) -> bool {
        self.local.filled().jobs.get(&id).is_some_and(|job| job.standing == Standing::Suspended)
    }

    /// Tells the present slot once more, for those who look at how long a plan is in use.
    pub fn show_again(&mut self) {
        self.shown = None;
    }

    /// The slot that has begun, if that was not told yet.
    pub fn slot(&mut self, now: Time) -> Option<SlotBegins> {
        let (Some(plan), true) = self.local.plan() else { return None };
        let filled = self.local.filled();
        let slot = if filled.turns.len() > 1 { filled.slot_at(now) } else { 0 };
        let own = self.local.owners().map(|(id, job)| (id, job.cpus)).collect();
        let begins = SlotBegins { plan: Arc::clone(plan), slot, own, early: self.local.early().clone() };
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
