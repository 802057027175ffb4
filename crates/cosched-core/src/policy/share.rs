//! Shares: a job has at most a part of the time, in whole slots.
//!
//! Problem: a quota such as `cpu.max` stops a program's threads one by one, and those that still run spin at the next barrier
//! until the others are back: 4 to 90 times slower. A gang that is stopped as a whole does not spin.
//!
//! Rule. A job with a share is a gang, whatever its policy. It earns its share of a slot with every slot, and each slot in which it
//! runs costs one; it runs in a slot of its row only if it has earned one (Bresenham's line: the remainder is carried to the next
//! slot). Otherwise its CPUs are lent, like the free CPUs of a row (`gang.rs`), or stay idle. It never fills CPUs that others leave
//! idle, and is never asleep: a gang that sleeps has no slots, and would have all CPUs until it is found to be awake. It saves
//! at most [`SAVED_MAX`] slots, so that it has no more consecutive slots than its share gives.
//!
//! A cycle is repeated until it has a whole number of each job's slots, if it does not get too long by that, and begins with the accounts
//! with which it ends; so over a cycle no job has more than its share, not even by a part of a slot.
//!
//! Units: shares in thousandths; slots.

use crate::id::JobId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

/// The maximum number of slots that a job may have saved.
const SAVED_MAX: i64 = 2;

/// The longest cycle that results from shares, in turns.
pub(crate) const PACED_TURNS_MAX: usize = 4096;

/// The minimum number of slots of a job in a second: with fewer a program would seem to hang.
const SLOTS_PER_S_MIN: u64 = 1;

const SECOND_NS: u64 = 1_000_000_000;

/// All of the time.
const WHOLE: u32 = 1000;

/// A part of the time, in thousandths: 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotShare(u16);

impl SlotShare {
    /// A share in thousandths; `None` for 0 and above 1000.
    pub fn new(permille: u32) -> Option<SlotShare> {
        (1..=WHOLE).contains(&permille).then_some(SlotShare(permille as u16))
    }

    /// The share in thousandths.
    pub fn permille(self) -> u32 {
        u32::from(self.0)
    }

    /// The smallest share that a job may have, with slots of this length.
    pub fn least(slot_length_ns: u64) -> SlotShare {
        let permille = (slot_length_ns * SLOTS_PER_S_MIN * u64::from(WHOLE)).div_ceil(SECOND_NS);
        SlotShare(permille.clamp(1, u64::from(WHOLE)) as u16)
    }

    /// The number of whole slots in `turns` turns.
    pub(crate) fn of(self, turns: usize) -> usize {
        turns * usize::from(self.0) / WHOLE as usize
    }
}

impl fmt::Display for SlotShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (percent, 0) => write!(f, "{percent}%"),
            (percent, tenths) => write!(f, "{percent}.{tenths}%"),
        }
    }
}

/// How often a cycle of `turns` turns is repeated, so that each of these shares is a whole number of turns.
pub(crate) fn repeats(turns: usize, shares: impl Iterator<Item = SlotShare>) -> usize {
    let mut repeats = 1;
    for share in shares {
        let whole = WHOLE as usize / gcd(WHOLE as usize, usize::from(share.0));
        repeats *= whole / gcd(whole, repeats * turns);
    }
    repeats.min((PACED_TURNS_MAX / turns.max(1)).max(1))
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The part of a slot that a job has earned and not yet used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) share: SlotShare,
    /// In thousandths of a slot; negative when changed plans gave it more than its share.
    earned: i64,
}

impl Account {
    fn empty(share: SlotShare) -> Account {
        Account { share, earned: 0 }
    }

    /// An account that may begin with a slot.
    pub(crate) fn full(share: SlotShare) -> Account {
        Account { share, earned: i64::from(WHOLE) }
    }

    fn earn(&mut self) {
        self.earned = (self.earned + i64::from(self.share.0)).min(SAVED_MAX * i64::from(WHOLE));
    }

    fn may_run(&self) -> bool {
        self.earned >= i64::from(WHOLE)
    }

    fn pay(&mut self) {
        self.earned -= i64::from(WHOLE);
    }

    /// A slot has passed, in which the job ran or not.
    pub(crate) fn slot(&mut self, ran: bool) {
        self.earn();
        if ran {
            self.pay();
        }
    }

    /// The number of slots after which it may have the next one.
    pub(crate) fn slots_until_earned(&self) -> u64 {
        let lacks = (i64::from(WHOLE) - self.earned).max(0).cast_unsigned();
        lacks.div_ceil(u64::from(self.share.0))
    }
}

/// The jobs that run in each of `length` turns. `run` returns the jobs of a turn, given which jobs may run; jobs without a share always may.
pub(crate) fn pace(
    shares: &BTreeMap<JobId, SlotShare>,
    length: usize,
    mut run: impl FnMut(usize, &dyn Fn(JobId) -> bool) -> Vec<JobId>,
) -> Vec<Vec<JobId>> {
    let mut jobs: BTreeMap<JobId, Account> = shares.iter().map(|(id, share)| (*id, Account::empty(*share))).collect();
    let mut turn = |at: usize| {
        jobs.values_mut().for_each(Account::earn);
        let run = run(at, &|id| jobs.get(&id).is_none_or(Account::may_run));
        for id in &run {
            jobs.entry(*id).and_modify(Account::pay);
        }
        run
    };
    // The cycle repeats, so it begins with the accounts with which it ends.
    (0..length).for_each(|at| drop(turn(at)));
    let mut runs: Vec<Vec<JobId>> = (0..length).map(turn).collect();
    for (id, share) in shares {
        let has = runs.iter().filter(|run| run.contains(id)).count();
        let over = has.saturating_sub(share.of(length));
        for run in runs.iter_mut().rev().filter(|run| run.contains(id)).take(over) {
            run.retain(|other| other != id);
        }
    }
    runs
}
