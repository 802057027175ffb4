//! Nothing lives twice: what others will begin again, a node that nobody hears ends itself before they do.
//!
//! Problem: a node that is cut off looks dead to the others. A job that they begin anew would write to the same files as its
//! first life, which goes on there. Nobody can reach the node to end it.
//! Rule. The node counts on its own steady clock from the moment at which it *asked* for the last renewal of its lease under
//! which the plan counted it as heard. When that is as long ago as makes a node dead, it ends its parts of jobs that begin
//! anew. The others count from when they saw the plan say that the node is silent, which was later, and wait longer by a
//! margin (`Settings::fence_margin_ns`). What was ended so has not ended: the node says that its part is lost.
//! The daemon may hang or be dead by then: its host keeps the deadlines where the guard finds them ([`Member::fences`]).
//! Source: leases as in Gray & Cheriton 1989; Pacemaker's self-fencing by a watchdog (sbd).

use super::Member;
use super::here::Status;
use super::types::{Action, Fenced};
use crate::wire::{Attempt, OnNodeLoss};
use cosched_core::cluster::NEVER;
use cosched_core::{JobId, Reason, Time};

impl Member {
    /// The lease was renewed, which was asked for then, and the newest state is known.
    pub(super) fn is_heard(&mut self, asked_at: Time) {
        let (Some(id), Some(state)) = (self.id, self.state()) else { return };
        // While the plan counts it as silent, somebody may be about to give it up.
        if !state.silent.contains_key(&id) {
            self.heard_at = self.heard_at.max(Some(asked_at));
        }
    }

    /// The jobs here that others would begin anew, and when the node has to have ended them.
    pub fn fences(&self) -> impl Iterator<Item = Fenced> {
        let dead_after_ns = self.state().map_or(NEVER, |state| state.config.node_dead_after_ns);
        let heard_until = self.heard_at.filter(|_| dead_after_ns != NEVER).map(|at| at + dead_after_ns);
        self.here.living().filter_map(move |(job, attempt)| {
            let at = match (self.heard_at, self.job(job)) {
                (Some(_), Some(known)) if known.ask.on_node_loss == OnNodeLoss::Requeue => heard_until?,
                (Some(_), Some(_)) => return None,
                // The store was not met since the daemon began.
                _ => self.here.fence_found(job)?,
            };
            Some(Fenced { job, attempt, at })
        })
    }

    pub(super) fn fence_timeout(&self) -> Option<Time> {
        let open = self.fences().filter(|fenced| self.here.running(fenced.job).is_some());
        self.settings.fences.then(|| open.map(|fenced| fenced.at).min()).flatten()
    }

    /// Ends what has to be ended by now.
    pub(super) fn go_on_fencing(&mut self) {
        if !self.settings.fences {
            return;
        }
        let due: Vec<Fenced> = self.fences().filter(|fenced| fenced.at <= self.now.steady).collect();
        for Fenced { job, attempt, .. } in due {
            if self.here.fence(job, attempt) {
                self.actions.push_back(Action::KillHere { job, attempt, reason: Reason::NodeLost });
            }
        }
    }

    /// Whether a part that has ended was ended by the guard, because the daemon could not.
    pub(super) fn note_fenced(&mut self, job: JobId, attempt: Attempt) {
        let now = self.now.steady;
        let is_due = |fenced: Fenced| (fenced.job, fenced.attempt) == (job, attempt) && fenced.at <= now;
        if self.settings.fences && self.fences().any(is_due) {
            self.here.fence(job, attempt);
        }
    }
}

impl super::here::Here {
    /// Jobs of which processes are here; also while they are being ended, for the daemon may hang before they are.
    fn living(&self) -> impl Iterator<Item = (JobId, Attempt)> {
        let lives = |status: &Status| !matches!(status, Status::Ended(..));
        self.jobs.iter().filter(move |(_, (_, status))| lives(status)).map(|(job, (attempt, _))| (*job, *attempt))
    }

    /// A job is to be ended because nobody hears of the node; whether that is news.
    fn fence(&mut self, job: JobId, attempt: Attempt) -> bool {
        let known = self.jobs.get_mut(&job).filter(|(of, _)| *of == attempt);
        let Some((_, status @ (Status::Running | Status::Closing))) = known else { return false };
        *status = Status::Killing(None, false);
        self.fenced.insert((job, attempt))
    }
}
