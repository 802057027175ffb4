//! When the CPU time of gangs is counted: for those that start, at the switch; for those that stop, a moment later.

use std::sync::atomic::Ordering::Relaxed;

use super::Prepared;
use super::Shared;
use crate::gangcpu::Grown;
use crate::observe::monotonic_ns;
use crate::switch::JobSwitch;
use cosched_core::Disposition;

/// After this time a frozen process has left its CPU, and its CPU time is accounted. The shortest slot is ten times as long.
const SETTLE_NS: u64 = 1_000_000;

/// The counts that are due soon.
#[derive(Debug, Default)]
pub(super) struct Counting {
    pending: Pending,
    due_ns: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// The gangs that stopped at the last switch.
    Leavers,
    /// Every job of the table: its state may have changed.
    All,
}

impl Counting {
    /// The latest time at which the thread must come back.
    pub(super) fn due_ns(&self) -> Option<u64> {
        (self.pending != Pending::Nothing).then_some(self.due_ns)
    }

    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// To be called after a regular switch into `slot`.
    pub(super) fn switched(&mut self, table: &Prepared, slot: i64, shared: &Shared) {
        let Some(turn) = table.turn(slot) else { return };
        for &job in &turn.enter {
            count(&table.jobs[usize::from(job)].switch, true, shared);
        }
        self.later(Pending::Leavers);
    }

    /// To be called when all states have been written again.
    pub(super) fn applied_all(&mut self) {
        self.later(Pending::All);
    }

    fn later(&mut self, what: Pending) {
        self.pending = what;
        self.due_ns = monotonic_ns() + SETTLE_NS;
    }

    /// Makes the pending counts; `slot` is the one that began then.
    pub(super) fn count_if_pending(&mut self, table: &Prepared, slot: i64, shared: &Shared) {
        match std::mem::take(&mut self.pending) {
            Pending::Nothing => {}
            Pending::Leavers => {
                for &job in table.turn(slot).map_or(&[][..], |turn| &turn.leave) {
                    count(&table.jobs[usize::from(job)].switch, false, shared);
                }
            }
            Pending::All => {
                for (job, entry) in table.jobs.iter().enumerate() {
                    if entry.otherwise == Disposition::Run {
                        entry.switch.cpu.forget();
                    } else {
                        count(&entry.switch, table.state(job, slot) == Disposition::Run, shared);
                    }
                }
            }
        }
    }
}

fn count(job: &JobSwitch, inside_from_now: bool, shared: &Shared) {
    match job.cpu.count(inside_from_now) {
        Some(Grown::Inside(ns)) => shared.counters.inside_ns.fetch_add(ns, Relaxed),
        Some(Grown::Outside(ns)) => shared.counters.outside_ns.fetch_add(ns, Relaxed),
        None => 0,
    };
}
