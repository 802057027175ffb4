//! The adjusting rules on a thread of their own stage.

use cosched_core::stage::Change;
use cosched_core::stage::adjust::{Adjusting, Rule};
use cosched_core::stage::fixed::LOWERED;
use cosched_linux::thread::{Scheduling, Thread, ThreadError};

/// The rule of one thread, with what it needs to act.
#[derive(Debug)]
pub(crate) struct Adjusted {
    rule: Adjusting,
}

impl Adjusted {
    /// A thread that has this scheduling now: it is lowered from there.
    pub(crate) fn new(rule: Rule, now: &Scheduling) -> Adjusted {
        Adjusted { rule: Adjusting::between(rule, now.nice, now.nice.saturating_add(LOWERED).min(19)) }
    }

    /// The thread conveys a buffer while `output_len` others wait behind it. Tells what was asked for and what came of it.
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
