//! Line-ups: the gangs that run when a row has its turn.
//!
//! See `cycle.rs` for the rule. While there is no ceiling, a row's line-ups depend only on its residents and on those gangs of
//! other rows that fit into its free cells. So they are kept from plan to plan, and an arrival only costs the row that the gang
//! is put into and those where it fits. Under a ceiling they also depend on the CPU time that is left of each node (see
//! `ceiling.rs`).

use super::ceiling::{Bound, Ceiling};
use super::cycle::{Budget, Gang};
use super::plan::{LINEUPS_MAX, PlannedRow};
use super::row::{Bits, Row as Cells};
use crate::id::JobId;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The number of line-ups of a row in which gangs compete; a power of two.
const CONTEST: u32 = 8;

/// The number of a row's line-ups in which each gang runs, ascending by id.
type Runs = Arc<[(JobId, u32)]>;

/// A row as the input of its line-ups. Gangs are given by their index in the list of all gangs.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) cells: &'a Cells,
    pub(super) residents: &'a [usize],
    /// Its turns in a cycle.
    pub(super) turns: u64,
}

/// The gangs that line-ups were made of: version and share of each, and whether it may have more than its due.
type Key = Vec<(u64, u32, bool)>;

#[derive(Debug)]
struct Kept {
    residents: Key,
    guests: Key,
    /// The versions of the gangs of other rows that fit in, whether or not they may run there.
    fits: Vec<u64>,
    made: Made,
}

/// A row's line-ups, and what they depend on apart from its gangs.
#[derive(Debug)]
struct Made {
    row: Arc<PlannedRow>,
    runs: Runs,
    /// The row's turns, if there was a ceiling.
    turns: Option<u64>,
    bounds: Vec<Bound>,
}

/// The line-ups of the last plan, by the version of the row's first gang; 0 for the row of open turns.
#[derive(Debug, Default)]
pub(super) struct Cache {
    rows: BTreeMap<u64, Kept>,
    /// The newest version of a gang that was examined.
    newest: u64,
}

/// The number of line-ups, out of `of`, in which a gang with this share is due, in a row whose largest share is `best`.
pub(super) fn due(share: u32, best: u64, of: u32) -> u32 {
    (u64::from(share) * u64::from(of)).div_ceil(best) as u32
}

/// The smallest number of line-ups with which gangs of these shares get their parts of a row exactly, or as closely as possible.
pub(super) fn lineups_for(best: u64, shares: impl Iterator<Item = u32> + Clone) -> u32 {
    let exact = |of: &u32| shares.clone().all(|share| (u64::from(share) * u64::from(*of)).is_multiple_of(best));
    [1, 2, 4, 8].into_iter().find(exact).unwrap_or(LINEUPS_MAX)
}

/// The line-ups of all rows; the last row is that of open turns.
pub(super) fn all(
    rows: &[Row],
    gangs: &[Gang],
    (budget, ceiling): (&Budget, &mut Ceiling),
    cache: &mut Cache,
) -> Vec<(Arc<PlannedRow>, Runs)> {
    let permitted: Vec<bool> = gangs.iter().map(|gang| budget.permits(gang)).collect();
    let mut versions: Vec<(u64, usize)> = gangs.iter().enumerate().map(|(at, gang)| (gang.version, at)).collect();
    versions.sort_unstable();
    let seen = versions.partition_point(|(version, _)| *version <= cache.newest);
    let new: Vec<usize> = versions[seen..].iter().map(|(_, at)| *at).collect();
    let at = |version: &u64| versions.binary_search_by_key(version, |gang| gang.0).ok().map(|found| versions[found].1);

    let mut old = core::mem::take(&mut cache.rows);
    let mut planned = Vec::with_capacity(rows.len());
    for row in rows {
        if row.turns == 0 {
            planned.push((Arc::new(PlannedRow::empty()), Runs::from([])));
            continue;
        }
        let key = |of: &[usize]| of.iter().map(|at| (gangs[*at].version, gangs[*at].share, permitted[*at])).collect();
        let residents: Key = key(row.residents);
        let name = residents.first().map_or(0, |gang| gang.0);
        let kept = old.remove(&name).filter(|kept| kept.residents == residents);
        let mut lineups = Lineups::new(*row, gangs, &permitted);
        // In an unchanged row the gangs that fitted still fit; only new gangs have to be examined.
        lineups.fits = match &kept {
            Some(kept) => {
                let mut fits: Vec<usize> = kept.fits.iter().filter_map(at).chain(lineups.fitting(&new)).collect();
                fits.sort_unstable();
                fits
            }
            None => lineups.fitting(&(0..gangs.len()).collect::<Vec<usize>>()),
        };
        lineups.guests = lineups.fits.iter().copied().filter(|at| permitted[*at]).collect();
        let (guests, fits) = (key(&lineups.guests), lineups.fits.iter().map(|at| gangs[*at].version).collect());
        let turns = ceiling.is_set().then_some(row.turns);
        let same = |kept: &Kept| kept.guests == guests && kept.made.turns == turns;
        let again = kept.filter(same).map(|kept| kept.made).filter(|made| ceiling.again(&made.bounds));
        let made = again.unwrap_or_else(|| {
            let (made, runs) = lineups.make(ceiling);
            Made { row: Arc::new(made), runs, turns, bounds: ceiling.end_row() }
        });
        planned.push((Arc::clone(&made.row), Arc::clone(&made.runs)));
        cache.rows.insert(name, Kept { residents, guests, fits, made });
    }
    cache.newest = versions.last().map_or(0, |gang| gang.0).max(cache.newest);
    planned
}

