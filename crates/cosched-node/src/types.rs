//! The types with which a host talks to a node: inputs, actions, and what is kept of a part.

use crate::request::{Outcome, Refusal, RequestId};
use cosched_cluster::store::{Key, Op};
use cosched_cluster::wire::{Answer, Attempt, Clock, Decided, Exit, Job, PartEnd};
use cosched_cluster::{AskId, Notice, OpId};
use cosched_core::cluster::{LocalJob, Part, Plan};
use cosched_core::{Choice, Flaw, JobId, PlannerError, Reason, Seen};
use std::sync::Arc;

/// The machine's resources, and whether it is a cluster of one node.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Its CPUs.
    pub cpus: u32,
    /// The number of them that jobs can use at a time: a quota may be lower.
    pub cpus_at_a_time: u32,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// The cluster cannot have other nodes.
    pub is_single: bool,
}

/// A job's part on this node, as it is kept for a restarted daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// The job's attempt.
    pub attempt: Attempt,
    /// The tree of the store in which it began.
    pub tree: u64,
    /// The job's main process runs here, or will.
    pub lead: bool,
    /// The job has no main process.
    pub alike: bool,
    /// The part is over as soon as it has no process.
    pub closing: bool,
    /// Its processes were told to end; those that are left this number of milliseconds after a start of the daemon are killed.
    pub grace_ms: Option<u64>,
    /// That time by the last plan that said how it was to end.
    pub planned_ms: Option<u64>,
    /// What administrators have decided about the job.
    pub decided: Decided,
}

/// A part that was found at the daemon's start.
#[derive(Clone, Copy, Debug)]
pub struct FoundPart {
    /// What was kept of it on disk.
    pub of: PartOf,
    /// How it is scheduled.
    pub job: LocalJob,
    /// Whether a first process has entered it.
    pub has_begun: bool,
    /// Whether it has processes now.
    pub populated: bool,
}

/// The state in which a part has begun.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    /// It has processes.
    pub populated: bool,
    /// The job's main process is alive and has yet to enter it.
    pub comes: bool,
}

/// What was read of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    /// Its CPU time here since its start, in nanoseconds.
    pub cpu_ns: u64,
    /// What its processes have counted of their waits.
    pub waits: Waits,
    /// The part of the slots that is held back for processes outside jobs, 0 to 1.
    pub held: f64,
}

/// What a job's processes here have counted of their waits since its start. They are the user's: any values are possible.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// The number of living processes that poll.
    pub processes: u32,
    /// Polls.
    pub polls: u64,
    /// Waits for messages.
    pub waits: u64,
    /// Time that they spun in waits.
    pub spin_ns: u64,
    /// Time that they were blocked in waits.
    pub block_ns: u64,
    /// Programs of several ranks take turns in it: those in front have their CPUs for themselves.
    pub in_turns: bool,
}

/// An event on a node. Events that concern only the control plane go through [`crate::Node::tell`].
#[derive(Clone, Debug)]
pub enum Input {
    /// An [`Action::Begin`] was carried out.
    Began(JobId, Began),
    /// An [`Action::Begin`] failed, and its remains were removed. [`Input::Over`] must follow.
    Failed(JobId),
    /// An [`Action::Enter`] failed.
    NotEntered(JobId),
    /// The process of a launcher has ended before it could enter its job.
    LauncherGone(RequestId),
    /// The job has processes here now, or no longer has. Repetitions are harmless.
    Populated(JobId, bool),
    /// A job's end on this node, at whatever time it happened.
    Over {
        /// The job.
        job: JobId,
        /// Its attempt.
        attempt: Attempt,
        /// How it ended.
        end: PartEnd,
    },
    /// The answer to [`Action::Sample`].
    Sampled(JobId, Sampled),
    /// The answer to [`Action::CountBlocks`].
    Blocks(JobId, u64),
    /// The state of the wall clock according to the kernel; also sent when the clock was set.
    Clock(Clock),
    /// An [`Action::Withdraw`] was carried out: nothing was done for the request, for this reason.
    Withdrawn(AskId, String),
    /// Time has passed.
    Timeout,
}

