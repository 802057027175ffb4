//! The types with which a host talks to a member: settings, what it found at the start, actions, notices.

use crate::keys::Keys;
use crate::store::{Key, Op, StoreError};
use crate::wire::{Ack, Answer, Attempt, Clock, Job, PartEnd};
use cosched_core::cluster::{Capacity, Config, Lead, Part, Plan, State};
use cosched_core::{JobId, NodeId, Reason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a node keeps of its cluster on its own disk: a store that has lost its data is repaired from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// When the cluster's tree was made.
    pub tree: u64,
    /// The node's number.
    pub id: u32,
    /// The last known state.
    pub state: State,
}

/// The present time on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// By a monotonic clock: leases and waits are measured by it.
    pub steady: Time,
    /// By the wall clock, since the Unix epoch: slots begin by it.
    pub wall: Time,
}

/// A member's identity and parameters.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The prefix of its cluster's keys in the store.
    pub keys: Keys,
    /// Its name, checked by [`crate::check_name`].
    pub name: String,
    /// The daemon's instance number: another one at every start.
    pub instance: u64,
    /// Identifies what only one running daemon can hold: the machine and the locked state directory. An earlier daemon of the same
    /// name and home must be dead, and its place is taken over at once.
    pub home: String,
    /// The earlier instances that are known to be dead; `None` when the home implies that all of them are. A copy of a machine has the
    /// same home and may run at the same time: an instance not known to be dead keeps the name until its lease has expired.
    pub dead: Option<BTreeSet<u64>>,
    /// Others write to the store, too, so a missing key was deleted by one of them. A daemon's own store is repaired when it is opened, and
    /// missing keys in it are not reported.
    pub is_shared: bool,
    /// What an earlier instance of this daemon has kept on disk.
    pub kept: Option<Kept>,
    /// Identifies the machine's boot: a different text when all earlier processes are gone (the kernel's boot id; in a
    /// container also the start of its first process). The node's parts of jobs are then lost, however short its absence was.
    pub boot: String,
    /// The version of its daemon, for display.
    pub version: String,
    /// The highest job number known on this node.
    pub jobs_known: u64,
    /// The node's capacity.
    pub capacity: Capacity,
    /// The state of its clock.
    pub clock: Clock,
    /// The initial configuration, if the cluster is created.
    pub initial: Config,
    /// The length of its lease, in seconds; at least 2.
    pub ttl_s: u64,
    /// How far ahead of its start a plan is made.
    pub lead: Lead,
    /// How long the member of the next rank waits for another one to plan, in nanoseconds.
    pub rank_delay_ns: u64,
    /// How long to wait for acknowledgements of the newest plan before the next one is made, in nanoseconds.
    pub ack_wait_ns: u64,
    /// The interval between rebalancings of rows and loads, in nanoseconds.
    pub rebalance_ns: u64,
    /// The shortest interval between two reports of a changed load, in nanoseconds.
    pub load_period_ns: u64,
    /// For how long a job that is over is kept, in nanoseconds.
    pub keep_ended_ns: u64,
    /// The number of such jobs that are kept for each user.
    pub keep_ended_max: usize,
    /// The total size at which they are kept, in bytes.
    pub keep_ended_bytes: u64,
    /// For how long a reply that no user reads is kept, in nanoseconds.
    pub keep_replies_ns: u64,
    /// The number of users' requests that may wait.
    pub asks_max: usize,
    /// Whether other nodes may restart its jobs when the node is unreachable; it then kills them itself in time.
    pub fences: bool,
}

impl Settings {
    /// The defaults, for this node of this cluster.
    pub fn new(keys: Keys, name: &str, instance: u64, capacity: Capacity) -> Settings {
        Settings {
            keys,
            name: name.to_owned(),
            instance,
            home: name.to_owned(),
            dead: None,
            is_shared: true,
            kept: None,
            boot: String::new(),
            version: String::new(),
            jobs_known: 0,
            capacity,
            clock: Clock { synchronised: true, error_ns: 0 },
            initial: Config::default(),
            ttl_s: 5,
            lead: Lead::default(),
            rank_delay_ns: 300_000_000,
            ack_wait_ns: 500_000_000,
            rebalance_ns: 60_000_000_000,
            load_period_ns: 30_000_000_000,
            keep_ended_ns: 7 * 86_400_000_000_000,
            keep_ended_max: 1000,
            keep_ended_bytes: 32 << 20,
            keep_replies_ns: 3_600_000_000_000,
            asks_max: 1000,
            fences: true,
        }
    }

    /// The length of the lease in nanoseconds.
    pub(super) fn ttl_ns(&self) -> u64 {
        self.ttl_s * 1_000_000_000
    }

    /// How long the store may take to answer. With a renewal every third of a lease, a member that could not renew notices it
    /// before the lease has expired.
    pub fn answer_ns_max(&self) -> u64 {
        self.ttl_ns() / 4
    }

