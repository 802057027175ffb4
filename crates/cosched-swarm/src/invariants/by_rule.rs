//! A job that loses a node is treated as its rule says, and no job that never began is said to have finished.
//!
//! Why: of the breakages put into planners on purpose, those that confused one rule with another, and those that ended waiting
//! jobs, went unnoticed. A job that keeps what is left continues while any part is left, a job that is to be restarted is not
//! ended because of a lost node, and a job that is to be ended does not continue without a part. A store that lost its data or was
//! restored knows less of the past.

use super::{Invariant, Seen};
use cosched_cluster::wire::{Job, Why};
use cosched_core::cluster::{JobRecord, OnNodeLoss, Stage, State};
use cosched_core::{JobId, Reason};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct ByRule {
    /// The number of parts of each job in the last state.
    parts: BTreeMap<JobId, usize>,
    begun: BTreeSet<u64>,
    another: bool,
}

impl Invariant for ByRule {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::AnotherStore => *self = ByRule { another: true, ..ByRule::default() },
            Seen::State { state, .. } => return self.look_at(state),
            Seen::Begun { job, .. } => drop(self.begun.insert(job.0)),
            Seen::Record(job) if !self.another && !self.begun.contains(&job.id) && is_finished(job) => {
                return Err(format!("job {} has finished, and has never started", job.id));
            }
            _ => (),
        }
        Ok(())
    }
}

impl ByRule {
    fn look_at(&mut self, state: &State) -> Result<(), String> {
        let parts: BTreeMap<JobId, usize> = state.jobs.iter().map(|(id, job)| (*id, parts(job))).collect();
        let before = std::mem::replace(&mut self.parts, parts);
        for (id, job) in &state.jobs {
            let (now, had) = (self.parts[id], before.get(id).copied().unwrap_or(0));
            let ends = job.stage == Stage::Ending(Reason::NodeLost);
            let continues = matches!(job.stage, Stage::Ready | Stage::Waiting(_));
            let wrong = match job.spec.on_node_loss {
                OnNodeLoss::Requeue => ends,
                OnNodeLoss::Keep => ends && now > 0,
                OnNodeLoss::Kill => continues && now < had,
            };
            if wrong {
                let rule = job.spec.on_node_loss;
                return Err(format!("job {id} had {had} parts and has {now}, its rule is {rule:?}: {:?}", job.stage));
            }
        }
        Ok(())
    }
}

/// When a job closes because its main process has ended, or because a launcher outside the job's nodes was lost with its node,
/// before any process began, nothing is begun any more.
fn is_finished(job: &Job) -> bool {
    let lost_lead = job.closing && job.ask.lead.as_ref().is_some_and(|lead| !job.ended_on.contains_key(lead));
    job.main_exit.is_none() && !lost_lead && job.end.as_ref().is_some_and(|end| end.why == Why::Finished)
}

fn parts(job: &JobRecord) -> usize {
    job.place.as_ref().map_or(0, |place| place.parts.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::cluster::{JobSpec, Part, Place, Want};
    use cosched_core::{Class, NodeId, Policy, Standing, Time};

    fn state(on_node_loss: OnNodeLoss, nodes: u32, stage: Stage) -> State {
        let part = |node| Part { node: NodeId(node), cpus: 1, memory_bytes: 0, disk_bytes: 0 };
        let want = Want::Total { cpus: 2, memory_per_cpu_bytes: 0, disk_bytes: 0 };
        let (id, class) = (JobId(1), Class::Batch);
        let spec = JobSpec { on_node_loss, ..JobSpec::new(id, class, want) };
        let place = Some(Place { parts: (0..nodes).map(part).collect(), home: None });
        let (standing, choice, ready_since) = (Standing::Scheduled, Policy::Gang, Time(0));
        let job =
            JobRecord { spec, order: 0, standing, choice, stage, place, ready_since, suspended: Default::default() };
        State { jobs: [(id, job)].into(), ..State::default() }
    }

    /// The verdict on a job with this rule that had two parts, and then has `nodes` parts.
    fn said(rule: OnNodeLoss, nodes: u32, stage: Stage) -> Result<(), String> {
        let mut invariant = ByRule::default();
        invariant.look_at(&state(rule, 2, Stage::Ready)).unwrap();
        invariant.look_at(&state(rule, nodes, stage))
    }

    #[test]
    fn a_rule_that_is_taken_for_another_is_noticed() {
        let lost = Stage::Ending(Reason::NodeLost);
        assert!(said(OnNodeLoss::Kill, 1, lost).is_ok() && said(OnNodeLoss::Kill, 1, Stage::Ready).is_err());
        assert!(said(OnNodeLoss::Keep, 1, Stage::Ready).is_ok() && said(OnNodeLoss::Keep, 1, lost).is_err());
        assert!(said(OnNodeLoss::Requeue, 1, Stage::Clearing).is_ok() && said(OnNodeLoss::Requeue, 1, lost).is_err());
        assert!(said(OnNodeLoss::Keep, 0, lost).is_ok(), "nothing is left");
    }

    #[test]
    fn who_has_finished_without_having_begun_is_noticed() {
        use crate::world::{S, World, job, submit, user};
        let mut world = World::started(3, 2);
        world.job_ns_max = S;
        world.ask(0, user(1), submit(job("a", 1)));
        world.run(20 * S);
        let ended = world.jobs().into_iter().find(|job| job.end.is_some()).expect("it has ended");
        let told = |begun: BTreeSet<u64>| {
            let mut job = ended.clone();
            job.main_exit = None;
            ByRule { begun, ..ByRule::default() }.see(&Seen::Record(&job))
        };
        assert!(told([ended.id].into()).is_ok() && told(BTreeSet::new()).is_err());
    }
}
