//! The state of a node and its processes for the feedback engine: plain data.

use super::queue::Queue;
use super::short::Short;
use crate::draw::Draws;

/// No process, where an index in a node's table is expected.
pub(super) const NO_PROCESS: u8 = u8::MAX;
/// No job, no process.
pub(super) const NONE: u32 = u32::MAX;

/// What a process does next when it has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It computes; `left_ns` says how much.
    Compute,
    /// It sends, and ends its iteration if it has no neighbours.
    Send,
    /// It receives from the left neighbour (0) or the right one (1).
    Receive(u8),
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The place in the table is free.
    Free,
    /// In the ready list.
    Ready,
    /// It has the CPU.
    Current,
    /// It waits for its I/O.
    Io,
    /// It has blocked itself in a receive.
    Blocked,
    /// Blocked, and the interrupt that wakes it is on its way.
    Waking,
    /// It has ended; its place is kept until its job ends.
    Exited,
}

/// A process: a task on its node; what events read and change. The rest is its [`Task`].
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Process {
    pub(super) state: State,
    pub(super) phase: Phase,
    pub(super) level: u8,
    /// It was moved to the head of the highest level by PB, SY or DCS, and has not run since.
    pub(super) boosted: bool,
    /// It has yielded in this receive.
    pub(super) yielded: bool,
    /// The number of neighbours that it receives from.
    pub(super) receives: u8,
    pub(super) job: u32,
    /// Messages in the endpoint, by side.
    pub(super) got: [u16; 2],
    /// Computation left in this iteration.
    pub(super) left_ns: u64,
    /// This iteration's I/O; while it is in progress, its end.
    pub(super) io_ns: u64,
    /// Spun in this receive.
    pub(super) spun_ns: u64,
    /// User time since the quantum was renewed.
    pub(super) used_ns: u64,
    /// When it blocked or began its I/O (for observers).
    pub(super) since_ns: u64,
}

/// What a process needs once an iteration.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Task {
    /// Its number in its job.
    pub(super) task: u32,
    /// The destinations of messages to the right and to the left: node and place there.
    pub(super) out: [(u32, u8); 2],
    pub(super) iteration: u64,
    pub(super) iterations: u64,
    pub(super) draws: Draws,
    /// Computation and I/O of an iteration, before skewness.
    pub(super) compute_ns: u64,
    pub(super) io_ns: u64,
}

impl Task {
    pub(super) fn none() -> Task {
        Task {
            task: 0,
            out: [(NONE, NO_PROCESS); 2],
            iteration: 0,
            iterations: 0,
            draws: Draws::new(0, 0, 0),
            compute_ns: 0,
            io_ns: 0,
        }
    }
}

impl Process {
    pub(super) fn free() -> Process {
        Process {
            state: State::Free,
            phase: Phase::Compute,
            level: 0,
            boosted: false,
            yielded: false,
            receives: 0,
            job: NONE,
            got: [0; 2],
            left_ns: 0,
            io_ns: 0,
            spun_ns: 0,
            used_ns: 0,
            since_ns: 0,
        }
    }

    /// Moves it to the highest level, with a full quantum if it was lower.
    pub(super) fn raise(&mut self) {
        self.set_level(LEVEL_MAX);
    }

    /// Sets the level; the quantum is renewed if the level changes (D3).
    pub(super) fn set_level(&mut self, level: u8) {
        if self.level != level {
            self.level = level;
            self.used_ns = 0;
        }
    }

    /// The iterations left when it counts as near its end. A job of several tasks ends a message's time after the last
    /// of them has begun its last iteration.
    pub(super) fn near(&self) -> u64 {
        if self.receives == 0 { NEAR_ALONE } else { 1 }
    }

    /// The side from which a receive waits for a message that has not arrived.
    pub(super) fn awaits(&self) -> Option<usize> {
        match self.phase {
            Phase::Receive(side) if self.got[side as usize] == 0 => Some(side as usize),
            _ => None,
        }
    }
}

/// The number of iterations that a single task cannot do in the time of a message.
pub(super) const NEAR_ALONE: u64 = 64;

