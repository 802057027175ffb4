//! When a job may start, and how long it may run.
//!
//! Rule. A job that is to begin at a time, or after other jobs, waits without a reservation: it blocks no other job, and others use
//! what is free meanwhile. When a job whose success it is to follow fails, it never starts: it is ended, with that as the reason.
//! It can only follow jobs that existed before it, so no job waits for itself.
//! A job runs at most for the time that it requested, not counting the time for which users suspend it, and at most for the time limit of
//! its queue, counting everything: the operator promises that to jobs that wait for its memory. Both limits also apply to a job that a user
//! has told to end: it runs, suspended or not, until it does so.
//! Units: nanoseconds of the wall clock.

use super::input::Refusal;
use super::planner::Planner;
use super::state::{JobRecord, JobSpec, Stage};
use crate::id::JobId;
use crate::plan::Standing;
use crate::reason::Reason;
use crate::time::Time;
use alloc::vec::Vec;

/// A job that another one follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The job to be followed.
    pub job: JobId,
    /// Only if its exit code is 0.
    pub ok: bool,
}

/// A job's requested start and run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The maximum run time, in nanoseconds.
    pub time_ns_max: Option<u64>,
    /// The earliest start.
    pub begin: Option<Time>,
    /// It starts when all of these have ended. Ended jobs are removed from the list.
    pub after: Vec<After>,
}

/// For how long a job has been suspended since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspended {
    /// Since when it is suspended now, if it is.
    pub since: Option<Time>,
    /// The sum of earlier suspensions, in nanoseconds.
    pub ns: u64,
}

impl Suspended {
    /// Its length until now, in nanoseconds. The time before the job's start does not count, because it does not run then either.
    pub fn ns_until(&self, now: Time, ready_since: Time) -> u64 {
        self.ns.saturating_add(self.since.map_or(0, |from| now - from.max(ready_since)))
    }
}

impl Terms {
    /// What a job waits for, if it may not start yet.
    fn waits_for(&self, now: Time) -> Option<Reason> {
        if !self.after.is_empty() {
            return Some(Reason::WaitsForJob);
        }
        self.begin.filter(|begin| *begin > now).map(|_| Reason::WaitsForTime)
    }
}

impl Planner {
    /// Whether a job may have these terms.
    pub(super) fn check_terms(&self, spec: &JobSpec) -> Result<(), Refusal> {
        let of_queue = self.state.config.queues.get(spec.queue as usize).and_then(|queue| queue.time_ns_max);
        if let Some((wanted, most)) = spec.terms.time_ns_max.zip(of_queue).filter(|(wanted, most)| wanted > most) {
            return Err(Refusal::RunTime { wanted, most });
        }
        match spec.terms.after.iter().find(|after| !self.state.jobs.contains_key(&after.job)) {
            Some(after) => Err(Refusal::UnknownJob(after.job)),
            None => Ok(()),
        }
    }

    /// What a job that has not started waits for before anything else.
    pub(super) fn not_yet(&self, id: JobId, now: Time) -> Option<Reason> {
        let job = &self.state.jobs[&id];
        if job.place.is_some() { None } else { job.spec.terms.waits_for(now) }
    }

    /// The maximum run time of a job, from its start.
    pub(super) fn time_ns_max(&self, spec: &JobSpec) -> Option<u64> {
        let queue = self.state.config.queues[spec.queue as usize].time_ns_max;
        spec.terms.time_ns_max.into_iter().chain(queue).min()
    }

    /// When a job exceeds its time limit, and which one. A job that is being ended by force, or because of its time limit, has none.
    pub(super) fn limit(&self, job: &JobRecord) -> Option<(Time, Reason)> {
        let runs_on = matches!(job.stage, Stage::Ready | Stage::Waiting(_) | Stage::Ending(Reason::UserRequest));
        if !runs_on || job.place.is_none() {
            return None;
        }
        let of_queue = self.state.config.queues[job.spec.queue as usize].time_ns_max;
        let runs = job.suspended.since.is_none();
        let own = job.spec.terms.time_ns_max.filter(|_| runs).map(|most| most.saturating_add(job.suspended.ns));
        let at = |ns: u64, reason| (job.ready_since + ns, reason);
        let limits =
            own.map(|ns| at(ns, Reason::RunTime)).into_iter().chain(of_queue.map(|ns| at(ns, Reason::TimeLimit)));
        limits.min()
    }

    /// When a job that waits for nothing else begins.
    pub(super) fn begins_at(&self, job: &JobRecord) -> Option<Time> {
        job.spec.terms.begin.filter(|_| job.stage == Stage::Waiting(Reason::WaitsForTime))
    }

    /// A user suspends or resumes a job.
    pub(super) fn note_standing(job: &mut JobRecord, now: Time, standing: Standing) {
        job.standing = standing;
        Planner::note_suspended(job, now);
    }

    /// Updates how long a job has been suspended; a job that is to end runs.
    pub(super) fn note_suspended(job: &mut JobRecord, now: Time) {
        let stands = job.standing == Standing::Suspended && !matches!(job.stage, Stage::Ending(_));
        match (stands, job.suspended.since) {
            (true, None) => job.suspended.since = Some(now),
            (false, Some(_)) => {
                let ns = job.suspended.ns_until(now, job.ready_since);
                job.suspended = Suspended { since: None, ns };
            }
            (true, Some(_)) | (false, None) => (),
        }
    }

    /// A job has failed (its exit code is not 0): jobs that were to follow its success never start.
    pub(super) fn failed(&mut self, id: JobId) {
        let waits = |job: &JobRecord| job.spec.terms.after.contains(&After { job: id, ok: true });
        let never: Vec<JobId> = self.state.jobs.iter().filter(|(_, job)| waits(job)).map(|(id, _)| *id).collect();
        for id in never {
            if !matches!(self.state.jobs[&id].stage, Stage::Ending(_)) {
                self.end(id, Reason::JobFailed);
            }
        }
    }

    /// A job has ended, in whatever way: no job waits for it any longer.
    pub(super) fn is_over(&mut self, id: JobId) {
        for job in self.state.jobs.values_mut() {
            job.spec.terms.after.retain(|after| after.job != id);
        }
    }
}
