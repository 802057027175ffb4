//! Gang scheduling: the cycle of rows.
//!
//! Problem: rows of the matrix take turns, and jobs of a higher class should get more of the time; no job may starve;
//! and no CPU should be idle in a row while some job could use it.
//!
//! Rule. A user has the share of their most urgent gang, however many gangs they have; the gangs divide it by the shares of their
//! classes. A row weighs as much as the highest share among its residents. A cycle has as many turns as the
//! weights (divided by their greatest common divisor) add up to: W. A row of weight w has w of them, its k-th (from 0)
//! not before turn ⌊k·W/w⌋ and before turn ⌈(k+1)·W/w⌉; of the rows that may have a turn, the one with the earliest deadline
//! has it, of equals the first row. That is always possible (Tijdeman 1980, "The chairman assignment problem"; Baruah
//! et al. 1996, proportionate progress), so a row waits at most 2·⌈W/w⌉ turns for its next one.
//!
//! In each turn, columns that the row leaves free are lent to single-CPU jobs and to gangs whose own columns are all
//! free, the least served for their share first (alternate scheduling). Where columns only count CPUs, a single-CPU
//! job fills any free column of its node, because a single process is not tied to a column. Where they are places, it needs its own
//! column. When several jobs compete for what is free, the cycle is repeated a few times, so that they take turns there too. A job
//! with a share of the slots runs in its row only when it has earned a slot (`share.rs`); otherwise its columns are free. A ceiling
//! leaves turns open between those of the rows (`cap.rs`).
//!
//! Source: LLNL, "Gang Scheduler Design" (jobs of one computer "make use of available entries", a share in proportion);
//! Feitelson 1996 (alternate scheduling). Table 2 of the LLNL paper is what weights of 2, 1 and 1 give.
//! Units: turns (slots).

use super::cap;
use super::columns::Columns;
use super::share::{self, SlotShare};
use crate::id::JobId;
use crate::matrix::{Matrix, Placement};
use crate::plan::Turn;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

/// The longest cycle, in turns; weights are scaled down to fit.
const CYCLE_TURNS_MAX: u64 = 4096;

/// The maximum number of repetitions of a cycle, for the jobs that fill free columns.
const REPEATS_MAX: usize = 8;

/// The cycle of a matrix. `share` is each gang's share by its class, `slot_shares` the largest part of the slots of jobs that have one, and
/// `ceiling_permille` that of all gangs together. The turns that this leaves open are those of a row after the matrix's last one.
pub(crate) fn cycle(
    matrix: &Matrix,
    share: impl Fn(JobId) -> u32,
    slot_shares: &BTreeMap<JobId, SlotShare>,
    ceiling_permille: u32,
) -> Vec<Turn> {
    let open = matrix.rows().len();
    let order = cap::open(row_order(&row_weights(matrix, &share)), open, ceiling_permille);
    let gangs = gangs(matrix, &share);
    let mut slots = slots(matrix, &gangs, slot_shares);
    slots.push(Slot { residents: Vec::new(), guests: Vec::new(), free: Columns::new(0, core::iter::empty()) });
    // One repetition for each job that competes for the free cells of the same row.
    let guests = slots.iter().map(|s| s.guests.len()).max().unwrap_or(0);
    let repeats = guests.clamp(1, REPEATS_MAX).min((CYCLE_TURNS_MAX as usize / order.len().max(1)).max(1));
    let repeats = repeats * share::repeats(order.len() * repeats, slot_shares.values().copied());
    let mut served = vec![0; gangs.len()];
    let mut run = |at: usize, may: &dyn Fn(JobId) -> bool| {
        let run = occupants(&slots[order[at % order.len()]], &gangs, &served, |g| may(gangs[g].id));
        run.iter().for_each(|g| served[*g] += 1);
        run.into_iter().map(|g| gangs[g].id).collect()
    };
    let length = order.len() * repeats;
    let runs: Vec<Vec<JobId>> = match slot_shares.is_empty() {
        true => (0..length).map(|at| run(at, &|_| true)).collect(),
        false => share::pace(slot_shares, length, run),
    };
    let turn = |(row, run): (&usize, Vec<JobId>)| Turn { row: *row as u32, run };
    order.iter().cycle().zip(runs).map(turn).collect()
}

