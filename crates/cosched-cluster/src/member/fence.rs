//! Fencing: no job runs twice. An unreachable node kills those of its jobs that others will restart, before they do.
//!
//! Problem: a disconnected node looks dead to the others. A job that they restart would write to the same files as its
//! first attempt, which continues on that node, where it cannot be killed from outside.
//! Rule. The node counts on its own monotonic clock from the time at which it *sent* the last renewal of its lease
//! with which the plan counted it as alive. When that is as long ago as makes a node dead, it kills its parts of jobs that
//! are to be restarted. The others count from when they saw that the plan counts the node as silent, which was later, and wait
//! longer by a margin (`Settings::fence_margin_ns`). Parts killed this way have not ended: the node reports them as lost.
//! The daemon may hang or be dead by then, so its host keeps the deadlines where the guard finds them ([`Member::fences`]).
//! Source: leases as in Gray & Cheriton 1989; Pacemaker's self-fencing by a watchdog (sbd).

use super::Member;
use super::local::Status;
use super::types::{Action, Fenced};
use crate::wire::{Attempt, OnNodeLoss};
use cosched_core::cluster::NEVER;
use cosched_core::{JobId, Reason, Time};

impl Member {
    /// The lease was renewed by a request sent at `asked_at`, and the newest state is known.
    pub(super) fn is_heard(&mut self, asked_at: Time) {
        let (Some(id), Some(state)) = (self.id, self.state()) else { return };
        // While the plan counts the node as silent, a member may be about to give it up.
        if !state.silent.contains_key(&id) {
            self.heard_at = self.heard_at.max(Some(asked_at));
        }
    }

    /// The jobs on this node that others would restart, and the deadlines for killing them.
    pub fn fences(&self) -> impl Iterator<Item = Fenced> {
        let dead_after_ns = self.state().map_or(NEVER, |state| state.config.node_dead_after_ns);
        let heard_until = self.heard_at.filter(|_| dead_after_ns != NEVER).map(|at| at + dead_after_ns);
        self.local.living().filter_map(move |(job, attempt)| {
            let at = match (self.heard_at, self.job(job)) {
                (Some(_), Some(known)) if known.ask.on_node_loss == OnNodeLoss::Requeue => heard_until?,
                (Some(_), Some(_)) => return None,
                // The store was not reached since the daemon's start.
                _ => self.local.fence_found(job)?,
            };
            Some(Fenced { job, attempt, at })
        })
    }

    pub(super) fn fence_timeout(&self) -> Option<Time> {
        let open = self.fences().filter(|fenced| self.local.running(fenced.job).is_some());
        self.settings.fences.then(|| open.map(|fenced| fenced.at).min()).flatten()
    }

    /// Kills the jobs whose deadline has passed.
    pub(super) fn go_on_fencing(&mut self) {
        if !self.settings.fences {
            return;
        }
        let due: Vec<Fenced> = self.fences().filter(|fenced| fenced.at <= self.now.steady).collect();
        for Fenced { job, attempt, .. } in due {
            if self.local.fence(job, attempt) {
                self.actions.push_back(Action::KillPart { job, attempt, reason: Reason::NodeLost });
            }
        }
    }

    /// Records an ended part as fenced if the guard killed it at the deadline, because the daemon could not.
    pub(super) fn note_fenced(&mut self, job: JobId, attempt: Attempt) {
        let now = self.now.steady;
        let is_due = |fenced: Fenced| (fenced.job, fenced.attempt) == (job, attempt) && fenced.at <= now;
        if self.settings.fences && self.fences().any(is_due) {
            self.local.fence(job, attempt);
        }
    }
}

impl super::local::LocalJobs {
    /// Jobs with processes here; also while these are being killed, because the daemon may hang before they have ended.
    fn living(&self) -> impl Iterator<Item = (JobId, Attempt)> {
        let lives = |status: &Status| !matches!(status, Status::Ended(..));
        self.jobs.iter().filter(move |(_, (_, status))| lives(status)).map(|(job, (attempt, _))| (*job, *attempt))
    }

    /// A job is to be killed because the node is unreachable; returns whether it was not fenced before.
    fn fence(&mut self, job: JobId, attempt: Attempt) -> bool {
        let known = self.jobs.get_mut(&job).filter(|(of, _)| *of == attempt);
        let Some((_, status @ (Status::Running | Status::Closing))) = known else { return false };
        *status = Status::Killing(None, false);
        self.fenced.insert((job, attempt))
    }
}
