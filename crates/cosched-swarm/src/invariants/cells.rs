//! Two gangs never have the same CPU in a slot, by plans of the same generation.
//!
//! Why: two gangs on a CPU spin against each other, which is the collapse that gang scheduling is meant to prevent
//! (LLNL, "Gang Scheduler Design": an entry of the matrix is one program's). What is checked is what the node really
//! lets run, not the plan: gangs that span nodes have fixed cells, which must be disjoint, and all gangs together must
//! not have more CPUs than the node. A gang that starts early uses cells that no node-spanning gang has until then.

use super::{Invariant, Seen};
use crate::host::SlotBegins;
use cosched_core::JobId;
use std::collections::BTreeMap;

pub(super) struct Cells;

impl Invariant for Cells {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Seen::Slot { node, id, cpus, slot, .. } = seen else { return Ok(()) };
        let wanted: u32 = slot.own.values().sum();
        if wanted > *cpus {
            return Err(format!("node {node} has {cpus} CPUs, and in slot {} own: {:?}", slot.slot, slot.own));
        }
        disjoint(*id, slot).map_err(|why| format!("node {node}, slot {}: {why}", slot.slot))
    }
}

/// Checks that the gangs running on a node have disjoint cells.
fn disjoint(node: u32, slot: &SlotBegins) -> Result<(), String> {
    let mut taken: BTreeMap<u32, JobId> = BTreeMap::new();
    let Some(laid) = slot.plan.layout.nodes().iter().find(|laid| laid.id.0 == node) else { return Ok(()) };
    for job in slot.own.keys() {
        let Some((_, spans)) = slot.plan.jobs.get(job).and_then(|planned| planned.home.as_ref()) else { continue };
        let columns = spans.iter().flat_map(|span| span.first..span.end());
        for column in columns.filter(|column| (laid.span.first..laid.span.end()).contains(column)) {
            if let Some(other) = taken.insert(column, *job) {
                return Err(format!("jobs {other} and {job} have CPU {}", column - laid.span.first));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::host::Mangle;
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_node_that_runs_all_gangs_at_once_is_noticed() {
        assert!(is_noticed(Broken::Mangle(Mangle::AllAtOnce), "cells"));
    }
}
