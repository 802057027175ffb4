//! What users and nodes ask of whoever plans, and what came of it.

use super::config::{FairShare, Queue, Shares};
use super::job::{Attempt, Exit, JobAsk, KillHow, PartEnd, WantAsk};
use super::names::{Class, Packing, Policy, Reason, Sharing};
use super::stored_as_is;
use serde::{Deserialize, Serialize};

/// Who asks, as the daemon that was asked has found out by the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
    /// Whether that user is an administrator.
    pub admin: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub enum Ask {
    /// A job arrives.
    Submit(Box<JobAsk>),
    /// Stop a job.
    Suspend { job: u64 },
    /// Let it go on.
    Resume { job: u64 },
    /// End it: with this signal, and by force after a while.
    Kill { job: u64, how: KillHow },
    /// Give it another class.
    Class { job: u64, class: Class },
    /// Give it another policy; `None` follows the cluster's.
    Policy { job: u64, policy: Option<Policy> },
    /// Limit it to this part of the slots, in thousandths; `None` lifts the limit.
    Share { job: u64, permille: Option<u32> },
    /// What it wants from now on.
    Resources { job: u64, want: WantAsk },
    /// The cluster's policy.
    ClusterPolicy { policy: Policy },
    /// Soft or strict.
    ClusterSharing { sharing: Sharing },
    /// The length of a slot.
    SlotLength { ns: u64 },
    /// The ceiling on the share of gangs, in thousandths.
    Ceiling { permille: u32 },
    /// After so long a silence a node is dead; [`cosched_core::cluster::NEVER`]: only when an operator says so.
    NodeDeadAfter { ns: u64 },
    /// An operator vouches that a node that is not heard of is dead: that nothing of it runs any more.
    Dead { node: String },
    /// Where new gangs go.
    Packing { packing: Packing },
    /// The most rows.
    RowsMax { rows: u32 },
    /// What the classes are worth in working hours and in off-hours.
    Shares { working: Shares, off: Shares },
    /// Whether usage counts in the order of a queue, and how.
    FairShare { fair_share: Option<FairShare> },
    /// The queues, the most urgent first; jobs stay in the queue of the same name.
    Queues { queues: Vec<Queue> },
    /// Whether a node gets new jobs (`false`) or not.
    Drain { node: String, drains: bool },
    /// A node says that the last process of a job has ended there.
    PartEnded { job: u64, attempt: Attempt, end: PartEnd },
    /// A node says that it has ended its part of a job because nobody heard of it: that is lost, and the job begins anew.
    PartLost { job: u64, attempt: Attempt },
    /// The node of a job's launcher says that the main process has ended; that node may have no part of the job.
    MainEnded { job: u64, attempt: Attempt, exit: Exit },
    /// A node says that a gang uses no CPU there.
    Asleep { job: u64, attempt: Attempt },
    /// A node says that it uses CPU again.
    Awake { job: u64, attempt: Attempt },
    /// A node says that a sleeping gang used no CPU there for very long: nobody waits for it any more.
    Dropped { job: u64, attempt: Attempt },
    /// A node says that a job without a main process has no process there.
    Empty { job: u64, attempt: Attempt },
    /// A node says that it has one again.
    Occupied { job: u64, attempt: Attempt },
    /// A node says how much memory a job was seen to use there.
    Memory { job: u64, attempt: Attempt, bytes: u64 },
    /// A node says what auto has chosen for a job.
    Choice { job: u64, policy: Policy, reason: Reason },
}

impl Ask {
    /// Whether who asks hears of it only when it is carried out, or says it again.
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

/// `requests/<node>.<instance>.<sequence>`: until somebody has planned with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The node that was asked.
    pub origin: String,
    /// Who asks; `None` for the node itself.
    pub by: Option<By>,
    /// When, since the Unix epoch, by that node's clock.
    pub at_ns: u64,
    /// What.
    pub ask: Ask,
}
stored_as_is!(Request, "cosched-request", 2);

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// The job has this number.
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
    /// The answer was lost; whether it was done shows in what is.
    Unknown,
}

impl Answer {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Answer {
        Answer::Refused { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

/// `replies/<request>`: until the node that was asked has read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// When it was written, since the Unix epoch.
    pub at_ns: u64,
    /// What came of it.
    pub answer: Answer,
}
stored_as_is!(Reply, "cosched-reply", 1);
