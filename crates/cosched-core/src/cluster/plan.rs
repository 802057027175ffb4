//! The plan of a cluster: which gangs run in which slot, the same for all nodes.
//!
//! Each row of the matrix has one or several line-ups: the set of gangs that run when the row has its turn. Line-ups rotate, so
//! that gangs that compete for the free cells of a row, and gangs of different classes in one row, each get their part. The
//! gangs that run in a slot are a pure function of the plan and the slot's number.
//! Units: an amount of turns is in sixteenths of a turn, because a row has at most 16 line-ups.

use super::layout::{Layout, Span};
use super::state::{Part, Stage};
use crate::class::Class;
use crate::id::{JobId, NodeId};
use crate::job::{Policy, Sharing};
use crate::plan::Standing;
use crate::policy::share::SlotShare;
use crate::time::Time;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most line-ups of a row; a power of two.
pub const LINEUPS_MAX: u32 = 16;

/// A row of the matrix. The last row of a plan is that of open turns and has no residents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRow {
    /// The gangs that have their cells in this row, ascending.
    pub residents: Vec<JobId>,
    /// The gangs that run, ascending, for each turn of this row in rotation: 1, 2, 4, 8 or 16 line-ups.
    pub lineups: Vec<Vec<JobId>>,
}

impl PlannedRow {
    /// A row without residents, in which no gang runs.
    pub(super) fn empty() -> PlannedRow {
        PlannedRow { residents: Vec::new(), lineups: alloc::vec![Vec::new()] }
    }
}

/// A turn of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The row.
    pub row: u32,
    /// Its index among the row's turns in this cycle, from 0.
    pub nth: u32,
}

/// What a plan says about one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedJob {
    /// Its class.
    pub class: Class,
    /// The policy in force for it; never [`Policy::Auto`], but the one that auto has chosen.
    pub policy: Policy,
    /// Whether the policy was chosen for it (auto).
    pub auto: bool,
    /// Whether it is scheduled while it is ready.
    pub standing: Standing,
    /// The largest part of the slots that it may have.
    pub slot_share: Option<SlotShare>,
    /// Its present stage.
    pub stage: Stage,
    /// Its weight against the other jobs that run at the same time, 1 to 10000.
    pub weight: u32,
    /// Its nodes, ascending; none while it waits to start.
    pub parts: Arc<[Part]>,
    /// Its row and columns, while it has cells.
    pub home: Option<(u32, Arc<[Span]>)>,
    /// The turns of a cycle in which it runs, in sixteenths.
    pub turns_16: u32,
}

/// An immutable plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The generation; each plan has the next number.
    pub generation: u64,
    /// The length of a slot; slot 0 begins at [`Time`] 0.
    pub slot_length_ns: u64,
    /// The first slot in which this plan is in force.
    pub from_slot: u64,
    /// The turn of the cycle in that slot.
    pub start: u32,
    /// The cluster's policy.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// Which CPU each column stands for.
    pub layout: Arc<Layout>,
    /// The rows; the last one is that of open turns.
    pub rows: Vec<Arc<PlannedRow>>,
    /// For each row, the number of its turns in a cycle.
    pub row_turns: Vec<u32>,
    /// The cycle; empty while no gang has slots.
    pub turns: Arc<[Turn]>,
    /// While a gang has a share of the slots (`pace.rs`): the gangs that run, turn by turn, for as many turns as it takes until everything
    /// repeats. Otherwise empty, and the rows' line-ups apply.
    pub paced: Arc<[Vec<JobId>]>,
    /// Every job that has not ended.
    pub jobs: BTreeMap<JobId, PlannedJob>,
    /// Gangs that may run at once, before the plan is in force: until then no other gang has their CPUs.
    pub early: Vec<JobId>,
}

impl Default for Plan {
    /// The plan of a cluster without nodes.
    fn default() -> Plan {
        Plan {
            generation: 0,
            slot_length_ns: 1,
            from_slot: 0,
            start: 0,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            layout: Arc::default(),
            rows: Vec::new(),
            row_turns: Vec::new(),
            turns: Arc::default(),
            paced: Arc::default(),
            jobs: BTreeMap::new(),
            early: Vec::new(),
        }
    }
}

impl Plan {
    /// The number of the slot at a time.
    pub fn slot_at(&self, t: Time) -> u64 {
        t.0 / self.slot_length_ns
    }

    /// When a slot begins. Saturates for slots beyond the range of [`Time`].
    pub fn slot_start(&self, slot: u64) -> Time {
        Time(slot.saturating_mul(self.slot_length_ns))
    }

