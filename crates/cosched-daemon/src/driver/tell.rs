//! Changes for readers of `GET /v1/events`: jobs, the plan, problems.
//!
//! The present state is compared with the last published one. So a change is published whatever caused it: a request, a plan of the cluster, the end
//! of a process. The comparison is made at the earliest 100 ms after the one before, and takes at most a fiftieth of the driver's time, however many
//! jobs change; two changes in between become one event.

use super::{Driver, finish::describe, view};
use crate::events::EventLog;
use crate::users::user_name;
use crate::words;
use cosched_api::{Class, ExitStatus, JobEvent, JobState, Matrix, PlanEvent, Policy};
use std::collections::BTreeMap;
use std::mem::take;
use std::time::Duration;
use tokio::time::Instant;

/// Changes at shorter intervals are published together.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The inverse of the part of the driver's time that comparing may use.
const COST_SHARE_MAX: u32 = 50;
/// The limit on the events of jobs that are made at a time.
const EVENTS_AT_A_TIME: usize = 256;
/// Problems arise in many places, and not all of them mark a change.
const PROBLEMS_PERIOD: Duration = Duration::from_secs(5);

/// The state of a job of which changes are published.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Brief {
    pub(super) state: JobState,
    pub(super) waits_for: Option<String>,
    pub(super) class: Class,
    pub(super) own_policy: Option<Policy>,
    pub(super) share_permille: Option<u32>,
    pub(super) cpus: u32,
}

/// A job with the fields that do not change, or change with its end.
pub(super) struct Known<'a> {
    pub(super) uid: u32,
    pub(super) name: &'a str,
    pub(super) brief: Brief,
    pub(super) exit: Option<ExitStatus>,
    pub(super) ended_why: Option<String>,
}

/// The published state, and when it is compared again.
pub(super) struct Teller {
    log: EventLog,
    jobs: BTreeMap<u64, Brief>,
    plan: Option<PlanEvent>,
    /// The generation that was compared, and whether there were slots by the clock.
    plan_seen: Option<(u64, bool)>,
    problems: Vec<String>,
    problems_at: Instant,
    changed: bool,
    /// The earliest time of the next comparison.
    free: Instant,
    /// False before the first comparison, whose jobs are not new.
    began: bool,
}

impl Teller {
    pub(super) fn new(log: EventLog) -> Teller {
        let now = Instant::now();
        let (jobs, problems) = (BTreeMap::new(), Vec::new());
        Teller {
            log,
            jobs,
            plan: None,
            plan_seen: None,
            problems,
            problems_at: now,
            changed: true,
            free: now,
            began: false,
        }
    }

    /// Marks that something published may have changed.
    pub(super) fn touch(&mut self) {
        self.changed = true;
    }

    /// When the next comparison is due.
    pub(super) fn due(&self) -> Instant {
        if self.changed { self.free.min(self.problems_at) } else { self.problems_at }
    }
}

impl Driver {
    /// Publishes changes, if a comparison is due.
    pub(super) fn tell_changes(&mut self) {
        let started = Instant::now();
        if self.teller.changed && self.teller.free <= started {
            self.teller.changed = false;
            self.tell_plan();
            self.tell_jobs();
            self.teller.free = started + PAUSE_MIN.max(started.elapsed() * COST_SHARE_MAX);
        }
        if self.teller.problems_at <= started {
            self.teller.problems_at = started + PROBLEMS_PERIOD;
            self.tell_problems();
        }
    }

    fn tell_plan(&mut self) {
        let seen = Some((self.plan.generation, self.clock.holds().is_none()));
        if self.teller.plan_seen == seen {
            return;
        }
        self.teller.plan_seen = seen;
        let mut matrix = view::matrix(&self.plan, &self.identity.cpus, self.clock.holds().is_none());
        // The rows contain the same.
        matrix.text.clear();
        let plan = PlanEvent {
            generation: self.plan.generation,
            epoch_unix_ns: self.plan.epoch.0,
            from_slot: self.plan.from_slot,
            slot_length_ns: self.plan.slot_length_ns,
            policy: words::wire_policy(self.plan.policy),
            sharing: words::wire_sharing(self.plan.sharing),
            matrix,
            cut: false,
        };
        // A new plan may differ only in what is not published.
        let content = PlanEvent { generation: 0, from_slot: 0, matrix: at_no_time(&plan.matrix), ..plan.clone() };
        if self.teller.plan.as_ref() != Some(&content) {
            self.teller.plan = Some(content);
            self.teller.log.plan(plan);
        }
    }

    fn tell_problems(&mut self) {
        let now = self.warnings(&self.machinery.slots.stats());
        // The reasons contain numbers that rise, so only the texts are compared.
        let what: Vec<String> = now.iter().map(|warning| warning.what.clone()).collect();
        if self.teller.problems != what {
            self.teller.problems = what;
            self.teller.log.problems(now);
        }
    }