/// Why a signal is sent to a job's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// This user requested it.
    User(u32),
    /// The control plane decided it.
    Reason(Reason),
}

/// What the host has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send the operation to the store, and report its result.
    Store(OpId, Op),
    /// The operation's results are no longer wanted.
    Drop(OpId),
    /// The answer to a request.
    Answer(RequestId, Result<Outcome, Refusal>),
    /// The answer to a request that was made directly to the control plane ([`crate::Node::tell`]).
    Reply(AskId, Answer),
    /// This request could not be written, as far as is known: if the store has no reply to it, delete it there and send [`Input::Withdrawn`].
    Withdraw {
        /// The request.
        ask: AskId,
        /// Its key and that of its reply.
        keys: (Key, Key),
        /// Why nothing can be written.
        why: String,
    },
    /// A notice for the log and for users.
    Say(Notice),
    /// A plan arrived after the slot from which it was to be in force; for metrics.
    Missed {
        /// The plan.
        generation: u64,
        /// The number of slots that it was late.
        slots: u64,
    },
    /// This number of newer generations exist that were not received; for metrics.
    Behind(u64),
    /// This plan of the cluster is in use from now on; for the log.
    Uses(Arc<Plan>),
    /// Gangs that span nodes have no slots here; for the log.
    NoSlots(Reason),
    /// Prepare what the job needs here, and start it if its launcher is here or it is restarted. Then send [`Input::Began`] or [`Input::Failed`].
    Begin {
        /// The job's record.
        job: Box<Job>,
        /// Its part on this node.
        part: Part,
        /// The request of its launcher on this node, if it has one; a process of the launcher becomes the main process.
        launcher: Option<RequestId>,
    },
    /// The job has begun before it was known which launcher submitted it: move the launcher's process into it, and answer the request if
    /// it was not answered yet. If that fails, send [`Input::NotEntered`].
    Enter(JobId, RequestId),
    /// A launcher's process is no longer waited for.
    Release(RequestId),
    /// The exit status of the main process of a job on this node is known: keep it with the job, and send [`Input::Populated`].
    Exited(JobId, Exit),
    /// A job has a place here, but another job with the same number runs here: it does not begin.
    Taken(JobId),
    /// Send a signal to all processes of a job.
    Signal {
        /// The job.
        job: JobId,
        /// The signal's number; 9 (SIGKILL) cannot be caught.
        signal: i32,
        /// Why.
        why: Why,
        /// The request to answer if the signal cannot be sent.
        asked: Option<RequestId>,
    },
    /// Kill the processes that are left after a polite signal.
    KillRest(JobId),
    /// The job is over on this node: remove its resources, then send [`Input::Over`].
    Finish(JobId, Attempt),
    /// Send [`Input::Over`] for a job that is no longer on this node.
    Report(JobId, Attempt),
    /// What is kept of a job for a restarted daemon has changed; see [`crate::Node::part`].
    Keep(JobId),
    /// The store has lost its record of this job; the job continues.
    Forgotten(JobId),
    /// Read a job's CPU time and how it waits, and send [`Input::Sampled`].
    Sample(JobId),
    /// Send, as [`Input::Blocks`], how often a job's threads have given up their CPUs by themselves since the last such action.
    CountBlocks(JobId),
    /// What [`crate::Node::waiting`] says of some jobs has changed.
    OrderWaits,
    /// Auto has chosen another policy for a job; for the log and for users.
    Chose {
        /// The job.
        job: JobId,
        /// The choice.
        choice: Choice,
        /// What it did in the last window.
        seen: Seen,
    },
    /// A gang uses no CPU here (`true`), or uses it again.
    Sleeps {
        /// The job.
        job: JobId,
        /// Whether it sleeps.
        asleep: bool,
        /// Why.
        reason: Reason,
    },
    /// A sleeping gang has used no CPU here for a long time, and its slots are given up.
    Dropped {
        /// The job.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// This node has a new plan: `local().plan()`.
    Plan,
    /// A defect of cosched that had no effect; for the log.
    Unsound(Flaw),
    /// The node's own planner cannot carry out a change of a job; for the log.
    Refused(JobId, PlannerError),
}
