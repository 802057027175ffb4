//! How the gang engine is moved forward in time.

use super::super::engine::Why;
use super::super::sampled::{Course, Jumps};
use super::super::tree::NEVER;
use super::{Gangs, Live};
use crate::error::SimError;
use crate::observe::Observer;
use crate::outcome::{Outcome, Progress};

impl<O: Observer> Jumps for Gangs<'_, O> {
    fn go(&mut self, limit: u64, to_change: bool, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Why, SimError> {
        Gangs::go(self, limit, to_change, watch)
    }

    fn now_ns(&self) -> u64 {
        self.now >> 3
    }

    fn next_arrival_ns(&self) -> Option<u64> {
        self.order.get(self.arrived).map(|job| self.jobs[*job as usize].arrival_ns)
    }

    /// Whole cycles of the rows that have jobs.
    fn window_ns(&self, at_least_ns: u64) -> u64 {
        let used = |row: &&cosched_core::Row| row.free() < self.inboxes.len();
        let rows = self.matrix.rows().iter().filter(used).count() as u64;
        let turn_ns = self.params.quantum_ns + if rows > 1 { self.params.switch_ns } else { 0 };
        let cycle_ns = turn_ns * rows.max(1);
        at_least_ns.div_ceil(cycle_ns) * cycle_ns
    }

    fn courses(&self) -> Vec<Course> {
        let running = self.live.iter().enumerate().filter(|(_, live)| !live.columns.is_empty());
        let course = |(job, live): (usize, &Live)| {
            let tasks = live.columns.iter().map(|n| &self.tasks[*n as usize * self.rows_max + live.row]);
            let all = self.shapes[job].iterations;
            let (done, left) =
                tasks.fold((0, u64::MAX), |(done, left), task| (done + task.iteration, left.min(all - task.iteration)));
            Course { job: job as u32, tasks: live.columns.len() as u64, done, left }
        };
        running.map(course).collect()
    }

    fn out(&self) -> &Outcome {
        &self.out
    }

    fn jump(&mut self, delta_ns: u64, iterations: &[(u32, u64)]) {
        for (job, count) in iterations {
            let live = &self.live[*job as usize];
            for n in &live.columns {
                self.tasks[*n as usize * self.rows_max + live.row].iteration += count;
                self.skipped += count;
            }
        }
        self.tasks.iter_mut().for_each(|task| task.later(delta_ns));
        for (n, inbox) in self.inboxes.iter_mut().enumerate() {
            inbox.later(delta_ns);
            let (key, _) = self.tree.leaf(n);
            if key != NEVER {
                self.tree.set(n, key + (delta_ns << 3));
            }
        }
        self.turn_ns += if self.turn_ns == NEVER { 0 } else { delta_ns };
        self.until_ns = self.turn_ns.min(self.end_ns());
    }
}
