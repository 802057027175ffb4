//! Fewer and better filled rows: slot unification and periodic rebalancing.
//!
//! Problem: gangs end and leave holes, classes change, but rows stay as they were; each superfluous row costs all
//! others turns. Rule. When cells have become free, and at a rebalancing, every row whose gangs all fit into others
//! is given up (slot unification; Feitelson 1996). Gangs keep their nodes, because processes cannot move, and if possible
//! their columns. At a rebalancing ("a gang scheduler sub-system periodically may increase or decrease the number of
//! time-slices pre-allocated to a program spanning multiple computers as system loads vary": LLNL, "Gang Scheduler
//! Design") the loads reported since the last one take effect, and gangs move to rows that already weigh as much as they
//! do, where that makes the row they leave lighter: the cycle gets shorter, and all others get a larger part of it.

use super::layout::Span;
use super::planner::Planner;
use crate::id::JobId;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

impl Planner {
    /// Drops rows without gangs, then gives up every row whose gangs all fit into the others.
    pub(super) fn unify(&mut self) {
        self.drop_empty_rows();
        while self.give_up_one_row() {}
    }

    fn drop_empty_rows(&mut self) {
        let empty: Vec<usize> = (0..self.rows.len()).filter(|row| self.rows[*row].jobs.is_empty()).collect();
        for row in empty.into_iter().rev() {
            self.remove_row(row);
        }
    }

    /// Removes an empty row; those after it move up.
    fn remove_row(&mut self, row: usize) {
        self.rows.remove(row);
        if row < self.state.row_turns.len() {
            self.state.row_turns.remove(row);
        }
        for (id, gang) in self.gangs.iter_mut().filter(|(_, gang)| gang.row as usize > row) {
            gang.row -= 1;
            let place = self.state.jobs.get_mut(id).and_then(|job| job.place.as_mut());
            if let Some((row, _)) = place.and_then(|place| place.home.as_mut()) {
                *row = gang.row;
            }
        }
    }

    /// The emptiest rows are tried first, and of equally empty ones the last.
    fn give_up_one_row(&mut self) -> bool {
        // The gangs of a row need as many free cells elsewhere as it has taken ones.
        let free: u64 = self.rows.iter().map(|row| u64::from(row.free_total)).sum();
        if free < u64::from(self.layout.columns()) || self.rows.len() < 2 {
            return false;
        }
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|row| (Reverse(self.rows[*row].free_total), Reverse(*row)));
        order.into_iter().any(|row| self.give_up(row))
    }

    /// Moves all gangs of a row to others and removes it; if that is impossible, changes nothing and returns `false`.
    fn give_up(&mut self, row: usize) -> bool {
        let mut leaving: Vec<JobId> = self.rows[row].jobs.iter().copied().collect();
        // The largest gangs have the least chance; a gang that finds no cells now does not find any later either.
        leaving.sort_by_cached_key(|id| (Reverse(self.gangs[id].cpus.len()), *id));
        if !leaving.iter().all(|id| self.cells_in_other_row(*id, |other| other != row).is_some()) {
            return false;
        }
        let mut old: Vec<(JobId, Arc<[Span]>)> = Vec::new();
        for id in leaving {
            match self.cells_in_other_row(id, |other| other != row) {
                Some((to, spans)) => {
                    old.push((id, self.gangs[&id].spans.clone()));
                    self.evict(id);
                    self.put(id, to, spans);
                }
                None => {
                    for (id, spans) in old.into_iter().rev() {
                        self.evict(id);
                        self.put(id, row, spans);
                    }
                    return false;
                }
            }
        }
        self.remove_row(row);
        true
    }

    /// Cells for a gang in another permitted row: preferably in its own columns, otherwise in others of its nodes.
    fn cells_in_other_row(&self, id: JobId, may: impl Fn(usize) -> bool) -> Option<(usize, Arc<[Span]>)> {
        let gang = &self.gangs[&id];
        let rows = || (0..self.rows.len()).filter(|row| *row != gang.row as usize && may(*row));
        if let Some(row) = rows().find(|row| self.rows[*row].free.contains(&gang.spans)) {
            return Some((row, gang.spans.clone()));
        }
        let row = rows().find(|row| self.rows[*row].has_room(&gang.cpus))?;
        Some((row, self.rows[row].lowest(&self.layout, &gang.cpus).into()))
    }

    /// Applies the reported loads, and moves gangs so that the cycle gets shorter.
    pub(super) fn rebalance(&mut self) {
        for node in self.state.nodes.values_mut() {
            node.other_threads = node.other_threads_seen;
        }
        let ids: Vec<JobId> = self.gangs.keys().copied().collect();
        // Each move makes a row lighter, so repeated passes would end; a single one bounds the time that this takes.
        for id in ids {
            self.move_to_equals(id);
        }
        self.unify();
    }

    /// Moves a gang that alone makes its row heavy to a row that is as heavy anyway, if there is one with room.
    fn move_to_equals(&mut self, id: JobId) {
        let Some(own) = self.gangs.get(&id).map(|gang| gang.row as usize) else { return };
        let share = self.share(id);
        let heaviest_other =
            self.rows[own].jobs.iter().filter(|other| **other != id).map(|other| self.share(*other)).max();
        if heaviest_other.is_some_and(|other| other >= share) {
            return;
        }
        let weights: BTreeMap<usize, u32> = (0..self.rows.len()).map(|row| (row, self.row_share(row))).collect();
        if let Some((row, spans)) = self.cells_in_other_row(id, |row| weights[&row] >= share) {
            self.evict(id);
            self.put(id, row, spans);
        }
    }

    /// The largest share of a row's gangs.
    fn row_share(&self, row: usize) -> u32 {
        self.rows[row].jobs.iter().map(|id| self.share(*id)).max().unwrap_or(0)
    }

    pub(super) fn share(&self, id: JobId) -> u32 {
        self.state.jobs.get(&id).map_or(1, |job| self.state.config.shares().of(job.spec.class))
    }
}
