//! What a host tells a member and hears from it.

use crate::keys::Keys;
use crate::store::{Key, Op, StoreError};
use crate::wire::{Ack, Answer, Attempt, Clock, Job, PartEnd};
use cosched_core::cluster::{Capacity, Config, Lead, Part, Plan, State};
use cosched_core::{JobId, NodeId, Reason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a node has on its own disk of its cluster: what a store that has lost it is repaired with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// When the cluster's tree was made.
    pub tree: u64,
    /// The node's number.
    pub id: u32,
    /// The state as it was last known.
    pub state: State,
}

/// What time it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Of a clock that only goes forward: leases and waits are measured by it.
    pub steady: Time,
    /// Of the wall clock, since the Unix epoch: slots begin by it.
    pub wall: Time,
}

/// What a member is and how it behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where its cluster lies.
    pub keys: Keys,
    /// Its name, checked by [`crate::check_name`].
    pub name: String,
    /// Which life of the daemon: another number at every start.
    pub instance: u64,
    /// What only one living daemon can hold: the machine and the locked directory of its state. A daemon of the same
    /// name and home has died, and its place is taken at once.
    pub home: String,
    /// Those lives of before that are known to be over; `None` when the home tells that all of them are. A copy of a machine
    /// has the same home, and may live beside it: who is not known to be dead has the name until its lease is out.
    pub dead: Option<BTreeSet<u64>>,
    /// Others write to the store, too: what is gone was deleted by somebody. A store of this daemon's own is mended when it
    /// is opened, and what it does not have is not missed.
    pub is_shared: bool,
    /// What an earlier life of this daemon has kept.
    pub kept: Option<Kept>,
    /// Which start of the machine: another text when all processes of before are gone (the kernel's boot id; in a
    /// container also the start of its first process). The node's parts of jobs are then lost, however short it was away.
    pub boot: String,
    /// The version of its daemon, for people.
    pub version: String,
    /// The highest number of a job that is known here.
    pub jobs_known: u64,
    /// What the node has.
    pub capacity: Capacity,
    /// Its clock.
    pub clock: Clock,
    /// What a cluster that is made anew begins with.
    pub initial: Config,
    /// The length of its lease, in seconds; at least 2.
    pub ttl_s: u64,
    /// How far ahead it plans.
    pub lead: Lead,
    /// For how long the member of the next rank lets another one plan, in nanoseconds.
    pub rank_delay_ns: u64,
    /// For how long acknowledgements of the newest plan are waited for before the next one is made, in nanoseconds.
    pub ack_wait_ns: u64,
    /// How often rows and loads are looked at anew, in nanoseconds.
    pub rebalance_ns: u64,
    /// How often a changed load is told at most, in nanoseconds.
    pub load_period_ns: u64,
    /// For how long a job that is over is kept, in nanoseconds.
    pub keep_ended_ns: u64,
    /// How many of them are kept of each user.
    pub keep_ended_max: usize,
    /// And how many bytes.
    pub keep_ended_bytes: u64,
    /// For how long a reply that nobody reads is kept, in nanoseconds.
    pub keep_replies_ns: u64,
    /// How many requests of users may wait.
    pub asks_max: usize,
    /// Whether others may begin its jobs anew when nobody hears of it.
    pub fences: bool,
}

impl Settings {
    /// The usual ones, for this node of this cluster.
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

    /// How long the store may take to answer. With a renewal every third of a lease, somebody who could not renew notices
    /// before the lease is out.
    pub fn answer_ns_max(&self) -> u64 {
        self.ttl_ns() / 4
    }

    /// For how much longer than a node itself the others wait before they take it for dead after so long a silence: time to see its
    /// own end, and what two clocks may differ by in that time.
    pub(super) fn fence_margin_ns(&self, dead_after_ns: u64) -> u64 {
        self.ttl_ns() + dead_after_ns / 100
    }

    /// After an interruption, for how long nodes that are not there are given time to come back.
    pub(super) fn grace_ns(&self) -> u64 {
        2 * self.ttl_ns() + 2_000_000_000
    }
}

