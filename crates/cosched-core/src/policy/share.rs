//! Shares: a job has at most a part of the time, in whole slots.
//!
//! Problem: a quota such as `cpu.max` stops a program's threads one by one, and those that still run spin at the next barrier
//! until the others are back: 4 to 90 times slower. A gang that is stopped as a whole waits for nobody.
//!
//! Rule. A job with a share is a gang, whatever its policy. It earns its share of a slot with every slot, and each slot in which it
//! runs costs one; it runs in a slot of its row only if it has earned one (Bresenham's line: what is over is carried to the next
//! slot). Otherwise its CPUs are lent, as those of a row that are free (`gang.rs`), or stay idle. It never fills what others leave
//! idle, and is never asleep: a gang that sleeps has no slots, and would have all CPUs until it is seen to be awake. It saves
//! [`SAVED_MAX`] slots at most, so no more of them follow each other than its share gives.
//!
//! A cycle is repeated until it has a whole number of each job's slots, if it does not get too long by it, and begins with what it
//! ends with; so over a cycle no job has more than its share, by not even a part of a slot.
//!
//! Units: shares in thousandths; slots.

use crate::id::JobId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

/// The most slots that a job may have saved.
const SAVED_MAX: i64 = 2;

/// The longest cycle that is made for the sake of shares, in turns.
pub(crate) const PACED_TURNS_MAX: usize = 4096;

/// A job has at least so many slots in a second: with fewer a program would seem to hang.
const SLOTS_PER_S_MIN: u64 = 1;

const SECOND_NS: u64 = 1_000_000_000;

/// All of the time.
const WHOLE: u32 = 1000;

/// A part of the time, in thousandths: 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotShare(u16);

impl SlotShare {
    /// So many thousandths; none and more than all are no share.
    pub fn new(permille: u32) -> Option<SlotShare> {
        (1..=WHOLE).contains(&permille).then_some(SlotShare(permille as u16))
    }

    /// In thousandths.
    pub fn permille(self) -> u32 {
        u32::from(self.0)
    }

    /// The least that a job may have, with slots of this length.
    pub fn least(slot_length_ns: u64) -> SlotShare {
        let permille = (slot_length_ns * SLOTS_PER_S_MIN * u64::from(WHOLE)).div_ceil(SECOND_NS);
        SlotShare(permille.clamp(1, u64::from(WHOLE)) as u16)
    }

    /// Whole slots in so many turns.
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

/// How often a cycle of so many turns is repeated, so that each of these shares is a whole number of them.
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

/// What a job has earned and not yet used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) share: SlotShare,
    /// In thousandths of a slot; less than nothing where plans that changed gave it more than was its.
    earned: i64,
}

impl Account {
    fn empty(share: SlotShare) -> Account {
        Account { share, earned: 0 }
    }

    /// One that may begin with a slot.
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

    /// A slot has passed, in which it ran or not.
    pub(crate) fn slot(&mut self, ran: bool) {
        self.earn();
        if ran {
            self.pay();
        }
    }

    /// After how many slots it may have the next one.
    pub(crate) fn slots_until_earned(&self) -> u64 {
        let lacks = (i64::from(WHOLE) - self.earned).max(0).cast_unsigned();
        lacks.div_ceil(u64::from(self.share.0))
    }
}

/// Who runs in each of `length` turns. `run` says it of a turn, without those that may not; jobs without a share always may.
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
    // The cycle follows itself: it begins with what it ends with.
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
