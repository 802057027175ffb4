//! What users ask a node for, and what they hear.

use cosched_cluster::wire::{Ack, Ask, By, Class, Exit, JobAsk, KillHow, Policy};
use cosched_core::{Bound, JobId, SlotShare};
use std::collections::BTreeMap;

/// The number of a request, which the host gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What somebody asks for.
#[derive(Clone, Debug)]
pub enum Request {
    /// A job. Answered when it has begun here, when it has a place on other nodes, or when it has waited for a while.
    Submit {
        /// Whose it is to be; where that is not who asks, with the asker's right to choose express.
        owner: By,
        /// The job.
        job: Box<JobAsk>,
        /// A process of the host's is to become its main one.
        has_process: bool,
    },
    /// Stop a job.
    Suspend(JobId),
    /// Let it go on.
    Resume(JobId),
    /// Give it another class.
    Class(JobId, Class),
    /// Give it a policy of its own, or none.
    Policy(JobId, Option<Policy>),
    /// Give it at most this part of the slots, or as many as it gets.
    Share(JobId, Option<SlotShare>),
    /// What it is to have from now on.
    Resources(JobId, Want),
    /// Send a signal to its processes.
    Kill {
        /// The job.
        job: JobId,
        /// Which signal, and what if they ignore it.
        how: KillHow,
        /// Only to those on this node.
        here: bool,
    },
    /// To hear when it is over.
    Wait(JobId),
    /// Its main process has ended.
    Exited(JobId, Exit),
    /// Change what concerns everybody: all of these, in their order.
    Change(ForAll, Vec<Ask>),
    /// How busy a node is, or all are.
    Loads(Option<String>),
}

/// What concerns everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForAll {
    /// A node.
    Node(String),
    /// The queues.
    Queues,
    /// The common policy.
    Policy,
    /// The store.
    Store,
}

/// What a job is to have, as users say it.
#[derive(Clone, Debug, Default)]
pub struct Want {
    /// Node by node; then nothing else.
    pub nodes: Vec<WantOfNode>,
    /// CPUs in all.
    pub cpus: Option<u32>,
    /// Memory in all, in bytes.
    pub memory_bytes: Option<u64>,
}

/// The same of one node.
#[derive(Clone, Debug, Default)]
pub struct WantOfNode {
    /// Which one; this one, if not said.
    pub node: Option<String>,
    /// CPUs; all of them, if not said.
    pub cpus: Option<u32>,
    /// The job is content with fewer.
    pub cpus_min: Option<u32>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Disk space, in bytes.
    pub disk_bytes: Option<u64>,
}

/// What came of a request that was not refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// To be shown: this job.
    Job(JobId),
    /// What is here of one that the cluster does not know.
    Here(JobId),
    /// The cluster.
    Status,
    /// What the node that was named has last said of itself, or what all have.
    Loads(Option<String>, BTreeMap<String, Ack>),
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There is no such job.
    NoSuchJob(JobId),
    /// It has ended.
    Ended(JobId),
    /// It is somebody else's.
    NotYours {
        /// The job.
        job: JobId,
        /// Whose it is.
        owner: u32,
        /// Who asked.
        by: u32,
    },
    /// An administrator has decided otherwise.
    Decided(JobId, Bound),
    /// Only administrators raise a class.
    StaysInClass {
        /// The job.
        job: JobId,
        /// Its class.
        class: cosched_core::Class,
        /// The one that was asked for.
        wanted: cosched_core::Class,
    },
    /// The class express is for administrators.
    Express,
    /// Only administrators submit jobs for others.
    NotFor {
        /// For whom.
        owner: u32,
        /// Who asked.
        by: u32,
    },
    /// Uid -1 owns no job.
    ForNobody,
    /// Only administrators change what concerns everybody.
    ForAll {
        /// What.
        what: ForAll,
        /// Who asked.
        by: u32,
    },
    /// The job is not on this node alone, and only signals that end programs go to all nodes.
    SignalElsewhere(JobId, i32),
    /// Resources are given in two ways.
    WantedTwice,
    /// None are.
    NothingWanted,
    /// A job cannot have 0 CPUs.
    NoCpus,
    /// It cannot have so many of a node and at least so many.
    Cpus {
        /// Of this one.
        node: String,
        /// So many.
        cpus: u32,
        /// At least.
        cpus_min: u32,
    },
    /// This machine has fewer.
    TooManyCpus {
        /// Than these.
        cpus: u32,
        /// So many.
        have: u32,
    },
    /// It has less memory.
    TooMuchMemory {
        /// Than this.
        bytes: u64,
        /// So much.
        have_bytes: u64,
    },
    /// A job of several nodes is to say what it wants of each.
    HowToDivide {
        /// The job.
        job: JobId,
        /// Its nodes.
        nodes: Vec<String>,
    },
    /// No node of this name is there.
    NoSuchNode(String),
    /// What nodes say of themselves cannot be read.
    Unread,
    /// The control plane takes no more requests, or not this one.
    NotTaken(String),
    /// Whoever plans has refused it.
    Planner {
        /// What is refused.
        what: String,
        /// Why.
        why: String,
        /// What to do.
        hint: String,
    },
    /// Its answer was lost with the connection to the store.
    Lost,
    /// The store does not answer. The request is carried out when it is back, unless a process has waited.
    Slow {
        /// A process has.
        has_process: bool,
    },
    /// The store of this machine alone does not take it.
    Unwritten(String),
    /// The process that was to run the job has ended.
    LauncherGone(JobId),
    /// The job cannot begin here.
    CannotBegin(JobId),
    /// Another job, of a cluster whose store was lost, has its number here.
    NumberTaken(JobId),
}
