//! The requests that users make to a node, and their outcomes.

use cosched_cluster::wire::{Ack, Ask, By, Class, Exit, JobAsk, KillHow, Policy};
use cosched_core::{Bound, JobId, SlotShare};
use std::collections::BTreeMap;

/// The number of a request, which the host gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A user's request.
#[derive(Clone, Debug)]
pub enum Request {
    /// Submit a job. Answered when it has begun here, when it has a place on other nodes, or when it has waited for a while.
    Submit {
        /// The job's owner; where that is not the requesting user, with that user's right to choose the class express.
        owner: By,
        /// The job.
        job: Box<JobAsk>,
        /// A process of the host is to become its main process.
        has_process: bool,
    },
    /// Suspend a job.
    Suspend(JobId),
    /// Resume it.
    Resume(JobId),
    /// Change its class.
    Class(JobId, Class),
    /// Set its own policy; `None`: it follows the cluster's.
    Policy(JobId, Option<Policy>),
    /// Set the largest part of the slots that it may have; `None`: no limit.
    Share(JobId, Option<SlotShare>),
    /// Change its resources.
    Resources(JobId, Want),
    /// Send a signal to its processes.
    Kill {
        /// The job.
        job: JobId,
        /// Which signal, and what happens when they ignore it.
        how: KillHow,
        /// Only to its processes on this node.
        here: bool,
    },
    /// Wait until the job is over.
    Wait(JobId),
    /// Its main process has ended.
    Exited(JobId, Exit),
    /// Change something that affects all users: all of these requests, in their order.
    Change(ForAll, Vec<Ask>),
    /// The load of this node, or of all nodes (`None`).
    Loads(Option<String>),
}

/// What a [`Request::Change`] affects; it concerns all users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForAll {
    /// A node.
    Node(String),
    /// The queues.
    Queues,
    /// The cluster's policy.
    Policy,
    /// The store.
    Store,
}

/// The resources that a user requests for a job.
#[derive(Clone, Debug, Default)]
pub struct Want {
    /// Node by node; then the other fields are not set.
    pub nodes: Vec<WantOfNode>,
    /// CPUs in total.
    pub cpus: Option<u32>,
    /// Memory in total, in bytes.
    pub memory_bytes: Option<u64>,
}

/// The resources that a user requests on one node.
#[derive(Clone, Debug, Default)]
pub struct WantOfNode {
    /// The node; `None`: this one.
    pub node: Option<String>,
    /// CPUs; `None`: all of the node.
    pub cpus: Option<u32>,
    /// The number of CPUs that is enough.
    pub cpus_min: Option<u32>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Disk space, in bytes.
    pub disk_bytes: Option<u64>,
}

/// The result of a request that was not refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Show this job.
    Job(JobId),
    /// Show this node's part of a job that the cluster does not know.
    Local(JobId),
    /// Show the cluster's status.
    Status,
    /// The last reported load of the requested node, or of all nodes.
    Loads(Option<String>, BTreeMap<String, Ack>),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There is no such job.
    NoSuchJob(JobId),
    /// The job has ended.
    Ended(JobId),
    /// The job belongs to another user.
    NotYours {
        /// The job.
        job: JobId,
        /// The user who owns it.
        owner: u32,
        /// The user who made the request.
        by: u32,
    },
    /// An administrator's decision forbids it.
    Decided(JobId, Bound),
    /// Only administrators may raise a job's class.
    StaysInClass {
        /// The job.
        job: JobId,
        /// Its class.
        class: cosched_core::Class,
        /// The requested class.
        wanted: cosched_core::Class,
    },
    /// The class express is for administrators.
    Express,
    /// Only administrators may submit jobs for other users.
    NotFor {
        /// The user for whom the job was to be.
        owner: u32,
        /// The user who made the request.
        by: u32,
    },
    /// User ID -1 cannot own a job.
    InvalidOwner,
    /// Only administrators may change what affects all users.
    ForAll {
        /// What was to be changed.
        what: ForAll,
        /// The user who made the request.
        by: u32,
    },
    /// The job is not on this node alone, and signals that do not end programs are only sent on one node.
    SignalRemote(JobId, i32),
    /// The request gives resources both per node and in total.
    WantedTwice,
    /// The request gives no resources.
    NothingWanted,
    /// A job cannot have 0 CPUs.
    NoCpus,
    /// The minimum of CPUs on a node is more than the number requested there.
    Cpus {
        /// The node.
        node: String,
        /// The number of CPUs.
        cpus: u32,
        /// The minimum.
        cpus_min: u32,
    },
    /// This machine has fewer CPUs than requested.
    TooManyCpus {
        /// The requested number.
        cpus: u32,
        /// The number that it has.
        have: u32,
    },
    /// This machine has fewer cores, and the job wants them to itself.
    TooManyCores {
        /// Than these.
        cpus: u32,
        /// The number of whole cores requested.
        cores: u32,
    },
    /// Gangs have no places here.
    NoPlaces,
    /// A job has cores to itself on the node where it is asked for alone.
    CoresElsewhere,
    /// This machine has less memory than requested.
    TooMuchMemory {
        /// The requested amount.
        bytes: u64,
        /// The amount that it has.
        have_bytes: u64,
    },
    /// Resources of a job on several nodes have to be given per node.
    HowToDivide {
        /// The job.
        job: JobId,
        /// Its nodes.
        nodes: Vec<String>,
    },
    /// There is no node of this name.
    NoSuchNode(String),
    /// The nodes' loads cannot be read.
    Unread,
    /// The control plane does not accept the request.
    NotTaken(String),
    /// The planner has refused the request.
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
    /// The store does not answer in time. The request is carried out when the store is back, unless a process waits for it.
    Slow {
        /// A process waits for it.
        has_process: bool,
    },
    /// The single machine's own store could not be written.
    Unwritten(String),
    /// The process that was to become the job's main process has ended.
    LauncherGone(JobId),
    /// The job cannot begin here.
    CannotBegin(JobId),
    /// Another job, of a cluster whose store was lost, has this number on this node.
    NumberTaken(JobId),
}