/// The next row after `current` that has gangs, cyclically; `current` itself if no other has any, `None` if none has.
///
/// This is the cycle of rows of equal weight, for callers that decide one row at a time (Zhang et al. 2000, §2.2: a CPU
/// "does not move to the next row until the next quantum").
pub fn next_row(matrix: &Matrix, current: usize) -> Option<usize> {
    let rows = matrix.rows().len();
    let used = |row: &usize| matrix.rows()[*row].free() < matrix.columns().len();
    (1..=rows).map(|step| (current + step) % rows).find(used)
}

struct Gang {
    id: JobId,
    row: usize,
    share: u64,
    columns: Columns,
    /// All columns of its node, for a single-CPU job where columns only count CPUs; they are as good as its own.
    instead: Option<Columns>,
}

/// What is the same in all turns of a row. Gangs are given by their index in the list of all gangs.
struct Slot {
    residents: Vec<usize>,
    /// The columns that no resident has.
    free: Columns,
    /// Gangs of other rows that fit into the free columns, at least at times.
    guests: Vec<usize>,
}

/// All gangs by id.
fn gangs(matrix: &Matrix, share: &impl Fn(JobId) -> u32) -> Vec<Gang> {
    let total = matrix.columns().len();
    let gang = |(id, home): (JobId, Placement)| {
        let own = home.columns.iter().map(|c| *c as usize);
        let node = home.columns.first().map(|c| matrix.columns()[*c as usize].node);
        let of_node = (0..total).filter(|c| Some(matrix.columns()[*c].node) == node);
        Gang {
            id,
            row: home.row,
            share: u64::from(share(id)),
            instead: (home.columns.len() == 1 && !matrix.has_places()).then(|| Columns::new(total, of_node)),
            columns: Columns::new(total, own),
        }
    };
    matrix.homes().into_iter().map(gang).collect()
}

fn slots(matrix: &Matrix, gangs: &[Gang], slot_shares: &BTreeMap<JobId, SlotShare>) -> Vec<Slot> {
    let slot = |(row, of): (usize, &crate::matrix::Row)| {
        let cells = of.cells();
        let free = Columns::new(cells.len(), (0..cells.len()).filter(|c| cells[*c].is_none()));
        let is_free = |c: &usize| cells[*c].is_none_or(|id| slot_shares.contains_key(&id));
        let at_times = Columns::new(cells.len(), (0..cells.len()).filter(is_free));
        let fits = |g: &usize| gangs[*g].row != row && room(&at_times, &gangs[*g]);
        // No gang fits into a full row, and with many gangs most rows are full.
        let guests = if at_times.is_empty() { Vec::new() } else { (0..gangs.len()).filter(fits).collect() };
        Slot { residents: Vec::new(), guests, free }
    };
    let mut slots: Vec<Slot> = matrix.rows().iter().enumerate().map(slot).collect();
    gangs.iter().enumerate().for_each(|(g, gang)| slots[gang.row].residents.push(g));
    slots
}

fn row_weights(matrix: &Matrix, share: &impl Fn(JobId) -> u32) -> Vec<u64> {
    let weight = |row: &crate::matrix::Row| row.jobs().map(|job| u64::from(share(job))).max().unwrap_or(1);
    scaled(&matrix.rows().iter().map(weight).collect::<Vec<u64>>(), CYCLE_TURNS_MAX)
}

