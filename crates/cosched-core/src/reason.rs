//! Reasons of actions; hosts log them and tests match them.

use core::fmt;

/// The reason of an action or of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A job arrived.
    Arrival,
    /// A job ended.
    Departure,
    /// A user suspended or resumed a job.
    UserRequest,
    /// A class, a policy or the slot length was changed.
    Settings,
    /// A gang used no CPU while it had its slots.
    NoCpuUsed,
    /// A gang without slots used no CPU for a long time.
    NoCpuForLong,
    /// A gang without slots used CPU again.
    CpuUsed,
    /// A new plan is in force.
    NewPlan,
    /// A slot ends and another begins.
    SlotBoundary,
    /// It is time to sample the jobs' CPU use.
    SampleDue,
    /// A message waits for a job that is in a receive for it (boost).
    MessageWaiting,
    /// A message arrived for a job that does not run (boost).
    MessageArrived,
    /// No message waits, but this job has something to compute (boost).
    HasWork,
    /// A candidate that has had less CPU time than its share (boost).
    BehindItsShare,
    /// It was boosted a moment ago, and keeps the boost (boost).
    Boosted,
    /// No job can use the CPU (boost).
    NoCandidate,
    /// The job has not been observed yet (auto).
    NotSeenYet,
    /// No other job wants its CPUs (auto).
    Alone,
    /// It waits a lot, and releases its CPUs meanwhile (auto).
    WaitsMuch,
    /// It waits little (auto).
    WaitsLittle,
    /// It may spin in its waits, and these cannot be observed (auto).
    MaySpin,
    /// It spins much of its time, although others want its CPUs (auto).
    SpinsInVain,
    /// A node joined (cluster).
    NodeJoined,
    /// A node is lost (cluster).
    NodeLost,
    /// A node that it requests does not take part, or gets no new jobs (cluster).
    WaitsForNode,
    /// The ready jobs leave too little memory (cluster).
    WaitsForMemory,
    /// The jobs that have started leave too little disk space (cluster).
    WaitsForDisk,
    /// A node belongs to another job exclusively, or the job needs a node exclusively and others use it (cluster).
    WaitsForExclusive,
    /// The maximum number of rows is reached, and none has room (cluster).
    RowsFull,
    /// What is left is reserved for an earlier job (cluster).
    BehindOthers,
    /// Its owner has started as much in its queue as the queue permits (cluster).
    UserLimit,
    /// It would not fit on the nodes that take part even if they were empty (cluster).
    TooLarge,
    /// Its begin time has not come (cluster).
    WaitsForTime,
    /// A job that it follows has not ended (cluster).
    WaitsForJob,
    /// A job whose success it was to follow has failed (cluster).
    JobFailed,
    /// It has run for the time that it requested (cluster).
    RunTime,
    /// A job used more memory than it requested (cluster).
    MemoryGrew,
    /// A job has exceeded the time limit of its queue (cluster).
    TimeLimit,
    /// Rows and loads were examined again (cluster).
    Rebalanced,
    /// Working hours or off-hours begin (cluster).
    PeriodBegins,
    /// The node could not renew its lease (cluster).
    LeaseOut,
    /// The node's clock is not synchronised (cluster).
    ClockNotSynchronised,
    /// The node has not seen a plan that may be in force by now (cluster).
    PlanMissed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Arrival => "a job arrived",
            Reason::Departure => "a job ended",
            Reason::UserRequest => "a user requested it",
            Reason::Settings => "settings were changed",
            Reason::NoCpuUsed => "it used no CPU in its slots",
            Reason::NoCpuForLong => "it used no CPU for a very long time",
            Reason::CpuUsed => "it used CPU again",
            Reason::NewPlan => "a new plan is in force",
            Reason::SlotBoundary => "a slot begins",
            Reason::SampleDue => "a sample is due",
            Reason::MessageWaiting => "a message waits for it",
            Reason::MessageArrived => "a message arrived for it",
            Reason::HasWork => "it has something to compute",
            Reason::BehindItsShare => "it had less than its share",
            Reason::Boosted => "it was boosted a moment ago",
            Reason::NoCandidate => "no job can use the CPU",
            Reason::NotSeenYet => "nothing is known about it yet",
            Reason::Alone => "no other job wants its CPUs",
            Reason::WaitsMuch => "it waits a lot and gives its CPUs away meanwhile",
            Reason::WaitsLittle => "it waits little",
            Reason::MaySpin => "it uses all its CPU time and may spin in its waits",
            Reason::SpinsInVain => "it spins in its waits while others want its CPUs",
            Reason::NodeJoined => "a node joined",
            Reason::NodeLost => "a node was lost",
            Reason::WaitsForNode => "a node that it wants is unreachable or drained",
            Reason::WaitsForMemory => "ready jobs leave too little memory for it",
            Reason::WaitsForDisk => "started jobs leave too little disk space for it",
            Reason::WaitsForExclusive => "a node is used exclusively by a job, or would have to be",
            Reason::RowsFull => "no row of the matrix has room, and no more rows are allowed",
            Reason::BehindOthers => "what is left is reserved for an earlier job",
            Reason::UserLimit => "its owner's running jobs have reached the queue's limit for a user",
            Reason::TooLarge => "the nodes that take part are too small for it; it starts when larger ones join",
            Reason::WaitsForTime => "its time to start has not come",
            Reason::WaitsForJob => "a job that it waits for has not ended",
            Reason::JobFailed => "a job that had to succeed before it failed",
            Reason::RunTime => "it has reached the run time that it requested",
            Reason::MemoryGrew => "a job used more memory than it declared",
            Reason::TimeLimit => "it is over the time limit of its queue",
            Reason::Rebalanced => "rows and loads were checked again",
            Reason::PeriodBegins => "working hours or off-hours began",
            Reason::LeaseOut => "the node's lease expired",
            Reason::ClockNotSynchronised => "the node's clock is not synchronised",
            Reason::PlanMissed => "the node has missed a plan, and the next one is not in force yet",
        })
    }
}
