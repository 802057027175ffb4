//! The Ousterhout matrix: which gang has which CPU in which row.
//!
//! Problem: the processes of a gang must run at the same time, each on its own CPU, and several gangs share the
//! CPUs in turns. Rule: a row is a time slot, a column is a CPU of a node; a gang has all its cells in one row, so it
//! either runs whole or not at all. New gangs are packed into rows with room; when gangs end or a new row was needed,
//! rows whose gangs fit elsewhere are given up (slot unification), so that the cycle gets shorter.
//! Where the node's topology is known, the columns are places: a gang's cells are the CPUs that its processes run on, and
//! `policy/place.rs` chooses them. Otherwise columns only count CPUs, and any free ones are as good.
//! Source: LLNL, "Gang Scheduler Design" (table 2); Ousterhout 1982; unification and alternates: Feitelson 1996.

use crate::id::{JobId, NodeId};
use crate::job::{Node, Packing};
use crate::policy::place::{first_of_cores, gather, place, shares_a_core, spread, whole_cores, with_siblings};
use crate::topology::Topology;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

/// A CPU of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The node.
    pub node: NodeId,
    /// The CPU's number on its node, from 0.
    pub cpu: u32,
}

/// A row: one cell for every column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    cells: Vec<Option<JobId>>,
    free: usize,
}

impl Row {
    fn empty(columns: usize) -> Row {
        Row { cells: vec![None; columns], free: columns }
    }

    /// The cells, in the order of the matrix's columns.
    pub fn cells(&self) -> &[Option<JobId>] {
        &self.cells
    }

    /// The gangs that have their cells in this row, each once, in the order of their first columns.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        let cells = &self.cells;
        // Most gangs are in neighbouring cells, where this comparison saves the search.
        let first = |i: usize, cell| (i == 0 || cells[i - 1] != cell) && !cells[..i].contains(&cell);
        cells.iter().enumerate().filter_map(move |(i, cell)| cell.filter(|_| first(i, *cell)))
    }

    /// The number of free cells.
    pub fn free(&self) -> usize {
        self.free
    }

    /// The columns of a job.
    pub fn columns_of(&self, job: JobId) -> Vec<u32> {
        (0..self.cells.len()).filter(|i| self.cells[*i] == Some(job)).map(|i| i as u32).collect()
    }
}

/// A gang's cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its row.
    pub row: usize,
    /// Its columns, ascending.
    pub columns: Vec<u32>,
}

/// The matrix. Invariants: a gang's cells are all in one row and on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    columns: Vec<Column>,
    rows: Vec<Row>,
    topology: Option<Arc<Topology>>,
    /// The gangs that have all CPUs of their cores.
    alone: BTreeSet<JobId>,
}

impl Matrix {
    /// An empty matrix over the CPUs of these nodes.
    pub fn new(nodes: &[Node]) -> Matrix {
        let columns = nodes.iter().flat_map(|n| (0..n.cpus).map(|cpu| Column { node: n.id, cpu })).collect();
        Matrix { columns, rows: Vec::new(), topology: None, alone: BTreeSet::new() }
    }

    /// An empty matrix over the CPUs of a node, in which columns are places.
    pub fn of_places(node: NodeId, topology: Arc<Topology>) -> Matrix {
        let cpus = topology.cpus().len() as u32;
        Matrix { topology: Some(topology), ..Matrix::new(&[Node { id: node, cpus }]) }
    }

    /// A matrix with the same columns and topology, but without gangs.
    pub(crate) fn emptied(&self) -> Matrix {
        let (columns, topology) = (self.columns.clone(), self.topology.clone());
        Matrix { columns, rows: Vec::new(), topology, alone: BTreeSet::new() }
    }

    /// Whether a gang's columns are the CPUs that its processes run on.
    pub fn has_places(&self) -> bool {
        self.topology.is_some()
    }

    /// The cores of the node, where columns are places.
    pub(crate) fn cores(&self) -> Option<u32> {
        self.topology.as_ref().map(|topology| topology.cores())
    }

