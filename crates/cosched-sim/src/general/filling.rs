//! Idle CPUs of a node (live): which jobs in the background are let in, as by the slot thread and its idle probe.
//!
//! The order of the jobs is that of core's table, the rule core's `policy/fill.rs`. The threads of a live node's probe look at their CPUs at times
//! that depend on nothing else; here they look together, for the first time half a period after a switch, which is the mean. As long as no
//! jobs take turns, those in the background are let in without a look.

use cosched_core::fill::{Idle, LOOK_NS, SETTLE_NS, period_ns};
use cosched_core::{Prepared, Table, Time};
use std::collections::BTreeSet;

/// The fills of one node.
#[derive(Debug)]
pub(super) struct Filling {
    cpus: u32,
    table: Table<u32>,
    prepared: Prepared<u32>,
    /// The slot whose states are applied.
    slot: i64,
    /// The CPUs found idle since then.
    idle: Idle<BTreeSet<usize>>,
    /// The jobs that have been let in.
    filled: BTreeSet<u32>,
    /// The number of switches, by which looks that were planned before the last one are recognised.
    switches: u64,
}

/// What is to be done after a look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Every job that could use idle CPUs has been let in, or there was a switch.
    Rest,
    Look,
    /// A job was let in.
    Fill,
}

impl Filling {
    pub(super) fn new(cpus: u32) -> Filling {
        let prepared = Prepared::new(Table::empty(), 0);
        let (idle, filled) = (Idle::default(), BTreeSet::new());
        Filling { cpus, table: Table::empty(), prepared, slot: 0, idle, filled, switches: 0 }
    }

    /// Puts a new table in force, if it differs from the last one, and switches if that is due. Returns whether it was.
    pub(super) fn switch(&mut self, now: Time, table: Option<Table<u32>>) -> bool {
        let new = table.filter(|table| !self.table.is_as(table));
        let is_new = new.is_some();
        if let Some(table) = new {
            self.prepared = Prepared::new(table.clone(), 0);
            self.table = table;
        }
        let slot = self.prepared.slot_at(now.0 as i64);
        if !is_new && self.prepared.next_change(self.slot).is_none_or(|next| slot < next) {
            return false;
        }
        self.slot = slot;
        self.switches += 1;
        self.filled.clear();
        self.idle.switched();
        true
    }

    fn period_ns(&self) -> u64 {
        period_ns(self.prepared.slot_length_ns as u64)
    }

    /// When the probe looks first after a switch, and the stamp of that look; none if no job takes the turn of another.
    pub(super) fn first_look(&self, now: Time) -> Option<(Time, u64)> {
        let takes_turns = self.prepared.next_change(self.slot).is_some();
        let wait_ns = (self.period_ns() / 2).max(SETTLE_NS + LOOK_NS);
        (takes_turns && self.prepared.may_fill()).then_some((Time(now.0 + wait_ns), self.switches))
    }

    /// When it looks again.
    pub(super) fn next_look(&self, now: Time) -> Time {
        Time(now.0 + self.period_ns() + LOOK_NS)
    }

    /// The jobs that may use idle CPUs in this slot, in order.
    fn jobs(&self) -> impl Iterator<Item = u32> {
        self.prepared.fills(self.slot).map(|at| self.prepared.jobs[usize::from(at)].switch)
    }

    /// Of those, the ones that have been let in.
    pub(super) fn let_in(&self) -> impl Iterator<Item = u32> {
        let all = self.prepared.next_change(self.slot).is_none();
        self.jobs().filter(move |job| all || self.filled.contains(job))
    }

    /// A look at all CPUs, with the stamp of its event, has found these idle.
    pub(super) fn look(&mut self, Time(now_ns): Time, stamp: u64, found: Vec<usize>) -> Next {
        let (period_ns, reports) = (self.period_ns(), found.len() as u64);
        let next_slot = self.prepared.next_change(self.slot).filter(|_| stamp == self.switches);
        let Some(next_slot) = next_slot else { return Next::Rest };
        let left_ns = (self.prepared.boundary_ns(next_slot) - now_ns as i64).max(0) as u64;
        if reports == 0 || !self.idle.add(now_ns, period_ns, reports, |all| all.extend(found)) {
            return Next::Look;
        }
        let mut frozen = self.jobs().filter(|job| !self.filled.contains(job)).peekable();
        if frozen.peek().is_none() {
            return Next::Rest;
        }
        let Some(job) = self.idle.choose(frozen, left_ns, |_, idle| (idle.len() as u32, self.cpus)) else {
            return Next::Look;
        };
        self.filled.insert(job);
        self.idle.filled(now_ns, period_ns);
        Next::Fill
    }
}
