//! The result of a simulation.

/// How the CPU time of all nodes was spent, in ns. The sum is nodes × simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Computation of jobs.
    pub compute_ns: u64,
    /// Sending and receiving, where processes pay for it.
    pub message_ns: u64,
    /// Spinning for messages.
    pub spin_ns: u64,
    /// Context switches.
    pub switch_ns: u64,
    /// Interrupts.
    pub interrupt_ns: u64,
    /// The scheduler's own work: periodic boost and yields.
    pub sched_ns: u64,
    /// Idle time.
    pub idle_ns: u64,
}

/// When a job started and ended (D26). `None`: not before the end of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimes {
    /// It left the arrival queue.
    pub start_ns: Option<u64>,
    /// Its last task ended.
    pub finish_ns: Option<u64>,
}

/// The result of a run. Jobs are in the order of the job list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When the last job ended, or the requested end.
    pub sim_end_ns: u64,
    /// Events that the engine handled: a measure of its work, not of the model.
    pub events: u64,
    /// Iterations that tasks have completed.
    pub task_iterations: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Context switches that were paid (for gangs: one for every node).
    pub context_switches: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Processes that PB, SY or DCS moved to the head of the highest level.
    pub boosts: u64,
    /// Processes that blocked in a receive (SB).
    pub blocks: u64,
    /// Yields (SY).
    pub yields: u64,
    /// The CPU time.
    pub cpu: CpuTime,
    /// Σ completed iterations · (C + D + M), in ns: "nominal" work, which may exceed the CPU time as I/O overlaps.
    pub nominal_ns: u64,
    /// Σ completed iterations · (C + M), in ns: the paper's "useful work".
    pub useful_ns: u64,
    /// Cells of the matrix (gangs) or process places (others) that were free while jobs waited, × ns.
    pub free_while_waiting_ns: u128,
    /// The jobs.
    pub jobs: Vec<JobTimes>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub time_ns: u64,
    /// Events handled so far.
    pub events: u64,
    /// Task-iterations so far, and of all jobs together.
    pub task_iterations: (u64, u64),
    /// Jobs that have ended, and all.
    pub jobs: (u64, u64),
}
