//! What a simulation reports while it runs: for traces, pictures and tests. Nothing is reported to [`Silent`], at no
//! cost.

use cosched_core::{Choice, Endpoint};

/// An activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// A process computes.
    Compute,
    /// A process spins for a message.
    Spin,
    /// A context switch to this process.
    Switch,
    /// An interrupt.
    Interrupt,
    /// The scheduler's own work: periodic boost, yields.
    Scheduler,
    /// The process sleeps for I/O; its CPU may do something else meanwhile.
    Io,
    /// The process has blocked itself until a message arrives.
    Blocked,
    /// A process sends or receives a message, where it pays for that.
    Message,
}

/// An activity with its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The node.
    pub node: u32,
    /// The beginning.
    pub start_ns: u64,
    /// The end; not before `start_ns`.
    pub end_ns: u64,
    /// The activity.
    pub activity: Activity,
    /// The process that it belongs to, if any: job (place in the job list) and task.
    pub process: Option<(u32, u32)>,
}

/// A message that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The job (place in the job list).
    pub job: u32,
    /// The sending task and its node.
    pub from: (u32, u32),
    /// The receiving task and its node.
    pub to: (u32, u32),
    /// When the sender's program sent it.
    pub sent_ns: u64,
    /// When it was in the receiver's endpoint.
    pub delivered_ns: u64,
}

/// A change of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobChange {
    /// It is in the arrival queue.
    Arrived,
    /// It has its nodes.
    Started,
    /// Its last task has ended.
    Finished,
}

/// A node decides which process to boost: the periodic check of PB, or a message under DCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// The time.
    pub time_ns: u64,
    /// The node.
    pub node: u32,
    /// The node's live processes in the order of their arrival: job, task, and what it does.
    pub table: &'a [(u32, u32, Endpoint)],
    /// The index of the process that has the CPU; under DCS of the one that the network interface believes to have it.
    pub current: Option<usize>,
    /// Under DCS, the index of the receiver of a message.
    pub receiver: Option<usize>,
    /// The index of the process that is to be boosted (PB), or for which an interrupt is raised (DCS).
    pub boosted: Option<usize>,
}

/// Receives the reports. Slices are reported in the order of their ends, and those of a node do not overlap (except for
/// [`Activity::Io`] and [`Activity::Blocked`], which belong to processes without a CPU).
pub trait Observer {
    /// Whether anything is reported.
    const TELL: bool = true;

    /// Whether decisions are reported, too; only the general engine does that.
    const TELL_DECISIONS: bool = false;

    /// A slice has ended.
    fn slice(&mut self, slice: Slice);

    /// A message was delivered.
    fn message(&mut self, message: Message);

    /// A job arrived, started on these nodes (in the order of its tasks) in this row of the matrix, or finished.
    fn job(&mut self, time_ns: u64, job: u32, change: JobChange, nodes: &[u32], row: Option<u32>);

    /// A row of the matrix became current.
    fn row(&mut self, time_ns: u64, row: u32);

    /// The choice for a job has changed (auto).
    fn choice(&mut self, _time_ns: u64, _job: u32, _: Choice) {}

    /// A node has decided which process to boost.
    fn decision(&mut self, _: Decision<'_>) {}
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    const TELL: bool = false;

    fn slice(&mut self, _: Slice) {}
    fn message(&mut self, _: Message) {}
    fn job(&mut self, _: u64, _: u32, _: JobChange, _: &[u32], _: Option<u32>) {}
    fn row(&mut self, _: u64, _: u32) {}
}
