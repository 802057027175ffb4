//! Jobs that follow others: whether a new one may, and what the end of a job means for those that wait for it.

use super::apply::Batch;
use crate::wire::{Answer, By, Job, TermsAsk, Why};
use cosched_core::JobId;
use cosched_core::cluster::{Input, Terms};

/// The maximum number of jobs that a job may follow.
const AFTER_MAX: usize = 32;

/// Whether a job that is over ended by itself, with exit code 0.
fn is_ok(why: Why, job: &Job) -> bool {
    why == Why::Finished && job.exit().is_some_and(|exit| exit.code == Some(0))
}

impl Batch<'_> {
    /// The requested terms of a new job, as the planner has them, without jobs that are over already.
    pub(super) fn terms(&self, by: By, ask: &TermsAsk) -> Result<Terms, Answer> {
        let refused = |why: String, hint: &str| Answer::refused("the job is refused", why, hint);
        if ask.after.len() > AFTER_MAX {
            let why = format!("it waits for the end of {} jobs, and may wait for {AFTER_MAX}", ask.after.len());
            return Err(refused(why, "Name the last ones; those before them have ended then."));
        }
        for after in &ask.after {
            let id = after.job;
            let Some(job) = self.known(id).filter(|job| by.admin || job.owner.uid == by.uid) else {
                let why = format!("it is to start after job {id}, and you have no job {id}");
                return Err(refused(
                    why,
                    "`cosched ps --all` shows the jobs; jobs that ended long ago are no longer listed.",
                ));
            };
            let failed = job.end.filter(|end| after.ok && !is_ok(end.why, job));
            if failed.is_some() {
                let why = format!("it is to start after the success of job {id}, which did not end with exit code 0");
                return Err(refused(why, "Run that job again, or use `--after JOB:any`."));
            }
        }
        Ok(ask.planned(|id| self.planner.state().jobs.contains_key(&JobId(id))))
    }

    /// A job is about to be over: if it failed, the jobs that wait for its success are told.
    pub(super) fn tell_followers(&mut self, id: JobId, why: Option<Why>) {
        let ok = self.known(id.0).zip(why).is_some_and(|(job, why)| is_ok(why, job));
        let mut jobs = self.planner.state().jobs.values();
        if !ok && jobs.any(|job| job.spec.terms.after.iter().any(|after| after.job == id)) {
            self.input(Input::Failed(id));
        }
    }
}
