//! Jobs in rows: soft gangs, and jobs that share processors without coordination.

use super::matrix::Matrix;
use super::pace::{Pace, Turns};
use super::site::{Discipline, Site};
use serde::Serialize;
use std::collections::BTreeMap;

/// Time-sharing of unmodified rigid jobs by soft gangs: the rows of the matrix take turns, and a job of another row runs beside them if
/// all its processors are idle then, those of the following rows first. Jobs keep their processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SoftGang {
    /// Rows at most: that is how many jobs must fit into the memory of a node.
    pub rows: u32,
    /// The length of a turn.
    pub slot_us: u64,
    /// What a job loses at the beginning of a slot if it did not run in the one before.
    pub switch_us: u64,
}

#[derive(Debug)]
pub(super) struct Gangs {
    options: SoftGang,
    matrix: Matrix,
    /// The rows in the order of their turns, from the one whose slot began at `slot_began_us`.
    order: Vec<usize>,
    slot_began_us: u64,
}

impl Gangs {
    pub(super) fn new(options: SoftGang, procs: u32) -> Gangs {
        // In the worst case a job runs in its own row's slots alone, and pays each time.
        let useful = (options.slot_us - options.switch_us) as f64 / options.slot_us as f64;
        let matrix = Matrix::new(options.rows, procs, f64::from(options.rows) / useful);
        Gangs { options, matrix, order: Vec::new(), slot_began_us: 0 }
    }

    /// Moves on to the slot of this time. A row whose last job has ended gives the rest of its turn to the next one.
    fn turn(&mut self, now: u64) {
        let began_us = now - now % self.options.slot_us;
        let slots = (began_us - self.slot_began_us) / self.options.slot_us;
        let current = self.order.get((slots % self.order.len().max(1) as u64) as usize).copied().unwrap_or(0);
        let count = self.matrix.rows.len();
        let all = (0..count).map(|step| (current + step) % count);
        self.order = all.filter(|row| !self.matrix.rows[*row].jobs.is_empty()).collect();
        self.slot_began_us = began_us;
    }
}

impl Discipline for Gangs {
    fn ended(&mut self, job: u32) {
        self.matrix.remove(job);
    }

    fn pass(&mut self, site: &mut Site<'_>) -> Option<u64> {
        self.matrix.admit(site);
        self.turn(site.now);
        let rows = &self.order;
        let mut runs = vec![0_u32; site.running.len()];
        let place_of: BTreeMap<u32, usize> = site.running.iter().map(|running| running.job).zip(0..).collect();
        let of_row =
            |row: &usize| self.matrix.rows[*row].jobs.iter().map(|job| (*job, place_of[job])).collect::<Vec<_>>();
        let places: Vec<_> = rows.iter().map(of_row).collect();
        let mut busy = 0;
        for slot in 0..rows.len() {
            let mut used = self.matrix.rows[rows[slot]].used.clone();
            places[slot].iter().for_each(|(_, place)| runs[*place] |= 1 << slot);
            for (job, place) in (1..rows.len()).flat_map(|step| &places[(slot + step) % rows.len()]) {
                let columns = self.matrix.of(*job);
                if !used.meets(columns) {
                    used.add(columns);
                    runs[*place] |= 1 << slot;
                }
            }
            busy += used.count();
        }
        let SoftGang { slot_us, switch_us, .. } = self.options;
        let (origin_us, count) = (self.slot_began_us, rows.len() as u32);
        for (place, runs) in runs.into_iter().enumerate() {
            site.set_pace(place, Pace::Turns(Turns { origin_us, slot_us, rows: count, runs, switch_us }), 0);
        }
        site.idle = f64::from(site.procs) - f64::from(busy) / f64::from(count.max(1));
        None
    }
}

/// Jobs share processors under the nodes' own schedulers: a job advances as its most loaded processor lets it (oversubscribing
/// batch schedulers).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Oversubscribe {
    /// Jobs on a processor at most.
    pub rows: u32,
    /// The part of a shared processor's time that is useful to all its jobs together.
    pub speed: f64,
}

#[derive(Debug)]
pub(super) struct Sharers {
    options: Oversubscribe,
    matrix: Matrix,
}

impl Sharers {
    pub(super) fn new(options: Oversubscribe, procs: u32) -> Sharers {
        let matrix = Matrix::new(options.rows, procs, f64::from(options.rows) / options.speed);
        Sharers { options, matrix }
    }
}

impl Discipline for Sharers {
    fn ended(&mut self, job: u32) {
        self.matrix.remove(job);
    }

    fn pass(&mut self, site: &mut Site<'_>) -> Option<u64> {
        self.matrix.admit(site);
        for place in 0..site.running.len() {
            let columns = self.matrix.of(site.running[place].job);
            let load = columns.iter().map(|column| self.matrix.loads[column]).max().unwrap_or(1);
            let rate = if load > 1 { self.options.speed / f64::from(load) } else { 1.0 };
            site.set_pace(place, Pace::Rate(rate), 0);
        }
        site.idle = self.matrix.loads.iter().filter(|load| **load == 0).count() as f64;
        None
    }
}
