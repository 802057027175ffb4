//! How to run a graph.

use std::time::Duration;

use crate::priority::Priorities;

/// How to run a graph. [`Options::default`] leaves the scheduling as it is, and opens no socket.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The number of workers for stages that compute; by default one per CPU that this process may use.
    pub workers: Option<usize>,
    /// How the priorities of the stages' threads are chosen. What a stage requests itself ([`Stage::with`]) has precedence.
    ///
    /// [`Stage::with`]: crate::Stage::with
    pub priorities: Priorities,
    /// Bind each stage that has a thread of its own to one CPU, in turn, of those that this process may use.
    pub pin_in_turn: bool,
    /// A stage that works on one buffer for longer than this ends the run with [`Cause::Stalled`] and the stage's name; so
    /// does a graph in which all threads wait for each other. None: no limit.
    ///
    /// [`Cause::Stalled`]: crate::Cause::Stalled
    pub stall_limit: Option<Duration>,
    /// A stage that takes longer than this is named on standard error and in the report, and the run continues. None:
    /// [`STALL_WARNING`].
    ///
    /// [`STALL_WARNING`]: crate::STALL_WARNING
    pub stall_warning: Option<Duration>,
    /// Record the start and the end of every round of every stage, for
    /// [`Report::chrome_trace`](crate::Report::chrome_trace).
    pub trace: bool,
    /// Answer `cosched pipeline show` while it runs.
    pub serve: bool,
}
