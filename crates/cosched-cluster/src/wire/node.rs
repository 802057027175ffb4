//! What a node reports about itself.

use super::stored_as_is;
use serde::{Deserialize, Serialize};

/// The clock of a node, according to its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Whether it is synchronised closely enough for slots.
    pub synchronised: bool,
    /// The largest error that it may have.
    pub error_ns: u64,
}

/// `nodes/<name>`, with the node's lease: it exists as long as the node is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its number in plans.
    pub id: u32,
    /// The daemon's instance number: another one at every start.
    pub instance: u64,
    /// The boot of its machine; see [`crate::Settings::boot`].
    pub boot: String,
    /// Identifies what only one running daemon can hold: the machine and the locked state directory.
    pub home: String,
    /// CPUs for jobs.
    pub cpus: u32,
    /// Memory for jobs.
    pub memory_bytes: u64,
    /// Disk space for jobs.
    pub disk_bytes: u64,
    /// The state of its clock.
    pub clock: Clock,
    /// The version of its daemon.
    pub version: String,
    /// The highest job number ever known on this node: processes of that job may run, whatever the store contains.
    #[serde(default)]
    pub jobs_known: u64,
}
stored_as_is!(Node, "cosched-node", 1);

/// The last reported load of a node, for display; plans do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// When, since the Unix epoch.
    pub at_ns: u64,
    /// Threads that ran or waited for a CPU at that time.
    pub runnable: u32,
    /// The average of that over 1, 5 and 15 minutes, in thousandths.
    pub load_milli: [u32; 3],
    /// Memory that is available to new programs without swapping.
    pub memory_available_bytes: u64,
}

impl Measured {
    /// Whether `now` should be reported: a load differs by more than half a thread plus an eighth, or the memory by more than a
    /// sixteenth of the node's. Smaller changes are noise, and reporting them would load the store for nothing.
    pub(crate) fn is_old(&self, now: &Measured, memory_bytes: u64) -> bool {
        let loads = self.load_milli.iter().zip(&now.load_milli);
        loads.clone().any(|(old, new)| old.abs_diff(*new) > 500 + old / 8)
            || self.memory_available_bytes.abs_diff(now.memory_available_bytes) > memory_bytes / 16
    }
}

/// `acks/<name>`, with the node's lease: read by planners before they plan, and by users; not watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// The newest generation that the node has seen.
    pub generation: u64,
    /// Runnable threads of programs that are not registered.
    pub other_threads: u32,
    /// Its measured load.
    pub measured: Option<Measured>,
}
stored_as_is!(Ack, "cosched-ack", 2);

/// `asked/<name>`: the last request that a node wrote. Every write of requests changes it, so that a delayed one
/// cannot be carried out twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The daemon's instance number.
    pub instance: u64,
    /// The sequence number of its last request.
    pub sequence: u64,
}
stored_as_is!(Written, "cosched-written", 1);

/// `names/<name>`: kept for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    /// Its number in plans.
    pub(crate) id: u32,
    /// The boot of its machine on which the plan is based: what was begun before it is gone.
    pub(crate) boot: String,
    /// The [`Node::home`] whose jobs the plan has; `None` after a repair that could not find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<String>,
    /// When it left the plan, since the Unix epoch; `None` while it takes part.
    #[serde(default)]
    pub(crate) left_ns: Option<u64>,
    /// When the tree was created; a copy in case the tree's own keys are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tree: Option<u64>,
}
stored_as_is!(Name, "cosched-name", 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flicker_is_no_news_and_a_change_is() {
        let told = Measured { load_milli: [4000, 20, 10], memory_available_bytes: 5 << 30, ..Measured::default() };
        let is_old = |load, memory_available_bytes| {
            let now = Measured { load_milli: [load, 20, 10], memory_available_bytes, ..told };
            told.is_old(&now, 16 << 30)
        };
        assert!(!is_old(5000, 5 << 30) && is_old(5001, 5 << 30), "by half a thread and an eighth");
        assert!(!is_old(4000, 6 << 30) && is_old(4000, (6 << 30) + 1), "by a sixteenth of the node's memory");
    }
}
