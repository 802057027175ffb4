//! Reasons of actions; hosts log them and tests match them.

use core::fmt;

/// The reasons, with the words that users read.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident: $words:literal,)+) => {
        /// The reason of an action or of a timeout.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $reason,)+
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Reason::$reason => $words,)+ })
            }
        }
    };
}

reasons! {
    /// A job arrived.
    Arrival: "a job arrived",
    /// A job ended.
    Departure: "a job ended",
    /// A user suspended or resumed a job.
    UserRequest: "a user requested it",
    /// A class, a policy or the slot length was changed.
    Settings: "settings were changed",
    /// A gang used no CPU while it had its slots.
    NoCpuUsed: "it used no CPU in its slots",
    /// A gang without slots used no CPU for a long time.
    NoCpuForLong: "it used no CPU for a very long time",
    /// A gang without slots used CPU again.
    CpuUsed: "it used CPU again",
    /// A new plan is in force.
    NewPlan: "a new plan is in force",
    /// A slot ends and another begins.
    SlotBoundary: "a slot begins",
    /// It is time to sample the jobs' CPU use.
    SampleDue: "a sample is due",
    /// A message waits for a job that is in a receive for it (boost).
    MessageWaiting: "a message waits for it",
    /// A message arrived for a job that does not run (boost).
    MessageArrived: "a message arrived for it",
    /// No message waits, but this job has something to compute (boost).
    HasWork: "it has something to compute",
    /// A candidate that has had less CPU time than its share (boost).
    BehindItsShare: "it had less than its share",
    /// It was boosted a moment ago, and keeps the boost (boost).
    Boosted: "it was boosted a moment ago",
    /// No job can use the CPU (boost).
    NoCandidate: "no job can use the CPU",
    /// The job has not been observed yet (auto).
    NotSeenYet: "nothing is known about it yet",
    /// No other job wants its CPUs (auto).
    Alone: "no other job wants its CPUs",
    /// It waits a lot, and releases its CPUs meanwhile (auto).
    WaitsMuch: "it waits a lot and gives its CPUs away meanwhile",
    /// It waits little (auto).
    WaitsLittle: "it waits little",
    /// It may spin in its waits, and these cannot be observed (auto).
    MaySpin: "it uses all its CPU time and may spin in its waits",
    /// It spins much of its time, although others want its CPUs (auto).
    SpinsInVain: "it spins in its waits while others want its CPUs",
    /// A node joined (cluster).
    NodeJoined: "a node joined",
    /// A node is lost (cluster).
    NodeLost: "a node was lost",
    /// A node that it requests does not take part, or gets no new jobs (cluster).
    WaitsForNode: "a node that it wants is unreachable or drained",
    /// The ready jobs leave too little memory (cluster).
    WaitsForMemory: "ready jobs leave too little memory for it",
    /// The jobs that have started leave too little disk space (cluster).
    WaitsForDisk: "started jobs leave too little disk space for it",
    /// A node belongs to another job exclusively, or the job needs a node exclusively and others use it (cluster).
    WaitsForExclusive: "a node is used exclusively by a job, or would have to be",
    /// The maximum number of rows is reached, and none has room (cluster).
    RowsFull: "no row of the matrix has room, and no more rows are allowed",
    /// What is left is reserved for an earlier job (cluster).
    BehindOthers: "what is left is reserved for an earlier job",
    /// Its owner has started as much in its queue as the queue permits (cluster).
    UserLimit: "its owner's running jobs have reached the queue's limit for a user",
    /// It would not fit on the nodes that take part even if they were empty (cluster).
    TooLarge: "the nodes that take part are too small for it; it starts when larger ones join",
    /// Its begin time has not come (cluster).
    WaitsForTime: "its time to start has not come",
    /// A job that it follows has not ended (cluster).
    WaitsForJob: "a job that it waits for has not ended",
    /// A job whose success it was to follow has failed (cluster).
    JobFailed: "a job that had to succeed before it failed",
    /// It has run for the time that it requested (cluster).
    RunTime: "it has reached the run time that it requested",
    /// A job used more memory than it requested (cluster).
    MemoryGrew: "a job used more memory than it declared",
    /// A job has exceeded the time limit of its queue (cluster).
    TimeLimit: "it is over the time limit of its queue",
    /// Rows and loads were examined again (cluster).
    Rebalanced: "rows and loads were checked again",
    /// Working hours or off-hours begin (cluster).
    PeriodBegins: "working hours or off-hours began",
    /// The node could not renew its lease (cluster).
    LeaseOut: "the node's lease expired",
    /// The node's clock is not synchronised (cluster).
    ClockNotSynchronised: "the node's clock is not synchronised",
    /// The node has not seen a plan that may be in force by now (cluster).
    PlanMissed: "the node has missed a plan, and the next one is not in force yet",
}
