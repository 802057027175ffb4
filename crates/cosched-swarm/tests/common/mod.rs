//! Helpers that several of these tests share.

use cosched_cluster::wire::{Answer, Measured};

/// The text of the only answer, which is a refusal.
pub(crate) fn refusal(answer: Option<&Vec<Answer>>) -> String {
    match answer.map(Vec::as_slice) {
        Some([Answer::Refused { what, why, hint }]) => format!("{what}: {why}. {hint}"),
        other => panic!("{other:?}"),
    }
}

/// A node with this load over the last minute.
pub(crate) fn measured(load_milli: u32) -> Measured {
    Measured { at_ns: 7, runnable: 3, load_milli: [load_milli, 20, 10], memory_available_bytes: 5 << 30 }
}
