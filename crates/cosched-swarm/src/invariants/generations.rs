//! Generations only rise: by one in the store, and on each node never back.
//!
//! Why: a plan is named by its generation. Two plans of one name could hold in the same slot, and a node that went back
//! would run what others have left.

use super::{Invariant, Seen};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Generations {
    /// Of the newest plan in the store, and from which slot it holds, in nanoseconds.
    stored: (u64, u64),
    /// The newest that each node has used.
    used: BTreeMap<usize, u64>,
}

impl Invariant for Generations {
    fn name(&self) -> &'static str {
        "generations"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::State { state, .. } => {
                let from = state.from_slot.saturating_mul(state.config.slot_length_ns);
                let (old, old_from) = std::mem::replace(&mut self.stored, (state.generation, from));
                let new = state.generation;
                if new != old && new != old + 1 {
                    return Err(format!("generation {old} is followed by {new}"));
                }
                if new > old && from < old_from {
                    return Err(format!("generation {new} holds {} ms before {old}", (old_from - from) / 1_000_000));
                }
            }
            Seen::Uses { node, generation } => {
                let newest = self.used.entry(*node).or_default();
                if generation < newest {
                    return Err(format!("node {node} goes back from generation {newest} to {generation}"));
                }
                *newest = *generation;
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_store_that_loses_what_it_has_acknowledged_is_noticed() {
        assert!(is_noticed(Broken::StoreForgets, "generations"));
    }
}
