//! Jobs, nodes, and what can be chosen about them.

use crate::class::Class;
use crate::id::{JobId, NodeId};

/// How a job is scheduled. A closed set: every policy runs live and in the simulator alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// All its processes in the same slots; see `policy/gang.rs`.
    Gang,
    /// By the operating system, with a share; see `policy/local.rs`.
    Local,
    /// As local, and every period the node raises a job that has a message waiting; see `policy/dynamic.rs`.
    Pb,
    /// As local, and the arrival of a message raises its job; see `policy/dynamic.rs`.
    Dcs,
    /// One of the others, chosen and changed by what the job is seen to do; see `policy/auto.rs`.
    Auto,
}

impl Policy {
    /// Whether the operating system schedules it, boosted or not: it has no slots.
    pub fn is_local(self) -> bool {
        matches!(self, Policy::Local | Policy::Pb | Policy::Dcs)
    }
}

/// What gangs that are not current may do in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharing {
    /// Nothing.
    Strict,
    /// The gang of the next turn runs on what the current one leaves idle (paired gang scheduling).
    Paired,
    /// Run on what the current gang leaves idle: that of the next turn first, then the others by their shares.
    Soft,
}

/// Where a new gang goes among the rows that have room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packing {
    /// The first row.
    FirstFit,
    /// The row that has the least room left.
    BestFit,
}

/// A node of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Its CPUs, a column of the matrix each.
    pub cpus: u32,
}

/// What the planner knows of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// Its owner, a user's number: a user has the share of his most urgent gang, however many he has.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy; `None` follows the machine's.
    pub policy: Option<Policy>,
    /// The CPUs that it uses at a time, on one node.
    pub cpus: u32,
    /// Its node; `None` lets the planner choose.
    pub node: Option<NodeId>,
}
