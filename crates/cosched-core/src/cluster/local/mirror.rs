//! Passes the cluster's settings, and what its state says about the node's jobs, on to the node's own planner.

use super::{Known, LocalAction, LocalJob, LocalScheduler, Tracked};
use crate::agent::AgentAction;
use crate::cluster::state::{JobRecord, JobSpec, Stage};
use crate::id::{JobId, NodeId};
use crate::plan::Standing;
use crate::planner::PlannerInput;
use crate::reason::Reason;
use alloc::vec::Vec;

/// Whether a user has suspended it. A job that is to end must be able to run.
fn is_suspended((stage, standing): (Stage, Standing)) -> bool {
    standing == Standing::Suspended && !matches!(stage, Stage::Ending(_) | Stage::Clearing)
}

fn waits((stage, _): (Stage, Standing)) -> bool {
    matches!(stage, Stage::Waiting(_))
}

impl LocalJob {
    /// The same job with the values of the cluster's record, except for whether it is suspended.
    fn as_told(self, record: &JobRecord, node: NodeId) -> LocalJob {
        let JobSpec { class, policy, slot_share, .. } = record.spec;
        let told = LocalJob { class, policy, slot_share, ..self };
        let parts = record.place.as_ref().map_or(&[][..], |place| &place.parts);
        let Some(part) = parts.iter().find(|part| part.node == node) else { return told };
        let memory_bytes = record.spec.want.memory_bytes(node, part.cpus);
        // A job that has lost its other nodes is on this node alone.
        LocalJob { cpus: part.cpus, memory_bytes, spans: parts.len() > 1, ..told }
    }
}

impl LocalScheduler {
    pub(super) fn follow(&mut self, known: &Known) {
        let followed = self.followed.replace((known.revision, known.in_touch));
        if followed == self.followed {
            return;
        }
        self.is_stale |= followed.is_none_or(|(_, in_touch)| in_touch != known.in_touch);
        self.follow_settings(known);
        let tracked: Vec<JobId> = self.tracked.keys().copied().collect();
        for id in tracked {
            self.follow_job(id, known);
        }
    }

    fn follow_settings(&mut self, known: &Known) {
        let config = &known.state.config;
        let ceiling_permille = if self.is_single { config.ceiling_permille } else { 1000 };
        let own = self.own.plan();
        let inputs = [
            (own.slot_length_ns != config.slot_length_ns).then_some(PlannerInput::SlotLength(config.slot_length_ns)),
            (own.policy != config.policy).then_some(PlannerInput::MachinePolicy(config.policy)),
            (own.sharing != config.sharing).then_some(PlannerInput::MachineSharing(config.sharing)),
            (self.own.ceiling_permille() != ceiling_permille).then_some(PlannerInput::Ceiling(ceiling_permille)),
            (self.shares != *config.shares()).then_some(PlannerInput::Shares(*config.shares())),
        ];
        self.shares = *config.shares();
        for input in inputs.into_iter().flatten() {
            // Only a slot length can be refused, and the cluster's planner has the same rule for it.
            self.is_noted |= self.own.note(input).is_ok();
        }
    }

    fn follow_job(&mut self, id: JobId, known: &Known) {
        // A job that was left may have a namesake: a store that has lost its data may use its number again.
        let Some(tracked) = self.tracked.get(&id).copied().filter(|tracked| !tracked.left) else { return };
        let Some(record) = known.state.jobs.get(&id) else { return self.forget(id, tracked) };
        let says = (record.stage, record.standing);
        let mut job = tracked.job.as_told(record, known.node);
        // Until a plan that includes the loss is in force, it has its cells.
        job.spans |=
            self.cluster.as_ref().is_some_and(|plan| plan.jobs.get(&id).is_some_and(|job| job.parts.len() > 1));
        if tracked.says.map(is_suspended) != Some(is_suspended(says)) {
            job.suspended = is_suspended(says);
        }
        // Of single-node jobs only waiting matters to the plan, because the own planner has the rest; of others everything does.
        let is_news = tracked.says != Some(says) && (job.spans || tracked.says.is_some_and(waits) != waits(says));
        self.is_stale |= is_news;
        self.tracked.insert(id, Tracked { job, says: Some(says), ..tracked });
        if tracked.job != job {
            self.follow_change(id, &tracked.job, &job);
            self.actions.push_back(LocalAction::Keep(id, job));
            self.is_stale = true;
        }
        self.follow_sleep(id, tracked.says.is_some_and(|(_, standing)| standing == Standing::Asleep));
    }

    /// Follows the sleep of a job that was found asleep, or that a user has resumed, maybe on another node.
    fn follow_sleep(&mut self, id: JobId, slept: bool) {
        let Some(tracked) = self.tracked.get(&id) else { return };
        let sleeps = tracked.says.is_some_and(|(_, standing)| standing == Standing::Asleep);
        match (slept, sleeps, tracked.asleep) {
            (false, true, false) if !tracked.job.spans => self.sleeps(id, true),
            (true, false, true) => {
                self.sleeps(id, false);
                let reason = Reason::UserRequest;
                self.actions.push_back(LocalAction::Agent(AgentAction::Awake { job: id, reason }));
            }
            _ => (),
        }
    }

    /// The cluster does not know the job: it stays as it was.
    fn forget(&mut self, id: JobId, tracked: Tracked) {
        self.is_stale |= tracked.says.is_some();
        self.tracked.insert(id, Tracked { says: None, ..tracked });
    }

    fn follow_change(&mut self, id: JobId, was: &LocalJob, is: &LocalJob) {
        match (was.spans, is.spans) {
            (true, true) => return,
            (true, false) => return self.submit(id, is),
            (false, true) => return self.note(id, PlannerInput::End(id)),
            (false, false) => (),
        }
        if was.cpus != is.cpus {
            self.note(id, PlannerInput::Cpus(id, is.cpus));
        }
        if was.class != is.class {
            self.note(id, PlannerInput::Class(id, is.class));
        }
        if was.policy != is.policy {
            self.note(id, PlannerInput::JobPolicy(id, is.policy));
        }
        if was.slot_share != is.slot_share {
            self.note(id, PlannerInput::Share(id, is.slot_share));
        }
        if was.suspended != is.suspended {
            self.note_standing(id, is);
        }
    }
}