    /// Of a gang's columns those that its processes run on, where it has siblings beside them that stay empty.
    pub(crate) fn first_of_cores(&self, job: JobId, columns: &[u32]) -> Option<Vec<u32>> {
        let topology = self.topology.as_ref().filter(|_| self.alone.contains(&job))?;
        Some(first_of_cores(topology, columns)).filter(|first| first.len() < columns.len())
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The cells of all gangs.
    pub(crate) fn homes(&self) -> BTreeMap<JobId, Placement> {
        let of_row = |(row, r): (usize, &Row)| {
            let place = move |job| (job, Placement { row, columns: r.columns_of(job) });
            r.jobs().map(place).collect::<Vec<_>>()
        };
        self.rows.iter().enumerate().flat_map(of_row).collect()
    }

    /// A gang's cells; `None` if it has none.
    pub fn home(&self, job: JobId) -> Option<Placement> {
        let row = self.rows.iter().position(|r| r.cells.contains(&Some(job)))?;
        Some(Placement { row, columns: self.rows[row].columns_of(job) })
    }

    /// Gives a gang `cpus` cells on one node, in a row that has room or in a new one.
    ///
    /// Returns `None`, and changes nothing, when no permitted node has this number of CPUs.
    pub fn insert(&mut self, job: JobId, cpus: u32, node: Option<NodeId>, packing: Packing) -> Option<Placement> {
        let fits = |(i, row): (usize, &Row)| Some((row.free(), i, self.free_columns(row, job, cpus, node)?));
        let mut candidates = self.rows.iter().enumerate().filter_map(fits);
        let best = match packing {
            Packing::FirstFit => candidates.next(),
            Packing::BestFit => candidates.min_by_key(|(free, i, _)| (*free, *i)),
        };
        let (row, columns) = match best {
            Some((_, row, columns)) => (row, columns),
            None => {
                let empty = Row::empty(self.columns.len());
                let columns = self.free_columns(&empty, job, cpus, node)?;
                self.rows.push(empty);
                (self.rows.len() - 1, columns)
            }
        };
        let columns = self.gather(row, job, columns);
        self.fill(row, &columns, job);
        Some(Placement { row, columns })
    }

    /// Where a gang that is new in this row would have CPUs of other gangs' cores: moves those of them together that are spread for want of company, if
    /// then each has cores of its own. Returns the columns of the new gang.
    fn gather(&mut self, row: usize, job: JobId, columns: Vec<u32>) -> Vec<u32> {
        let Some(topology) = self.topology.clone().filter(|_| !self.alone.contains(&job)) else { return columns };
        let cells = &self.rows[row].cells;
        if !shares_a_core(&topology, |at| cells[at].is_some(), &columns) {
            return columns;
        }
        let mut gangs: BTreeMap<JobId, Vec<u32>> = BTreeMap::new();
        let taken = (0..).zip(cells).filter_map(|(at, cell)| Some((at, (*cell)?)));
        let taken = taken.filter(|(_, of)| !self.alone.contains(of));
        taken.for_each(|(at, of)| gangs.entry(of).or_default().push(at));
        let gangs: BTreeMap<JobId, Vec<u32>> = spread(&topology, gangs).collect();
        if gangs.is_empty() {
            return columns;
        }
        let widths: Vec<usize> = gangs.values().chain([&columns]).map(Vec::len).collect();
        let is_free = |at: usize| cells[at].is_none_or(|of| gangs.contains_key(&of));
        let Some(mut gathered) = gather(&topology, is_free, &widths) else { return columns };
        let new = gathered.pop().unwrap_or(columns);
        gangs.keys().for_each(|id| self.take_out(*id));
        gangs.keys().zip(&gathered).for_each(|(id, columns)| self.fill(row, columns, *id));
        new
    }

    /// As [`Matrix::insert`], but that where columns are places the gang has `cpus` whole cores of the node, which is the only one.
    pub fn insert_alone(&mut self, job: JobId, cpus: u32, packing: Packing) -> Option<Placement> {
        self.alone.insert(job);
        let place = self.insert(job, cpus, None, packing);
        if place.is_none() {
            self.alone.remove(&job);
        }
        place
    }

    /// Gives a gang the whole cores that it had before, one column of each of which is named, as [`Matrix::put_back`].
    pub(crate) fn put_back_alone(&mut self, job: JobId, first: &[u32]) -> bool {
        let Some(topology) = &self.topology else { return false };
        let columns = with_siblings(topology, first);
        let is_back = first_of_cores(topology, &columns).len() == first.len() && self.put_back(job, &columns);
        if is_back {
            self.alone.insert(job);
        }
        is_back
    }

    /// Gives a gang the columns that it had before, in the first row where they are free, or in a new one if no row has room for it. Returns
    /// whether that was possible.
    pub(crate) fn put_back(&mut self, job: JobId, columns: &[u32]) -> bool {
        let is_full = self.rows.iter().all(|row| row.free() < columns.len());
        let exist = columns.iter().all(|column| (*column as usize) < self.columns.len());
        if is_full && exist {
            self.rows.push(Row::empty(self.columns.len()));
        }
        let row = self.row_with(columns);
        row.inspect(|row| self.fill(*row, columns, job)).is_some()
    }

    /// The first row in which all of these columns are free.
    fn row_with(&self, columns: &[u32]) -> Option<usize> {
        let is_free = |row: &Row| columns.iter().all(|c| row.cells.get(*c as usize).is_some_and(Option::is_none));
        self.rows.iter().position(|row| row.free() >= columns.len() && is_free(row))
    }

    /// Like [`Matrix::insert`], with at most `rows_max` rows (the multiprogramming level). Also returns `None` when all are full.
    pub fn insert_within(&mut self, rows_max: usize, job: JobId, cpus: u32, packing: Packing) -> Option<Placement> {
        let room = |row: &Row| self.free_columns(row, job, cpus, None).is_some();
        let fits = self.rows.len() < rows_max || self.rows.iter().any(room);
        if fits { self.insert(job, cpus, None, packing) } else { None }
    }

    /// Adds empty rows until there are `rows` of them.
    pub(crate) fn add_rows(&mut self, rows: usize) {
        let columns = self.columns.len();
        self.rows.resize_with(rows.max(self.rows.len()), || Row::empty(columns));
    }

    /// Gives a gang these columns of a row, which must be free.
    pub(crate) fn put(&mut self, row: usize, columns: &[u32], job: JobId) {
        self.fill(row, columns, job);
    }

    /// Gives a gang these columns of a row, which is made if there are fewer, if all of them are free; whether they are.
    pub fn insert_at(&mut self, row: usize, columns: &[u32], job: JobId) -> bool {
        self.add_rows(row + 1);
        let cells = &self.rows[row].cells;
        let free = columns.iter().all(|column| cells.get(*column as usize).is_some_and(Option::is_none));
        if free {
            self.put(row, columns, job);
        }
        free
    }

    /// Removes a gang. Its row stays, even when it is empty.
    pub fn remove(&mut self, job: JobId) {
        self.alone.remove(&job);
        self.take_out(job);
    }

    fn take_out(&mut self, job: JobId) {
        for row in &mut self.rows {
            for cell in row.cells.iter_mut().filter(|cell| **cell == Some(job)) {
                *cell = None;
                row.free += 1;
            }
        }
    }

    /// Removes empty rows, then gives up every row whose gangs all fit into the others.
    pub fn unify(&mut self) {
        self.rows.retain(|row| row.free() < row.cells.len());
        while self.give_up_one_row() {}
    }

    /// Moves the gangs of some row to others and removes it, if possible; otherwise changes nothing. The emptiest rows are
    /// tried first, and of equally empty ones the last.
    fn give_up_one_row(&mut self) -> bool {
        // The gangs of a row need as many free cells elsewhere as it has taken ones.
        if self.rows.iter().map(Row::free).sum::<usize>() < self.columns.len() {
            return false;
        }
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|i| (Reverse(self.rows[*i].free()), Reverse(*i)));
        order.into_iter().any(|row| self.give_up(row))
    }

