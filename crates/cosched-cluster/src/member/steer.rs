//! Users' changes of jobs: suspend, resume, end, another class, another policy, another share of the slots.
//!
//! Users may only change their own jobs, and may only lower a job's class. Source: LLNL, "Gang Scheduler Design". They cannot undo an
//! administrator's decision about a job (core, `decision.rs`).

use super::apply::{Batch, Outcome, slot_share};
use crate::wire::{Answer, By, Class, Job, KillHow, Policy};
use cosched_core::cluster::Input;
use cosched_core::{Asker, Bound, Decisions, JobId, SlotShare};

const REFUSED: &str = "the job is not changed";

impl Batch<'_> {
    /// The record of a job that has not ended and that this user may change.
    pub(super) fn own_job(&mut self, by: By, id: u64) -> Result<&mut Job, Answer> {
        let hint = "`cosched ps` shows the jobs.";
        let known = self.load(id).ok_or_else(|| Answer::refused(REFUSED, format!("there is no job {id}"), hint))?;
        if known.end.is_some() {
            return Err(Answer::refused(REFUSED, format!("job {id} has ended"), hint));
        }
        if !by.admin && by.uid != known.owner.uid {
            return Err(Answer::refused(REFUSED, format!("job {id} is another user's"), "Ask its owner."));
        }
        Ok(known)
    }

    fn change(&mut self, by: By, id: u64, (input, word): (Input, &str), and: impl FnOnce(&mut Job)) -> Outcome {
        self.own_job(by, id)?;
        self.user_input(input, REFUSED)?;
        let wall = self.wall.0;
        self.jobs.entry(id).and_modify(|job| {
            job.note(wall, Some(by.uid), word);
            and(job);
        });
        Ok(Answer::Done)
    }

    /// The decisions about a job after this change; refused where an administrator has decided otherwise.
    fn decided(
        &mut self,
        by: By,
        id: u64,
        change: impl FnOnce(&mut Decisions, &Job, Asker) -> Result<(), Bound>,
    ) -> Result<Decisions, Answer> {
        let job = self.own_job(by, id)?;
        let mut decisions = job.decided.into();
        match change(&mut decisions, job, Asker { uid: by.uid, admin: by.admin }) {
            Ok(()) => Ok(decisions),
            Err(Bound { by, matter }) => Err(Answer::refused(
                REFUSED,
                format!("the {matter} of job {id} was decided by an administrator (uid {by})"),
                "Ask an administrator to undo that.",
            )),
        }
    }

    pub(super) fn suspend(&mut self, by: By, id: u64) -> Outcome {
        let decisions = self.decided(by, id, |decided, job, asker| {
            decided.suspend(job.owner.uid, asker);
            Ok(())
        })?;
        self.change(by, id, (Input::Suspend(JobId(id)), "suspended"), |job| job.decided = decisions.into())
    }

    /// Resumes a job; also watches it again if it was asleep or dropped.
    pub(super) fn resume(&mut self, by: By, id: u64) -> Outcome {
        let decisions = self.decided(by, id, |decided, _, asker| decided.resume(asker))?;
        self.change(by, id, (Input::Resume(JobId(id)), "resumed"), |job| {
            job.decided = decisions.into();
            job.asleep_on.clear();
            job.dropped_on.clear();
        })
    }

    /// A job that is to end runs until it has; if an administrator has suspended it, at most for the usual grace time. Only an
    /// administrator puts off the end that an earlier request has set.
    pub(super) fn kill(&mut self, by: By, id: u64, how: KillHow) -> Outcome {
        self.change(by, id, (Input::Kill(JobId(id)), "killed"), |job| {
            let usual = job.decided.suspended_by.is_some().then_some(KillHow::GRACE_MS);
            let earlier = job.kill_how.and_then(|earlier| earlier.grace_ms);
            let most = usual.into_iter().chain(earlier).min().filter(|_| !by.admin);
            let grace_ms = how.grace_ms.into_iter().chain(most).min();
            job.killed_by = job.killed_by.or(Some(by.uid));
            // What cannot be ignored is not weakened by a later signal that can, before its nodes have read it.
            if job.kill_how.is_none_or(|present| present.signal != KillHow::FORCE.signal) {
                job.kill_how = Some(KillHow { grace_ms, ..how });
            }
        })
    }

    pub(super) fn class(&mut self, by: By, id: u64, class: Class) -> Outcome {
        let decisions = self.decided(by, id, |decided, job, asker| {
            decided.reclass(job.owner.uid, asker, job.ask.class.into(), class.into())
        })?;
        let present = self.own_job(by, id)?.ask.class;
        if !by.admin && class < present {
            let why = "users may lower a class, not raise it";
            return Err(Answer::refused("the class is not changed", why, "Ask an administrator."));
        }
        self.change(by, id, (Input::Class(JobId(id), class.into()), "class changed"), |job| {
            job.decided = decisions.into();
            job.ask.class = class;
        })
    }

    pub(super) fn policy(&mut self, by: By, id: u64, policy: Option<Policy>) -> Outcome {
        let new = policy.map(Into::into);
        let decisions = self.decided(by, id, |decided, job, asker| {
            decided.repolicy(job.owner.uid, asker, job.ask.policy.map(Into::into), new)
        })?;
        self.change(by, id, (Input::JobPolicy(JobId(id), new), "policy changed"), |job| {
            job.decided = decisions.into();
            job.ask.policy = policy;
        })
    }

    pub(super) fn share(&mut self, by: By, id: u64, permille: Option<u32>) -> Outcome {
        let new = slot_share(permille, REFUSED)?;
        let decisions = self.decided(by, id, |decided, job, asker| {
            decided.reshare(job.owner.uid, asker, job.ask.share_permille.and_then(SlotShare::new), new)
        })?;
        self.change(by, id, (Input::Share(JobId(id), new), "share changed"), |job| {
            job.decided = decisions.into();
            job.ask.share_permille = permille;
        })
    }
}
