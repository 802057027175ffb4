//! No plan contradicts itself.
//!
//! Why: the production code checks each plan where it is made, filled and compiled, and runs none that is not sound. It must
//! never have to reject one. The planner checks only what is new in a cluster's plan; this invariant checks all of it.

use super::{Invariant, Seen};

pub(super) struct Sound;

impl Invariant for Sound {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Uses { node, plan } => {
                plan.check().map_err(|flaw| format!("node {node} uses plan {}: {flaw}", plan.generation))
            }
            Seen::Unsound { node, why } => Err(format!("node {node}: {why}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::cluster::{Plan, Turn};

    #[test]
    fn a_plan_that_contradicts_itself_is_noticed() {
        let plan = Plan::default();
        assert_eq!(Sound.see(&Seen::Uses { node: 0, plan: &plan }), Ok(()));
        let plan = Plan { turns: [Turn { row: 3, nth: 0 }].into(), ..plan };
        assert!(Sound.see(&Seen::Uses { node: 0, plan: &plan }).is_err());
        assert!(Sound.see(&Seen::Unsound { node: 0, why: "" }).is_err());
    }
}
