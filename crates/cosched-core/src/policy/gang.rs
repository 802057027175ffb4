//! Gang scheduling: the cycle of rows.
//!
//! Problem: rows of the matrix take turns, and jobs of a higher class should get more of the time; no job may starve;
//! and no CPU should stand idle in a row while some job could use it.
//!
//! Rule. A row weighs as much as the highest share among the gangs that live in it. Rows take turns by smooth weighted
//! round robin: at each turn every row gains its weight, the richest is chosen (of equals the first) and pays the sum
//! of all. A cycle has as many turns as the weights (divided by their greatest common divisor) add up to, so each row
//! gets exactly its part; a row of weight w waits at most 2·⌈W/w⌉ turns for its next one, W being the sum.
//!
//! In each turn, columns that the row leaves free are lent, in this order: to single-CPU jobs and to gangs all of whose
//! own columns are free, least served for their share first (alternate scheduling). A single-CPU job fills any free
//! column of its node: nothing ties a lone process to a column. When several jobs compete for what is free, the cycle
//! is repeated a few times, so that they take turns there too.
//!
//! Source: LLNL, "Gang Scheduler Design" (jobs of one computer "make use of available entries", a share in proportion);
//! Feitelson 1996 (alternate scheduling). Units: turns (slots).

use crate::id::JobId;
use crate::matrix::Matrix;
use crate::plan::Turn;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// The longest cycle, in turns; weights are scaled down to fit.
const CYCLE_TURNS_MAX: u64 = 4096;

/// How often a cycle is repeated at most, for the jobs that fill what is free.
const REPEATS_MAX: usize = 8;

/// The cycle of a matrix. `share` gives each gang's share.
pub(crate) fn cycle(matrix: &Matrix, share: impl Fn(JobId) -> u32) -> Vec<Turn> {
    let order = row_order(&row_weights(matrix, &share));
    let gangs: Vec<Gang> = gangs(matrix, &share);
    let repeats = repeats(matrix, &gangs).min((CYCLE_TURNS_MAX as usize / order.len().max(1)).max(1));
    let mut served: BTreeMap<JobId, u64> = gangs.iter().map(|g| (g.id, 0)).collect();
    let mut turns = Vec::with_capacity(order.len() * repeats);
    for row in order.iter().cycle().take(order.len() * repeats) {
        let run = occupants(matrix, *row, &gangs, &served);
        for job in &run {
            *served.entry(*job).or_default() += 1;
        }
        turns.push(Turn { row: *row as u32, run });
    }
    turns
}

struct Gang {
    id: JobId,
    row: usize,
    columns: Vec<u32>,
    share: u64,
}

fn gangs(matrix: &Matrix, share: &impl Fn(JobId) -> u32) -> Vec<Gang> {
    let rows = matrix.rows().iter().enumerate();
    let mut all: Vec<Gang> = rows
        .flat_map(|(row, r)| {
            r.jobs().map(move |id| Gang { id, row, columns: r.columns_of(id), share: u64::from(share(id)) })
        })
        .collect();
    all.sort_by_key(|g| g.id);
    all
}

fn row_weights(matrix: &Matrix, share: &impl Fn(JobId) -> u32) -> Vec<u64> {
    let weight = |row: &crate::matrix::Row| row.jobs().map(|job| u64::from(share(job))).max().unwrap_or(1);
    let weights: Vec<u64> = matrix.rows().iter().map(weight).collect();
    let divisor = weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
    let weights: Vec<u64> = weights.iter().map(|w| w / divisor).collect();
    let sum: u64 = weights.iter().sum();
    if sum <= CYCLE_TURNS_MAX {
        return weights;
    }
    weights.iter().map(|w| (w * CYCLE_TURNS_MAX / sum).max(1)).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Smooth weighted round robin over rows.
fn row_order(weights: &[u64]) -> Vec<usize> {
    let sum: u64 = weights.iter().sum();
    let mut credit = vec![0_i64; weights.len()];
    let mut order = Vec::with_capacity(sum as usize);
    for _ in 0..sum {
        for (c, w) in credit.iter_mut().zip(weights) {
            *c += *w as i64;
        }
        let mut richest = 0;
        for row in 1..credit.len() {
            if credit[row] > credit[richest] {
                richest = row;
            }
        }
        credit[richest] -= sum as i64;
        order.push(richest);
    }
    order
}

/// As many repeats as jobs compete for the free cells of some row.
fn repeats(matrix: &Matrix, gangs: &[Gang]) -> usize {
    let guests =
        |row: usize| gangs.iter().filter(|g| g.row != row && room(matrix.rows()[row].cells(), matrix, g)).count();
    (0..matrix.rows().len()).map(guests).max().unwrap_or(0).clamp(1, REPEATS_MAX)
}

/// Who owns CPUs when this row has its turn.
fn occupants(matrix: &Matrix, row: usize, gangs: &[Gang], served: &BTreeMap<JobId, u64>) -> Vec<JobId> {
    let mut cells = matrix.rows()[row].cells().to_vec();
    let mut run: Vec<JobId> = matrix.rows()[row].jobs().collect();
    if cells.iter().any(Option::is_none) {
        let mut guests: Vec<&Gang> = gangs.iter().filter(|g| g.row != row && room(&cells, matrix, g)).collect();
        // served / share, without fractions; of equals the older job.
        guests.sort_by(|a, b| (served[&a.id] * b.share).cmp(&(served[&b.id] * a.share)).then(a.id.cmp(&b.id)));
        for guest in guests {
            if lend(&mut cells, matrix, guest) {
                run.push(guest.id);
            }
        }
    }
    run.sort_unstable();
    run
}

fn room(cells: &[Option<JobId>], matrix: &Matrix, gang: &Gang) -> bool {
    match gang.columns.as_slice() {
        [own] => free_on_node(cells, matrix, *own).is_some(),
        columns => columns.iter().all(|c| cells[*c as usize].is_none()),
    }
}

fn lend(cells: &mut [Option<JobId>], matrix: &Matrix, gang: &Gang) -> bool {
    if !room(cells, matrix, gang) {
        return false;
    }
    match gang.columns.as_slice() {
        [own] => {
            if let Some(column) = free_on_node(cells, matrix, *own) {
                cells[column] = Some(gang.id);
            }
        }
        columns => columns.iter().for_each(|c| cells[*c as usize] = Some(gang.id)),
    }
    true
}

/// A free column on the node of `own`: that one itself if it is free.
fn free_on_node(cells: &[Option<JobId>], matrix: &Matrix, own: u32) -> Option<usize> {
    let node = matrix.columns()[own as usize].node;
    let free = |i: &usize| cells[*i].is_none() && matrix.columns()[*i].node == node;
    Some(own as usize).filter(free).or_else(|| (0..cells.len()).find(free))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_turns_smoothly() {
        assert_eq!(row_order(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(row_order(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn every_row_gets_its_part_and_waits_within_the_bound() {
        for weights in [[16, 4, 2, 1].as_slice(), &[1, 1, 1, 30], &[7, 3, 3, 2, 1, 1, 1], &[16, 16, 1]] {
            let order = row_order(weights);
            let sum: u64 = weights.iter().sum();
            for (row, w) in weights.iter().enumerate() {
                let at: Vec<usize> = (0..order.len() * 2).filter(|i| order[i % order.len()] == row).collect();
                assert_eq!(at.len() as u64, 2 * w);
                let widest = at.windows(2).map(|p| p[1] - p[0]).max().unwrap();
                assert!(widest as u64 <= 2 * sum.div_ceil(*w), "{weights:?}: row {row} waits {widest}");
            }
        }
    }
}
