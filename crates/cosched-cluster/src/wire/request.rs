//! Requests of users and nodes to the member that plans, and their answers.

use super::config::{FairShare, Queue, Shares};
use super::job::{Attempt, Exit, JobAsk, KillHow, PartEnd, WantAsk};
use super::names::{By, Class, Packing, Policy, Reason, Sharing};
use super::stored_as_is;
use serde::{Deserialize, Serialize};

/// What is requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub enum Ask {
    /// A job arrives.
    Submit(Box<JobAsk>),
    /// Suspend a job.
    Suspend { job: u64 },
    /// Resume it.
    Resume { job: u64 },
    /// End it: with this signal, and by force after a while.
    Kill { job: u64, how: KillHow },
    /// Change its class.
    Class { job: u64, class: Class },
    /// Change its policy; `None`: it follows the cluster's.
    Policy { job: u64, policy: Option<Policy> },
    /// Limit it to this part of the slots, in thousandths; `None` lifts the limit.
    Share { job: u64, permille: Option<u32> },
    /// Change its request of resources.
    Resources { job: u64, want: WantAsk },
    /// The cluster's policy.
    ClusterPolicy { policy: Policy },
    /// The cluster's sharing: soft or strict.
    ClusterSharing { sharing: Sharing },
    /// The length of a slot, in nanoseconds.
    SlotLength { ns: u64 },
    /// The ceiling on the share of gangs, in thousandths.
    Ceiling { permille: u32 },
    /// How long a node may be silent before it counts as dead; [`cosched_core::cluster::NEVER`]: until an operator says that it is dead.
    NodeDeadAfter { ns: u64 },
    /// An operator vouches that a silent node is dead: that none of its processes runs any more.
    Dead { node: String },
    /// How new gangs are placed.
    Packing { packing: Packing },
    /// The maximum number of rows.
    RowsMax { rows: u32 },
    /// The classes' shares in working hours and in off-hours.
    Shares { working: Shares, off: Shares },
    /// Whether usage counts in the order of a queue, and how.
    FairShare { fair_share: Option<FairShare> },
    /// The queues, the most urgent first; jobs stay in the queue of the same name.
    Queues { queues: Vec<Queue> },
    /// The node is drained (`true`: it gets no new jobs) or in use again (`false`).
    Drain { node: String, drains: bool },
    /// A node reports that the last process of a job has ended there.
    PartEnded { job: u64, attempt: Attempt, end: PartEnd },
    /// A node reports that it has killed its part of a job because it was unreachable for too long: the part is lost, and the job is requeued.
    PartLost { job: u64, attempt: Attempt },
    /// The node of a job's launcher reports that the main process has ended; that node may have no part of the job.
    MainEnded { job: u64, attempt: Attempt, exit: Exit },
    /// A node reports that a gang uses no CPU there.
    Asleep { job: u64, attempt: Attempt },
    /// A node reports that it uses CPU again.
    Awake { job: u64, attempt: Attempt },
    /// A node reports that a sleeping gang used no CPU there for a long time: gangs no longer wait for it.
    Dropped { job: u64, attempt: Attempt },
    /// A node reports that a job without a main process has no process there.
    Empty { job: u64, attempt: Attempt },
    /// A node reports that the job has a process again.
    Occupied { job: u64, attempt: Attempt },
    /// A node reports the peak memory observed for a job there.
    Memory { job: u64, attempt: Attempt, bytes: u64 },
    /// A node reports the policy that auto has chosen for a job.
    Choice { job: u64, policy: Policy, reason: Reason },
}

impl Ask {
    /// Whether a loss does no harm, because its sender is only answered when it is carried out, or sends it again.
    pub(crate) fn may_be_lost(&self) -> bool {
        use Ask::{Class, Kill, PartEnded, Policy, Resources, Resume, Share, Submit, Suspend};
        matches!(
            self,
            Submit(_)
                | Suspend { .. }
                | Resume { .. }
                | Kill { .. }
                | Class { .. }
                | Policy { .. }
                | Share { .. }
                | Resources { .. }
                | PartEnded { .. }
        )
    }
}

/// `requests/<node>.<instance>.<sequence>`: kept until a member has planned with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The node that received it.
    pub origin: String,
    /// The user; `None` for the node itself.
    pub by: Option<By>,
    /// When, since the Unix epoch, by that node's clock.
    pub at_ns: u64,
    /// What is requested.
    pub ask: Ask,
}
stored_as_is!(Request, "cosched-request", 2);

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// The job was accepted.
    Submitted {
        /// Its number.
        job: u64,
    },
    /// It is done.
    Done,
    /// It is refused, and nothing has changed.
    Refused {
        /// What is refused.
        what: String,
        /// Why.
        why: String,
        /// What to do.
        hint: String,
    },
    /// The answer was lost; the present state shows whether it was carried out.
    Unknown,
}

impl Answer {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Answer {
        Answer::Refused { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

/// `replies/<request>`: kept until the node that received the request has read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// When it was written, since the Unix epoch.
    pub at_ns: u64,
    /// The answer to the request.
    pub answer: Answer,
}
stored_as_is!(Reply, "cosched-reply", 1);
