//! Users' requests: checked against what this node knows, passed on to the member that plans, and answered when they have taken effect.
//!
//! Rule. Every request is answered once. If the store has to answer it, the node waits for that, up to a limit; otherwise it is answered at
//! the end of the host's turn ([`Node::poll_answer`]), so that the answer shows its effect.

mod answer;
mod kill;
mod launch;
#[cfg(test)]
mod tests;
mod types;
mod want;

pub use kill::{SIGKILL, SIGTERM, asks_to_end};
pub use types::{ForAll, Outcome, Refusal, Request, RequestId, Want, WantOfNode};

use crate::types::Action;
use crate::{Node, rights};
use cosched_cluster::wire::{Ask, Attempt, By, Exit, KillHow};
use cosched_cluster::{AskId, Moment, OpId};
use cosched_core::{JobId, SlotShare, Time};
use launch::Launcher;
use std::collections::{BTreeMap, VecDeque};

/// How long a user waits for the store, in nanoseconds.
const ANSWER_NS_MAX: u64 = 10_000_000_000;

/// The requests that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// For the member that plans.
    pending: BTreeMap<AskId, Pending>,
    /// For the end of the host's turn.
    late: VecDeque<(RequestId, Outcome)>,
    /// For their job to begin.
    launchers: BTreeMap<JobId, Launcher>,
    /// For the job's end.
    waiters: BTreeMap<JobId, Vec<RequestId>>,
    /// For nodes' loads: the request, the node, and since when.
    loads: BTreeMap<OpId, (RequestId, Option<String>, Time)>,
    /// Parts that the host is ending; whether each is its whole job.
    ending: BTreeMap<JobId, bool>,
    /// Jobs that were on this node alone, and are over; the store may not know it yet.
    over: BTreeMap<JobId, Attempt>,
    /// The revision of the store up to which waiting requests were checked; `None` if something has changed here since.
    followed: Option<u64>,
}

#[derive(Debug)]
struct Pending {
    request: RequestId,
    since: Time,
    /// It was answered already, so its result is not reported.
    is_answered: bool,
    waits: Waits,
}

/// What a request waits for.
#[derive(Clone, Debug)]
enum Waits {
    /// A job of this owner with this declared memory; the host may have a process for it.
    Submit { owner: u32, memory_bytes: u64, has_process: bool },
    /// A change of a job.
    Job(JobId),
    /// The end of a job.
    End(JobId, By, KillHow),
    /// A change of the cluster, and whether it is the last one of its request.
    Change { is_last: bool },
}

impl Waits {
    fn has_process(&self) -> bool {
        matches!(self, Waits::Submit { has_process: true, .. })
    }
}

impl Node {
    /// A user makes a request.
    pub fn request(&mut self, now: Moment, by: By, id: RequestId, request: Request) {
        self.now = now;
        self.local.handle_timeout(now.wall);
        match self.take_up(by, id, request) {
            Ok(Some(outcome)) => self.answer_late(id, outcome),
            Ok(None) => (),
            Err(why) => self.refuse(id, why),
        }
    }

    /// Starts a request; returns its outcome if it is known already.
    fn take_up(&mut self, by: By, id: RequestId, request: Request) -> Result<Option<Outcome>, Refusal> {
        let (job, ask) = match request {
            Request::Submit { owner, job, has_process } => {
                rights::submit(by, job.class.into())?;
                let waits = Waits::Submit { owner: owner.uid, memory_bytes: job.want.memory_bytes(), has_process };
                return self.ask(owner, id, Ask::Submit(job), waits);
            }
            Request::Kill { job, how, here } => return self.kill_job(by, id, job, how, here),
            Request::Wait(job) => return Ok(self.wait(id, job)),
            Request::Exited(job, exit) => return self.main_exited(by, job, exit).map(Some),
            Request::Change(what, asks) => return self.change_all(by, id, what, asks),
            Request::Loads(node) => return self.read_loads(id, node),
            Request::Suspend(job) => {
                self.whose(job)?.change(by)?;
                (job, Ask::Suspend { job: job.0 })
            }
            Request::Resume(job) => {
                self.whose(job)?.decide(by, |decided, asker| decided.resume(asker))?;
                (job, Ask::Resume { job: job.0 })
            }
            Request::Class(job, class) => {
                let whose = self.whose(job)?;
                whose.reclass(by, class.into())?;
                whose.decide(by, |decided, asker| decided.reclass(whose.owner, asker, whose.class, class.into()))?;
                (job, Ask::Class { job: job.0, class })
            }
            Request::Policy(job, policy) => {
                let (whose, to) = (self.whose(job)?, policy.map(Into::into));
                whose.decide(by, |decided, asker| decided.repolicy(whose.owner, asker, whose.policy, to))?;
                (job, Ask::Policy { job: job.0, policy })
            }
            Request::Share(job, share) => {
                let whose = self.whose(job)?;
                whose.decide(by, |decided, asker| decided.reshare(whose.owner, asker, whose.share, share))?;
                (job, Ask::Share { job: job.0, permille: share.map(SlotShare::permille) })
            }
            Request::Resources(job, want) => {
                // The owner is checked first: other users must not learn about the job's resources.
                self.whose(job)?.change(by)?;
                (job, Ask::Resources { job: job.0, want: self.other_want(job, &want)? })
            }
        };
        self.ask(by, id, ask, Waits::Job(job))
    }

