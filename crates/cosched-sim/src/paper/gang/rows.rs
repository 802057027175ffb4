//! Turns: quanta and switches (D17).

use super::super::tree::NEVER;
use super::Gangs;
use crate::observe::{Activity, Observer, Slice};
use cosched_core::next_row;

impl<O: Observer> Gangs<'_, O> {
    /// A row becomes current for a quantum.
    pub(super) fn begin_quantum(&mut self, row: usize, t: u64) {
        (self.row, self.switching) = (row, false);
        self.turn_ns = t + self.quanta(t) * self.params.quantum_ns;
        self.until_ns = self.turn_ns.min(self.end_ns());
        if O::TELL {
            self.observer.row(t, row as u32);
        }
        for n in 0..self.inboxes.len() {
            self.meet(n);
            self.go_on(n, t);
        }
    }

    /// The number of quanta that a row has in sequence: while no other row has jobs, all until one may have, since its turns
    /// change nothing.
    fn quanta(&self, t: u64) -> u64 {
        if O::TELL || self.limit != NEVER || next_row(&self.matrix, self.row) != Some(self.row) {
            return 1;
        }
        let arrival = self.order.get(self.arrived).map_or(self.end_ns(), |job| self.jobs[*job as usize].arrival_ns);
        arrival.saturating_sub(t).div_ceil(self.params.quantum_ns).max(1)
    }

    /// A quantum or a switch ends.
    pub(super) fn turn(&mut self, t: u64) {
        if self.switching {
            self.begin_quantum(self.row, t);
            return;
        }
        self.pause(t);
        match next_row(&self.matrix, self.row) {
            Some(row) if row != self.row => self.begin_switch(row, t),
            _ => self.begin_quantum(self.row, t),
        }
    }

    fn begin_switch(&mut self, row: usize, t: u64) {
        self.row = row;
        self.switching = true;
        self.turn_ns = t + self.params.switch_ns;
        let cut_ns = self.turn_ns.min(self.end_ns()) - t;
        self.out.context_switches += self.inboxes.len() as u64;
        self.out.cpu.switch_ns += cut_ns * self.inboxes.len() as u64;
        if O::TELL && cut_ns > 0 {
            for node in 0..self.inboxes.len() as u32 {
                let slice = Slice { node, start_ns: t, end_ns: t + cut_ns, activity: Activity::Switch, process: None };
                self.observer.slice(slice);
            }
        }
    }

    /// Stops the current row.
    pub(super) fn pause(&mut self, t: u64) {
        for n in 0..self.inboxes.len() {
            self.stop(n, t);
            self.tree.set(n, NEVER);
        }
    }
}
