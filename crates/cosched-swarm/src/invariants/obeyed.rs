//! What a user is told is done is done: the state that is written with the answer shows it. A drained node gets no new jobs.
//!
//! Why: of the breakages put into planners on purpose, those that answered a kill, suspend or drain and did nothing went unnoticed.
//! Requests of one transaction are considered together, in order: a later one may undo an earlier one.

use super::{Invariant, Seen};
use cosched_cluster::wire::Ask;
use cosched_core::cluster::{Place, Stage, State};
use cosched_core::{JobId, NodeId, SlotShare, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// The object of a promise: a job, a node, or the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Matter {
    Standing(u64),
    End(u64),
    Class(u64),
    JobPolicy(u64),
    Share(u64),
    Drain(u32),
    Policy,
    Sharing,
    SlotLength,
    Ceiling,
    RowsMax,
    Packing,
    DeadAfter,
}

/// A job's part on a node.
type Part = (JobId, NodeId);

#[derive(Default)]
pub(super) struct Obeyed {
    /// The parts on drained nodes in the last state, and the nodes that were drained in it.
    drained: Option<(BTreeSet<Part>, BTreeSet<NodeId>)>,
    /// A new part on such a node, a violation unless the transaction has answered that the node is drained again.
    suspect: Option<Part>,
}

impl Invariant for Obeyed {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::AnotherStore => *self = Obeyed::default(),
            Seen::State { state, .. } => self.look_at_drained_nodes(state),
            Seen::Asked { .. } => {
                if let Some((job, node)) = self.suspect {
                    return Err(format!("job {job} is placed on node {}, which is drained", node.0));
                }
            }
            Seen::Done { asks, state, ids } => {
                let drains = |node: NodeId| {
                    let of = |ask: &Ask| matches!(ask, Ask::Drain { node: name, .. } if ids.get(name) == Some(&node.0));
                    asks.iter().any(of)
                };
                self.suspect.take_if(|(_, node)| drains(*node));
                let promised = asks.iter().filter_map(|ask| Some((matter(ask, ids)?, ask)));
                let last: BTreeMap<Matter, &Ask> = promised.collect();
                if let Some((_, ask)) = last.iter().find(|(of, ask)| !holds(**of, ask, state)) {
                    return Err(format!("{ask:?} is said to be done, and is not"));
                }
            }
            _ => (),
        }
        Ok(())
    }
}

impl Obeyed {
    fn look_at_drained_nodes(&mut self, state: &State) {
        let parts = |(id, place): (JobId, &Place)| place.parts.iter().map(|part| (id, part.node)).collect::<Vec<_>>();
        let places = state.jobs.iter().filter_map(|(id, job)| Some((*id, job.place.as_ref()?)));
        let now: BTreeSet<Part> = places.flat_map(parts).collect();
        let drained = state.nodes.iter().filter(|(_, node)| node.drains).map(|(id, _)| *id).collect();
        let Some((before, were)) = self.drained.replace((now.clone(), drained)) else { return };
        // A part that was kept on a node that was away comes back.
        let is_new = |(job, node): &&Part| {
            let stage = state.jobs.get(job).map(|job| job.stage);
            were.contains(node)
                && state.nodes.get(node).is_some_and(|node| node.drains)
                && !before.iter().any(|(known, _)| known == job)
                && matches!(stage, Some(Stage::Ready))
        };
        self.suspect = self.suspect.or_else(|| now.difference(&before).find(is_new).copied());
    }
}

fn matter(ask: &Ask, ids: &BTreeMap<String, u32>) -> Option<Matter> {
    Some(match ask {
        Ask::Suspend { job } | Ask::Resume { job } => Matter::Standing(*job),
        Ask::Kill { job, .. } => Matter::End(*job),
        Ask::Class { job, .. } => Matter::Class(*job),
        Ask::Policy { job, .. } => Matter::JobPolicy(*job),
        Ask::Share { job, .. } => Matter::Share(*job),
        Ask::Drain { node, .. } => Matter::Drain(*ids.get(node)?),
        Ask::ClusterPolicy { .. } => Matter::Policy,
        Ask::ClusterSharing { .. } => Matter::Sharing,
        Ask::SlotLength { .. } => Matter::SlotLength,
        Ask::Ceiling { .. } => Matter::Ceiling,
        Ask::RowsMax { .. } => Matter::RowsMax,
        Ask::Packing { .. } => Matter::Packing,
        Ask::NodeDeadAfter { .. } => Matter::DeadAfter,
        _ => return None,
    })
}

/// Whether the state fulfils the request. A job that has ended meanwhile is exempt.
fn holds(of: Matter, ask: &Ask, state: &State) -> bool {
    let config = &state.config;
    let job = |id: &u64| state.jobs.get(&JobId(*id));
    match (of, ask) {
        (_, Ask::Suspend { job: id }) => {
            job(id).is_none_or(|job| job.standing == Standing::Suspended || ends(job.stage))
        }
        (_, Ask::Resume { job: id }) => job(id).is_none_or(|job| job.standing != Standing::Suspended),
        (_, Ask::Kill { job: id, .. }) => job(id).is_none_or(|job| ends(job.stage)),
        (_, Ask::Class { job: id, class }) => job(id).is_none_or(|job| job.spec.class == (*class).into()),
        (_, Ask::Policy { job: id, policy }) => job(id).is_none_or(|job| job.spec.policy == policy.map(Into::into)),
        (_, Ask::Share { job: id, permille }) => {
            job(id).is_none_or(|job| job.spec.slot_share.map(SlotShare::permille) == *permille)
        }
        (Matter::Drain(node), Ask::Drain { drains, .. }) => {
            state.nodes.get(&NodeId(node)).is_none_or(|node| node.drains == *drains)
        }
        (_, Ask::ClusterPolicy { policy }) => config.policy == (*policy).into(),
        (_, Ask::ClusterSharing { sharing }) => config.sharing == (*sharing).into(),
        (_, Ask::SlotLength { ns }) => config.slot_length_ns == *ns,
        (_, Ask::Ceiling { permille }) => config.ceiling_permille == *permille,
        (_, Ask::RowsMax { rows }) => config.rows_max == *rows,
        (_, Ask::Packing { packing }) => config.packing == (*packing).into(),
        (_, Ask::NodeDeadAfter { ns }) => config.node_dead_after_ns == *ns,
        _ => true,
    }
}

fn ends(stage: Stage) -> bool {
    matches!(stage, Stage::Ending(_))
}

#[cfg(test)]
mod tests {
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn an_answer_without_a_deed_is_noticed() {
        assert!(is_noticed(Broken::Disobeys, "obeyed"));
    }
}
