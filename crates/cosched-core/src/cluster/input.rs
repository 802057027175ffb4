//! The planner's inputs, the actions that its hosts have to carry out, and the reasons why an input is refused.

use super::fair::FairShare;
use super::plan::Plan;
use super::queue::{Limit, Queue};
use super::state::{Capacity, JobSpec, Packing, Period, Want};
use crate::class::{Class, Shares};
use crate::id::{JobId, NodeId};
use crate::job::{Policy, Sharing};
use crate::policy::share::SlotShare;
use crate::reason::Reason;
use crate::sound::Flaw;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The largest maximum of rows that an operator may set.
pub(super) const ROWS_MAX: u32 = 1000;

/// Something that happened in the cluster, or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A node joins.
    Join(NodeId, Capacity),
    /// A node's capacity has changed to this.
    Resize(NodeId, Capacity),
    /// A node's lease has expired: its jobs continue there, but the other nodes cannot rely on it.
    Silent(NodeId),
    /// A silent node is reachable again.
    Heard(NodeId),
    /// A node is dead or has left: its processes are lost, and each job's [`super::OnNodeLoss`] says what happens to it.
    Leave(NodeId),
    /// A job's part on a node is lost: the node itself has killed it, because the node was unreachable for too long.
    LosePart(JobId, NodeId),
    /// A node's machine was rebooted: all processes that ran there are certainly gone.
    Restarted(NodeId),
    /// The node is drained (`true`: it gets no new jobs) or in use again (`false`).
    Drain(NodeId, bool),
    /// The number of runnable threads of programs on a node that are not registered. Takes effect at the next [`Input::Rebalance`].
    Load(NodeId, u32),
    /// A job arrives.
    Submit(JobSpec),
    /// The last process of a job has ended.
    End(JobId),
    /// The last process of a job that is to be restarted has ended.
    Cleared(JobId),
    /// The node of the job's main process is lost, and the job has no part there.
    MainLost(JobId),
    /// The job is about to end ([`Input::End`]) with an exit code other than 0: jobs that were to follow its success do not start.
    Failed(JobId),
    /// A user kills the job: its processes are killed, then [`Input::End`] follows.
    Kill(JobId),
    /// A user suspends the job.
    Suspend(JobId),
    /// A user resumes the job.
    Resume(JobId),
    /// The job's new class.
    Class(JobId, Class),
    /// The job's new policy; `None`: it follows the cluster's.
    JobPolicy(JobId, Option<Policy>),
    /// The largest part of the slots that the job may have; `None`: no limit.
    Share(JobId, Option<SlotShare>),
    /// The job's new request of resources; see `resources.rs`.
    Resources(JobId, Want),
    /// The policy that auto has chosen for the job; never [`Policy::Auto`].
    Choice(JobId, Policy, Reason),
    /// An agent reports that this gang uses no CPU.
    Asleep(JobId),
    /// An agent reports that this gang uses CPU again.
    Awake(JobId),
    /// The peak memory observed for a job on a node, in bytes.
    Memory(JobId, NodeId, u64),
    /// Working hours or off-hours begin.
    Period(Period),
    /// It is time to rebalance: rows and loads are examined again.
    Rebalance,
    /// The cluster's new policy.
    ClusterPolicy(Policy),
    /// The cluster's new sharing: soft or strict.
    ClusterSharing(Sharing),
    /// The length of a slot, in nanoseconds.
    SlotLength(u64),
    /// The ceiling on the share of gangs, in thousandths.
    Ceiling(u32),
    /// How long a node may be silent before it counts as dead, in nanoseconds.
    NodeDeadAfter(u64),
    /// Where new gangs are placed.
    Packing(Packing),
    /// The maximum number of rows; existing rows above it stay until their gangs have ended.
    RowsMax(u32),
    /// The classes' shares in working hours, and in off-hours.
    Shares(Shares, Shares),
    /// Whether usage counts in the order of a queue, and how.
    FairShare(Option<FairShare>),
    /// The queues, the most urgent first. Jobs stay in the queue of the same name; new limits on memory and disk space apply to
    /// new jobs only, new time limits to all.
    Queues(Vec<Queue>),
}

