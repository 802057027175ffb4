//! The accounts of a run: free cells while jobs waited, and the final accounts.

use super::super::books::{self, Counted};
use super::Gangs;
use crate::error::SimError;
use crate::observe::Observer;
use crate::outcome::Outcome;

impl<O: Observer> Gangs<'_, O> {
    /// Accounts for free cells while jobs wait, up to now; to be called before either changes.
    pub(super) fn count_free(&mut self, t: u64) {
        if !self.queue.is_empty() {
            self.out.free_while_waiting_ns += u128::from(self.free_cells) * u128::from(t - self.free_since_ns);
        }
        self.free_since_ns = t;
    }

    pub(in super::super) fn finish(mut self) -> Result<Outcome, SimError> {
        let end_ns = books::stopped_ns(&self.out, &self.params);
        self.out.sim_end_ns = end_ns;
        self.count_free(end_ns);
        if !self.switching {
            self.pause(end_ns);
        }
        (0..self.inboxes.len()).for_each(|n| self.drain(n, end_ns));
        let done = |job: usize| {
            let live = &self.live[job];
            let iteration = |n: &u32| self.tasks[*n as usize * self.rows_max + live.row].iteration;
            live.columns.iter().map(iteration).sum()
        };
        let counted = Counted { drawn_ns: self.drawn_ns, sent: self.sent, skipped: self.skipped };
        books::close(self.out, &self.params, (self.jobs, &self.shapes), &counted, done)
    }
}
