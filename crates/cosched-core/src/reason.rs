//! Why something is done; hosts log it and tests match it.

use core::fmt;

/// The reason of an action or of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A job arrived.
    Arrival,
    /// A job ended.
    Departure,
    /// A user stopped or resumed a job.
    UserRequest,
    /// A class, a policy or the slot length was changed.
    Settings,
    /// A gang used no CPU while it had its slots.
    NoCpuUsed,
    /// A gang without slots used CPU again.
    CpuUsed,
    /// A new plan holds.
    NewPlan,
    /// A slot ends and another begins.
    SlotBoundary,
    /// It is time to look at what the jobs use.
    SampleDue,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Arrival => "a job arrived",
            Reason::Departure => "a job ended",
            Reason::UserRequest => "a user asked for it",
            Reason::Settings => "settings were changed",
            Reason::NoCpuUsed => "it used no CPU in its slots",
            Reason::CpuUsed => "it used CPU again",
            Reason::NewPlan => "a new plan holds",
            Reason::SlotBoundary => "a slot begins",
            Reason::SampleDue => "a sample is due",
        })
    }
}
