//! Jobs in rows of an Ousterhout matrix, a column for each processor; a queue in front of it.
//!
//! A job takes the columns that the fewest jobs use, so that it meets as few others as possible. To the queue each row is a
//! machine of its own on which estimates are longer by the number of rows (backfilling gang scheduling, Zhang,
//! Franke, Moreira and Sivasubramaniam 2003): the first job that does not fit has a reservation in one row, and later jobs may
//! start in the others, or in that one as EASY permits.

use super::site::Site;
use crate::metrics::intervals;
use cosched_core::backfill::Hole;
use std::collections::BTreeMap;

/// A set of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns(Vec<u64>);

impl Columns {
    pub(super) fn none(procs: u32) -> Columns {
        Columns(vec![0; procs.div_ceil(64) as usize])
    }

    pub(super) fn meets(&self, other: &Columns) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(super) fn add(&mut self, other: &Columns) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    fn remove(&mut self, other: &Columns) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn has(&self, column: usize) -> bool {
        self.0[column / 64] & (1 << (column % 64)) != 0
    }

    fn insert(&mut self, column: usize) {
        self.0[column / 64] |= 1 << (column % 64);
    }

    /// Its columns, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(place, word)| {
            let bits = std::iter::successors(Some(*word), |left| Some(left & left.wrapping_sub(1)));
            bits.take_while(|left| *left != 0).map(move |left| place * 64 + left.trailing_zeros() as usize)
        })
    }
}

/// A row: its jobs, the oldest first, and the columns that they use.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) jobs: Vec<u32>,
    pub(super) used: Columns,
    free: u32,
}

#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) rows: Vec<Row>,
    columns: BTreeMap<u32, (usize, Columns)>,
    /// The number of jobs on each processor.
    pub(super) loads: Vec<u8>,
    /// By how much estimates are longer.
    stretch: f64,
}

impl Matrix {
    /// `slowest`: how much longer a job of several rows may take than alone.
    pub(super) fn new(rows: u32, procs: u32, slowest: f64) -> Matrix {
        // In a single row jobs have their processors for themselves, and pay nothing.
        let stretch = if rows == 1 { 1.0 } else { slowest };
        let row = Row { jobs: Vec::new(), used: Columns::none(procs), free: procs };
        let loads = vec![0; procs as usize];
        Matrix { rows: vec![row; rows as usize], columns: BTreeMap::new(), loads, stretch }
    }

    pub(super) fn of(&self, job: u32) -> &Columns {
        &self.columns[&job].1
    }

    pub(super) fn remove(&mut self, job: u32) {
        let Some((row, columns)) = self.columns.remove(&job) else { return };
        let row = &mut self.rows[row];
        row.jobs.retain(|other| *other != job);
        row.used.remove(&columns);
        row.free += columns.count();
        columns.iter().for_each(|column| self.loads[column] -= 1);
    }

    /// The columns of a row that a job would get, and how many jobs it meets there, once for each column.
    fn columns_in(&self, row: &Row, size: u32) -> (u32, Columns) {
        let free = |column: &usize| !row.used.has(*column);
        let mut of_load = vec![0; self.rows.len() + 1];
        (0..self.loads.len()).filter(free).for_each(|column| of_load[usize::from(self.loads[column])] += 1_u32);
        let (mut left, mut met, mut chosen) = (size, 0, Columns(vec![0; row.used.0.len()]));
        for (load, of_load) in of_load.iter_mut().enumerate() {
            *of_load = left.min(*of_load);
            left -= *of_load;
            met += *of_load * load as u32;
        }
        for column in (0..self.loads.len()).filter(free) {
            let quota = &mut of_load[usize::from(self.loads[column])];
            if *quota > 0 {
                *quota -= 1;
                chosen.insert(column);
            }
        }
        (met, chosen)
    }

    /// Puts a job into a row with enough free columns where it meets the fewest others: rows with jobs first, then the lowest.
    fn place(&mut self, site: &mut Site<'_>, job: u32, fits: impl Fn(usize, &Row) -> bool) -> bool {
        let size = site.spec(job).size;
        let mut empty = false;
        let rows = self.rows.iter().enumerate().filter(|(place, row)| {
            // One empty row is like another.
            let more = row.free >= size && fits(*place, row) && !(row.jobs.is_empty() && empty);
            empty |= row.jobs.is_empty();
            more
        });
        let found = rows.map(|(place, row)| (place, row.jobs.is_empty(), self.columns_in(row, size)));
        let best = found.min_by_key(|(place, empty, (met, _))| (*met, *empty, *place));
        let Some((place, _, (_, columns))) = best else { return false };
        columns.iter().for_each(|column| self.loads[column] += 1);
        let row = &mut self.rows[place];
        row.jobs.push(job);
        row.used.add(&columns);
        row.free -= size;
        let numbers: Vec<u32> = columns.iter().map(|column| column as u32).collect();
        self.columns.insert(job, (place, columns));
        site.start(job);
        site.keeps(job, intervals(&numbers));
        true
    }

    /// Starts jobs from the head of the queue while they fit, then backfills.
    pub(super) fn admit(&mut self, site: &mut Site<'_>) {
        while let Some(head) = site.waiting.first().copied()
            && self.place(site, head, |_, _| true)
        {}
        let Some(head) = site.waiting.first().copied() else { return };
        let holes = (0..self.rows.len()).map(|row| self.hole(site, row, site.spec(head).size));
        let Some((reserved, mut hole)) = holes.enumerate().min_by_key(|(_, hole)| hole.time) else { return };
        for job in site.waiting.iter().skip(1).copied().collect::<Vec<u32>>() {
            let (size, estimate_us) = (site.spec(job).size, Some(self.stretched(site.spec(job).estimate_us)));
            let takes = hole.takes(size.into(), estimate_us);
            if self.place(site, job, |row, _| row != reserved || takes) && self.columns[&job].0 == reserved {
                hole.start(size.into(), estimate_us);
            }
        }
    }

    fn stretched(&self, estimate_us: u64) -> u64 {
        (estimate_us as f64 * self.stretch) as u64
    }

    /// What a job of this size leaves in a row if it gets the first place there.
    fn hole(&self, site: &Site<'_>, row: usize, size: u32) -> Hole {
        let row = &self.rows[row];
        let end = |job: &u32| {
            let spec = site.spec(*job);
            let end = site.started_at(*job).saturating_add(self.stretched(spec.estimate_us));
            (end.max(site.now.saturating_add(1)), u64::from(spec.size))
        };
        let mut ends: Vec<(u64, u64)> = row.jobs.iter().map(end).collect();
        ends.sort_unstable();
        Hole::beside(size.into(), row.free.into(), site.now, ends.into_iter())
    }
}
