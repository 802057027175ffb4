//! Neighbours: passes the jobs to the thread that samples neighbours, and reads the part that is kept for them.

use super::Driver;
use crate::config::Reserve;
use crate::neighbours::{Jobs, Neighbours};
use cosched_core::{JobId, Ours, Plan, PlannedJob, Policy, Standing};

impl Driver {
    /// To be called after a new plan, or when the jobs have changed.
    pub(super) fn tell_neighbours(&self) {
        let Some(neighbours) = &self.machinery.neighbours else { return };
        let jobs = Ours {
            cpus: self.identity.cpus.len() as u32,
            jobs: self.running.jobs,
            held: if self.cluster.node.local().has_slots() { held(&self.plan) } else { 0 },
        };
        neighbours.tell(Jobs { ours: jobs, local: local(&self.plan) });
    }

    /// The part of the slots that is held back for them now, 0 to 0.9.
    pub(super) fn held_part(&self) -> f64 {
        self.machinery.neighbours.as_ref().map_or(0.0, Neighbours::part)
    }

    /// The part of the CPU time that is kept for processes outside jobs, 0 to 1.
    pub(super) fn reserve(&self) -> f64 {
        match self.config.reserve {
            Reserve::Part(part) => part,
            Reserve::Fair => self.held_part(),
        }
    }
}

/// The largest number of CPUs that gangs have in a turn.
fn held(plan: &Plan) -> u32 {
    let cpus = |id: &JobId| plan.jobs.get(id).map_or(0, |job| job.cpus);
    plan.turns.iter().map(|turn| turn.run.iter().map(cpus).sum()).max().unwrap_or(0)
}

/// The number of jobs that take part, or may at any time, and have no slots.
fn local(plan: &Plan) -> u32 {
    let runs = |job: &&PlannedJob| match job.standing {
        Standing::Scheduled => job.turns == 0,
        Standing::Asleep => true,
        Standing::Suspended => false,
    };
    plan.jobs.values().filter(runs).count() as u32
}

/// The CPUs of the scheduled gangs here, whose threads the planner counts itself. Jobs that Linux schedules count as load, like programs
/// outside of jobs: gangs that span nodes have to leave them their part.
pub(super) fn gang_cpus(plan: &Plan) -> u32 {
    let is_gang = |job: &&PlannedJob| job.policy == Policy::Gang && job.standing == Standing::Scheduled;
    plan.jobs.values().filter(is_gang).map(|job| job.cpus).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{
        Class, Job, Node, NodeId, Packing, Planner, PlannerConfig, PlannerInput, Shares, Sharing, Time,
    };

    #[test]
    fn gangs_are_held_and_the_others_are_not() {
        let mut planner = Planner::new(PlannerConfig {
            nodes: [Node { id: NodeId(0), cpus: 4 }].into(),
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        for (id, cpus, policy) in [(1, 3, None), (2, 2, None), (3, 4, Some(Policy::Local)), (4, 1, None)] {
            let job = Job { id: JobId(id), owner: 0, class: Class::Batch, policy, cpus, node: None };
            planner.handle(Time(0), PlannerInput::Submit(job)).unwrap();
        }
        let plan = planner.plan();
        assert_eq!((held(plan), local(plan), gang_cpus(plan)), (4, 1, 6), "{:?}", plan.turns);
    }
}