/// A job on this node, as it was found at the start of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which one.
    pub job: JobId,
    /// In which life.
    pub attempt: Attempt,
    /// In which tree ([`crate::Member::tree`]) it began; 0 if that is not known.
    pub tree: u64,
    /// When it was submitted, in milliseconds since the Unix epoch; 0 if that is not known.
    pub submitted_ms: u64,
    /// How its last process ended here; `None` if some are left.
    pub ended: Option<PartEnd>,
    /// Until when it may live unless the node is heard, as the daemon of before has left it ([`crate::Member::fences`]).
    pub fence_at: Option<Time>,
}

/// A job of this node that others begin anew when nobody hears of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced {
    /// Which one.
    pub job: JobId,
    /// In which life.
    pub attempt: Attempt,
    /// When its processes have to be ended here, by the steady clock.
    pub at: Time,
}

/// An operation of the store under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A request of a user of this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// Why a request is not even taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Too many wait.
    #[error("{0} requests wait for the store already")]
    TooManyWait(usize),
    /// It would not fit into the store.
    #[error("the request has {bytes} bytes, and at most {most} are possible")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// This daemon takes no part.
    #[error("{0}")]
    Out(String),
}

/// What the host has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask the store, and say what came of it.
    Store(OpId, Op),
    /// No answer and no news of this operation are wanted any more: a watch that is given up.
    Drop(OpId),
    /// Run by this plan from now on.
    Use(Arc<Plan>),
    /// Leave all jobs to the operating system.
    RunNoSlots(Reason),
    /// Let this gang run until the plan that has it holds.
    StartEarly(JobId),
    /// A plan was to hold so many slots ago already; for metrics.
    Missed {
        /// The plan.
        generation: u64,
        /// The slots.
        slots: u64,
    },
    /// So many generations are known of but were not seen; for metrics.
    Behind(u64),
    /// The job has a place here: make what it needs, and if this is the lead and nobody else does, start it.
    StartHere {
        /// What is known of it.
        job: Box<Job>,
        /// Its part of this node.
        part: Part,
    },
    /// End all processes of the job here, then say `part_ended`.
    KillHere {
        /// Which one.
        job: JobId,
        /// In which life.
        attempt: Attempt,
        /// Why.
        reason: Reason,
    },
    /// The job's main process has ended elsewhere: say `part_ended` as soon as no process of it is here, at once if none is.
    CloseHere {
        /// Which one.
        job: JobId,
        /// In which life.
        attempt: Attempt,
    },
    /// The store has lost what it knew of this job, and will not know it again. Its processes go on, and nobody plans them.
    Forgotten(JobId),
    /// What came of a user's request.
    Reply(AskId, Answer),
    /// What nodes have last said of themselves, for who asked with [`super::Member::read_loads`].
    Loads(OpId, BTreeMap<String, Ack>),
    /// For the log and for people.
    Say(Notice),
}

/// What people want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The node takes part.
    Joined(NodeId),
    /// The store is lost: the plan stays as it is, and what users ask for waits.
    StoreLost(StoreError),
    /// The store is back after so many nanoseconds, and everything was read anew.
    StoreBack(u64),
    /// What lies in the store cannot be used; it is tried again from time to time.
    Unusable(String),
    /// Somebody has deleted this key; it was written again.
    KeyGone(Key),
    /// This daemon cannot take part: what, why, hint.
    Out(String),
    /// A node's lease is out: its jobs go on there, and its gangs that span nodes have no slots.
    NodeSilent(String),
    /// A node is dead, or has said good-bye, and has no jobs any more.
    NodeLeft(String),
    /// What was made here contradicts itself: a defect of cosched. It is not used; what is used instead is safe.
    Unsound(String),
    /// Somebody else has planned at the same time; the plan is made anew.
    Conflict,
    /// A plan was made here.
    Planned {
        /// Its generation.
        generation: u64,
        /// The requests that it carries out.
        requests: usize,
    },
    /// The clock is not synchronised any more (`false`), or is again.
    Clock(bool),
    /// The node has left the cluster.
    Left,
}
