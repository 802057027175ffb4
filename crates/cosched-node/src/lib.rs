//! What one node decides, as a state machine without input and output.
//!
//! Problem: what a daemon does between its cluster and its processes is where most that can go wrong does: a job is to end that has just
//! ended, a store is lost while a gang begins, a daemon is started again in the middle. A daemon that decides that where it also talks to
//! the kernel cannot be simulated.
//! Rule. A node is its control plane ([`Member`]), its local scheduler and the parts of jobs that are here. The host tells it what
//! happens, does what `poll_action` says, and calls it when `poll_timeout` or `poll_wall_timeout` is over. The daemon is a host, and
//! the swarm is another one.
//! Source: DESIGN.md, chapter 3; the manner of quinn-proto.

mod act;
mod part;
mod request;
pub mod rights;
#[cfg(test)]
mod tests;
mod types;

pub use part::ENTER_GRACE_NS;
pub use request::{ForAll, Outcome, Refusal, Request, RequestId, SIGKILL, Want, WantOfNode, asks_to_end};
pub use rights::Whose;
pub use types::{Action, Began, FoundPart, Input, Machine, PartOf, Why};

use cosched_cluster::{Found, Member, Moment, Settings};
use cosched_core::cluster::{Known, LocalConfig, LocalJob, LocalScheduler};
use cosched_core::{JobId, Policy, Reason, Time};
use part::Part;
use request::Requests;
use std::collections::{BTreeMap, VecDeque};

/// One node.
#[derive(Debug)]
pub struct Node {
    name: String,
    machine: Machine,
    member: Member,
    local: LocalScheduler,
    parts: BTreeMap<JobId, Part>,
    requests: Requests,
    now: Moment,
    actions: VecDeque<Action>,
}

impl Node {
    /// A node that has not met its store yet, with the jobs that were found on it; those that have not ended are told one by one
    /// ([`Node::find`]).
    pub fn new(now: Moment, settings: Settings, local: LocalConfig, memory_bytes: u64, found: &[Found]) -> Node {
        let machine = Machine { cpus: local.cpus, memory_bytes, is_single: local.is_single };
        Node {
            name: settings.name.clone(),
            machine,
            member: Member::new(now, settings, found),
            local: LocalScheduler::new(local),
            parts: BTreeMap::new(),
            requests: Requests::default(),
            now,
            actions: VecDeque::new(),
        }
    }

    /// A part of the last daemon's that has not ended. To be told before anything else.
    pub fn find(&mut self, id: JobId, found: &FoundPart) {
        self.parts.insert(id, Part::found(self.now.steady, found));
        self.local.begin(id, found.job);
        self.local.populated(id, found.populated);
    }

    /// A job that is about to be found had this place, by its columns.
    pub fn remember_place(&mut self, id: JobId, columns: Vec<u32>) {
        self.local.remember_place(id, columns);
    }

    /// The same, whose local scheduler is broken on purpose ([`LocalScheduler::altered_by`]).
    pub fn altered_by(self, alter: fn(&mut cosched_core::Plan)) -> Node {
        Node { local: self.local.altered_by(alter), ..self }
    }

    /// The control plane.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// What the node runs by.
    pub fn local(&self) -> &LocalScheduler {
        &self.local
    }

    /// A job's part here, as it is to be found by the next daemon.
    pub fn part(&self, id: JobId) -> Option<(&PartOf, &LocalJob)> {
        Some((&self.parts.get(&id)?.of, self.local.job(id)?))
    }

    /// Whether a job has its part here.
    pub fn has(&self, id: JobId) -> bool {
        self.parts.contains_key(&id)
    }

    /// Whether the store was read since this daemon began.
    pub fn is_met(&self) -> bool {
        self.member.state().is_some()
    }

    /// Whether nobody can say yet whether there is such a job: it may wait, or run on other nodes. Who takes no part will not meet the store.
    pub fn is_unknown_yet(&self, id: JobId) -> bool {
        !self.is_met() && !self.has(id) && self.member.out().is_none()
    }

    /// Whether the store takes nothing now.
    pub fn is_out_of_touch(&self) -> bool {
        !self.member.is_joined() || self.member.alarm().is_some() || self.member.out().is_some()
    }

    /// Whether a job runs here that the cluster does not know.
    pub fn is_forgotten(&self, id: JobId) -> bool {
        self.member.job(id).is_none() && self.has(id)
    }

    /// Something happens to the control plane.
    pub fn tell<R>(&mut self, now: Moment, what: impl FnOnce(&mut Member, Moment) -> R) -> R {
        self.now = now;
        self.local.handle_timeout(now.wall);
        what(&mut self.member, now)
    }

    /// Something happens here.
    pub fn handle(&mut self, now: Moment, input: Input) {
        self.now = now;
        self.local.handle_timeout(now.wall);
        match input {
            Input::Began(id, began) => self.began(id, &began),
            Input::Failed(id) => {
                self.gone(id);
                self.answer_launcher(id, Err(Refusal::CannotBegin(id)));
            }
            Input::NotEntered(id) => self.give_up(id),
            Input::LauncherGone(request) => self.launcher_gone(request),
            Input::Populated(id, populated) => self.populated(id, populated),
            Input::Over { job, attempt, end } => self.over(job, attempt, end),
            Input::CpuTime(id, ns) => self.local.cpu_time(now.wall, id, ns),
            Input::Clock(clock) => {
                self.member.clock(now, clock);
                self.local.clock(now.wall, clock.synchronised);
            }
            Input::Timeout => self.on_time(),
        }
    }

    /// When the node wants to be woken, by the steady clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        let parts = self.parts.values().filter_map(Part::due);
        self.member.poll_timeout().into_iter().chain(parts).chain(self.requests_due()).min()
    }

    /// The same by the wall clock.
    pub fn poll_wall_timeout(&self) -> Option<Time> {
        self.local.poll_timeout()
    }

    fn on_time(&mut self) {
        let now = self.now;
        self.member.handle_timeout(now);
        self.look_at_parts();
        self.look_at_requests();
    }

    /// What auto has chosen for a job.
    pub fn choose(&mut self, now: Moment, id: JobId, policy: Policy, reason: Reason) {
        self.now = now;
        if self.local.job(id).is_some_and(|job| job.spans) {
            self.member.choice(now, id, policy.into(), reason.into());
        } else {
            self.local.choose(id, policy, reason);
        }
    }

    /// Whether something has followed already of what was told: a job that is over is to be gone before anything else is asked.
    pub fn has_news(&self) -> bool {
        !self.actions.is_empty()
    }

    /// What the host has to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if let Some(action) = self.member.poll_action() {
                self.act(action);
            } else if let Some(action) = self.local.poll_action() {
                self.act_local(action);
            } else if self.settle() {
                return Some(Action::Plan);
            } else {
                self.follow();
                if self.actions.is_empty() {
                    return None;
                }
            }
        }
    }

    fn settle(&mut self) -> bool {
        let known = self.member.id().zip(self.member.state()).map(|(node, state)| Known {
            node,
            state,
            revision: self.member.revision(),
            in_touch: self.member.is_joined(),
        });
        self.local.settle(self.now.wall, known)
    }
}
