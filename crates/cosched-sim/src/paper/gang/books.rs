//! The books of a run: what was free while jobs waited, and the sums at the end.

use super::Gangs;
use crate::error::SimError;
use crate::observe::Observer;
use crate::outcome::Outcome;

impl<O: Observer> Gangs<'_, O> {
    /// Counts free cells while jobs wait, up to now; to be called before either changes.
    pub(super) fn count_free(&mut self, t: u64) {
        if !self.queue.is_empty() {
            self.out.free_while_waiting_ns += u128::from(self.free_cells) * u128::from(t - self.free_since_ns);
        }
        self.free_since_ns = t;
    }

    pub(in super::super) fn finish(mut self) -> Result<Outcome, SimError> {
        let ended = self.finished == self.jobs.len();
        let last = self.out.jobs.iter().filter_map(|job| job.finish_ns).max().unwrap_or(0);
        let end_ns = if ended { last } else { self.params.end_ns.unwrap_or(last) };
        self.out.sim_end_ns = end_ns;
        self.count_free(end_ns);
        if !self.switching {
            self.pause(end_ns);
        }
        (0..self.inboxes.len()).for_each(|n| self.drain(n, end_ns));
        let iterations = self.count_iterations();
        if ended && (self.drawn_ns != self.out.cpu.compute_ns || self.sent != self.out.messages) {
            return Err(broken("computation or messages were lost"));
        }
        if self.skipped > 0 {
            self.out.task_iterations += self.skipped;
            return Ok(self.out);
        }
        let nodes = self.inboxes.len() as u64;
        let cpu = &mut self.out.cpu;
        let busy = cpu.compute_ns + cpu.spin_ns + cpu.switch_ns;
        cpu.idle_ns = (end_ns * nodes).checked_sub(busy).ok_or_else(|| broken("the CPUs were busy for too long"))?;
        if iterations != self.out.task_iterations + self.skipped {
            return Err(broken("iterations were lost"));
        }
        Ok(self.out)
    }

    /// Counts what jobs have done, and the work in it (D26).
    fn count_iterations(&mut self) -> u64 {
        let mut iterations = 0;
        for (job, live) in self.live.iter().enumerate() {
            let cell = |n: &u32| &self.tasks[*n as usize * self.rows_max + live.row];
            let shape = &self.shapes[job];
            let finished = self.out.jobs[job].finish_ns.is_some();
            let done = if finished {
                shape.iterations * u64::from(self.jobs[job].tasks)
            } else {
                live.columns.iter().map(|n| cell(n).iteration).sum()
            };
            iterations += done;
            self.out.nominal_ns += done * shape.iteration_ns();
            self.out.useful_ns += done * (shape.iteration_ns() - shape.io_ns);
        }
        iterations
    }
}

fn broken(what: &str) -> SimError {
    SimError::Broken(what.to_owned())
}