/// One row, with the gangs that its line-ups are made of.
struct Lineups<'a> {
    row: Row<'a>,
    gangs: &'a [Gang<'a>],
    permitted: &'a [bool],
    /// The largest share of its residents.
    best: u64,
    /// The cells that are free when no gang of a lower share is due.
    free: Bits,
    /// Gangs of other rows that fit into these cells.
    fits: Vec<usize>,
    /// Those of them that may have more than their due.
    guests: Vec<usize>,
}

/// A gang that does not run in every line-up.
struct Optional {
    gang: usize,
    /// The number of line-ups in which it is due: 0 for a guest.
    due: u64,
    /// Whether it may also run in line-ups in which it is not due.
    may: bool,
    /// Whether other gangs want the same cells.
    rival: bool,
    /// The number of line-ups in which it runs.
    runs: u32,
    /// The number of these in which it is not due. What gangs are due follows from their shares, so only this decides which one is next.
    extra: u64,
}

impl<'a> Lineups<'a> {
    fn new(row: Row<'a>, gangs: &'a [Gang<'a>], permitted: &'a [bool]) -> Lineups<'a> {
        let best = row.residents.iter().map(|at| u64::from(gangs[*at].share)).max().unwrap_or(1);
        let mut free = row.cells.free.clone();
        for at in row.residents.iter().filter(|at| u64::from(gangs[**at].share) < best) {
            free.add(gangs[*at].spans);
        }
        Lineups { row, gangs, permitted, best, free, fits: Vec::new(), guests: Vec::new() }
    }

    /// Those of these gangs that are residents of other rows and fit into the free cells.
    fn fitting(&self, gangs: &[usize]) -> Vec<usize> {
        // A resident of a lower share fits too, but is not a guest.
        let is_resident = |at: &usize| self.row.residents.binary_search(at).is_ok();
        gangs.iter().copied().filter(|at| self.free.contains(self.gangs[*at].spans) && !is_resident(at)).collect()
    }

    fn share(&self, gang: usize) -> u64 {
        u64::from(self.gangs[gang].share)
    }