    fn give_up(&mut self, given_up: usize) -> bool {
        let row = self.rows.remove(given_up);
        let stuck = row.jobs().find(|job| !self.adopt(*job, &row.columns_of(*job)));
        let Some(stuck) = stuck else { return true };
        row.jobs().take_while(|job| *job != stuck).for_each(|job| self.take_out(job));
        self.rows.insert(given_up, row);
        false
    }

    /// Finds cells for a gang in the present rows: preferably in its own columns, otherwise in others of its node.
    fn adopt(&mut self, job: JobId, own: &[u32]) -> bool {
        let node = own.first().map(|c| self.columns[*c as usize].node);
        let cpus = self.first_of_cores(job, own).map_or(own.len(), |first| first.len()) as u32;
        let other = |(row, r): (usize, &Row)| Some((row, self.free_columns(r, job, cpus, node)?));
        let same = self.row_with(own).map(|row| (row, own.to_vec()));
        let Some((row, columns)) = same.or_else(|| self.rows.iter().enumerate().find_map(other)) else { return false };
        self.fill(row, &columns, job);
        true
    }

    /// The lowest `cpus` free columns in this row of the first permitted node that has enough; where columns are places, the best ones.
    fn free_columns(&self, row: &Row, job: JobId, cpus: u32, node: Option<NodeId>) -> Option<Vec<u32>> {
        if row.free() < cpus as usize {
            return None;
        }
        if let Some(topology) = &self.topology {
            let is_permitted = node.is_none_or(|node| self.columns.iter().all(|column| column.node == node));
            let is_free = |at: usize| row.cells[at].is_none();
            return match is_permitted {
                true if self.alone.contains(&job) => whole_cores(topology, is_free, cpus as usize),
                true => place(topology, is_free, cpus as usize),
                false => None,
            };
        }
        let mut start = 0;
        while start < self.columns.len() {
            let here = self.columns[start].node;
            let len = self.columns[start..].iter().take_while(|c| c.node == here).count();
            let free = (start..start + len).filter(|i| row.cells[*i].is_none()).map(|i| i as u32);
            let columns: Vec<u32> = free.take(cpus as usize).collect();
            if columns.len() == cpus as usize && node.is_none_or(|n| n == here) {
                return Some(columns);
            }
            start += len;
        }
        None
    }

