//! The decisions of one node, as a state machine without input and output.
//!
//! Problem: most of what can go wrong happens between a daemon's cluster and its processes: a job is to end that has just
//! ended, a store is lost while a gang begins, a daemon is restarted in the middle. If the code that decides these cases also talked to
//! the kernel, it could not be simulated.
//! Rule. A node is its control plane ([`Member`]), its local scheduler and the parts of jobs on it. The host reports events,
//! carries out the actions of `poll_action`, and calls the node when `poll_timeout` or `poll_wall_timeout` is over. The daemon is one host,
//! and the swarm is another.
//! Source: DESIGN.md, chapter 3; the style of quinn-proto.

mod act;
mod auto;
mod part;
mod request;
pub mod rights;
mod running;
#[cfg(test)]
mod tests;
mod types;

pub use auto::{Waiting, Watch};
pub use part::ENTER_GRACE_NS;
pub use request::{ForAll, Outcome, Refusal, Request, RequestId, SIGKILL, SIGTERM, Want, WantOfNode, asks_to_end};
pub use rights::Whose;
pub use running::Running;
pub use types::{Action, Began, FoundPart, Input, Machine, PartOf, Sampled, Waits, Why};

use cosched_cluster::{Found, Member, Moment, Settings};
use cosched_core::cluster::{Known, LocalConfig, LocalJob, LocalScheduler};
use cosched_core::{JobId, Time};
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
    running: Running,
    parts: BTreeMap<JobId, Part>,
    requests: Requests,
    now: Moment,
    actions: VecDeque<Action>,
}

impl Node {
    /// A node that has not reached its store yet, with the jobs that were found on it; those that have not ended must then be passed one by one
    /// to [`Node::find`].
    pub fn new(now: Moment, settings: Settings, local: LocalConfig, memory_bytes: u64, found: &[Found]) -> Node {
        let machine =
            Machine { cpus: local.cpus, cpus_at_a_time: local.cpus, memory_bytes, is_single: local.is_single };
        let local = LocalScheduler::new(local);
        Node {
            name: settings.name.clone(),
            machine,
            member: Member::new(now, settings, found),
            running: Running::of(local.plan(), machine.cpus),
            local,
            parts: BTreeMap::new(),
            requests: Requests::default(),
            now,
            actions: VecDeque::new(),
        }
    }

    /// A part of the last daemon that has not ended. To be called before anything else.
    pub fn find(&mut self, id: JobId, found: &FoundPart) {
        self.parts.insert(id, Part::found(self.now, found));
        self.local.begin(id, found.job);
        self.local.populated(id, found.populated);
    }

    /// Remembers the columns that a job had, before it is passed to [`Node::find`].
    pub fn remember_place(&mut self, id: JobId, columns: Vec<u32>) {
        self.local.remember_place(id, columns);
    }

    /// The same node, but its jobs can use no more than this number of its CPUs at a time.
    pub fn limited_to(mut self, cpus: u32) -> Node {
        self.machine.cpus_at_a_time = cpus;
        self
    }

    /// The same node, but its local scheduler makes faulty plans, for tests ([`LocalScheduler::altered_by`]).
    pub fn altered_by(self, alter: fn(&mut cosched_core::Plan)) -> Node {
        Node { local: self.local.altered_by(alter), ..self }
    }

    /// The control plane.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// The local scheduler, with the plan that the node follows.
    pub fn local(&self) -> &LocalScheduler {
        &self.local
    }

    /// The sums over the jobs of its plan.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// A job's part on this node, as it is kept for a restarted daemon.
    pub fn part(&self, id: JobId) -> Option<(&PartOf, &LocalJob)> {
        Some((&self.parts.get(&id)?.of, self.local.job(id)?))
    }

    /// Whether a job has a part on this node.
    pub fn has(&self, id: JobId) -> bool {
        self.parts.contains_key(&id)
    }

    /// Whether the store was read since this daemon's start.
    pub fn has_read_store(&self) -> bool {
        self.member.state().is_some()
    }

    /// Whether it is unknown yet if a job exists: it may wait, or run on other nodes. A daemon that takes no part will never reach the store.
    pub fn is_unknown_yet(&self, id: JobId) -> bool {
        !self.has_read_store() && !self.has(id) && self.member.out().is_none()
    }

    /// Whether the store accepts no requests at present.
    pub fn is_out_of_touch(&self) -> bool {
        !self.member.is_joined() || self.member.alarm().is_some() || self.member.out().is_some()
    }

    /// Whether a job runs here that the cluster does not know.
    pub fn is_forgotten(&self, id: JobId) -> bool {
        self.member.job(id).is_none() && self.has(id)
    }

    /// An event for the control plane alone.
    pub fn tell<R>(&mut self, now: Moment, what: impl FnOnce(&mut Member, Moment) -> R) -> R {
        self.now = now;
        self.local.handle_timeout(now.wall);
        what(&mut self.member, now)
    }

    /// An event on this node.
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
            Input::Sampled(id, sampled) => self.sampled(id, &sampled),
            Input::Blocks(id, blocks) => self.blocked(id, blocks),
            Input::Clock(clock) => {
                self.member.clock(now, clock);
                self.local.clock(now.wall, clock.synchronised);
            }
            Input::Withdrawn(ask, why) => self.withdrawn(ask, why),
            Input::Timeout => self.on_time(),
        }
    }

    /// When [`Input::Timeout`] is due, by the monotonic clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        let parts = self.parts.values().filter_map(Part::due);
        self.member.poll_timeout().into_iter().chain(parts).chain(self.requests_due()).min()
    }

    /// The same, by the wall clock.
    pub fn poll_wall_timeout(&self) -> Option<Time> {
        self.local.poll_timeout()
    }

    fn on_time(&mut self) {
        let now = self.now;
        self.member.handle_timeout(now);
        self.look_at_parts();
        self.look_at_requests();
    }

    /// Whether inputs have already led to actions: a job that is over has to be removed before the next input.
    pub fn has_news(&self) -> bool {
        !self.actions.is_empty()
    }

    /// The next action that the host has to carry out.
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
        let is_new = self.local.settle(self.now.wall, known);
        if is_new {
            self.running = Running::of(self.local.plan(), self.machine.cpus);
        }
        is_new
    }
}
