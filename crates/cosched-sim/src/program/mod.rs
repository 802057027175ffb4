//! Programs: the operations of a job's tasks, as text.
//!
//! ```text
//! repeat 1000 {
//!     compute 310us skew
//!     io 300us skew
//!     send right 4KiB
//!     recv left
//!     barrier
//! }
//! ```
//!
//! All tasks run the same text; `on` limits a part to some tasks. Patterns (`barrier`, `alltoall`, …) stand for sends and
//! receives; [`Program::expand`] expands them for each task of a job. The format is described in docs/simulator.md.

mod code;
mod expand;
mod parse;
mod print;

pub(crate) use code::Totals;
pub use code::{Code, Op, Span};
pub(crate) use expand::OPS_MAX;
pub use expand::Setting;

use std::fmt;

/// A program. Its text form is its `Display`, and is read back by `FromStr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The statements that every task executes, in order.
    pub body: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `compute 310us skew`: uses the CPU.
    Compute {
        /// The duration.
        ns: u64,
        /// With the job's skewness (D20).
        skew: bool,
    },
    /// `hold 5s`: uses the CPU for that time, however fast it is.
    Hold {
        /// The duration.
        ns: u64,
    },
    /// `io 300us`: sleeps for a device.
    Io {
        /// The duration.
        ns: u64,
        /// With the job's skewness (D20).
        skew: bool,
    },
    /// `send right 4096B`.
    Send {
        /// The receiver.
        to: Peer,
        /// The size.
        bytes: u64,
    },
    /// `recv left`: waits for the next message of that task.
    Receive {
        /// The sender.
        from: Peer,
    },
    /// A pattern in which all tasks take part.
    Pattern(Pattern),
    /// `repeat 10 { … }`.
    Repeat {
        /// The number of passes, at least one.
        times: u64,
        /// The statements.
        body: Vec<Statement>,
    },
    /// `on 0 { … }`: statements for some tasks only.
    On {
        /// The tasks.
        who: Who,
        /// The statements.
        body: Vec<Statement>,
    },
}

/// Another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `right`, `left`, `+3`, `-2`: an offset round the ring of tasks.
    Offset(i64),
    /// `0`, `5`: the task with this number.
    Task(u32),
}

/// A set of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// `3` or `0..7`, both ends included; those that a job does not have are ignored.
    Range(u32, u32),
    /// `even`.
    Even,
    /// `odd`.
    Odd,
    /// `last`: the one with the highest number.
    Last,
}

/// A communication pattern of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `barrier`: no task continues before all have reached it. Dissemination: ⌈log₂ P⌉ rounds, in round k a message to
    /// the task 2^k further.
    Barrier,
    /// `alltoall 4096B`: each task sends to each other, pairwise: in step k to the task k further, from the one k before.
    AllToAll(u64),
    /// `bcast root=0 64KiB`: from one task to all along a binomial tree.
    Broadcast {
        /// The sender.
        root: u32,
        /// The size.
        bytes: u64,
    },
    /// `reduce root=0 64KiB`: from all tasks to one, the same tree upwards.
    Reduce {
        /// The receiver.
        root: u32,
        /// The size.
        bytes: u64,
    },
    /// `exchange 2d 4096B`: with the neighbours on a periodic grid that is as square as possible.
    Exchange {
        /// 1, 2 or 3. With 1 it is the communication of the paper's jobs (D8, D11), and follows their topology.
        dimensions: u32,
        /// The size.
        bytes: u64,
    },
    /// `ring 4096B`: to the right, from the left.
    Ring(u64),
    /// `random-pairs 4096B`: a message in each direction within pairs, which are drawn from the seed for each occurrence
    /// in the text; with an odd number of tasks one has no partner.
    RandomPairs(u64),
}

impl Pattern {
    /// The size of its messages.
    fn bytes(self) -> u64 {
        match self {
            Pattern::Barrier => 0,
            Pattern::AllToAll(bytes)
            | Pattern::Broadcast { bytes, .. }
            | Pattern::Reduce { bytes, .. }
            | Pattern::Exchange { bytes, .. }
            | Pattern::Ring(bytes)
            | Pattern::RandomPairs(bytes) => bytes,
        }
    }
}

/// A text that is not a program, or a program that a job cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}\n  why: {why}\n  hint: {hint}", Place(*at))]
pub struct ProgramError {
    /// Line and column, from 1, if known.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub what: String,
    /// What was expected, or why it is impossible.
    pub why: String,
    /// What to do.
    pub hint: String,
}

struct Place(Option<(usize, usize)>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((line, column)) => write!(f, "line {line}, column {column}: "),
            None => Ok(()),
        }
    }
}
