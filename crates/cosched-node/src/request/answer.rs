//! The results of requests.

use super::{ANSWER_NS_MAX, Outcome, Refusal, RequestId, Waits};
use crate::Node;
use crate::types::Action;
use cosched_cluster::store::{OpDone, StoreError};
use cosched_cluster::wire::{Ack, Answer, Attempt, Job, PartEnd};
use cosched_cluster::{AskId, Moment, OpId};
use cosched_core::{JobId, Time};
use std::collections::BTreeMap;

impl Node {
    /// The result of a store operation.
    pub fn done(&mut self, now: Moment, op: OpId, done: Result<OpDone, StoreError>) {
        self.now = now;
        if let Err(StoreError::Unavailable(why)) = &done
            && self.machine.is_single
        {
            self.refuse_unwritten(why);
        }
        self.tell(now, |member, now| member.handle_done(now, op, done));
    }

    /// The answer of the member that plans.
    pub(crate) fn replied(&mut self, ask: AskId, told: Answer) {
        let Some(pending) = self.requests.pending.remove(&ask) else {
            return self.actions.push_back(Action::Reply(ask, told));
        };
        let (request, is_answered) = (pending.request, pending.is_answered);
        match (&pending.waits, told) {
            (Waits::Submit { .. }, Answer::Submitted { job }) => self.submitted(JobId(job), pending),
            (Waits::Submit { .. }, _) if is_answered => self.actions.push_back(Action::Release(request)),
            _ if is_answered => (),
            (Waits::Job(job) | Waits::End(job, ..), Answer::Done) => self.answer_late(request, Outcome::Job(*job)),
            (Waits::Change { is_last: false }, Answer::Done) => (),
            (Waits::Change { is_last: true }, Answer::Done) => self.answer_late(request, Outcome::Status),
            (_, told) => {
                self.give_up_waiting(request);
                self.refuse(request, refusal(told));
            }
        }
    }

    pub(super) fn refuse(&mut self, request: RequestId, why: Refusal) {
        self.actions.push_back(Action::Release(request));
        self.answer(request, Err(why));
    }

    /// The result of what a request still waits for is not reported to its user.
    pub(super) fn give_up_waiting(&mut self, request: RequestId) {
        let pending = self.requests.pending.values_mut().filter(|pending| pending.request == request);
        pending.for_each(|pending| pending.is_answered = true);
    }

    pub(crate) fn loads_read(&mut self, op: OpId, acks: BTreeMap<String, Ack>) {
        if let Some((id, node, _)) = self.requests.loads.remove(&op) {
            self.answer(id, Ok(Outcome::Loads(node, acks)));
        }
    }

    /// A full or broken disk is not waited for like a store that others maintain: requests that cannot be written are refused and dropped. Jobs
    /// can still be killed; that is written when it is possible.
    fn refuse_unwritten(&mut self, why: &str) {
        let waits = self.requests.pending.iter().filter(|(_, pending)| !pending.is_answered);
        let waits: Vec<_> = waits.map(|(ask, pending)| (*ask, pending.request, pending.waits.clone())).collect();
        for (ask, request, waits) in waits {
            if let Waits::End(job, by, how) = waits {
                self.give_up_waiting(request);
                let killed = if self.has(job) { self.kill_part(by, request, job, how) } else { Ok(()) };
                match killed {
                    Ok(()) => self.answer_late(request, Outcome::Job(job)),
                    Err(why) => self.answer(request, Err(why)),
                }
                continue;
            }
            // Another write may have succeeded just before, by which it was carried out: only the store tells.
            self.actions.push_back(Action::Withdraw { ask, keys: self.member.keys_of(ask), why: why.to_owned() });
        }
    }

    pub(crate) fn withdrawn(&mut self, ask: AskId, why: String) {
        self.member.withdrawn(ask);
        let Some(pending) = self.requests.pending.remove(&ask).filter(|pending| !pending.is_answered) else { return };
        // Of several changes of one request, only the last one is answered.
        if !matches!(pending.waits, Waits::Change { is_last: false }) {
            self.refuse(pending.request, Refusal::Unwritten(why));
        }
    }

