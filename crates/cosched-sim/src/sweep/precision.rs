//! As many replications as a wanted precision needs.
//!
//! Rule: all settings begin with the same number of seeds. Where the 95 % interval of a mean response time is wider than
//! wanted, the spread says how many seeds there should be (the width falls with their square root), and all strategies of
//! that setting get the seeds that are missing, at most twice as many as they have: so they stay in pairs, and a spread that
//! was small by chance does not end it too early. It ends when all are precise enough, or at a bound.

use super::describe::Precision;
use super::error::SweepError;
use super::journal::Journal;
use super::plan::{Cell, Plan};
use super::result::Taken;
use super::run::{Hooks, recall, run};
use super::table::{Row, Table};
use std::io;

/// Like [`run`], with more seeds until the means are as precise as wanted. Returns the cells that this took, and their
/// results.
///
/// # Errors
/// As for [`run`].
pub fn run_precisely(
    plan: &Plan,
    journal: &Journal,
    threads: usize,
    hooks: Hooks<'_>,
    append: &mut (dyn FnMut(&str) -> io::Result<()> + Send),
) -> Result<(Plan, Vec<Taken>), SweepError> {
    let mut known = journal.clone();
    until_precise(plan, |plan| {
        let mut lines = String::new();
        let taken = run(plan, &known, threads, hooks, &mut |line| {
            lines += line;
            append(line)
        })?;
        known.results.extend(Journal::read(lines.as_bytes()).map_err(SweepError::Journal)?.results);
        Ok(taken)
    })
}

/// The results in a journal, including those of the seeds that a wanted precision took.
///
/// # Errors
/// Job lists that cannot be created.
pub fn recall_precisely(plan: &Plan, journal: &Journal, hooks: Hooks<'_>) -> Result<(Plan, Vec<Taken>), SweepError> {
    until_precise(plan, |plan| recall(plan, journal, hooks))
}

fn until_precise(
    plan: &Plan,
    mut round: impl FnMut(&Plan) -> Result<Vec<Taken>, SweepError>,
) -> Result<(Plan, Vec<Taken>), SweepError> {
    let mut plan = plan.clone();
    loop {
        let taken = round(&plan)?;
        match more(&plan, &taken) {
            Some(larger) => plan = larger,
            None => return Ok((plan, taken)),
        }
    }
}

/// The plan with the seeds that are still needed; `None` when nothing is left to do.
fn more(plan: &Plan, taken: &[Taken]) -> Option<Plan> {
    let precision = plan.precision?;
    let rows = Table::new(plan, taken).rows;
    let mut cells = Vec::new();
    for rivals in rows.chunk_by(|a, b| a.cell.is_rival_of(&b.cell)) {
        let needed = rivals.iter().map(|row| needed(row, precision)).max().unwrap_or(0);
        for row in rivals {
            let first = cells.len();
            cells.extend(plan.cells.iter().filter(|cell| cell.is_replication_of(&row.cell)).cloned());
            let present = (cells.len() - first) as u64;
            extend(&mut cells, needed.saturating_sub(present));
        }
    }
    (cells.len() > plan.cells.len()).then_some(Plan { cells, ..*plan })
}

/// The number of seeds that this row needs, as far as is known. A row whose runs failed, or were cut, gets no more.
fn needed(row: &Row, Precision { part, seeds_max }: Precision) -> u64 {
    let n = row.results.len() as u64;
    let estimate = row.value("mean_response_s").filter(|_| row.failures.is_empty() && row.unfinished == 0);
    let Some(estimate) = estimate else { return 0 };
    // Without an interval: twice as many.
    let over = estimate.ci95.map_or(2.0, |half| half / (part * estimate.mean.abs()));
    if over <= 1.0 {
        return n;
    }
    let wanted = (n as f64 * over * over).ceil().min((2 * n) as f64) as u64;
    wanted.max(n + 1).min(seeds_max.max(n))
}

/// Adds seeds to the last cells.
fn extend(cells: &mut Vec<Cell>, count: u64) {
    let Some(last) = cells.last().cloned() else { return };
    let largest = cells.iter().filter(|cell| cell.is_replication_of(&last)).map(|cell| cell.config.params.seed).max();
    let first = largest.unwrap_or(0).saturating_add(1);
    for seed in first..first.saturating_add(count) {
        let mut cell = last.clone();
        (cell.config.params.seed, cell.wanted.seed) = (seed, seed);
        cells.push(cell);
    }
}
