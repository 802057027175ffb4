//! Observed jobs for the tests.

use super::{Machine, Observed, Waits};
use cosched_sim::general::Own;
use cosched_sim::{Class, Policy, Sharing};

/// Two CPUs, slots of 100 ms, strict gangs, and no other processes.
pub(super) fn machine() -> Machine {
    Machine {
        cpus: 2,
        slot_ns: 100_000_000,
        policy: Policy::Gang,
        sharing: Sharing::Strict,
        ceiling_permille: 1000,
        others: 0.0,
        costs: None,
    }
}

/// A gang of two busy tasks that used `cpu_s` in 10 s and was due a part of `due`.
pub(super) fn gang(cpu_s: f64, due: f64) -> Observed {
    Observed {
        cpus: 2,
        tasks: 2,
        seconds: 10.0,
        cpu_s,
        outside_s: 0.0,
        due: Some(due),
        waits: None,
        class: Class::Batch,
        own: Own::default(),
        limit_s: None,
        rest: None,
        done: None,
    }
}

/// The same with waits that were seen.
pub(super) fn waiting(cpu_s: f64, due: f64, waits: Waits) -> Observed {
    Observed { waits: Some(waits), ..gang(cpu_s, due) }
}
