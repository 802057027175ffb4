//! The machine: what happens at each instant, and what decisions do.

use super::answer::{self, Answer, Decision, TIME_US_MAX, seconds};
use super::hosts::{self, Hosts};
use super::job::{DecidedJob, JobEnd};
use super::told::Told;
use crate::batch::intervals::Places;
use crate::workload::batsim::{DescribedJob, DescribedWorkload};
use crate::workload::excerpt;
use serde_json::{Map, json};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The most messages in a row after which no job has been submitted, started or ended: a scheduler that only has itself called.
const IDLE_MESSAGES_MAX: u32 = 1_000_000;
/// The most calls that a scheduler may wait for.
const CALLS_MAX: usize = 1_000_000;

#[derive(Debug)]
pub(super) enum State {
    ToCome,
    Waiting,
    Running { start_us: u64, places: Places },
    Ended(DecidedJob),
}

pub(super) struct Machine<'a> {
    jobs: &'a [DescribedJob],
    numbers: HashMap<&'a str, u32>,
    pub(super) states: Vec<State>,
    /// Jobs that have not ended.
    pub(super) left: usize,
    /// The next one to be submitted.
    next: usize,
    pub(super) now: u64,
    hosts: Hosts,
    /// The ends of running jobs.
    ends: BTreeSet<(u64, u32)>,
    calls: BTreeSet<u64>,
    /// Decisions whose time has not come.
    due: VecDeque<(u64, Decision)>,
    /// The scheduler is thinking until then.
    pub(super) ready_us: u64,
    pub(super) told: Told,
    pub(super) messages: u64,
    idle_messages: u32,
    pub(super) idle_messages_max: u32,
}

