//! Jobs, nodes, and their options.

use crate::class::Class;
use crate::id::{JobId, NodeId};

/// How a job is scheduled. A closed set: every policy runs both live and in the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// All its processes in the same slots; see `policy/gang.rs`.
    Gang,
    /// By the operating system, with a share; see `policy/local.rs`.
    Local,
    /// As local, and the node periodically raises a job that has a message waiting; see `policy/dynamic.rs`.
    Pb,
    /// As local, and the arrival of a message raises its job; see `policy/dynamic.rs`.
    Dcs,
    /// One of the others, chosen and changed by the job's observed behaviour; see `policy/auto.rs`.
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
    /// The gang of the next turn runs on CPUs that the current one leaves idle (paired gang scheduling).
    Paired,
    /// Gangs run on CPUs that the current one leaves idle: that of the next turn first, then the others by their shares.
    Soft,
}

/// Which of the rows with room a new gang is put into.
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
    /// Its identifier.
    pub id: NodeId,
    /// Its CPUs, a column of the matrix each.
    pub cpus: u32,
}

/// A job as the planner of one machine knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its identifier.
    pub id: JobId,
    /// Its owner's user ID: a user has the share of their most urgent gang, however many gangs they have.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy; `None` follows the machine's.
    pub policy: Option<Policy>,
    /// The CPUs that it uses at the same time, on one node.
    pub cpus: u32,
    /// Its node; `None` lets the planner choose.
    pub node: Option<NodeId>,
}
