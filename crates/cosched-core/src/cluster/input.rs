//! What can happen in a cluster, and what its hosts have to do.

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

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A node takes part from now on.
    Join(NodeId, Capacity),
    /// A node has this from now on.
    Resize(NodeId, Capacity),
    /// A node's lease ran out: what runs there goes on, but nobody else may count on it.
    Silent(NodeId),
    /// A silent node is heard again.
    Heard(NodeId),
    /// A node is dead, or said good-bye: what ran there is lost, and each job's rule says what becomes of it.
    Leave(NodeId),
    /// A job's part of a node is lost: the node itself has ended it, because nobody heard of it.
    LosePart(JobId, NodeId),
    /// A node's machine was started anew: what ran there is gone for certain.
    Restarted(NodeId),
    /// Whether a node gets new jobs (`false`) or not.
    Drain(NodeId, bool),
    /// The runnable threads of a node's programs that are not registered. Counts from the next [`Input::Rebalance`] on.
    Load(NodeId, u32),
    /// A job arrives.
    Submit(JobSpec),
    /// The last process of a job has ended.
    End(JobId),
    /// The last process of a job that was to be started anew has ended.
    Cleared(JobId),
    /// The node of its main process is gone, and the job has no part there.
    MainLost(JobId),
    /// It is about to be over ([`Input::End`]), and did not end with exit code 0: nothing that was to follow its success starts.
    Failed(JobId),
    /// A user ends it: its processes are ended, then [`Input::End`] is said.
    Kill(JobId),
    /// A user stops it.
    Suspend(JobId),
    /// A user lets it go on.
    Resume(JobId),
    /// It has another class now.
    Class(JobId, Class),
    /// It has another policy now, or follows the cluster's.
    JobPolicy(JobId, Option<Policy>),
    /// It has at most this part of the slots now, or as many as it gets.
    Share(JobId, Option<SlotShare>),
    /// It wants this from now on; see `resources.rs`.
    Resources(JobId, Want),
    /// What auto has chosen for it: anything but [`Policy::Auto`].
    Choice(JobId, Policy, Reason),
    /// An agent says that this gang uses no CPU.
    Asleep(JobId),
    /// An agent says that it uses CPU again.
    Awake(JobId),
    /// The most memory that a job was seen to use on a node, in bytes.
    Memory(JobId, NodeId, u64),
    /// Working hours or off-hours begin.
    Period(Period),
    /// It is time to look at rows and loads anew.
    Rebalance,
    /// The cluster's policy.
    ClusterPolicy(Policy),
    /// Soft or strict.
    ClusterSharing(Sharing),
    /// The length of a slot, in nanoseconds.
    SlotLength(u64),
    /// The ceiling on the share of gangs, in thousandths.
    Ceiling(u32),
    /// After so long a silence a node is dead, in nanoseconds.
    NodeDeadAfter(u64),
    /// Where new gangs go.
    Packing(Packing),
    /// The most rows; those that there are stay until their gangs have ended.
    RowsMax(u32),
    /// What the classes are worth in working hours, and in off-hours.
    Shares(Shares, Shares),
    /// Whether usage counts in the order of a queue, and how.
    FairShare(Option<FairShare>),
    /// The queues, the most urgent first. Jobs stay in the queue of the same name; limits of memory and disk space hold for
    /// new jobs, those of time for all.
    Queues(Vec<Queue>),
}

/// What the hosts have to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// This plan is the next one.
    Publish(Arc<Plan>, Reason),
    /// The job has a place now and may start there (see the plan).
    Start(JobId),
    /// The job waits, or waits for something else than before.
    Wait(JobId, Reason),
    /// End all processes of the job, then say [`Input::End`].
    Kill(JobId, Reason),
    /// End all processes of the job, then say [`Input::Cleared`].
    Requeue(JobId, Reason),
    /// The job goes on without this node.
    GoOnWithout(JobId, NodeId),
    /// The plan that was made contradicts itself, and the one before it stays the newest: the state must not be kept.
    Unsound(Flaw),
}