/// The weights in their lowest terms, each at least 1, scaled so that their sum is at most about `turns_max`.
pub(crate) fn scaled(weights: &[u64], turns_max: u64) -> Vec<u64> {
    let divisor = weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
    let weights: Vec<u64> = weights.iter().map(|w| w / divisor).collect();
    let sum: u64 = weights.iter().sum();
    if sum <= turns_max {
        return weights;
    }
    weights.iter().map(|w| (w * turns_max / sum).max(1)).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The row of each turn of a cycle: each row has its part, spread as evenly as possible.
pub(crate) fn row_order(weights: &[u64]) -> Vec<usize> {
    let sum: u64 = weights.iter().sum();
    let mut had = vec![0_u64; weights.len()];
    let mut order = Vec::with_capacity(sum as usize);
    // The rows that may have a turn, by deadline, and those that may not yet, by when they may.
    let (mut ready, mut later) = (BTreeSet::new(), BTreeSet::new());
    later.extend((0..weights.len()).map(|row| (0, row)));
    for turn in 0..sum {
        while let Some((_, row)) = later.first().copied().filter(|(from, _)| *from <= turn) {
            later.pop_first();
            ready.insert((((had[row] + 1) * sum).div_ceil(weights[row]), row));
        }
        if let Some((_, row)) = ready.pop_first() {
            had[row] += 1;
            later.insert((had[row] * sum / weights[row], row));
            order.push(row);
        }
    }
    order
}

/// The gangs that own CPUs when this row has its turn, ascending, out of those for which `may` is true.
fn occupants(slot: &Slot, gangs: &[Gang], served: &[u64], may: impl Fn(usize) -> bool) -> Vec<usize> {
    let (mut run, out): (Vec<usize>, Vec<usize>) = slot.residents.iter().partition(|g| may(**g));
    if slot.guests.is_empty() {
        return run;
    }
    // served / share, without fractions; of equals the older job.
    let order = |a: &usize, b: &usize| {
        let (by_a, by_b) = (served[*a] * gangs[*b].share, served[*b] * gangs[*a].share);
        by_a.cmp(&by_b).then(a.cmp(b))
    };
    let mut guests: Vec<usize> = slot.guests.iter().copied().filter(|g| may(*g)).collect();
    guests.sort_unstable_by(order);
    let mut free = slot.free.clone();
    out.iter().for_each(|g| free.add(&gangs[*g].columns));
    for guest in guests {
        if free.is_empty() {
            break;
        }
        if room(&free, &gangs[guest]) {
            lend(&mut free, &gangs[guest]);
            run.push(guest);
        }
    }
    run.sort_unstable();
    run
}

fn room(free: &Columns, gang: &Gang) -> bool {
    match &gang.instead {
        Some(node) => free.first_of(node).is_some(),
        None => free.contains(&gang.columns),
    }
}

/// Takes a gang's columns from the free ones; for a single-CPU job its own if that is free, otherwise another one of its node.
fn lend(free: &mut Columns, gang: &Gang) {
    if free.contains(&gang.columns) {
        free.take(&gang.columns);
    } else if let Some(other) = gang.instead.as_ref().and_then(|node| free.first_of(node)) {
        free.take_one(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_row_with_gangs_is_found_round_the_matrix() {
        let mut m = Matrix::new(&[crate::job::Node { id: crate::id::NodeId(0), cpus: 1 }]);
        assert_eq!(next_row(&m, 0), None);
        for job in 1..=3 {
            m.insert(JobId(job), 1, None, crate::job::Packing::FirstFit);
        }
        assert_eq!([0, 1, 2].map(|row| next_row(&m, row)), [Some(1), Some(2), Some(0)]);
        m.remove(JobId(2));
        assert_eq!(next_row(&m, 0), Some(2));
        m.remove(JobId(3));
        assert_eq!(next_row(&m, 0), Some(0));
    }

    #[test]
    fn rows_take_turns_evenly() {
        assert_eq!(row_order(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(row_order(&[2, 1, 1]), [0, 1, 0, 2]);
        assert_eq!(row_order(&[5, 1, 1]), [0, 0, 0, 1, 0, 0, 2]);
    }

    /// Checks everything that the module's text promises of an order.
    fn assert_even(weights: &[u64]) {
        let order = row_order(weights);
        let sum: u64 = weights.iter().sum();
        assert_eq!(order.len() as u64, sum, "{weights:?}");
        for (row, w) in weights.iter().enumerate() {
            let turns = (0..sum).filter(|t| order[*t as usize] == row);
            for (k, turn) in turns.clone().enumerate() {
                let k = k as u64;
                assert!(k * sum / w <= turn && turn < ((k + 1) * sum).div_ceil(*w), "{weights:?}: row {row} at {turn}");
            }
            let at: Vec<u64> = turns.clone().chain(turns.map(|t| t + sum)).collect();
            assert_eq!(at.len() as u64, 2 * w, "{weights:?}: row {row}");
            let widest = at.windows(2).map(|p| p[1] - p[0]).max().unwrap();
            assert!(widest <= 2 * sum.div_ceil(*w), "{weights:?}: row {row} waits {widest}");
        }
    }

    #[test]
    fn every_row_gets_its_part_and_waits_within_the_bound() {
        for weights in [[16, 4, 2, 1].as_slice(), &[1, 1, 1, 30], &[7, 3, 3, 2, 1, 1, 1], &[16, 16, 1], &[50, 1, 1]] {
            assert_even(weights);
        }
        // All orders of up to five rows with weights of 1 to 5.
        for rows in 1..=5 {
            for n in 0..5_u64.pow(rows) {
                let weights: Vec<u64> = (0..rows).map(|i| 1 + n / 5_u64.pow(i) % 5).collect();
                assert_even(&weights);
            }
        }
    }
}
