//! `auto`: what each job is seen to do decides how it is scheduled. The rule is core's.

use crate::clock::unix_ms;
use cosched_api::{Chosen, Policy, WaitMode};

/// What is chosen for a job.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) policy: Policy,
    pub(super) mode: WaitMode,
    since_unix_ms: u64,
    why: String,
    changes: u32,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            policy: Policy::Gang,
            mode: WaitMode::SpinBlock,
            since_unix_ms: unix_ms(),
            why: "the start: nothing is known of it yet".to_owned(),
            changes: 0,
        }
    }
}

impl Choice {
    pub(super) fn view(&self) -> Chosen {
        Chosen {
            policy: self.policy,
            mode: self.mode,
            since_unix_ms: self.since_unix_ms,
            why: self.why.clone(),
            changes: self.changes,
        }
    }
}
