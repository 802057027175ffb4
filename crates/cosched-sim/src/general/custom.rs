//! A custom strategy: a caller takes the decisions of an existing one, as a class in Python does.
//!
//! The strategy of the parameters is the mechanism: rows of a matrix, or queues of nodes. Of it a custom strategy decides which job starts
//! where, which row is next, and how a process waits. What it leaves open is decided as usual. Its answers are checked (`ask.rs`): a wrong one
//! ends the run with [`SimError::Strategy`](crate::SimError::Strategy).

use crate::params::{Params, ParamsError};
use crate::strategy::Strategy;
use cosched_core::Wait;

/// What a custom strategy sees of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The simulated time.
    pub now_ns: u64,
    /// Jobs that have arrived and not started, in the order of their arrival.
    pub waiting: Vec<u32>,
    /// The matrix, as many rows as there may be: the job of each CPU. Without rows: empty.
    pub rows: Vec<Vec<Option<u32>>>,
    /// The current row.
    pub row: usize,
    /// Processes on each node.
    pub loads: Vec<u32>,
}

/// A process that begins to wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The simulated time.
    pub now_ns: u64,
    /// The job (place in the job list).
    pub job: u32,
    /// Its task, and the one whose message it needs.
    pub task: u32,
    /// The sender.
    pub from: u32,
    /// Its node.
    pub node: u32,
    /// Other processes of the node that could run now.
    pub ready: u32,
}

/// Which job starts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As without a custom strategy: the first of the queue, if it fits.
    Usual,
    /// None, until a job arrives or ends.
    NoJob,
    /// This one, in these columns of a row, or on these nodes.
    Job {
        /// Place in the job list.
        job: u32,
        /// The row, where there are rows.
        row: usize,
        /// A column of the matrix or a node for each task.
        places: Vec<u32>,
    },
}

/// Decisions of a strategy. An error is what it could not do; the run ends then.
pub trait Custom {
    /// A job has arrived, started or ended while jobs wait: which one starts now? Asked again until there is none.
    fn arrival(&mut self, view: View) -> Result<Begin, String>;

    /// The current row's quantum is over: which row is next? `None`: the next one with jobs.
    fn row_change(&mut self, view: View) -> Result<Option<usize>, String>;

    /// A process begins to wait: how, and how long does it spin before it blocks or yields? `None`: as usual.
    fn wait(&mut self, waiting: Waiting) -> Result<Option<(Wait, u64)>, String>;
}

/// Says on which strategies none can be built: these take decisions of their own everywhere.
pub(super) fn check(params: &Params) -> Result<(), ParamsError> {
    let decides = params.strategy == Strategy::Fcs;
    if params.strategy.is_gang() && !decides || matches!(params.strategy, Strategy::Dynamic(..)) {
        return Ok(());
    }
    let what = format!("a custom strategy is based on {}", params.strategy);
    let why = "its decisions are taken together with those of queues and planners";
    Err(ParamsError::new(what, why, "base it on GS, paired-gang, soft-gang, Local, SB, SY, DCS, PB or a combination"))
}