/// No time; it fits into a key.
pub(super) const NEVER_NS: u64 = u64::MAX >> 3;

/// The time between two activations of a scheduler (D2).
pub(super) const TICK_NS: u64 = 1_000_000;

/// The highest level of the feedback queue.
pub(super) const LEVEL_MAX: u8 = 59;

/// A message between the sender's wire and the receiver's endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    /// When it is in the endpoint.
    pub(super) delivered_ns: u64,
    /// When it reaches the network interface.
    pub(super) reaches_ns: u64,
    /// When it was sent (for observers).
    pub(super) sent_ns: u64,
    /// The receiver's place.
    pub(super) to: u8,
    /// The side from which it comes.
    pub(super) side: u8,
}

/// Kernel work (D22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Periodic boost or a yield: its effects have already happened.
    Scheduler,
    /// The interrupt that wakes a process that has blocked itself (SB).
    Wake(u8),
    /// The interrupt that raises a receiver (DCS), if the place still belongs to this job.
    Raise(u8, u32),
}

/// A CPU's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpu {
    Idle,
    /// A context switch until `cpu_end_ns`.
    Switch,
    /// Kernel work (`work`) until `cpu_end_ns`.
    Kernel,
    /// The current process runs, from `run_start_ns` on. Before that, the CPU is in `lead`: folding the end of a switch
    /// or of kernel work into the run saves an event.
    Run,
    /// A run was ended, and the caller starts another activity of the CPU at once.
    Stopped,
}

/// The activity before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    Nothing,
    Switch,
    Scheduler,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) cpu: Cpu,
    pub(super) lead: Lead,
    pub(super) work: Kernel,
    pub(super) cpu_end_ns: u64,
    pub(super) run_start_ns: u64,
    /// When the present activity (or a lead) began.
    pub(super) cpu_start_ns: u64,
    /// The first tick that was neither handled nor skipped; tick 1 is the first.
    pub(super) next_tick_ns: u64,
    pub(super) current: u8,
    /// The processes on this node, including ended ones.
    pub(super) count: u8,
    /// Processes that have blocked themselves.
    pub(super) blocked: u8,
    /// Job of the process that last owned this CPU.
    pub(super) last_job: u32,
    /// DCS: the job that the network interface believes to run, as of a tick before `current_since_ns`.
    pub(super) noted_job: u32,
    /// When that was noted.
    pub(super) noted_ns: u64,
    pub(super) current_since_ns: u64,
    /// Until when the sending and the receiving side of the network interface are busy.
    pub(super) send_free_ns: u64,
    pub(super) receive_free_ns: u64,
    /// Ready processes, best first.
    pub(super) ready: Short,
    /// Processes with I/O in progress, earliest end first.
    pub(super) io: Short,
    /// When the first of them ends.
    pub(super) io_end_ns: u64,
    pub(super) incoming: Queue<Incoming>,
    /// Waiting kernel work.
    pub(super) kernel: std::collections::VecDeque<(Kernel, u64)>,
    /// The table of processes, in the order of their arrival.
    pub(super) table: Short,
}

impl Node {
    /// When the next message is in its endpoint.
    #[inline]
    pub(super) fn delivered_ns(&self) -> u64 {
        self.incoming.first().map_or(NEVER_NS, |m| m.delivered_ns)
    }

    pub(super) fn new() -> Node {
        Node {
            cpu: Cpu::Idle,
            lead: Lead::Nothing,
            work: Kernel::Scheduler,
            cpu_end_ns: NEVER_NS,
            run_start_ns: 0,
            cpu_start_ns: 0,
            next_tick_ns: TICK_NS,
            current: NO_PROCESS,
            count: 0,
            blocked: 0,
            last_job: NONE,
            noted_job: NONE,
            noted_ns: 0,
            current_since_ns: 0,
            send_free_ns: 0,
            receive_free_ns: 0,
            ready: Short::default(),
            io: Short::default(),
            io_end_ns: NEVER_NS,
            incoming: Queue::default(),
            kernel: std::collections::VecDeque::new(),
            table: Short::default(),
        }
    }
}