/// Why an input is refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such job.
    UnknownJob(JobId),
    /// There is a job of this name.
    DuplicateJob(JobId),
    /// No such node.
    UnknownNode(NodeId),
    /// The node takes part already, or is named twice in what a job wants.
    DuplicateNode(NodeId),
    /// A node without CPUs, or a job that wants none.
    NoCpus,
    /// The node has fewer CPUs than are enough for the job.
    FewCpus {
        /// The node.
        node: NodeId,
        /// What would be enough.
        wanted: u32,
        /// What it has.
        has: u32,
    },
    /// The node has less memory than the job wants there.
    LittleMemory {
        /// The node.
        node: NodeId,
        /// What the job wants.
        wanted: u64,
        /// What it has.
        has: u64,
    },
    /// The node has less disk space than the job wants there.
    LittleDisk {
        /// The node.
        node: NodeId,
        /// What the job wants.
        wanted: u64,
        /// What it has.
        has: u64,
    },
    /// All nodes together cannot hold the job, empty as they may be.
    NeverFits {
        /// The CPUs that the job wants.
        wanted: u32,
        /// The CPUs that have its memory and disk space.
        most: u64,
    },
    /// A job that has started keeps its nodes.
    KeepsNodes(JobId),
    /// A job that has started keeps at least a CPU of each of its nodes.
    FewerThanNodes {
        /// The CPUs that the job wants.
        wanted: u32,
        /// Its nodes.
        nodes: u32,
    },
    /// The other jobs on the node leave less memory now than the job wants there.
    NoMemoryNow {
        /// The node.
        node: NodeId,
        /// What the job wants.
        wanted: u64,
        /// What they leave.
        left: u64,
    },
    /// The other jobs on the node leave less disk space now than the job wants there.
    NoDiskNow {
        /// The node.
        node: NodeId,
        /// What the job wants.
        wanted: u64,
        /// What they leave.
        left: u64,
    },
    /// What the node has left is for jobs that came before and wait for it.
    OthersWait(NodeId),
    /// No row has room for the cells that the job wants, and there may be no more rows.
    RowsFull,
    /// A number of rows that cannot be.
    Rows(u32),
    /// No such queue.
    UnknownQueue(u32),
    /// More than the queue permits.
    Queue(u32, Limit),
    /// The length of a slot is out of range.
    SlotLength(u64),
    /// A ceiling of none or of more than all.
    Ceiling(u32),
    /// A time after which nodes are dead that is out of range.
    NodeDeadAfter(u64),
    /// No queue at all, or two of one name.
    Queues,
    /// The job is in a queue that would not be there any more.
    QueueInUse(JobId),
    /// It wants to run for longer than its queue permits, in nanoseconds.
    RunTime {
        /// What the job asks for.
        wanted: u64,
        /// What the queue permits.
        most: u64,
    },
    /// A share of the slots that is less than one in a second.
    Share {
        /// What was asked for.
        wanted: SlotShare,
        /// The least, with slots of the present length.
        least: SlotShare,
    },
    /// The job is in another stage than the input needs.
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
                write!(f, "what node {} has left is for jobs that came before and wait for it", node.0)
            }
            Refusal::RowsFull => f.write_str("no row of the matrix has room for that, and there may be no more rows"),
            Refusal::Rows(rows) => write!(f, "{rows} rows are out of range: 1 to {}", super::change::ROWS_MAX),
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
                write!(f, "the job asks to run for {} s, and its queue permits {} s", s(wanted), most / 1_000_000_000)
            }
            Refusal::Share { wanted, least } => {
                write!(f, "a share of {wanted} is less than one slot a second: {least} is the least")
            }
            Refusal::NodeDeadAfter(ns) => {
                let least = super::change::NODE_DEAD_AFTER_NS.start() / 1_000_000_000;
                write!(f, "a node cannot be dead after {} ms: it is {least} s to a year, or never", ns / 1_000_000)
            }
            Refusal::Stage(job) => write!(f, "job {job} is not in a stage in which that can be"),
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