    /// Passes a request on to the member that plans.
    fn ask(&mut self, by: By, request: RequestId, ask: Ask, waits: Waits) -> Result<Option<Outcome>, Refusal> {
        let asked = self.member.ask(self.now, by, ask).map_err(|why| Refusal::NotTaken(why.to_string()))?;
        let pending = Pending { request, since: self.now.steady, is_answered: false, waits };
        self.requests.pending.insert(asked, pending);
        Ok(None)
    }

    /// The changes are carried out in their order: when the last one is, all are.
    fn change_all(&mut self, by: By, id: RequestId, what: ForAll, asks: Vec<Ask>) -> Result<Option<Outcome>, Refusal> {
        rights::for_all(by, what)?;
        let last = asks.len();
        for (at, ask) in asks.into_iter().enumerate() {
            self.ask(by, id, ask, Waits::Change { is_last: at + 1 == last })?;
        }
        Ok((last == 0).then_some(Outcome::Status))
    }

    fn read_loads(&mut self, id: RequestId, node: Option<String>) -> Result<Option<Outcome>, Refusal> {
        if let Some(name) = node.as_deref()
            && !self.member.nodes().any(|(known, _)| known == name)
        {
            return Err(Refusal::NoSuchNode(name.to_owned()));
        }
        let op = self.member.read_loads(self.now, node.as_deref()).ok_or(Refusal::Unread)?;
        self.requests.loads.insert(op, (id, node, self.now.steady));
        Ok(None)
    }

    fn wait(&mut self, id: RequestId, job: JobId) -> Option<Outcome> {
        let is_known = self.member.job(job).is_some() && !self.is_over(job);
        if !is_known && !self.is_forgotten(job) {
            return Some(Outcome::Job(job));
        }
        self.requests.waiters.entry(job).or_default().push(id);
        None
    }

    /// The launcher of a job saw its main process end: that is the end of the job's part here, if it has one.
    fn main_exited(&mut self, by: By, job: JobId, exit: Exit) -> Result<Outcome, Refusal> {
        self.whose_local(job)?.change(by)?;
        let outcome = if self.is_forgotten(job) { Outcome::Local(job) } else { Outcome::Job(job) };
        if self.has(job) {
            self.exited(job, exit);
        } else {
            self.main_ended(job, exit);
        }
        Ok(outcome)
    }

    /// The main process of a job has ended that has no part here, or not yet. Launchers begin the first attempt of a job only; later ones begin
    /// where there is a part.
    fn main_ended(&mut self, job: JobId, exit: Exit) {
        self.member.main_ended(self.now, job, 0, exit);
    }

    /// Drops waiting requests whose clients are gone.
    pub fn forget(&mut self, gone: impl Fn(RequestId) -> bool) {
        self.requests.waiters.retain(|_, waiters| {
            waiters.retain(|id| !gone(*id));
            !waiters.is_empty()
        });
    }

    /// Whether there is no running, waiting or requested job.
    pub fn is_idle(&self) -> bool {
        self.member.state().is_none_or(|state| state.jobs.is_empty()) && self.requests.pending.is_empty()
    }

    fn answer(&mut self, id: RequestId, answer: Result<Outcome, Refusal>) {
        self.actions.push_back(Action::Answer(id, answer));
    }

    fn answer_late(&mut self, id: RequestId, outcome: Outcome) {
        self.requests.late.push_back((id, outcome));
    }

    /// The next answer; to be called when the host has carried out all actions.
    pub fn poll_answer(&mut self) -> Option<(RequestId, Outcome)> {
        self.requests.late.pop_front()
    }
}
