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
}

/// What gangs that are not current may do in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharing {
    /// Nothing.
    Strict,
    /// Run on what the current gang leaves idle.
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
    /// Its class.
    pub class: Class,
    /// Its own policy; `None` follows the machine's.
    pub policy: Option<Policy>,
    /// The CPUs that it uses at a time, on one node.
    pub cpus: u32,
    /// Its node; `None` lets the planner choose.
    pub node: Option<NodeId>,
}