/// What the hosts have to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Publish this plan, the next one.
    Publish(Arc<Plan>, Reason),
    /// The job now has a place (see the plan) and may start there.
    Start(JobId),
    /// The job waits, or now waits for another reason than before.
    Wait(JobId, Reason),
    /// Kill all processes of the job, then send [`Input::End`].
    Kill(JobId, Reason),
    /// Kill all processes of the job, then send [`Input::Cleared`].
    Requeue(JobId, Reason),
    /// The job continues without this node.
    GoOnWithout(JobId, NodeId),
    /// The plan just made contradicts itself, and the one before it stays in force: the new state must not be stored.
    Unsound(Flaw),
}

/// Why an input is refused. A refused input changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such job.
    UnknownJob(JobId),
    /// A job of this name exists already.
    DuplicateJob(JobId),
    /// No such node.
    UnknownNode(NodeId),
    /// The node takes part already, or is listed twice in a job's request.
    DuplicateNode(NodeId),
    /// A node without CPUs, or a job that requests none.
    NoCpus,
    /// The node has fewer CPUs than the job's minimum.
    FewCpus {
        /// The node.
        node: NodeId,
        /// The job's minimum.
        wanted: u32,
        /// The node's CPUs.
        has: u32,
    },
    /// The node has less memory than the job requests there.
    LittleMemory {
        /// The node.
        node: NodeId,
        /// What the job requests, in bytes.
        wanted: u64,
        /// What the node has, in bytes.
        has: u64,
    },
    /// The node has less disk space than the job requests there.
    LittleDisk {
        /// The node.
        node: NodeId,
        /// What the job requests, in bytes.
        wanted: u64,
        /// What the node has, in bytes.
        has: u64,
    },
    /// The job would not fit even if all nodes were empty.
    NeverFits {
        /// The CPUs that the job requests.
        wanted: u32,
        /// The CPUs that could be used with the memory and disk space that it requests.
        most: u64,
    },
    /// The request changes the nodes of a job that has started.
    KeepsNodes(JobId),
    /// The request has fewer CPUs than the job has nodes: a job that has started keeps at least one CPU on each.
    FewerThanNodes {
        /// The CPUs that the job requests.
        wanted: u32,
        /// The number of its nodes.
        nodes: u32,
    },
    /// The other jobs on the node leave less memory at present than the job requests there.
    NoMemoryNow {
        /// The node.
        node: NodeId,
        /// What the job requests, in bytes.
        wanted: u64,
        /// What the other jobs leave, in bytes.
        left: u64,
    },
    /// The other jobs on the node leave less disk space at present than the job requests there.
    NoDiskNow {
        /// The node.
        node: NodeId,
        /// What the job requests, in bytes.
        wanted: u64,
        /// What the other jobs leave, in bytes.
        left: u64,
    },
    /// The node's free resources are reserved for jobs that came earlier and wait for them.
    OthersWait(NodeId),
    /// No row has room for the job's cells, and the maximum number of rows is reached.
    RowsFull,
    /// The number of rows is out of range.
    Rows(u32),
    /// No such queue.
    UnknownQueue(u32),
    /// The request exceeds a limit of the queue.
    Queue(u32, Limit),
    /// The length of a slot is out of range.
    SlotLength(u64),
    /// The ceiling is 0 or above 1000 thousandths.
    Ceiling(u32),
    /// The time after which a silent node counts as dead is out of range.
    NodeDeadAfter(u64),
    /// There is no queue, or two have the same name.
    Queues,
    /// The job is in a queue that would be removed.
    QueueInUse(JobId),
    /// The requested run time is longer than the queue permits; both in nanoseconds.
    RunTime {
        /// What the job requests.
        wanted: u64,
        /// What the queue permits.
        most: u64,
    },
    /// The share of the slots is less than one slot per second.
    Share {
        /// What was requested.
        wanted: SlotShare,
        /// The smallest permitted share with slots of the present length.
        least: SlotShare,
    },
    /// The job's stage does not permit this input.
    Stage(JobId),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::UnknownJob(job) => write!(f, "there is no job {job}"),
            Refusal::DuplicateJob(job) => write!(f, "there is a job {job} already"),
            Refusal::Queues => f.write_str("at least one queue is needed, each with a name of its own"),
            Refusal::QueueInUse(job) => write!(f, "job {job} is in a queue that is left out"),
            Refusal::UnknownNode(node) => write!(f, "there is no node {}", node.0),
            Refusal::DuplicateNode(node) => write!(f, "node {} is named twice", node.0),
            Refusal::NoCpus => f.write_str("at least one CPU is needed"),
            Refusal::FewCpus { node, wanted, has } => {
                write!(f, "the job needs {wanted} CPUs on node {}, which has {has}", node.0)
            }
            Refusal::LittleMemory { node, wanted, has } => {
                write!(f, "the job wants {wanted} bytes of memory on node {}, which has {has}", node.0)
            }
            Refusal::LittleDisk { node, wanted, has } => {
                write!(f, "the job wants {wanted} bytes of disk space on node {}, which has {has}", node.0)
            }
            Refusal::NeverFits { wanted, most } => {
                write!(f, "the job wants {wanted} CPUs; {most} have the memory and disk space that it wants")
            }
            Refusal::KeepsNodes(job) => write!(f, "job {job} has started, and keeps its nodes: no more and no fewer"),
            Refusal::FewerThanNodes { wanted, nodes } => {
                write!(f, "the job has started on {nodes} nodes and needs a CPU of each: {wanted} are too few")
            }
            Refusal::NoMemoryNow { node, wanted, left } => {
                write!(
                    f,
                    "the job wants {wanted} bytes of memory on node {}, and the others there leave {left}",
                    node.0
                )
            }
            Refusal::NoDiskNow { node, wanted, left } => {
                write!(
                    f,
                    "the job wants {wanted} bytes of disk space on node {}, the others there leave {left}",
                    node.0
                )
            }
            Refusal::OthersWait(node) => {
                write!(f, "what node {} has left is reserved for earlier jobs that wait for it", node.0)
            }
            Refusal::RowsFull => f.write_str("no row of the matrix has room for that, and no more rows are allowed"),
            Refusal::Rows(rows) => write!(f, "{rows} rows are out of range: 1 to {}", ROWS_MAX),
            Refusal::UnknownQueue(queue) => write!(f, "there is no queue {queue}"),
            Refusal::Queue(queue, limit) => exceeded(f, *queue, limit),
            Refusal::SlotLength(ns) => {
                let range = crate::policy::SLOT_LENGTH_NS;
                let (low, high) = (range.start() / 1_000_000, range.end() / 1_000_000);
                write!(f, "a slot of {ns} ns is out of range: {low} ms to {high} ms")
            }
            Refusal::Ceiling(permille) => write!(f, "a ceiling of {permille} ‰ is out of range: 1 to 1000"),
            Refusal::RunTime { wanted, most } => {
                let s = |ns: &u64| ns.div_ceil(1_000_000_000);
                write!(f, "the job requests {} s of run time, its queue permits {} s", s(wanted), most / 1_000_000_000)
            }
            Refusal::Share { wanted, least } => {
                write!(f, "a share of {wanted} is less than one slot a second: {least} is the least")
            }
            Refusal::NodeDeadAfter(ns) => {
                let least = super::change::NODE_DEAD_AFTER_NS.start() / 1_000_000_000;
                write!(f, "a node cannot be dead after {} ms: give {least} s to a year, or never", ns / 1_000_000)
            }
            Refusal::Stage(job) => write!(f, "the present state of job {job} does not allow that"),
        }
    }
}

fn exceeded(f: &mut fmt::Formatter<'_>, queue: u32, limit: &Limit) -> fmt::Result {
    match limit {
        Limit::Memory { wanted, most } => {
            write!(f, "the job wants {wanted} bytes of memory, queue {queue} permits {most}")
        }
        Limit::UserMemory { wanted, most } => {
            write!(f, "the job wants {wanted} bytes of memory, queue {queue} permits {most} to each user")
        }
        Limit::Disk { wanted, most } => {
            write!(f, "the job wants {wanted} bytes of disk space on a node, queue {queue} permits {most}")
        }
    }
}

impl core::error::Error for Refusal {}
