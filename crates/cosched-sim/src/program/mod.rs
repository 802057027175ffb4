//! Programs: what the tasks of a job do, as text.
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
//! All tasks run the same text; `on` limits a part to some. Patterns (`barrier`, `alltoall`, …) stand for sends and
//! receives; [`Program::expand`] writes them out for each task of a job. The format is described in docs/simulator.md.

mod code;
mod expand;
mod parse;
mod print;

pub(crate) use code::Totals;
pub use code::{Code, Op, Span};
pub use expand::Setting;

use std::fmt;

/// A program. Its text form is its `Display`, and is read back by `FromStr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// What every task does, in order.
    pub body: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `compute 310us skew`: uses the CPU.
    Compute {
        /// For so long.
        ns: u64,
        /// With the job's skewness (D20).
        skew: bool,
    },
    /// `io 300us`: sleeps for a device.
    Io {
        /// For so long.
        ns: u64,
        /// With the job's skewness (D20).
        skew: bool,
    },
    /// `send right 4096B`.
    Send {
        /// To whom.
        to: Peer,
        /// The size.
        bytes: u64,
    },
    /// `recv left`: waits for the next message of that task.
    Receive {
        /// From whom.
        from: Peer,
    },
    /// A pattern in which all tasks take part.
    Pattern(Pattern),
    /// `repeat 10 { … }`.
    Repeat {
        /// How often, at least once.
        times: u64,
        /// What.
        body: Vec<Statement>,
    },
    /// `on 0 { … }`: what only some tasks do.
    On {
        /// Who.
        who: Who,
        /// What.
        body: Vec<Statement>,
    },
}

/// Another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `right`, `left`, `+3`, `-2`: so many further, round the ring of tasks.
    Offset(i64),
    /// `0`, `5`: this one.
    Task(u32),
}

/// Which tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// `3` or `0..7`, both ends included; those that a job does not have are left out.
    Range(u32, u32),
    /// `even`.
    Even,
    /// `odd`.
    Odd,
    /// `last`: the one with the highest number.
    Last,
}

/// What all tasks do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `barrier`: nobody goes on before all have come. Dissemination: ⌈log₂ P⌉ rounds, in round k to the task 2^k further.
    Barrier,
    /// `alltoall 4096B`: each sends to each, pairwise: in step k to the task k further, from the one k before.
    AllToAll(u64),
    /// `bcast root=0 64KiB`: from one to all along a binomial tree.
    Broadcast {
        /// From whom.
        root: u32,
        /// The size.
        bytes: u64,
    },
    /// `reduce root=0 64KiB`: from all to one, the same tree upwards.
    Reduce {
        /// To whom.
        root: u32,
        /// The size.
        bytes: u64,
    },
    /// `exchange 2d 4096B`: with the neighbours on a grid that is as square as can be; periodic.
    Exchange {
        /// 1, 2 or 3. With one it is the communication of the paper's jobs (D8, D11), and follows their topology.
        dimensions: u32,
        /// The size.
        bytes: u64,
    },
    /// `ring 4096B`: to the right, from the left.
    Ring(u64),
    /// `random-pairs 4096B`: a message each way in pairs, drawn from the seed for each place in the text where it stands;
    /// of an odd number of tasks one has no partner.
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
    /// Line and column, from 1, where there is one.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub what: String,
    /// What was expected, or why it cannot be.
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
