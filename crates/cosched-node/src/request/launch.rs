//! Launchers: requests that wait for their job to begin; most have a process that is to become its main process.

use super::{Outcome, Pending, Refusal, RequestId, Waits};
use crate::Node;
use crate::types::Action;
use cosched_cluster::wire::Exit;
use cosched_core::cluster::Stage;
use cosched_core::{JobId, Reason, Time};

/// How long a launcher waits for its job's start before it is told that the job waits, in nanoseconds.
const START_NS_MAX: u64 = 2_000_000_000;

#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) request: RequestId,
    owner: u32,
    has_process: bool,
    is_answered: bool,
    since: Time,
}

impl Launcher {
    pub(super) fn due(&self) -> Option<Time> {
        (!self.is_answered).then(|| self.since + START_NS_MAX)
    }
}

impl Node {
    /// The job has its number. It may have begun already, because events arrive in any order.
    pub(super) fn submitted(&mut self, job: JobId, pending: Pending) {
        let Pending { request, since, is_answered, waits } = pending;
        let Waits::Submit { owner, has_process, .. } = waits else { return };
        if has_process && self.has(job) {
            return self.actions.push_back(Action::Enter(job, request));
        }
        if self.requests.launchers.contains_key(&job) {
            // Two launchers of this node have submitted the same job.
            self.actions.push_back(Action::Release(request));
            if !is_answered {
                self.answer(request, Ok(Outcome::Job(job)));
            }
            return;
        }
        self.requests.launchers.insert(job, Launcher { request, owner, has_process, is_answered, since });
        // The plan may have it already.
        self.requests.followed = None;
        if self.has(job) {
            self.answer_launcher(job, Ok(Outcome::Job(job)));
        }
    }

    /// The request of the launcher that waits on this node for a job to begin.
    pub(crate) fn launcher_of(&self, job: JobId) -> Option<RequestId> {
        self.requests.launchers.get(&job).map(|launcher| launcher.request)
    }

    /// Answers the launcher of a job.
    pub(crate) fn answer_launcher(&mut self, job: JobId, answer: Result<Outcome, Refusal>) {
        let Some(launcher) = self.requests.launchers.remove(&job) else { return };
        self.actions.push_back(Action::Release(launcher.request));
        if !launcher.is_answered {
            self.answer(launcher.request, answer);
        }
    }

    /// A launcher's process has ended; its job ends, too.
    pub(crate) fn launcher_gone(&mut self, request: RequestId) {
        let mut launchers = self.requests.launchers.iter();
        if let Some(job) = launchers.find_map(|(job, launcher)| (launcher.request == request).then_some(*job)) {
            self.main_ended(job, Exit::default());
            self.answer_launcher(job, Err(Refusal::LauncherGone(job)));
        }
    }

    /// Answers launchers whose job has waited for a while.
    pub(super) fn look_at_launchers(&mut self) {
        let now = self.now.steady;
        self.tell_launchers(|_, launcher| launcher.due().is_some_and(|due| due <= now));
    }

    /// Answers launchers whose job waits for a time or for other jobs: none of those is about to begin.
    pub(super) fn answer_launchers_ahead_of_time(&mut self) {
        let planned = self.member.state().map(|state| &state.jobs);
        let stage = |job| planned.and_then(|jobs| jobs.get(&job)).map(|job| job.stage);
        let waits = |job| matches!(stage(job), Some(Stage::Waiting(Reason::WaitsForTime | Reason::WaitsForJob)));
        let waiting: Vec<JobId> = self.requests.launchers.keys().copied().filter(|job| waits(*job)).collect();
        self.tell_launchers(|job, _| waiting.contains(&job));
    }

    fn tell_launchers(&mut self, is_told: impl Fn(JobId, &Launcher) -> bool) {
        for (job, launcher) in &mut self.requests.launchers {
            if !launcher.is_answered && is_told(*job, launcher) {
                launcher.is_answered = true;
                self.actions.push_back(Action::Answer(launcher.request, Ok(Outcome::Job(*job))));
            }
        }
    }

    /// Answers launchers whose job has ended or has its place on other nodes alone, because no event on this node would do so.
    pub(super) fn answer_remote_launchers(&mut self) {
        let is_remote = |job: &JobId| {
            let planned = self.member.state().and_then(|state| state.jobs.get(job));
            let parts = planned.and_then(|job| job.place.as_ref()).map_or(&[][..], |place| &place.parts);
            !parts.is_empty() && !parts.iter().any(|part| Some(part.node) == self.member.id())
        };
        let has_ended = |job: &JobId| self.member.job(*job).is_some_and(|job| job.end.is_some());
        let jobs = self.requests.launchers.keys().copied();
        let jobs: Vec<JobId> = jobs.filter(|job| is_remote(job) || has_ended(job)).collect();
        jobs.into_iter().for_each(|job| self.answer_launcher(job, Ok(Outcome::Job(job))));
    }

    /// The declared memory in bytes of each job that a user has submitted and that has no number yet.
    pub fn asked_by(&self, uid: u32) -> Vec<u64> {
        let submit = |pending: &Pending| match pending.waits {
            Waits::Submit { owner, memory_bytes, .. } if owner == uid => Some(memory_bytes),
            _ => None,
        };
        self.requests.pending.values().filter_map(submit).collect()
    }

    /// The number of a user's jobs without a process that have no place here, or not yet.
    pub fn empty_jobs_of(&self, uid: u32) -> usize {
        let launchers = self.requests.launchers.values().map(|launcher| (launcher.owner, launcher.has_process));
        let submits = self.requests.pending.values().filter_map(|pending| match pending.waits {
            Waits::Submit { owner, has_process, .. } => Some((owner, has_process)),
            _ => None,
        });
        launchers.chain(submits).filter(|(owner, has_process)| *owner == uid && !has_process).count()
    }
}