impl<'a> Machine<'a> {
    pub(super) fn new(workload: &'a DescribedWorkload, hosts: u32) -> Machine<'a> {
        let jobs = &workload.jobs;
        Machine {
            jobs,
            numbers: (0..).zip(jobs).map(|(number, job)| (job.id.as_str(), number)).collect(),
            states: jobs.iter().map(|_| State::ToCome).collect(),
            left: jobs.len(),
            next: 0,
            now: 0,
            hosts: Hosts::new(hosts),
            ends: BTreeSet::new(),
            calls: BTreeSet::new(),
            due: VecDeque::new(),
            ready_us: 0,
            told: Told::default(),
            messages: 0,
            idle_messages: 0,
            idle_messages_max: IDLE_MESSAGES_MAX,
        }
    }

    pub(super) fn at(&self, what: &str) -> String {
        format!("at {} s, {what}", seconds(self.now))
    }

    pub(super) fn stuck(&self) -> String {
        self.at(&format!("{} jobs wait, none runs or is to come, and the scheduler awaits no call", self.left))
    }

    pub(super) fn message(&mut self) -> Result<String, String> {
        self.messages += 1;
        self.idle_messages += 1;
        let most = self.idle_messages_max;
        if self.idle_messages > most {
            return Err(self.at(&format!("the scheduler was called {most} times in a row and did nothing")));
        }
        Ok(self.told.message(self.now))
    }

    pub(super) fn take(&mut self, answer: &[u8]) -> Result<(), String> {
        let Answer { ready_us, decisions } = answer::read(answer, self.now)?;
        self.ready_us = ready_us;
        self.due.extend(decisions);
        Ok(())
    }

    pub(super) fn next_time(&self) -> Option<u64> {
        let end = self.ends.first().map(|(time, _)| *time);
        let submit = self.jobs.get(self.next).map(|job| job.submit_us);
        let ready = (!self.told.is_empty()).then_some(self.ready_us);
        let due = self.due.front().map(|(time, _)| *time);
        let all = [end, submit, self.calls.first().copied(), ready, due];
        all.into_iter().flatten().min()
    }

    pub(super) fn advance(&mut self, time_us: u64) -> Result<(), String> {
        self.now = time_us;
        while let Some((_, number)) = self.ends.first().copied().filter(|(end, _)| *end <= time_us) {
            let by_walltime = self.jobs[number as usize].duration_us().1;
            self.end(number, if by_walltime { JobEnd::WalltimeReached } else { JobEnd::Successful });
        }
        while let Some(job) = self.jobs.get(self.next).filter(|job| job.submit_us <= time_us) {
            self.idle_messages = 0;
            self.states[self.next] = State::Waiting;
            self.told.submitted(time_us, job);
            self.next += 1;
            if self.next == self.jobs.len() {
                self.told.no_more_jobs(time_us);
            }
        }
        while self.calls.first().is_some_and(|call| *call <= time_us) {
            self.calls.pop_first();
            self.told.called(time_us);
        }
        while self.due.front().is_some_and(|(due, _)| *due <= time_us) {
            self.due.pop_front().map_or(Ok(()), |(_, decision)| self.apply(&decision))?;
        }
        Ok(())
    }

    fn apply(&mut self, decision: &Decision) -> Result<(), String> {
        match decision {
            Decision::Execute { job, places } => {
                self.execute(job, places).map_err(|what| format!("EXECUTE_JOB of `{}`: {what}", excerpt(job)))
            }
            Decision::Reject { job } => {
                self.reject(job).map_err(|what| format!("REJECT_JOB of `{}`: {what}", excerpt(job)))
            }
            Decision::Kill { jobs } => self.kill(jobs),
            Decision::CallAt { time_us } if *time_us <= self.now => {
                Err(format!("CALL_ME_LATER: {} s is not later", seconds(*time_us)))
            }
            Decision::CallAt { .. } if self.calls.len() >= CALLS_MAX => {
                Err(format!("CALL_ME_LATER: the scheduler awaits {CALLS_MAX} calls already"))
            }
            Decision::CallAt { time_us } => {
                self.calls.insert(*time_us);
                Ok(())
            }
        }
    }

    /// The number of a job that waits.
    fn waiting(&self, id: &str) -> Result<u32, String> {
        let number = *self.numbers.get(id).ok_or("there is no such job")?;
        match self.states[number as usize] {
            State::Waiting => Ok(number),
            State::ToCome => Err("it has not been submitted".into()),
            State::Running { .. } => Err("it runs already".into()),
            State::Ended(_) => Err("it has ended".into()),
        }
    }

    fn execute(&mut self, id: &str, places: &Places) -> Result<(), String> {
        let number = self.waiting(id)?;
        let job = &self.jobs[number as usize];
        let count = hosts::count(places);
        if count != u64::from(job.size) {
            return Err(format!("it gets {count} hosts, and has requested {}", job.size));
        }
        self.hosts.take(places, number).map_err(|(host, by)| match by {
            Some(other) => format!("host {host} is used by `{}`", excerpt(&self.jobs[other as usize].id)),
            None => format!("there is no host {host}"),
        })?;
        let end_us = self.now + job.duration_us().0;
        if end_us >= TIME_US_MAX {
            return Err("it would end after more than 71 years, the end of the clock".into());
        }
        self.idle_messages = 0;
        self.ends.insert((end_us, number));
        self.states[number as usize] = State::Running { start_us: self.now, places: places.clone() };
        Ok(())
    }

    fn reject(&mut self, id: &str) -> Result<(), String> {
        let number = self.waiting(id)?;
        self.idle_messages = 0;
        self.left -= 1;
        let (start_us, end_us) = (self.now, self.now);
        let job = DecidedJob { start_us, end_us, end: JobEnd::Rejected, places: Places::new() };
        self.states[number as usize] = State::Ended(job);
        Ok(())
    }

    fn kill(&mut self, ids: &[String]) -> Result<(), String> {
        let mut progress = Map::new();
        for id in ids {
            let wrong = |what: &str| Err(format!("KILL_JOB of `{}`: {what}", excerpt(id)));
            let Some(number) = self.numbers.get(id.as_str()).copied() else { return wrong("there is no such job") };
            let job = &self.jobs[number as usize];
            match &self.states[number as usize] {
                State::Running { start_us, .. } => {
                    let part = (self.now - start_us) as f64 / job.run_us as f64;
                    progress.insert(id.clone(), json!({ "profile": job.profile, "progress": part }));
                    self.ends.remove(&(start_us + job.duration_us().0, number));
                    self.end(number, JobEnd::Killed);
                }
                // It was faster than the order.
                State::Ended(_) => (),
                State::ToCome | State::Waiting => return wrong("it does not run"),
            }
        }
        self.told.killed(self.now, ids, progress);
        Ok(())
    }

    fn end(&mut self, number: u32, end: JobEnd) {
        self.ends.remove(&(self.now, number));
        let state = &mut self.states[number as usize];
        let State::Running { start_us, places } = std::mem::replace(state, State::ToCome) else { return };
        self.told.completed(self.now, &self.jobs[number as usize], end, &places);
        self.hosts.free(&places);
        self.states[number as usize] = State::Ended(DecidedJob { start_us, end_us: self.now, end, places });
        self.idle_messages = 0;
        self.left -= 1;
    }
}
