//! The node's own planner is told of what the cluster knows about jobs of this node alone, and of the cluster's settings.

use super::super::Driver;
use crate::clock::now;
use cosched_core::cluster::{JobRecord, Stage};
use cosched_core::{Class, JobId, PlannerInput, Policy, Shares, Sharing, Standing};

/// What the node's own planner was told of a job last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mirrored {
    class: Class,
    policy: Option<Policy>,
    suspended: bool,
    asleep: bool,
}

impl Mirrored {
    fn of(record: &JobRecord) -> Mirrored {
        // What is to end must be able to.
        let ends = matches!(record.stage, Stage::Ending(_) | Stage::Clearing);
        let suspended = record.standing == Standing::Suspended && !ends;
        let asleep = record.standing == Standing::Asleep;
        Mirrored { class: record.spec.class, policy: record.spec.policy, suspended, asleep }
    }
}

/// The cluster's settings, as far as a node plans by them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Common {
    slot_length_ns: u64,
    policy: Policy,
    sharing: Sharing,
    shares: Shares,
}

impl Driver {
    /// Brings the own planner into step.
    pub(super) fn mirror(&mut self) {
        let Some(state) = self.cluster.as_ref().and_then(|cluster| cluster.member.state()) else { return };
        let config = &state.config;
        let common = Common {
            slot_length_ns: config.slot_length_ns,
            policy: config.policy,
            sharing: config.sharing,
            shares: *config.shares(),
        };
        let own = self.live.keys().filter(|id| self.is_own(**id));
        let jobs: Vec<(u64, Mirrored)> =
            own.filter_map(|id| Some((*id, Mirrored::of(state.jobs.get(&JobId(*id))?)))).collect();
        self.mirror_settings(common);
        for (id, mirrored) in jobs {
            self.mirror_job(id, mirrored);
        }
    }

    /// Whether the node's own planner plans this job.
    pub(in super::super) fn is_own(&self, id: u64) -> bool {
        self.state.jobs.get(&id).is_some_and(|record| record.part.is_none_or(|part| !part.spans))
    }

    fn mirror_settings(&mut self, common: Common) {
        let own = &self.own_plan;
        let mut inputs = Vec::new();
        if own.slot_length_ns != common.slot_length_ns {
            inputs.push(PlannerInput::SlotLength(common.slot_length_ns));
        }
        if own.policy != common.policy {
            inputs.push(PlannerInput::MachinePolicy(common.policy));
        }
        if own.sharing != common.sharing {
            inputs.push(PlannerInput::MachineSharing(common.sharing));
        }
        if self.shares != common.shares {
            self.shares = common.shares;
            inputs.push(PlannerInput::Shares(common.shares));
        }
        let sharing = own.sharing != common.sharing;
        inputs.into_iter().for_each(|input| self.own_input(input));
        if sharing {
            self.mechanism_is_stale = true;
        }
    }

    fn mirror_job(&mut self, id: u64, new: Mirrored) {
        let Some(cluster) = &mut self.cluster else { return };
        let job = JobId(id);
        let old = cluster.mirrored.insert(id, new);
        if old.map(|old| old.class) != Some(new.class) {
            self.own_input(PlannerInput::Class(job, new.class));
        }
        if old.map(|old| old.policy) != Some(new.policy) {
            self.own_input(PlannerInput::JobPolicy(job, new.policy));
        }
        match (old.is_some_and(|old| old.suspended), new.suspended) {
            (false, true) => self.own_input(PlannerInput::Suspend(job)),
            (true, false) => self.own_input(PlannerInput::Resume(job)),
            _ => (),
        }
        // A user has resumed it, maybe on another node.
        let woken = old.is_some_and(|old| old.asleep) && !new.asleep;
        if woken && self.live.get(&id).is_some_and(|live| live.asleep) {
            self.awake(job, "resumed".to_owned());
        }
    }

    fn own_input(&mut self, input: PlannerInput) {
        if let Err(e) = self.planner.handle(now(), input) {
            tracing::error!("the node's own planner refused what the cluster says: {e}");
        }
    }
}
