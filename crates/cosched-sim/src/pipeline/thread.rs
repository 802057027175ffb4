//! The threads: those of stages, the workers, and those of other programs.

use super::fair::Attr;
use cosched_core::stage::adjust::Adjusting;

/// The purpose of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Executes one stage.
    Stage(usize),
    /// Executes any stage of kind worker.
    Worker,
    /// Not part of the pipeline: computes and sleeps until `until_ns`.
    Hog { busy_ns: u64, sleep_ns: u64, until_ns: u64 },
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for a buffer, for a device, or sleeps.
    Asleep,
    /// It has been woken, and is not in a run queue yet.
    Waking,
    /// In a run queue.
    Ready,
    /// It has a CPU.
    Running,
    /// It has ended.
    Gone,
}

/// The progress of a thread in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It wants a buffer.
    Accept,
    /// It computes, before its device.
    First,
    /// Its device works.
    Device,
    /// It computes, after its device.
    Second,
}

/// A buffer, and the times of its round in the stage that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// The number of the round, from 0.
    pub(super) round: u64,
    /// CPU time of each half.
    pub(super) half_ns: u64,
    /// On the device.
    pub(super) wait_ns: u64,
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) role: Role,
    pub(super) state: State,
    pub(super) phase: Phase,
    /// Its buffer, and the stage that this belongs to.
    pub(super) load: Option<(usize, Load)>,
    /// CPU time that it needs before its next step.
    pub(super) left_ns: u64,
    /// Accounts are settled up to this time.
    pub(super) since_ns: u64,
    pub(super) attr: Attr,
    /// The CPUs that it may use, as a bit mask.
    pub(super) allowed: u64,
    /// Its CPU, or the last one.
    pub(super) cpu: usize,
    /// It lost its CPU while it computed.
    pub(super) interrupted: bool,
    /// When it went to sleep: its lag, and the mean virtual time of its queue.
    pub(super) slept: (i64, i64),
    /// It ends when it wants its next buffer.
    pub(super) retires: bool,
    pub(super) adjusting: Option<Adjusting>,
}

impl Thread {
    pub(super) fn new(role: Role, attr: Attr, allowed: u64, now_ns: u64) -> Thread {
        Thread {
            role,
            state: State::Asleep,
            phase: Phase::Accept,
            load: None,
            left_ns: 0,
            since_ns: now_ns,
            attr,
            allowed,
            cpu: 0,
            interrupted: false,
            slept: (0, 0),
            retires: false,
            adjusting: None,
        }
    }

    pub(super) fn may_use(&self, cpu: usize) -> bool {
        self.allowed >> cpu & 1 == 1
    }

    /// The stage whose accounts include its time: that of its buffer, or its own.
    pub(super) fn stage(&self) -> Option<usize> {
        match (self.load, self.role) {
            (Some((stage, _)), _) => Some(stage),
            (None, Role::Stage(stage)) => Some(stage),
            _ => None,
        }
    }
}
