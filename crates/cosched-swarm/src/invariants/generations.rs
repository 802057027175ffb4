//! Generations only rise: by one in the store, and on each node they never go back.
//!
//! Why: a plan is named by its generation. Two plans of one name could take effect in the same slot, and a node that
//! went back would run what the others have left. When the store has lost its data or was restored, generations start
//! over, and each node goes back once. A plan already in effect is not overtaken by one that took effect at an earlier
//! moment.

use super::{Invariant, Seen};
use std::collections::BTreeMap;

/// How long a commit may be in transit: it states, when it is sent, from when the plan is in effect.
const SENT_NS: u64 = 4_000_000_000;

#[derive(Default)]
pub(super) struct Generations {
    /// The newest generation in the store, and the slot from which it is in effect, in nanoseconds; `None` after the
    /// store was lost.
    stored: Option<(u64, u64)>,
    /// The life of the store to which that belongs.
    life: u64,
    /// The newest that each node has used, and how often it went back: at most once for each other life of the store.
    used: BTreeMap<usize, (u64, u64)>,
}

impl Invariant for Generations {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::State { state, now_wall_ns, .. } => {
                let from = state.from_slot.saturating_mul(state.config.slot_length_ns);
                let first = (self.life == 0).then_some((0, 0));
                let Some((old, old_from)) = self.stored.replace((state.generation, from)).or(first) else {
                    return Ok(());
                };
                let new = state.generation;
                if new != old && new != old + 1 {
                    return Err(format!("generation {old} is followed by {new}"));
                }
                if new > old && from < old_from && old_from + SENT_NS <= *now_wall_ns {
                    return Err(format!("generation {new} holds {} ms before {old}", (old_from - from) / 1_000_000));
                }
            }
            Seen::AnotherStore => (self.stored, self.life) = (None, self.life + 1),
            Seen::Uses { node, plan } => {
                let (newest, backs) = self.used.entry(*node).or_default();
                let generation = plan.generation;
                if generation < *newest && *backs == self.life {
                    return Err(format!("node {node} goes back from generation {newest} to {generation}"));
                }
                *backs += u64::from(generation < *newest);
                *newest = generation;
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
    fn a_store_that_loses_what_it_has_acknowledged_is_noticed() {
        assert!(is_noticed(Broken::StoreForgets, "generations"));
    }
}