    /// How much longer than a silent node itself the other nodes wait before they treat it as dead: the time in which the node kills its jobs, plus
    /// the difference that two clocks may build up in `dead_after_ns`.
    pub(super) fn fence_margin_ns(&self, dead_after_ns: u64) -> u64 {
        self.ttl_ns() + dead_after_ns / 100
    }

    /// After an interruption, how long missing nodes are given to come back.
    pub(super) fn grace_ns(&self) -> u64 {
        2 * self.ttl_ns() + 2_000_000_000
    }
}

/// A job found on this node at the daemon's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The job.
    pub job: JobId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The tree ([`crate::Member::tree`]) in which it began; 0 if that is not known.
    pub tree: u64,
    /// When it was submitted, in milliseconds since the Unix epoch; 0 if that is not known.
    pub submitted_ms: u64,
    /// How its last process ended here; `None` if some still run.
    pub ended: Option<PartEnd>,
    /// Until when it may run while the node is unreachable, as the daemon before this one left it ([`crate::Member::fences`]).
    pub fence_at: Option<Time>,
}

/// A job of this node that other nodes restart when this node is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced {
    /// The job.
    pub job: JobId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The deadline for killing its processes on this node, by the monotonic clock.
    pub at: Time,
}

/// The number of a store operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// The number of a user's request to this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// Why a request is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Too many requests wait.
    #[error("{0} requests are already waiting for the store")]
    TooManyWait(usize),
    /// The request would not fit into the store.
    #[error("the request has {bytes} bytes, and the maximum is {most}")]
    TooLarge {
        /// Its length, in bytes.
        bytes: usize,
        /// The maximum length.
        most: usize,
    },
    /// This daemon does not take part in the cluster.
    #[error("{0}")]
    Out(String),
}

/// What the host has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send the operation to the store, and report its result.
    Store(OpId, Op),
    /// The operation's results are no longer wanted: a watch that is cancelled.
    Drop(OpId),
    /// Follow this plan from now on.
    Use(Arc<Plan>),
    /// Leave all jobs to the operating system.
    RunNoSlots(Reason),
    /// Let this gang run already, until the plan that contains it is in force.
    StartEarly(JobId),
    /// A plan arrived after the slot from which it was to be in force; for metrics.
    Missed {
        /// The plan.
        generation: u64,
        /// The number of slots that it was late.
        slots: u64,
    },
    /// This number of newer generations exist that were not received; for metrics.
    Behind(u64),
    /// The job has a place here: prepare what it needs, and start it if this is its lead and no launcher does.
    StartPart {
        /// The job's record.
        job: Box<Job>,
        /// Its part on this node.
        part: Part,
    },
    /// Kill all processes of the job here, then call `part_ended`.
    KillPart {
        /// The job.
        job: JobId,
        /// Its attempt.
        attempt: Attempt,
        /// Why.
        reason: Reason,
    },
    /// The job's main process has ended on another node: call `part_ended` as soon as the job has no process here, at once if it has none.
    ClosePart {
        /// The job.
        job: JobId,
        /// Its attempt.
        attempt: Attempt,
    },
    /// The store has lost its record of this job for good. Its processes continue, without slots.
    Forgotten(JobId),
    /// The answer to a user's request.
    Reply(AskId, Answer),
    /// The nodes' last reported loads, for the call of [`super::Member::read_loads`] with this id.
    Loads(OpId, BTreeMap<String, Ack>),
    /// A notice for the log and for users.
    Say(Notice),
}

/// An event of interest to users and operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The node takes part.
    Joined(NodeId),
    /// The store is unreachable: the plan stays as it is, and users' requests wait.
    StoreLost(StoreError),
    /// The store is reachable again after this number of nanoseconds, and everything was read again.
    StoreBack(u64),
    /// The store's content cannot be used; it is read again from time to time.
    Unusable(String),
    /// This key was deleted by another program; it was written again.
    KeyGone(Key),
    /// This daemon cannot take part: what, why, hint.
    Out(String),
    /// A node's lease has expired: its jobs continue there, and its gangs that span nodes have no slots.
    NodeSilent(String),
    /// A node is dead or has left, and its parts of jobs are lost.
    NodeLeft(String),
    /// A plan made here contradicts itself, which is a defect of cosched. It is not used; a safe one is used in its place.
    Unsound(String),
    /// Another member has planned at the same time; the plan is made again.
    Conflict,
    /// This member has made a plan.
    Planned {
        /// Its generation.
        generation: u64,
        /// The number of requests that it carries out.
        requests: usize,
    },
    /// The clock is no longer synchronised (`false`), or is synchronised again.
    Clock(bool),
    /// The node has left the cluster.
    Left,
}
