//! How to run a graph.

use std::time::Duration;

use crate::priority::Priorities;

/// How to run a graph. [`Options::default`] changes nothing in the scheduling, and shows nothing while it runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// Workers for the stages that compute; one per CPU that this process may use, unless told otherwise.
    pub workers: Option<usize>,
    /// How the priorities of the stages' threads are chosen. What a stage asks for itself ([`Stage::with`]) comes first.
    ///
    /// [`Stage::with`]: crate::Stage::with
    pub priorities: Priorities,
    /// Each stage that has a thread of its own gets one CPU, in turn, of those that this process may use.
    pub pin_in_turn: bool,
    /// A stage that works on one buffer for longer than this ends the run with [`Cause::Stalled`] and its name; so does a
    /// graph in which all wait for each other. None: nothing is ended.
    ///
    /// [`Cause::Stalled`]: crate::Cause::Stalled
    pub stall_limit: Option<Duration>,
    /// What takes longer than this is named on standard error and in the report, and goes on. None: [`STALL_WARNING`].
    ///
    /// [`STALL_WARNING`]: crate::STALL_WARNING
    pub stall_warning: Option<Duration>,
    /// Keep the begin and the end of every round of every stage, for [`Report::chrome_trace`](crate::Report::chrome_trace).
    pub trace: bool,
    /// Answer `cosched pipeline show` while it runs.
    pub serve: bool,
}
