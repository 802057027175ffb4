//! Jobs selected by user, name or state, for the commands that change several at a time.

use super::each::each;
use super::options::{Selection, Steer};
use crate::context::Context;
use crate::jobs::connect;
use crate::out::{EXIT_NO_JOB, Failure, say};
use cosched_api::{Client, ClientError, Job, JobState, parse};

/// Which jobs are selected; an empty list is no condition.
#[derive(Clone, Copy, Default)]
pub(super) struct Filter<'a> {
    /// By name or number.
    pub(super) users: &'a [String],
    /// In which `*` matches any text.
    pub(super) names: &'a [String],
    pub(super) states: &'a [JobState],
}

impl Filter<'_> {
    pub(super) fn takes(&self, job: &Job) -> bool {
        let is_of = |user: &String| job.user == *user || user.parse() == Ok(job.uid);
        (self.users.is_empty() || self.users.iter().any(is_of))
            && (self.names.is_empty() || self.names.iter().any(|pattern| parse::matches(pattern, &job.name, None)))
            && (self.states.is_empty() || self.states.contains(&job.state))
    }
}

/// Applies a change to the named jobs, or to the selected ones: of those only jobs in one of the states `fit`, unless states are
/// given. `deed` describes the change, as "send TERM to".
pub(super) fn change(
    context: &Context,
    Steer { selection, jobs: words }: &Steer,
    fit: &[JobState],
    deed: &str,
    request: impl Fn(&mut Client, u64) -> Result<Job, ClientError> + Sync,
) -> Result<u8, Failure> {
    if !selection.is_any() {
        return each(context, words, request);
    }
    let uid = rustix::process::getuid().as_raw();
    let mut client = connect(context)?;
    let jobs: Vec<Job> = client.jobs(false)?.jobs.into_iter().filter(|job| selection.takes(job, uid, fit)).collect();
    let ids: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
    if ids.is_empty() {
        let whose = if selection.user.is_empty() { "none of your jobs" } else { "no job" };
        let why = format!("{whose} is of this user, name and state");
        let hint = "`cosched ps` lists the jobs with their users, names and states";
        return Err(Failure::explained(EXIT_NO_JOB, "nothing is selected", &why, hint));
    }
    let count = if ids.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", ids.len()) };
    let tense = if selection.dry_run { "would " } else { "" };
    let list: Vec<String> = jobs.iter().map(|job| format!("{} {} ({})", job.id, job.name, job.user)).collect();
    say(&format!("{tense}{deed} {count}: {}", list.join(", ")));
    if selection.dry_run {
        return Ok(0);
    }
    each(context, &ids, request)
}

impl Selection {
    fn is_any(&self) -> bool {
        self.all || !self.user.is_empty() || !self.name.is_empty() || !self.state.is_empty()
    }

    fn takes(&self, job: &Job, uid: u32, fit: &[JobState]) -> bool {
        let states = if self.state.is_empty() { fit } else { &self.state };
        // Without --user, only the caller's own jobs: this also holds for an administrator who writes --all.
        let is_whose = !self.user.is_empty() || job.uid == uid;
        is_whose && Filter { users: &self.user, names: &self.name, states }.takes(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;

    #[test]
    fn without_a_user_only_own_jobs_are_taken() {
        let fit = [JobState::Running];
        let all = Selection { all: true, ..Selection::default() };
        assert!(all.takes(&job(1, "a"), 1000, &fit) && !all.takes(&job(1, "a"), 0, &fit));
        let ann = Selection { user: vec!["ann".into()], ..Selection::default() };
        assert!(ann.takes(&job(1, "a"), 0, &fit) && ann.is_any());
        let by_number = Selection { user: vec!["1000".into()], name: vec!["b*".into()], ..Selection::default() };
        assert!(by_number.takes(&job(1, "bc"), 0, &fit) && !by_number.takes(&job(1, "a"), 0, &fit));
        let waiting = Selection { state: vec![JobState::Waiting], ..Selection::default() };
        assert!(!waiting.takes(&job(1, "a"), 1000, &fit));
    }
}
