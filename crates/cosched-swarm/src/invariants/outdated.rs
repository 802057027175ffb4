//! A node does not keep using an old plan for longer than its lease.
//!
//! Why: planners rely on that when they set the time from which a plan is in effect (`core::cluster::holds_from`; Gray
//! & Cheriton 1989): a node reads the newest state before it renews its lease, so a node that was cut off stops its
//! slots before it could harm the others for long. The bound is the length of a lease, the time that news may take, and
//! two slots, counted from when the next plan takes effect; in a restored store, the plan of the copy is the next one.

use super::{Invariant, PlanId, Seen, id_of};
use std::collections::BTreeMap;

/// The lease of 5 s, 500 ms for news to arrive, 100 ms for clocks.
const MOST_NS: u64 = 5_600_000_000;

#[derive(Default)]
pub(super) struct Outdated {
    /// From when each plan is in effect, in order of arrival.
    from: Vec<u64>,
    /// The last place of each plan in that order.
    order: BTreeMap<PlanId, usize>,
}

impl Invariant for Outdated {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::State { state, now_wall_ns, .. } => {
                let from = state.from_slot.saturating_mul(state.config.slot_length_ns);
                // A planner whose clock was set back a moment ago may state that its plan has long been in effect.
                let plan = (state.generation, state.from_slot, state.start);
                let newest = self.from.len().checked_sub(1);
                if newest.is_none() || self.order.get(&plan).copied() != newest {
                    self.order.insert(plan, self.from.len());
                    self.from.push(from.max(*now_wall_ns));
                }
            }
            Seen::Slot { node, sound: true, wall_ns, slot, .. } => {
                let generation = slot.plan.generation;
                let Some(at) = self.order.get(&id_of(&slot.plan)) else { return Ok(()) };
                let Some(from) = self.from.get(at + 1) else { return Ok(()) };
                let late_ns = wall_ns.saturating_sub(*from);
                if late_ns > MOST_NS + 2 * slot.plan.slot_length_ns {
                    return Err(format!(
                        "node {node} begins a slot by generation {generation}, and the next plan has been in force \
                         for {} ms",
                        late_ns / 1_000_000
                    ));
                }
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_node_that_is_never_told_of_plans_is_noticed() {
        assert!(is_noticed(Broken::OldPlans, "outdated"));
    }
}