    /// Answers requests that have waited too long for the store. A job whose process gives up now may still get its number later; then it ends.
    pub(crate) fn look_at_requests(&mut self) {
        self.look_at_launchers();
        let now = self.now.steady;
        let is_late = |since: Time| since + ANSWER_NS_MAX <= now;
        let pending =
            self.requests.pending.iter().filter(|(_, pending)| !pending.is_answered && is_late(pending.since));
        let late: Vec<(AskId, RequestId, bool)> =
            pending.map(|(ask, pending)| (*ask, pending.request, pending.waits.has_process())).collect();
        for (ask, request, has_process) in late {
            let is_told = self.requests.pending.get(&ask).is_none_or(|pending| pending.is_answered);
            self.give_up_waiting(request);
            if !has_process {
                self.requests.pending.remove(&ask);
            }
            if !is_told {
                self.answer(request, Err(Refusal::Slow { has_process }));
            }
        }
        let loads = self.requests.loads.iter().filter(|(_, (_, _, since))| is_late(*since));
        let late: Vec<(OpId, RequestId)> = loads.map(|(op, (id, ..))| (*op, *id)).collect();
        for (op, id) in late {
            self.requests.loads.remove(&op);
            self.answer(id, Err(Refusal::Unread));
        }
    }

    /// When the next request has waited for too long.
    pub(crate) fn requests_due(&self) -> Option<Time> {
        let pending = self.requests.pending.values().filter(|pending| !pending.is_answered);
        let since = pending.map(|pending| pending.since).chain(self.requests.loads.values().map(|(.., since)| *since));
        let launchers = self.requests.launchers.values().filter_map(super::Launcher::due);
        since.map(|since| since + ANSWER_NS_MAX).chain(launchers).min()
    }

    /// Checks the waiting requests, if anything has changed for them.
    pub(crate) fn follow(&mut self) {
        let revision = Some(self.member.revision());
        // Each check goes through all jobs, and in most turns of the host none has changed.
        if std::mem::replace(&mut self.requests.followed, revision) == revision {
            return;
        }
        self.keep_decisions();
        let member = &self.member;
        let is_told = |job: JobId| member.job(job).is_none_or(|job| job.end.is_some());
        self.requests.over.retain(|job, _| !is_told(*job));
        let is_over = |job: &JobId| !self.is_forgotten(*job) && (self.member.job(*job).is_none() || self.is_over(*job));
        let over: Vec<JobId> = self.requests.waiters.keys().copied().filter(is_over).collect();
        for job in over {
            let is_known = self.member.job(job).is_some();
            let outcome = if is_known { Outcome::Job(job) } else { Outcome::Local(job) };
            for id in self.requests.waiters.remove(&job).unwrap_or_default() {
                self.answer(id, Ok(outcome.clone()));
            }
        }
        self.answer_remote_launchers();
        self.answer_launchers_ahead_of_time();
    }

    /// Keeps the decisions about jobs with their parts.
    fn keep_decisions(&mut self) {
        for (id, part) in &mut self.parts {
            let decided = self.member.job(*id).map(|job| job.decided);
            if let Some(decided) = decided.filter(|decided| *decided != part.of.decided) {
                part.of.decided = decided;
                self.actions.push_back(Action::Keep(*id));
            }
        }
    }

    /// Something has changed on this node that may concern waiting requests.
    pub(crate) fn has_changed(&mut self) {
        self.requests.followed = None;
    }

    /// The host ends a part.
    pub(crate) fn ending(&mut self, id: JobId, is_all: bool) {
        self.requests.ending.insert(id, is_all);
    }

    /// A job's end on this node, at whatever time it happened.
    pub(crate) fn over(&mut self, id: JobId, attempt: Attempt, end: PartEnd) {
        if self.requests.ending.remove(&id) == Some(true) {
            self.requests.over.insert(id, attempt);
        }
        self.has_changed();
        self.member.part_ended(self.now, id, attempt, end);
    }

    /// A job that the last daemon has ended, and that was on this node alone.
    pub fn find_over(&mut self, job: JobId, attempt: Attempt) {
        self.requests.over.insert(job, attempt);
    }

    /// Whether a job is over. On a single machine an ended job is, even while that cannot be written; in a cluster all nodes give the same answer.
    pub fn is_over(&self, id: JobId) -> bool {
        self.member.job(id).is_some_and(|job| job.end.is_some() || self.has_ended_locally(job))
    }

    /// Whether this attempt of a job was here alone, on the only machine, and is over.
    pub fn has_ended_locally(&self, job: &Job) -> bool {
        self.machine.is_single && self.requests.over.get(&JobId(job.id)) == Some(&job.attempt)
    }
}

fn refusal(told: Answer) -> Refusal {
    match told {
        Answer::Refused { what, why, hint } => Refusal::Planner { what, why, hint },
        Answer::Submitted { .. } | Answer::Done | Answer::Unknown => Refusal::Lost,
    }
}
