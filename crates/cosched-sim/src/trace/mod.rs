//! Traces: observers that record what happens in a window of simulated time.
//!
//! They stream: memory depends on the nodes and the concurrent jobs, not on the window. Observers cannot return errors,
//! so the first error of a writer is kept and returned by `finish`.

mod busy;
mod chrome;
mod kept;
mod pair;
mod paje;
#[cfg(test)]
mod tests;
mod text;

pub use chrome::ChromeTrace;
pub use kept::{Place, Places};
pub use paje::PajeTrace;
pub use text::TextTrace;

use crate::observe::Activity;

/// A half-open interval of simulated time, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The beginning.
    pub start_ns: u64,
    /// The end, exclusive.
    pub end_ns: u64,
}

impl Window {
    /// All of the simulated time.
    pub const ALL: Window = Window { start_ns: 0, end_ns: u64::MAX };

    /// Whether a moment is inside.
    pub fn has(&self, ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&ns)
    }

    /// The part of [start, end) that is inside; `None` when nothing is left.
    pub fn cut(&self, start_ns: u64, end_ns: u64) -> Option<(u64, u64)> {
        let (start, end) = (start_ns.max(self.start_ns), end_ns.min(self.end_ns));
        (start < end).then_some((start, end))
    }
}

/// The name of an activity.
pub(crate) fn word(activity: Activity) -> &'static str {
    match activity {
        Activity::Compute => "compute",
        Activity::Message => "message",
        Activity::Spin => "spin",
        Activity::Switch => "switch",
        Activity::Interrupt => "interrupt",
        Activity::Scheduler => "scheduler",
        Activity::Io => "io",
        Activity::Blocked => "blocked",
    }
}

/// Whether an activity occupies the node's CPU.
pub(crate) fn takes_cpu(activity: Activity) -> bool {
    !matches!(activity, Activity::Io | Activity::Blocked)
}
