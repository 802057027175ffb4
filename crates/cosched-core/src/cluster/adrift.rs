//! Jobs that have started and are held because of a lack of memory, on a node that no planner reaches.
//!
//! Problem: a node that is disconnected from the store gets no plan, so its held jobs would stay stopped until it is connected
//! again, even when the jobs for which they are held have ended; and without a plan in use, held jobs would not be held at all.
//! Rule. The node itself knows which jobs run on it. A held job that is on this node alone continues when its memory fits beside the
//! jobs that run there, or when none of them uses any, in the order in which the planner would serve them. A job that spans nodes stays
//! held: what its other nodes have left is unknown. When the store is back, its plan applies again.
//! Source: the rule of `admit.rs`, for one node.

use super::state::{JobRecord, Part, Stage, State};
use crate::id::{JobId, NodeId};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The jobs that are held on a node, by the newest state that it knows.
pub fn held(state: &State, node: NodeId) -> BTreeSet<JobId> {
    let is_held = |(id, job): (&JobId, &JobRecord)| {
        let waits = matches!(job.stage, Stage::Waiting(_)) && part(job, node).is_some();
        waits.then_some(*id)
    };
    state.jobs.iter().filter_map(is_held).collect()
}

/// Those of them that continue while the node is disconnected; `lives` tells whether a job has processes on the node.
pub fn released(state: &State, node: NodeId, lives: impl Fn(JobId) -> bool) -> BTreeSet<JobId> {
    let Some(has) = state.nodes.get(&node).map(|node| node.capacity.memory_bytes) else { return BTreeSet::new() };
    let (mut held, mut used) = (Vec::new(), 0_u64);
    for (id, job) in state.jobs.iter().filter(|(id, _)| lives(**id)) {
        let Some(part) = part(job, node) else { continue };
        match job.stage {
            Stage::Waiting(_) => held.push((*id, job, part.memory_bytes)),
            _ => used = used.saturating_add(part.memory_bytes),
        }
    }
    held.retain(|(_, job, _)| job.place.as_ref().is_some_and(|place| place.parts.len() == 1));
    held.sort_by_key(|(id, job, _)| (job.spec.queue, job.order, *id));
    held.retain(|(.., bytes)| {
        let fits = used == 0 || used.saturating_add(*bytes) <= has;
        used = used.saturating_add(if fits { *bytes } else { 0 });
        fits
    });
    held.into_iter().map(|(id, ..)| id).collect()
}

fn part(job: &JobRecord, node: NodeId) -> Option<&Part> {
    job.place.as_ref()?.parts.iter().find(|part| part.node == node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use crate::class::Class;
    use crate::cluster::{Capacity, JobSpec, NodeRecord, Place, Want};
    use crate::plan::Standing;
    use crate::reason::Reason;
    use crate::time::Time;

    const HERE: NodeId = NodeId(1);

    /// A node with 10 bytes; jobs by (id, their position in the queue, bytes here, whether they run, whether they span nodes).
    fn state(jobs: &[(u64, u64, u64, bool, bool)]) -> State {
        let mut state = State::default();
        let capacity = Capacity { cpus: 4, memory_bytes: 10, disk_bytes: 0 };
        state.nodes.insert(HERE, NodeRecord { capacity, drains: false, other_threads: 0, other_threads_seen: 0 });
        for (id, order, memory_bytes, runs, spans) in jobs {
            let part = |node| Part { node, cpus: 1, memory_bytes: *memory_bytes, disk_bytes: 0 };
            let parts = [Some(HERE), spans.then_some(NodeId(2))].into_iter().flatten().map(part).collect();
            let spec = JobSpec::new(JobId(*id), Class::Batch, Want::PerNode(Vec::new()));
            let record = JobRecord {
                spec,
                order: *order,
                standing: Standing::Scheduled,
                choice: Policy::Gang,
                stage: if *runs { Stage::Ready } else { Stage::Waiting(Reason::WaitsForMemory) },
                place: Some(Place { parts, home: None }),
                ready_since: Time(0),
                suspended: Default::default(),
            };
            state.jobs.insert(JobId(*id), record);
        }
        state
    }

    fn ids(jobs: BTreeSet<JobId>) -> Vec<u64> {
        jobs.into_iter().map(|job| job.0).collect()
    }

    #[test]
    fn who_is_held_goes_on_in_order_as_far_as_those_who_live_leave_room() {
        let known =
            state(&[(1, 1, 6, true, false), (2, 3, 2, false, false), (3, 2, 4, false, false), (4, 4, 0, false, true)]);
        assert_eq!(ids(held(&known, HERE)), [2, 3, 4]);
        assert_eq!(ids(held(&known, NodeId(2))), [4]);
        assert_eq!(ids(released(&known, HERE, |_| true)), [3], "the first in the queue has all that is left");
        // The first job has ended: there is room for both, and nothing is known of the other node of the last one.
        assert_eq!(ids(released(&known, HERE, |id| id != JobId(1))), [2, 3]);
        assert_eq!(ids(released(&known, NodeId(9), |_| true)), [0; 0], "a node that is not in the plan");
    }

    #[test]
    fn who_wants_more_than_there_is_goes_on_alone() {
        let known = state(&[(1, 1, 1, true, false), (2, 2, 20, false, false), (3, 3, 1, false, false)]);
        assert_eq!(ids(released(&known, HERE, |_| true)), [3]);
        assert_eq!(ids(released(&known, HERE, |id| id != JobId(1))), [2]);
    }
}
