//! What a host tells a node and hears from it.

use crate::request::{Outcome, Refusal, RequestId};
use cosched_cluster::store::{Key, Op};
use cosched_cluster::wire::{Answer, Attempt, Clock, Decided, Exit, Job, PartEnd};
use cosched_cluster::{AskId, Notice, OpId};
use cosched_core::cluster::{LocalJob, Part, Plan};
use cosched_core::{Flaw, JobId, PlannerError, Reason};
use std::sync::Arc;

/// What the machine has, and whether it is its cluster's only one.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// No other node can be.
    pub is_single: bool,
}

/// A job's part, as it is kept for the next daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// In which life of the job.
    pub attempt: Attempt,
    /// In which tree of the store it began.
    pub tree: u64,
    /// The job's main process is here, or is to be.
    pub lead: bool,
    /// The job has no main process.
    pub alike: bool,
    /// It is over as soon as no process is here.
    pub closing: bool,
    /// What administrators have decided about the job.
    pub decided: Decided,
}

/// A part that was found at the start.
#[derive(Clone, Copy, Debug)]
pub struct FoundPart {
    /// What was kept of it.
    pub of: PartOf,
    /// How it is scheduled.
    pub job: LocalJob,
    /// Whether a first process has entered it.
    pub has_begun: bool,
    /// Whether processes are in it now.
    pub populated: bool,
}

/// How a part has begun.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    /// Processes are in it.
    pub populated: bool,
    /// The main process of the job, which is still to enter it, lives.
    pub comes: bool,
}

/// What happens on a node. What happens to the control plane alone is told by [`crate::Node::tell`].
#[derive(Clone, Debug)]
pub enum Input {
    /// What [`Action::Begin`] wanted is done.
    Began(JobId, Began),
    /// It cannot be done; what there was of it is gone. [`Input::Over`] is to follow.
    Failed(JobId),
    /// What [`Action::Enter`] wanted cannot be done.
    NotEntered(JobId),
    /// The process of a launcher has ended before it could enter its job.
    LauncherGone(RequestId),
    /// A job has processes here now, or none any more. It does no harm to say so again.
    Populated(JobId, bool),
    /// How a job has ended here, whenever that was.
    Over {
        /// The job.
        job: JobId,
        /// In which life.
        attempt: Attempt,
        /// How.
        end: PartEnd,
    },
    /// A job's CPU time here since its start, in nanoseconds.
    CpuTime(JobId, u64),
    /// What the kernel says of the wall clock, or that it was set.
    Clock(Clock),
    /// It is later.
    Timeout,
}

/// Why a job's processes get a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// This user wants it.
    User(u32),
    /// The control plane says so.
    Reason(Reason),
}

/// What the host has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask the store, and say what came of it.
    Store(OpId, Op),
    /// No answer and no news of this operation are wanted any more.
    Drop(OpId),
    /// What came of a request.
    Answer(RequestId, Result<Outcome, Refusal>),
    /// What came of something that the control plane was asked directly ([`crate::Node::tell`]).
    Reply(AskId, Answer),
    /// Delete this request of the store's, without an answer.
    Withdraw(Key),
    /// For the log and for people.
    Say(Notice),
    /// A plan was to hold so many slots ago already; for metrics.
    Missed {
        /// The plan.
        generation: u64,
        /// The slots.
        slots: u64,
    },
    /// So many generations are known of but were not seen; for metrics.
    Behind(u64),
    /// The cluster's plan that is used from now on; for the log.
    Uses(Arc<Plan>),
    /// Gangs that span nodes have no slots here; for the log.
    NoSlots(Reason),
    /// Make what the job needs here, and start it if its launcher is here or it begins anew. Then say [`Input::Began`] or [`Input::Failed`].
    Begin {
        /// What is known of it.
        job: Box<Job>,
        /// Its part of this node.
        part: Part,
        /// Who has asked for it here; a process of his becomes its main one.
        launcher: Option<RequestId>,
    },
    /// The job has begun before it was known which launcher it is of: put its process in, and answer the request if
    /// nothing was answered yet; if that fails, say [`Input::NotEntered`].
    Enter(JobId, RequestId),
    /// The process of a launcher is waited for no more.
    Release(RequestId),
    /// It is known how the main process of a job that is here has ended: to be kept with the job, and [`Input::Populated`] to be said.
    Exited(JobId, Exit),
    /// A job has a place here, and another one lives here that has its number: it does not begin.
    Taken(JobId),
    /// Send a signal to all processes of a job.
    Signal {
        /// Which one.
        job: JobId,
        /// Which signal; 9 ends them.
        signal: i32,
        /// Why.
        why: Why,
        /// Who has to hear if it cannot be sent.
        asked: Option<RequestId>,
    },
    /// End what a polite signal has left.
    KillRest(JobId),
    /// The job is over here: what it had goes, then say [`Input::Over`].
    Finish(JobId, Attempt),
    /// Say [`Input::Over`] of a job that is not here any more.
    Report(JobId, Attempt),
    /// What the next daemon has to find of a job has changed: [`crate::Node::part`].
    Keep(JobId),
    /// The store has lost what it knew of this job: it goes on.
    Forgotten(JobId),
    /// Read a job's CPU time, and say [`Input::CpuTime`].
    Sample(JobId),
    /// A gang uses no CPU here (`true`), or uses it again.
    Sleeps {
        /// Which one.
        job: JobId,
        /// Whether it sleeps.
        asleep: bool,
        /// Why.
        reason: Reason,
    },
    /// A sleeping gang used no CPU here for very long.
    Dropped {
        /// Which one.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// There is another plan of this node: `local().plan()`.
    Plan,
    /// A defect of cosched, which was made harmless: to be logged.
    Unsound(Flaw),
    /// The node's own planner cannot do what is wanted of a job: to be logged.
    Refused(JobId, PlannerError),
}