    fn tell_jobs(&mut self) {
        let told = take(&mut self.teller.jobs);
        let mut events = Vec::new();
        let mut now = BTreeMap::new();
        let began = self.teller.began;
        let is_over = |id: u64| told.get(&id).is_some_and(|brief: &Brief| brief.state.has_ended());
        self.for_each_job(is_over, |id, job| {
            let before = told.get(&id);
            let Some(job) = job else {
                now.extend(before.map(|brief| (id, brief.clone())));
                return;
            };
            let full = events.len() >= EVENTS_AT_A_TIME;
            if began && !full && before != Some(&job.brief) {
                let words = words_of(before, &job);
                events.extend(words.into_iter().map(|(what, detail)| event(id, &job, what, detail)));
            }
            // Changes that were not published are found again the next time.
            if let Some(brief) = if full { before.cloned() } else { Some(job.brief) } {
                now.insert(id, brief);
            }
        });
        self.teller.jobs = now;
        self.teller.began = true;
        self.teller.changed |= events.len() >= EVENTS_AT_A_TIME;
        let mut names = BTreeMap::new();
        for mut event in events {
            event.user = names.entry(event.uid).or_insert_with(|| user_name(event.uid)).clone();
            self.teller.log.job(event);
        }
    }
}

/// A matrix without its position in time.
fn at_no_time(matrix: &Matrix) -> Matrix {
    Matrix { slot: 0, current_row: None, current: Vec::new(), ..matrix.clone() }
}

/// The events of a job, in words.
fn words_of(before: Option<&Brief>, job: &Known<'_>) -> Vec<(&'static str, String)> {
    let now = &job.brief;
    let mut words = Vec::new();
    if before.is_none() {
        words.push(("registered", format!("class {}, {} CPUs", now.class.name(), now.cpus)));
    }
    let state = before.map(|before| before.state);
    if state != Some(now.state) || before.is_some_and(|before| before.waits_for != now.waits_for) {
        words.extend(state_word(state, job));
    }
    let Some(before) = before else { return words };
    if before.class != now.class {
        words.push(("class", now.class.name().to_owned()));
    }
    if before.own_policy != now.own_policy {
        words.push(("policy", now.own_policy.map_or("default", Policy::name).to_owned()));
    }
    if before.share_permille != now.share_permille {
        let share = now.share_permille.map_or("no limit".to_owned(), |of| format!("{} %", f64::from(of) / 10.0));
        words.push(("share", share));
    }
    if before.cpus != now.cpus {
        words.push(("resources", format!("{} CPUs", now.cpus)));
    }
    words
}

fn state_word(before: Option<JobState>, job: &Known<'_>) -> Option<(&'static str, String)> {
    let ended = || {
        let exit = job.exit.map(describe);
        exit.into_iter().chain(job.ended_why.clone()).collect::<Vec<_>>().join("; ")
    };
    Some(match job.brief.state {
        JobState::Waiting => ("waits", job.brief.waits_for.clone().unwrap_or_default()),
        JobState::Running => match before {
            None | Some(JobState::Waiting) => ("began", String::new()),
            Some(JobState::Suspended) => ("resumed", String::new()),
            Some(JobState::Asleep | JobState::Dropped) => ("awake", String::new()),
            _ => return None,
        },
        JobState::Asleep => ("asleep", "it used no CPU".to_owned()),
        JobState::Dropped => {
            ("dropped", "it used no CPU for a long time: it has no slots until it is resumed".to_owned())
        }
        JobState::Suspended => ("suspended", String::new()),
        JobState::Unknown => ("unknown", "the state of the cluster cannot be read".to_owned()),
        JobState::Ended => ("ended", ended()),
        JobState::Lost => ("lost", ended()),
    })
}

fn event(id: u64, job: &Known<'_>, what: &str, detail: String) -> JobEvent {
    JobEvent {
        what: what.to_owned(),
        detail,
        id,
        name: job.name.to_owned(),
        uid: job.uid,
        user: String::new(),
        class: job.brief.class,
        own_policy: job.brief.own_policy,
        share_max: job.brief.share_permille.map(words::api_share),
        cpus: job.brief.cpus,
        state: job.brief.state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(brief: Brief) -> Known<'static> {
        Known { uid: 1, name: "a", brief, exit: None, ended_why: None }
    }

    fn brief(state: JobState) -> Brief {
        Brief { state, waits_for: None, class: Class::Batch, own_policy: None, share_permille: None, cpus: 2 }
    }

    fn told(before: Option<&Brief>, now: Brief) -> Vec<&'static str> {
        words_of(before, &known(now)).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn every_change_has_its_word() {
        use JobState::{Asleep, Ended, Running, Suspended, Waiting};
        let running = brief(Running);
        assert_eq!(told(None, brief(Waiting)), ["registered", "waits"]);
        assert_eq!(told(None, brief(Ended)), ["registered", "ended"], "it was short");
        assert_eq!(told(Some(&brief(Waiting)), running.clone()), ["began"]);
        assert_eq!(told(Some(&running), brief(Suspended)), ["suspended"]);
        assert_eq!(told(Some(&brief(Suspended)), running.clone()), ["resumed"]);
        assert_eq!(told(Some(&brief(Asleep)), running.clone()), ["awake"]);
        let other = Brief { class: Class::Standby, share_permille: Some(500), cpus: 1, ..running.clone() };
        assert_eq!(told(Some(&running), other), ["class", "share", "resources"]);
        let ended = Known {
            exit: Some(ExitStatus { code: Some(3), signal: None }),
            ended_why: Some("killed by ann".into()),
            ..known(brief(Ended))
        };
        assert_eq!(words_of(Some(&running), &ended), [("ended", "exit code 3; killed by ann".to_owned())]);
    }
}
