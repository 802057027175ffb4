//! The terms of a job, that is, when it may start and its limits: in users' requests and in answers to them.

use super::super::Driver;
use crate::clock::unix_ms;
use crate::refuse::{Answer, invalid, unsupported};
use crate::words;
use cosched_api::JobRequest;
use cosched_cluster::wire::{AfterAsk, Job, TermsAsk, Why};
use cosched_core::Reason;
use cosched_core::cluster::{JobRecord, Stage, Terms};
use cosched_linux::process::Held;

/// The longest grace time.
const GRACE_MS_MAX: u64 = 3_600_000;

/// How far ahead the begin of a job may be: ten years.
const BEGIN_AHEAD_MS_MAX: u64 = 10 * 365 * 24 * 3_600_000;

/// The limit on the jobs after which a job is to start.
const AFTER_MAX: usize = 32;

/// The least memory limit: no process can run with less.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

impl Driver {
    /// The terms of a request, if they are possible.
    pub(super) fn terms(&self, request: &JobRequest, held: Option<&Held>) -> Answer<TermsAsk> {
        let refused = |why: &str, hint: &str| Err(invalid("the job is refused", why, hint));
        if request.time_ms_max == Some(0) {
            return refused("the time limit is 0", "Give for example 2h, or no limit.");
        }
        if request.grace_ms.is_some_and(|ms| ms > GRACE_MS_MAX) {
            return refused("a grace time is an hour at most", "Give for example 30s.");
        }
        if request.begin_unix_ms.is_some_and(|at| at > unix_ms() + BEGIN_AHEAD_MS_MAX) {
            return refused("it is to start in more than ten years", "Give an earlier time.");
        }
        if request.after.len() > AFTER_MAX {
            return refused("it waits for more than 32 jobs", "Name the last ones; those before them have ended then.");
        }
        if request.mem_bytes_max.is_some_and(|bytes| bytes < MEMORY_BYTES_MIN) {
            return refused("a memory limit below 1 MiB leaves no room for any process", "Give for example 512M.");
        }
        if let Some(why) =
            request.mem_bytes_max.and_then(|_| self.machinery.tree.memory_limit_obstacle(held.map(Held::pid)))
        {
            let hint =
                "Leave out the memory limit, or run it where the daemon has the memory controller: `coschedd --check`.";
            return Err(unsupported("the job's memory cannot be limited here", why, hint));
        }
        if request.exclusive_cores && request.policy.is_some_and(|policy| words::core_policy(policy).is_local()) {
            return refused(
                "only a gang has cores to itself, and its own policy is another one",
                "Leave out the policy, or the exclusive cores.",
            );
        }
        Ok(TermsAsk {
            time_ms_max: request.time_ms_max,
            grace_ms: request.grace_ms,
            begin_ms: request.begin_unix_ms,
            after: request.after.iter().map(|after| AfterAsk { job: after.job, ok: after.ok }).collect(),
            memory_bytes_max: request.mem_bytes_max,
            exclusive_cores: request.exclusive_cores,
        })
    }
}

/// The reason for which a job waits.
pub(super) fn waits_for(reason: Reason, planned: &JobRecord) -> String {
    let Terms { begin, after, .. } = &planned.spec.terms;
    match (reason, begin, &after[..]) {
        (Reason::WaitsForTime, Some(begin), _) => format!("it starts at {}", local_time(begin.0 / 1_000_000)),
        (Reason::WaitsForJob, _, [first, rest @ ..]) => {
            let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let how = if first.ok { "to end with exit code 0" } else { "to end" };
            format!("for job {}{others} {how}", first.job)
        }
        _ => reason.to_string(),
    }
}

/// A time of today as hour and minute, any other one with its date.
fn local_time(unix_ms: u64) -> String {
    let at = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let Some(at) = at.map(|at| at.to_zoned(jiff::tz::TimeZone::system())) else {
        return "a time far in the future".to_owned();
    };
    let format = if at.date() == jiff::Zoned::now().date() { "%H:%M:%S" } else { "%F %H:%M:%S" };
    at.strftime(format).to_string()
}

/// Why a job ends or has ended, if not by itself.
pub(super) fn ended_why(planned: Option<&JobRecord>, job: &Job) -> Option<String> {
    let why = match (job.end, planned.map(|planned| planned.stage)) {
        (Some(end), _) => end.why,
        (None, Some(Stage::Ending(Reason::TimeLimit))) => Why::TimeLimit,
        (None, Some(Stage::Ending(Reason::RunTime))) => Why::RunTime,
        (None, Some(Stage::Ending(Reason::JobFailed))) => Why::JobFailed,
        (None, Some(Stage::Ending(Reason::NodeLost))) => Why::NodeLost,
        (None, Some(Stage::Ending(_))) => Why::Killed { uid: job.killed_by? },
        _ => return None,
    };
    match why {
        Why::Finished => None,
        Why::Killed { uid } => Some(format!("killed by {}", crate::users::user_name(uid))),
        Why::TimeLimit => Some("time limit of its queue".to_owned()),
        Why::RunTime => Some("time limit".to_owned()),
        Why::JobFailed => {
            let of = job.ask.terms.after.iter().filter(|after| after.ok).map(|after| after.job.to_string());
            let of: Vec<String> = of.collect();
            Some(format!("it was to follow the success of job {}, which did not end with exit code 0", of.join(" or ")))
        }
        Why::NodeLost => Some("one of its nodes was lost".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let now = unix_ms();
        assert_eq!(local_time(now + 400 * 24 * 3_600_000).len(), "2026-01-02 03:04:05".len());
        assert!(local_time(u64::MAX).contains("far"));
    }
}