    fn fill(&mut self, row: usize, columns: &[u32], job: JobId) {
        for column in columns {
            self.rows[row].cells[*column as usize] = Some(job);
        }
        self.rows[row].free -= columns.len();
    }
}

impl fmt::Display for Matrix {
    /// A header with the CPUs, then a line per row; a dot is a free cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.columns.iter().any(|c| c.node != self.columns[0].node);
        f.write_str("row")?;
        for column in &self.columns {
            let (node, cpu) = (column.node.0, column.cpu);
            let title = if several { alloc::format!("n{node}.{cpu}") } else { alloc::format!("cpu{cpu}") };
            write!(f, " {title:>5}")?;
        }
        for (i, row) in self.rows.iter().enumerate() {
            write!(f, "\n{i:>3}")?;
            for cell in &row.cells {
                match cell {
                    Some(job) => write!(f, " {:>5}", job.0)?,
                    None => f.write_str("     .")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn matrix(cpus: u32) -> Matrix {
        Matrix::new(&[Node { id: NodeId(0), cpus }])
    }

    fn put(m: &mut Matrix, job: u64, cpus: u32, packing: Packing) -> Option<Placement> {
        m.insert(JobId(job), cpus, None, packing)
    }

    #[test]
    fn first_fit_takes_the_first_row_and_best_fit_the_fullest() {
        let mut first = matrix(4);
        for (job, cpus) in [(1, 2), (2, 3)] {
            put(&mut first, job, cpus, Packing::FirstFit);
        }
        let mut best = first.clone();
        assert_eq!(put(&mut first, 3, 1, Packing::FirstFit).unwrap().row, 0);
        assert_eq!(put(&mut best, 3, 1, Packing::BestFit).unwrap().row, 1);
    }

    #[test]
    fn a_gang_that_fits_nowhere_changes_nothing() {
        let mut m = matrix(2);
        assert!(put(&mut m, 1, 3, Packing::FirstFit).is_none());
        assert_eq!(m, matrix(2));
    }

    #[test]
    fn a_full_matrix_takes_no_more_than_its_rows() {
        let mut m = matrix(2);
        let insert = |m: &mut Matrix, job| m.insert_within(2, JobId(job), 2, Packing::FirstFit).map(|p| p.row);
        assert_eq!([1, 2, 3].map(|job| insert(&mut m, job)), [Some(0), Some(1), None]);
        m.remove(JobId(1));
        assert_eq!(insert(&mut m, 3), Some(0));
    }

    #[test]
    fn a_gang_stays_on_one_node() {
        let mut m = Matrix::new(&[Node { id: NodeId(0), cpus: 2 }, Node { id: NodeId(1), cpus: 2 }]);
        put(&mut m, 1, 1, Packing::FirstFit);
        assert_eq!(put(&mut m, 2, 2, Packing::FirstFit).unwrap().columns, [2, 3]);
        assert!(m.insert(JobId(3), 1, Some(NodeId(1)), Packing::FirstFit).is_some_and(|p| p.row == 1));
    }

    #[test]
    fn rows_are_unified_when_their_gangs_fit_elsewhere() {
        let mut m = matrix(2);
        for job in 1..=4 {
            put(&mut m, job, 1, Packing::FirstFit);
        }
        m.remove(JobId(2));
        m.remove(JobId(3));
        m.unify();
        assert_eq!(m.to_string(), "row  cpu0  cpu1\n  0     1     4");
    }
}
