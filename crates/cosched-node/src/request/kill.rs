//! Signals to jobs. A signal that ends programs goes to all nodes, through the member that plans; any other only to a job that is here alone.

use super::{Outcome, Refusal, RequestId, Waits};
use crate::Node;
use crate::types::{Action, Why};
use cosched_cluster::wire::{Ask, By, KillHow};
use cosched_core::JobId;

/// The signal that cannot be ignored.
pub const SIGKILL: i32 = 9;
/// The signal that tells a program to end.
pub const SIGTERM: i32 = 15;

/// Whether a signal tells programs to end.
pub fn asks_to_end(signal: i32) -> bool {
    [1, 2, 3, 15].contains(&signal)
}

fn ends(signal: i32) -> bool {
    signal == SIGKILL || asks_to_end(signal)
}

impl Node {
    pub(super) fn kill_job(
        &mut self,
        by: By,
        id: RequestId,
        job: JobId,
        how: KillHow,
        here: bool,
    ) -> Result<Option<Outcome>, Refusal> {
        let spans = self.local.job(job).is_some_and(|job| job.spans);
        let done = Ok(Some(Outcome::Job(job)));
        // The local part of a job that the store does not know can be killed.
        if self.is_forgotten(job) && (self.has_read_store() || !spans) {
            self.signal_part(by, id, job, how)?;
            return Ok(Some(Outcome::Local(job)));
        }
        if here && spans {
            self.kill_part(by, id, job, how)?;
            return done;
        }
        if ends(how.signal) && self.is_out_of_touch() && self.has(job) {
            return self.kill_without_store(by, id, job, how);
        }
        if !ends(how.signal) && self.has(job) && !spans {
            self.signal_part(by, id, job, how)?;
            return done;
        }
        self.whose(job)?.change(by)?;
        if ends(how.signal) {
            // The job has no part here, or all its parts have ended, and the store has yet to be told.
            let is_remote = here && !self.has(job) && !self.is_over(job);
            if is_remote || self.is_out_of_touch() && self.requests.over.contains_key(&job) {
                return done;
            }
            return self.ask(by, id, Ask::Kill { job: job.0, how }, Waits::End(job, by, how));
        }
        Err(if self.is_over(job) { Refusal::Ended(job) } else { Refusal::SignalRemote(job, how.signal) })
    }

    /// The store is unavailable: the part here is killed at once, and the store is told later. The user waits for the other nodes.
    fn kill_without_store(
        &mut self,
        by: By,
        id: RequestId,
        job: JobId,
        how: KillHow,
    ) -> Result<Option<Outcome>, Refusal> {
        let spans = self.local.job(job).is_some_and(|job| job.spans);
        self.kill_part(by, id, job, how)?;
        let asked = self.ask(by, id, Ask::Kill { job: job.0, how }, Waits::Job(job));
        if spans {
            return asked;
        }
        self.give_up_waiting(id);
        Ok(Some(Outcome::Job(job)))
    }

    /// Sends a signal to a job's part here; if it ends programs, the part is over when it has no process.
    pub(super) fn kill_part(&mut self, by: By, id: RequestId, job: JobId, how: KillHow) -> Result<(), Refusal> {
        self.signal_part(by, id, job, how)?;
        if ends(how.signal) {
            self.close(job);
        }
        Ok(())
    }

    fn signal_part(&mut self, by: By, asked: RequestId, job: JobId, how: KillHow) -> Result<(), Refusal> {
        let whose = self.whose_local(job)?;
        whose.change(by)?;
        let KillHow { signal, grace_ms } = how;
        let bound = whose.decided.suspended_by.is_some() && !by.admin;
        self.actions.push_back(Action::Signal { job, signal, why: Why::User(by.uid), asked: Some(asked) });
        if asks_to_end(signal) {
            // A stopped process does not handle a polite signal: let it run until it ends.
            self.local.suspend(job, false);
            // A job that an administrator has suspended, or that exceeds its time limit, may only run to end, not ignore the signal and continue.
            let at_limit = self.how_at_limit(job).and_then(|how| how.grace_ms);
            let most_ms = at_limit.into_iter().chain(bound.then_some(KillHow::GRACE_MS)).min();
            let grace_ms = grace_ms.into_iter().chain(most_ms).min();
            self.kill_in(job, grace_ms, by.admin && most_ms.is_none());
        }
        // A job without a process would never get an event that ends it.
        if ends(signal) && self.parts.get(&job).is_some_and(|part| !part.has_begun) {
            self.close(job);
        }
        Ok(())
    }
}
