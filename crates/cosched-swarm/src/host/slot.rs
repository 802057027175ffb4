//! What invariants are told of a node's slots, and how a node's plan is altered on purpose.

use cosched_core::cluster::{LocalScheduler, Plan as ClusterPlan};
use cosched_core::{JobId, NodeId, Plan, PlannedJob, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A slot as it begins on a node, or as it continues under another plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotBegins {
    /// The cluster's plan that is followed.
    pub plan: Arc<ClusterPlan>,
    /// The slot's number; always 0 where all slots of the plan are the same.
    pub slot: u64,
    /// The gangs that own CPUs now, with the number of CPUs.
    pub own: BTreeMap<JobId, u32>,
    /// Gangs that were started before their plan takes effect.
    pub early: BTreeSet<JobId>,
}

/// A way in which the harness itself is broken on purpose, to show that an invariant notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mangle {
    /// Every gang has every turn.
    AllAtOnce,
    /// Turns are one slot late.
    OneLate,
    /// Gangs with a limited share of the slots also run in slots that belong to no gang.
    OverShare,
}

impl Mangle {
    /// How it alters a node's plan.
    pub fn alter(self) -> fn(&mut Plan) {
        match self {
            Mangle::AllAtOnce => all_at_once,
            Mangle::OneLate => one_late,
            Mangle::OverShare => over_share,
        }
    }
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

fn over_share(plan: &mut Plan) {
    let has_share = |(id, job): (&JobId, &PlannedJob)| (job.slot_share.is_some() && job.home.is_some()).then_some(*id);
    let Some(first) = plan.jobs.iter().find_map(has_share) else { return };
    plan.turns.iter_mut().filter(|turn| turn.run.is_empty()).for_each(|turn| turn.run.push(first));
}

impl SlotBegins {
    /// The present slot of a node that runs slots by the cluster's plan.
    pub(crate) fn of(local: &LocalScheduler, now: Time) -> Option<SlotBegins> {
        let plan = Arc::clone(local.cluster_plan().filter(|_| local.has_slots())?);
        let turns = local.plan().turns.len();
        let slot = if turns > 1 { local.plan().slot_at(now) } else { 0 };
        let own = local.owners().map(|(id, job)| (id, job.cpus)).collect();
        Some(SlotBegins { plan, slot, own, early: local.early().clone() })
    }

    /// The same slot under another plan of the cluster.
    pub(crate) fn by(self, plan: Arc<ClusterPlan>, node: NodeId) -> SlotBegins {
        let cpus = |id: &JobId| Some((*id, plan.part(*id, node)?.cpus));
        let own = plan.run(self.slot).iter().filter_map(cpus).collect();
        SlotBegins { own, plan, ..self }
    }

    /// Whether it was reported to the invariants already.
    pub(crate) fn is_shown_by(&self, shown: &SlotBegins) -> bool {
        let of = |s: &SlotBegins| (s.plan.generation, s.slot);
        of(shown) == of(self) && shown.own == self.own && shown.early == self.early
    }
}
