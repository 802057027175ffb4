//! A gang's processes are never split over rows: nodes that follow the same plan run it in the same slots.
//!
//! Why: a rank that runs while its partners do not only spins ("all processes of a parallel program … concurrently":
//! LLNL, "Gang Scheduler Design"). For nodes whose clocks are right the slot's number and the plan's generation decide;
//! no message is sent. Gangs that start before their plan takes effect are left out: they run out of turn on all nodes
//! that already know of them.

use super::{Invariant, PlanId, Seen, id_of};
use cosched_core::{JobId, NodeId};
use std::collections::BTreeMap;

/// The number of slots remembered.
const SLOTS: usize = 512;

/// Whether a gang ran in a slot on one of the nodes, and on which node that was seen.
type Ran = BTreeMap<JobId, (bool, usize)>;

#[derive(Default)]
pub(super) struct OneRow {
    /// By slot and plan.
    slots: BTreeMap<(u64, PlanId), Ran>,
}

impl Invariant for OneRow {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Seen::Slot { node, id, sound: true, slot, .. } = seen else { return Ok(()) };
        let key = (slot.slot, id_of(&slot.plan));
        let ran = self.slots.entry(key).or_default();
        for (job, planned) in slot.plan.jobs.iter().filter(|(_, planned)| planned.home.is_some()) {
            if slot.early.contains(job) || !planned.parts.iter().any(|part| part.node == NodeId(*id)) {
                continue;
            }
            let here = slot.own.contains_key(job);
            let (there, other) = *ran.entry(*job).or_insert((here, *node));
            if there != here {
                let (runs, waits) = if here { (*node, other) } else { (other, *node) };
                let (slot, (generation, ..)) = key;
                return Err(format!(
                    "generation {generation}, slot {slot}: job {job} runs on node {runs} and waits on node {waits}"
                ));
            }
        }
        while self.slots.len() > SLOTS {
            self.slots.pop_first();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::host::Mangle;
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_node_that_is_a_slot_late_is_noticed() {
        assert!(is_noticed(Broken::Mangle(Mangle::OneLate), "one_row"));
    }
}