    fn make(&self, ceiling: &mut Ceiling) -> (PlannedRow, Runs) {
        let (mut always, part): (Vec<usize>, Vec<usize>) =
            self.row.residents.iter().partition(|gang| self.share(**gang) == self.best);
        // The ceiling must allow the smallest amount that a gang can take; a gang that cannot have that is no rival.
        let affords = |at: &usize| ceiling.affords(self.gangs[*at].cpus, self.row.turns);
        let mut optional: Vec<usize> =
            self.guests.iter().copied().filter(affords).chain(part.iter().copied()).collect();
        optional.sort_unstable();
        let rivals = self.rivals(&optional);
        let of = self.how_many(&part, &optional, &rivals, ceiling.is_set());
        let mut free = self.free.clone();
        let mut options = Vec::new();
        for (gang, rival) in optional.into_iter().zip(rivals) {
            let may = self.permitted[gang];
            let share = self.gangs[gang].share;
            let due = part.binary_search(&gang).map_or(0, |_| u64::from(due(share, self.best, of)));
            let extra_16 = self.row.turns * u64::from(LINEUPS_MAX / of) * (u64::from(of) - due);
            if may && !rival && ceiling.take(self.gangs[gang].cpus, extra_16) {
                // It is in no other gang's way.
                free.take(self.gangs[gang].spans);
                always.push(gang);
            } else {
                options.push(Optional { gang, due, may, rival, runs: 0, extra: 0 });
            }
        }
        let mut one = |nth| self.one((nth, of), (&always, &free), &mut options, ceiling);
        let mut lineups: Vec<Vec<usize>> = (0..of).map(&mut one).collect();
        // If the second half repeats the first, it is dropped.
        while lineups.len() > 1 && lineups[..lineups.len() / 2] == lineups[lineups.len() / 2..] {
            lineups.truncate(lineups.len() / 2);
            options.iter_mut().for_each(|o| o.runs /= 2);
        }
        let of = lineups.len() as u32;
        let runs = always.iter().map(|gang| (self.gangs[*gang].id, of));
        let at_times = options.iter().filter(|o| o.runs > 0).map(|o| (self.gangs[o.gang].id, o.runs));
        let mut runs: Vec<(JobId, u32)> = runs.chain(at_times).collect();
        runs.sort_unstable();
        let named = |gangs: &[usize]| gangs.iter().map(|gang| self.gangs[*gang].id).collect::<Vec<JobId>>();
        let lineups = lineups.iter().map(|gangs| named(gangs)).collect();
        (PlannedRow { residents: named(self.row.residents), lineups }, runs.into())
    }

    /// The number of line-ups that is enough to serve all competing gangs, and to give gangs that are due in part their part.
    fn how_many(&self, part: &[usize], optional: &[usize], rivals: &[bool], has_ceiling: bool) -> u32 {
        let rival = |gang: &usize| optional.binary_search(gang).is_ok_and(|at| rivals[at]);
        let to_compete = if rivals.contains(&true) { CONTEST } else { 1 };
        if part.iter().any(|gang| has_ceiling || rival(gang) || !self.permitted[*gang]) {
            return to_compete.max(lineups_for(self.best, part.iter().map(|gang| self.gangs[*gang].share)));
        }
        to_compete
    }

    /// For each of the gangs, whether another one wants one of its cells.
    fn rivals(&self, optional: &[usize]) -> Vec<bool> {
        let (mut once, mut twice) = (self.free.clone(), self.free.clone());
        once.clear();
        twice.clear();
        for gang in optional {
            twice.note_again(&mut once, self.gangs[*gang].spans);
        }
        optional.iter().map(|gang| twice.meets(self.gangs[*gang].spans)).collect()
    }

    /// One line-up: the gangs that always run and those that are due, then others while there is room.
    fn one(
        &self,
        (nth, of): (u32, u32),
        (always, free): (&[usize], &Bits),
        optional: &mut [Optional],
        ceiling: &mut Ceiling,
    ) -> Vec<usize> {
        let (nth, of) = (u64::from(nth), u64::from(of));
        let is_due = |o: &Optional| (nth + 1) * o.due / of > nth * o.due / of;
        let mut run = always.to_vec();
        let mut left = free.clone();
        for o in optional.iter_mut().filter(|o| is_due(o)) {
            left.take(self.gangs[o.gang].spans);
            run.push(o.gang);
            o.runs += 1;
        }
        // Gangs without rivals come first, then the one that would have had least for its share, without fractions; among equals
        // the one with the larger share, then the older one.
        let may = |at: &usize| optional[*at].may && !is_due(&optional[*at]);
        let key = |at: usize| match &optional[at] {
            o if o.rival => (true, (o.extra + 1) * 65_536 / self.share(o.gang), Reverse(self.share(o.gang)), at),
            _ => (false, 0, Reverse(0), at),
        };
        let mut queue: Vec<(bool, u64, Reverse<u64>, usize)> = (0..optional.len()).filter(may).map(key).collect();
        queue.sort_unstable();
        let turns_16 = self.row.turns * u64::from(LINEUPS_MAX) / of;
        for (.., at) in queue {
            let gang = &self.gangs[optional[at].gang];
            if !left.contains(gang.spans) {
                continue;
            }
            // A budget that is too small for it now is not larger later.
            optional[at].may = ceiling.take(gang.cpus, turns_16);
            if optional[at].may {
                left.take(gang.spans);
                run.push(optional[at].gang);
                optional[at].runs += 1;
                optional[at].extra += 1;
            }
        }
        run.sort_unstable();
        run
    }
}