    /// The time from which the plan is in force.
    pub fn holds_from(&self) -> Time {
        self.slot_start(self.from_slot)
    }

    /// The turn of a slot, and the number of whole cycles before it; `None` while no gang has slots.
    pub fn turn(&self, slot: u64) -> Option<(Turn, u64)> {
        let (cycle, k) = (self.turns.len() as u64, self.turns_until(slot));
        (cycle > 0).then(|| (self.turns[(k % cycle) as usize], k / cycle))
    }

    /// The gangs that own CPUs in a slot, ascending.
    pub fn run(&self, slot: u64) -> &[JobId] {
        self.run_of(self.turns_until(slot))
    }

    /// The number of turns between the first turn of cycle 0 and a slot.
    fn turns_until(&self, slot: u64) -> u64 {
        slot.saturating_sub(self.from_slot).saturating_add(self.begin())
    }

    /// The gangs that run `k` turns after the first turn of cycle 0.
    pub(super) fn run_of(&self, k: u64) -> &[JobId] {
        match (self.turns.len() as u64, self.paced.len() as u64) {
            (0, _) => &[],
            (cycle, 0) => self.lineup(self.turns[(k % cycle) as usize], k / cycle),
            (_, paced) => &self.paced[(k % paced) as usize],
        }
    }

    /// The turn with which the plan begins, counted over cycles. Where gangs have shares of the slots, the cycle is at the position that it
    /// would have if its turns had always been as they are now, so that plans in quick succession give no gang more than its share.
    pub(super) fn begin(&self) -> u64 {
        let (cycle, start, paced) = (self.turns.len() as u64, u64::from(self.start), self.paced.len() as u64);
        if paced == 0 || cycle == 0 {
            return start;
        }
        // `paced` is a multiple of the cycle.
        self.from_slot % paced + paced - (self.from_slot % cycle + cycle - start % cycle) % cycle
    }

    /// The number of turns after which everything repeats.
    pub fn length(&self) -> u64 {
        match self.paced.len() as u64 {
            0 => self.turns.len() as u64 * self.period(),
            paced => paced,
        }
    }

    /// The gangs that run in a turn of a cycle, by the line-ups of its row.
    pub(super) fn lineup(&self, turn: Turn, cycle: u64) -> &[JobId] {
        let row = &self.rows[turn.row as usize];
        let nth = cycle * u64::from(self.row_turns[turn.row as usize]) + u64::from(turn.nth);
        &row.lineups[(nth % row.lineups.len() as u64) as usize]
    }

    /// Whether the decisions are the same; the generation and the slot from which they are in force are not compared.
    pub(super) fn same_content(&self, other: &Plan) -> bool {
        self.slot_length_ns == other.slot_length_ns
            && self.policy == other.policy
            && self.sharing == other.sharing
            && self.turns == other.turns
            && self.rows == other.rows
            && self.row_turns == other.row_turns
            && self.layout == other.layout
            && self.paced == other.paced
            && self.jobs == other.jobs
    }

    /// The number of cycles after which line-ups repeat.
    pub fn period(&self) -> u64 {
        let of_row = |(row, turns): (&Arc<PlannedRow>, &u32)| {
            let lineups = row.lineups.len() as u64;
            // Both are powers of two, so the greatest common divisor of `lineups` and any number is one, too.
            lineups / lineups.min(1 << turns.trailing_zeros().min(LINEUPS_MAX.ilog2()))
        };
        self.rows.iter().zip(&self.row_turns).filter(|(_, turns)| **turns > 0).map(of_row).max().unwrap_or(1)
    }

    /// Whether a row is the last one, that of open turns.
    pub fn is_open(&self, row: u32) -> bool {
        row as usize + 1 == self.rows.len()
    }

    /// A job's part on a node.
    pub fn part(&self, job: JobId, node: NodeId) -> Option<&Part> {
        let parts = &self.jobs.get(&job)?.parts;
        parts.binary_search_by_key(&node, |part| part.node).ok().map(|at| &parts[at])
    }

    /// The part of a cycle in which a gang owns CPUs, both in sixteenths of a turn; `None` for a job without slots.
    pub fn share(&self, job: JobId) -> Option<(u32, u32)> {
        let planned = self.jobs.get(&job)?;
        (planned.turns_16 > 0).then_some((planned.turns_16, self.turns.len() as u32 * LINEUPS_MAX))
    }
}
