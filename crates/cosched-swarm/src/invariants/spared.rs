//! No job loses its part on a node because of a silence that is shorter than the time after which nodes are considered
//! dead.
//!
//! Why: a link that is cut for some seconds, a stopped daemon or a stalled disk is no reason to end the work of a node
//! (findings on Slurm's SlurmdTimeout: 300 s). What counts is true time since the plan marked the node as silent. A node
//! that is in touch says itself that its machine was restarted, or that it has ended a part.

use super::{Invariant, Seen};
use cosched_core::cluster::{NEVER, Stage, State};
use cosched_core::{JobId, NodeId, Time};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Spared {
    /// The parts of jobs that were not about to end.
    parts: BTreeSet<(JobId, NodeId)>,
    /// The marks of silent nodes, and when each was seen first.
    marks: BTreeMap<NodeId, (Time, u64)>,
    /// The nodes that an administrator has declared dead.
    given_up: BTreeSet<NodeId>,
}

impl Invariant for Spared {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        // Marks that are still in the copy are the same ones: planners that saw them keep counting.
        if let Seen::AnotherStore = seen {
            self.parts.clear();
        }
        if let Seen::GivenUp(id) = seen {
            self.given_up.insert(NodeId(*id));
        }
        let Seen::State { state, heard, now_wall_ns, .. } = seen else { return Ok(()) };
        let parts = parts(state);
        let before = std::mem::replace(&mut self.parts, parts);
        let outcome = before.difference(&self.parts).try_for_each(|(job, node)| {
            let gone = !state.nodes.contains_key(node) && !heard.contains(&node.0);
            // A little less, because clocks differ in their rates.
            let after_ns = state.config.node_dead_after_ns / 100 * 98;
            match self.marks.get(node) {
                // If only an operator can declare a node dead, an operator did.
                _ if !gone || self.given_up.contains(node) || state.config.node_dead_after_ns == NEVER => Ok(()),
                Some((_, since)) if now_wall_ns - since >= after_ns => Ok(()),
                Some((_, since)) => {
                    Err(format!("job {job} lost node {} after {} ms", node.0, (now_wall_ns - since) / 1_000_000))
                }
                None => Err(format!("job {job} lost node {}, which was never silent", node.0)),
            }
        });
        let known = std::mem::take(&mut self.marks);
        let mark = |(node, at): (&NodeId, &Time)| {
            let since = known.get(node).filter(|(known, _)| known == at).map_or(*now_wall_ns, |(_, since)| *since);
            (*node, (*at, since))
        };
        self.marks = state.silent.iter().map(mark).collect();
        outcome
    }
}

fn parts(state: &State) -> BTreeSet<(JobId, NodeId)> {
    let begun = state.jobs.iter().filter(|(_, job)| matches!(job.stage, Stage::Ready | Stage::Waiting(_)));
    let parts = |(id, place): (JobId, &cosched_core::cluster::Place)| {
        place.parts.iter().map(|part| (id, part.node)).collect::<Vec<_>>()
    };
    begun.filter_map(|(id, job)| Some((*id, job.place.as_ref()?))).flat_map(parts).collect()
}
