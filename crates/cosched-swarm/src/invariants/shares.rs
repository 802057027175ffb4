//! A gang that spans nodes has no more slots than its share of them, as a node counts them.
//!
//! Why: the share is enforced by the plan alone, and a correct plan may still be run differently. Under one plan of the cluster a gang
//! may have saved two slots (core `policy/share.rs`), and the node may have joined in the middle of one.

use super::{Invariant, PlanId, Seen, id_of};
use cosched_core::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// This number of additional slots is within the share.
const SLOTS_MORE: u64 = 3;

/// What a node has run under the present plan.
struct Counted {
    plan: PlanId,
    from: u64,
    slot: u64,
    own: BTreeSet<JobId>,
    had: BTreeMap<JobId, u64>,
}

#[derive(Default)]
pub(super) struct SlotShares {
    nodes: BTreeMap<usize, Counted>,
}

impl Invariant for SlotShares {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Seen::Slot { node, sound, slot, .. } = seen else { return Ok(()) };
        let (plan, own) = (id_of(&slot.plan), slot.own.keys().copied().collect());
        // A node that had no slots for a while is counted from when it has slots again.
        let follows = |c: &&mut Counted| c.plan == plan && (c.slot..=c.slot + 1).contains(&slot.slot);
        let known = self.nodes.get_mut(node).filter(|c| *sound && follows(c));
        let Some(counted) = known else {
            let (from, had) = (slot.slot, BTreeMap::new());
            self.nodes.insert(*node, Counted { plan, from, slot: from, own, had });
            return Ok(());
        };
        let passed = slot.slot - counted.slot;
        counted.own.iter().for_each(|job| *counted.had.entry(*job).or_default() += passed);
        (counted.slot, counted.own) = (slot.slot, own);
        let all = counted.slot - counted.from;
        for (job, planned) in slot.plan.jobs.iter().filter(|(_, planned)| planned.home.is_some()) {
            let Some(share) = planned.slot_share else { continue };
            let had = counted.had.get(job).copied().unwrap_or(0);
            if had * 1000 > all * u64::from(share.permille()) + SLOTS_MORE * 1000 {
                return Err(format!("node {node}: job {job} had {had} of {all} slots, its share is {share}"));
            }
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
    fn a_gang_that_takes_slots_of_nobody_is_noticed() {
        assert!(is_noticed(Broken::Mangle(Mangle::OverShare), "shares"));
    }
}
