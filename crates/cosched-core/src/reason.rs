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
    /// A message waits for a job that is in a receive for it (boost).
    MessageWaiting,
    /// A message came for a job that does not run (boost).
    MessageArrived,
    /// No message waits, but this job has something to compute (boost).
    HasWork,
    /// A candidate that has had less CPU time than its share (boost).
    BehindItsShare,
    /// It was boosted a moment ago, and goes on (boost).
    Boosted,
    /// Nobody can use the CPU (boost).
    NoCandidate,
    /// Nothing is known of it yet (auto).
    NotSeenYet,
    /// Nobody else wants its CPUs (auto).
    Alone,
    /// It waits a lot, and gives its CPUs away meanwhile (auto).
    WaitsMuch,
    /// It waits little (auto).
    WaitsLittle,
    /// It may spin in its waits, and nobody can see it (auto).
    MaySpin,
    /// It spins much of its time, although others want its CPUs (auto).
    SpinsInVain,
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
            Reason::MessageWaiting => "a message waits for it",
            Reason::MessageArrived => "a message came for it",
            Reason::HasWork => "it has something to compute",
            Reason::BehindItsShare => "it had less than its share",
            Reason::Boosted => "it was boosted a moment ago",
            Reason::NoCandidate => "nobody can use the CPU",
            Reason::NotSeenYet => "nothing is known of it yet",
            Reason::Alone => "nobody else wants its CPUs",
            Reason::WaitsMuch => "it waits a lot and gives its CPUs away meanwhile",
            Reason::WaitsLittle => "it waits little",
            Reason::MaySpin => "it uses all its CPU time and may spin in its waits",
            Reason::SpinsInVain => "it spins in its waits while others want its CPUs",
        })
    }
}
