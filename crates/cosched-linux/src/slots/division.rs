//! Slots that are divided between gangs and neighbours (core, `policy/neighbours.rs`): the slot thread's input and its writes.

use std::sync::Arc;

use cosched_core::{Held, phase};
use rustix::io::Errno;

use super::Shared;
use crate::treeweight::{TreeWeight, Weighs, Weights};

/// A division of slots.
#[derive(Debug, Clone)]
pub struct Division {
    /// The part that is held back for neighbours.
    pub held: Held,
    /// The weights of the subtree meanwhile.
    pub weights: Weights,
    /// The files for the weights.
    pub tree: Arc<TreeWeight>,
}

/// Sets the division of slots, from another thread than the owner's.
#[derive(Clone)]
pub struct Divider(pub(super) Arc<Shared>);

impl Divider {
    /// Replaces the division from now on.
    pub fn set(&self, division: Division) {
        self.0.divisions.offer(division);
        self.0.wake();
    }
}

impl Division {
    /// Whether a moment of a slot is in the part that is held back, and when that changes; both times count from the slot's beginning.
    pub(super) fn phase(&self, slot_length_ns: i64, into_ns: i64) -> (bool, i64) {
        let (held, until_ns) = phase(slot_length_ns as u64, self.held.part, into_ns.max(0) as u64);
        (held && self.is_divided(), until_ns as i64)
    }

    pub(super) fn is_divided(&self) -> bool {
        self.held.part > 0.0
    }

    /// Writes the weight of a part of a slot; `divided` where gangs have slots.
    pub(super) fn weigh(&self, held: bool, divided: bool) -> Result<(), Errno> {
        let weights = &self.weights;
        let to = match (held, divided && self.is_divided()) {
            (true, _) => weights.held,
            (false, true) => Weighs::Number(weights.own),
            (false, false) => Weighs::Number(weights.undivided),
        };
        self.tree.set(to)
    }
}
