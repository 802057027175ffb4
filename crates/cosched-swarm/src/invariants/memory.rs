//! The memory of ready jobs never exceeds that of a node.
//!
//! Why: jobs that take turns and together want more memory than the node has page each other out at every switch, and none
//! of them makes progress (Strazdins & Uhlmann 2004, sections 4.2 and 6). What counts is what a job requested, or what it
//! was seen to use if that is more. A job that turns out to want more than the node has continues alone there, beside only
//! those that are not known to use any. Jobs that are being ended still use theirs, so no job is made ready before they
//! have ended; but a job that was held and is ended must be allowed to run until it ends.

use super::{Invariant, Seen};
use cosched_core::cluster::{Capacity, Stage, State};
use cosched_core::{JobId, NodeId};
use std::collections::BTreeMap;

/// The state of a job that uses memory on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uses {
    Ready,
    Ends,
}

#[derive(Default)]
pub(super) struct Memory {
    /// Of the state before.
    before: BTreeMap<(u32, JobId), Uses>,
}

impl Invariant for Memory {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        if let Seen::AnotherStore = seen {
            self.before.clear();
        }
        let Seen::State { state, capacity, .. } = seen else { return Ok(()) };
        let mut now = BTreeMap::new();
        for (node, has) in *capacity {
            // That a node has less than usual is itself news, and not known everywhere at once.
            let Some(known) = state.nodes.get(&NodeId(*node)) else { continue };
            let has = Capacity { memory_bytes: known.capacity.memory_bytes.min(has.memory_bytes), ..*has };
            self.look(*node, &has, state, &mut now)?;
        }
        self.before = now;
        Ok(())
    }
}

impl Memory {
    fn look(
        &self,
        node: u32,
        has: &Capacity,
        state: &State,
        now: &mut BTreeMap<(u32, JobId), Uses>,
    ) -> Result<(), String> {
        let (mut ready_bytes, mut ending_bytes, mut ready, mut is_new) = (0_u64, 0_u64, Vec::new(), false);
        for (id, job) in &state.jobs {
            let parts = job.place.as_ref().map_or(&[][..], |place| &place.parts);
            let part = parts.iter().find(|part| part.node == NodeId(node) && part.memory_bytes > 0);
            let before = self.before.get(&(node, *id));
            match (part, job.stage) {
                (None, _) | (_, Stage::Waiting(_)) => (),
                (Some(part), Stage::Ready) => {
                    now.insert((node, *id), Uses::Ready);
                    ready.push(*id);
                    ready_bytes += part.memory_bytes;
                    is_new |= before != Some(&Uses::Ready);
                }
                (Some(part), Stage::Clearing | Stage::Ending(_)) => {
                    now.insert((node, *id), Uses::Ends);
                    ending_bytes += if before == Some(&Uses::Ends) { part.memory_bytes } else { 0 };
                }
            }
        }
        let most = has.memory_bytes;
        if ready_bytes > most && ready.len() > 1 {
            return Err(format!("node {node} has {most} bytes; {ready:?} are ready and want {ready_bytes}"));
        }
        if is_new && ending_bytes > 0 && ready_bytes + ending_bytes > most {
            return Err(format!(
                "node {node} has {most} bytes; {ready:?} are ready, and ending ones have {ending_bytes}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_node_that_boasts_of_its_memory_is_noticed() {
        assert!(is_noticed(Broken::Boasts, "memory"));
    }
}
