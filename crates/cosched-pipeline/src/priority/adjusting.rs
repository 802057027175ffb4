//! The adjusting rules, applied by the thread of their stage.

use cosched_core::stage::Change;
use cosched_core::stage::adjust::{Adjusting, Rule};
use cosched_core::stage::fixed::LOWERED;
use cosched_linux::thread::{Scheduling, Thread, ThreadError};

/// The adjusting rule of one thread.
#[derive(Debug)]
pub(crate) struct Adjusted {
    rule: Adjusting,
}

impl Adjusted {
    /// For a thread whose current scheduling is `now`: the rule lowers its priority relative to that.
    pub(crate) fn new(rule: Rule, now: &Scheduling) -> Adjusted {
        Adjusted { rule: Adjusting::between(rule, now.nice, now.nice.saturating_add(LOWERED).min(19)) }
    }

    /// The thread conveys a buffer while `output_len` others wait for the next stage. Returns the requested change, if
    /// there is one, and its result.
    pub(crate) fn convey(&mut self, thread: &Thread, output_len: usize) -> Option<(Change, Result<(), ThreadError>)> {
        let change = self.rule.convey(output_len)?;
        let Change::Nice(nice) = change else { return None };
        let result = thread.set_nice(nice);
        if result.is_err() {
            self.rule.refused();
        }
        Some((change, result))
    }
}
