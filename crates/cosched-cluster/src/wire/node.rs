//! What a node says of itself.

use super::stored_as_is;
use serde::{Deserialize, Serialize};

/// The clock of a node, as its kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Whether it follows others closely enough for slots.
    pub synchronised: bool,
    /// By how much it may be wrong.
    pub error_ns: u64,
}

/// `nodes/<name>`, with the node's lease: it is there as long as the node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its number in plans.
    pub id: u32,
    /// Which life of the daemon: another number at every start.
    pub instance: u64,
    /// Which start of its machine; see [`crate::Settings::boot`].
    pub boot: String,
    /// What only one living daemon can hold: the machine and the locked directory of its state.
    pub home: String,
    /// CPUs for jobs.
    pub cpus: u32,
    /// Memory for jobs.
    pub memory_bytes: u64,
    /// Disk space for jobs.
    pub disk_bytes: u64,
    /// Its clock.
    pub clock: Clock,
    /// The version of its daemon.
    pub version: String,
    /// The highest number of a job that was ever known here: processes of that job may live, whatever the store knows.
    #[serde(default)]
    pub jobs_known: u64,
}
stored_as_is!(Node, "cosched-node", 1);

/// How busy a node was when it last said so, for people; nothing is planned by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// When, since the Unix epoch.
    pub at_ns: u64,
    /// Threads that ran or waited for a CPU then.
    pub runnable: u32,
    /// The same on average over 1, 5 and 15 minutes, in thousandths.
    pub load_milli: [u32; 3],
    /// Memory that new programs could have without swapping.
    pub memory_available_bytes: u64,
}

impl Measured {
    /// Whether others ought to hear of `now`: a load is another one by half a thread and an eighth, or the memory by a
    /// sixteenth of the node's. Less than that is flicker, which would cost the store for nothing.
    pub(crate) fn is_old(&self, now: &Measured, memory_bytes: u64) -> bool {
        let loads = self.load_milli.iter().zip(&now.load_milli);
        loads.clone().any(|(old, new)| old.abs_diff(*new) > 500 + old / 8)
            || self.memory_available_bytes.abs_diff(now.memory_available_bytes) > memory_bytes / 16
    }
}

/// `acks/<name>`, with the node's lease: what planners read before they plan, and nobody watches; users read it, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// The newest generation that was seen there.
    pub generation: u64,
    /// Runnable threads of programs that are not registered.
    pub other_threads: u32,
    /// How busy it was.
    pub measured: Option<Measured>,
}
stored_as_is!(Ack, "cosched-ack", 2);

/// `asked/<name>`: the last request that a node wrote. Every write of requests moves it, so that one that was delayed on
/// its way cannot be carried out twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The life of the daemon.
    pub instance: u64,
    /// Its last request.
    pub sequence: u64,
}
stored_as_is!(Written, "cosched-written", 1);

/// `names/<name>`: for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    /// Its number in plans.
    pub(crate) id: u32,
    /// The start of its machine that the plan counts on: what was begun there before is gone.
    pub(crate) boot: String,
    /// When it left the plan, since the Unix epoch; `None` while it takes part.
    #[serde(default)]
    pub(crate) left_ns: Option<u64>,
    /// When the tree was made: the keys that say so may be lost.
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
