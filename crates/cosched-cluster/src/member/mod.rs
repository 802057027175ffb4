//! The control plane of one node, as a state machine without input and output.
//!
//! Problem: daemons do not talk to each other. They share a store that may be slow, may be unreachable for a while, and may have
//! carried out an operation without answering. Rule. Users' requests become keys; the member that plans reads them, makes the next
//! state and commits it, with the replies and without the requests, in one transaction that fails if another member has committed.
//! So every request is applied exactly once, whichever daemon dies, and there is no leader: the member with the lowest number plans
//! at once, the next one a little later if there is still something to do. Each member computes the plan from the state by
//! itself. A member that loses the store keeps its plan, and reads everything again when the store is back.
//!
//! The host calls `handle_*`, carries out the actions of `poll_action` and calls `handle_timeout` at `poll_timeout`.
//! Source: DESIGN.md, chapter 6; the style of quinn-proto.

mod after;
mod apply;
mod commit;
mod due;
mod ended;
mod fence;
mod finish;
mod follow;
mod local;
mod name;
mod new_tree;
mod nodes;
mod outbox;
mod replica;
mod session;
mod sizes;
mod steer;
#[cfg(test)]
pub(crate) mod tests;
mod types;
mod whole;

pub(crate) use replica::UNKNOWN_BOOT;
pub use types::{Action, AskId, Fenced, Found, Kept, Moment, NotTaken, Notice, OpId, Settings};

use crate::repair::Known;
use crate::store::{Do, News, Op, OpDone, Range, StoreError, Txn};
use crate::wire::{Ask, Attempt, By, Clock, Exit, Job, Measured, Node, PartEnd, Policy, Reason as WireReason};
use cosched_core::cluster::{Capacity, Period, State};
use cosched_core::{JobId, NodeId, Time};
use due::Work;
use follow::Follow;
use local::LocalJobs;
use outbox::Outbox;
use replica::Replica;
use session::{Flight, Session};
use std::collections::{BTreeMap, VecDeque};

/// The control plane of one node.
#[derive(Debug)]
pub struct Member {
    settings: Settings,
    now: Moment,
    session: Session,
    replica: Replica,
    follow: Follow,
    outbox: Outbox,
    local: LocalJobs,
    work: Work,
    /// The node's number, once it is known.
    id: Option<NodeId>,
    /// When the last renewal was sent that makes the node count as alive in the plan; `None` before the first.
    heard_at: Option<Time>,
    /// When the tree that was read last was created.
    tree: Option<u64>,
    /// Operations in progress: their purpose, and until when their answer is waited for.
    flights: BTreeMap<OpId, (Flight, Option<Time>)>,
    last_op: u64,
    actions: VecDeque<Action>,
}

impl Member {
    /// A member that has not reached the store yet. `found` are the node's jobs.
    pub fn new(now: Moment, settings: Settings, found: &[Found]) -> Member {
        let mut member = Member {
            follow: Follow::new(settings.clock),
            local: LocalJobs::new(found),
            settings,
            now,
            session: Session::new(now.steady),
            replica: Replica::default(),
            outbox: Outbox::default(),
            work: Work::default(),
            id: None,
            heard_at: None,
            tree: None,
            flights: BTreeMap::new(),
            last_op: 0,
            actions: VecDeque::new(),
        };
        member.go_on(now);
        member
    }

    /// The result of a store operation.
    pub fn handle_done(&mut self, now: Moment, op: OpId, done: Result<OpDone, StoreError>) {
        self.now = now;
        if let Some((flight, _)) = self.flights.remove(&op) {
            self.land(flight, done);
        }
        self.go_on(now);
    }

    /// News of a watch.
    pub fn handle_news(&mut self, now: Moment, watch: OpId, news: News) {
        self.now = now;
        if self.session.watch == Some(watch) {
            self.replica.take(&self.settings.keys, news);
            self.changed();
        }
        self.go_on(now);
    }

    /// A watch has ended.
    pub fn handle_watch_lost(&mut self, now: Moment, watch: OpId, why: StoreError) {
        self.now = now;
        if self.session.watch == Some(watch) {
            self.fall(why);
        }
        self.go_on(now);
    }

    /// Time has passed; it is now `now`.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.go_on(now);
    }

    /// When `handle_timeout` is to be called next, by the monotonic clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        let deadline = self.flights.values().filter_map(|(_, until)| *until).min();
        let session = [self.session_timeout(), self.fence_timeout()];
        let times = [deadline, self.follow_timeout(), self.work_timeout()].into_iter().chain(session);
        times.flatten().min()
    }

    /// The next action that the host has to carry out.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A user's request. The answer comes as [`Action::Reply`].
    ///
    /// # Errors
    /// The request is not accepted, and has no effect.
    pub fn ask(&mut self, now: Moment, by: By, ask: Ask) -> Result<AskId, NotTaken> {
        self.now = now;
        if let Some(why) = &self.session.out {
            return Err(NotTaken::Out(why.clone()));
        }
        let id = self.outbox.ask(&self.settings, now, by, ask)?;
        self.go_on(now);
        Ok(id)
    }

    /// The last process of a job has ended here.
    pub fn part_ended(&mut self, now: Moment, job: JobId, attempt: Attempt, end: PartEnd) {
        self.now = now;
        self.note_fenced(job, attempt);
        self.local.ended(job, attempt, end);
        self.job_changed(job);
        self.go_on(now);
    }

    /// The main process of a job that was submitted here has ended, and this node has no part of the job.
    pub fn main_ended(&mut self, now: Moment, job: JobId, attempt: Attempt, exit: Exit) {
        self.outbox.report(&self.settings, now, Ask::MainEnded { job: job.0, attempt, exit });
        self.go_on(now);
    }

    /// A gang uses no CPU here (`true`), or uses it again.
    pub fn asleep(&mut self, now: Moment, job: JobId, asleep: bool) {
        if self.is_known(job, asleep) {
            return;
        }
        let report = |attempt| match asleep {
            true => Ask::Asleep { job: job.0, attempt },
            false => Ask::Awake { job: job.0, attempt },
        };
        self.report_of(now, job, report);
    }

    /// A sleeping gang has used no CPU here for a long time.
    pub fn dropped(&mut self, now: Moment, job: JobId) {
        let own = &self.settings.name;
        if !self.replica.jobs.get(&job.0).is_some_and(|known| known.value.dropped_on.contains(own)) {
            self.report_of(now, job, |attempt| Ask::Dropped { job: job.0, attempt });
        }
    }

    /// A job without a main process has no process here (`true`), or has one again.
    pub fn empty(&mut self, now: Moment, job: JobId, empty: bool) {
        self.local.note_empty(job, empty);
        self.report_of(now, job, |attempt| local::is_empty(job, attempt, empty));
    }

    /// The peak memory observed for a job here, in bytes.
    pub fn memory(&mut self, now: Moment, job: JobId, bytes: u64) {
        self.report_of(now, job, |attempt| Ask::Memory { job: job.0, attempt, bytes });
    }

    /// The policy that auto has chosen for a job.
    pub fn choice(&mut self, now: Moment, job: JobId, policy: Policy, reason: WireReason) {
        self.report_of(now, job, |_| Ask::Choice { job: job.0, policy, reason });
    }

    fn report_of(&mut self, now: Moment, job: JobId, report: impl FnOnce(Attempt) -> Ask) {
        if let Some(attempt) = self.local.running(job) {
            self.outbox.report(&self.settings, now, report(attempt));
        }
        self.go_on(now);
    }

    /// The number of runnable threads of programs that are not registered, smoothed.
    pub fn load(&mut self, now: Moment, threads: u32) {
        self.follow.load = threads;
        self.go_on(now);
    }

    /// The node's measured load, for display anywhere in the cluster.
    pub fn measured(&mut self, now: Moment, measured: Measured) {
        self.follow.measured = Some(measured);
        self.go_on(now);
    }

    /// Reads the last reported load of a node, or of all nodes: the answer comes as [`Action::Loads`]. `None` while the
    /// store is unreachable; if it becomes so before the answer, no answer comes.
    pub fn read_loads(&mut self, now: Moment, node: Option<&str>) -> Option<OpId> {
        self.now = now;
        if !self.session.is_joined() {
            return None;
        }
        let keys = &self.settings.keys;
        let range = node.map_or_else(|| keys.acks(), |name| Range::one(keys.ack(name)));
        let id = OpId(self.last_op + 1);
        Some(self.send(Flight::Loads(id), Op::Txn(Txn { then: vec![Do::Get(range)], ..Txn::default() })))
    }

    /// The kernel's view of the clock.
    pub fn clock(&mut self, now: Moment, clock: Clock) {
        self.now = now;
        // The clock's error changes all the time; what matters to the other nodes is whether there are slots.
        let changed = self.settings.clock.synchronised != clock.synchronised;
        self.settings.clock = clock;
        if changed {
            self.session.record_changed = true;
            self.set_clock(clock);
        }
        self.go_on(now);
    }

    /// The node's new capacity. Running jobs lose their place here.
    pub fn capacity(&mut self, now: Moment, capacity: Capacity) {
        if self.settings.capacity != capacity {
            self.settings.capacity = capacity;
            self.session.record_changed = true;
        }
        self.go_on(now);
    }

    /// Working hours or off-hours, by the operator's calendar.
    pub fn calendar(&mut self, now: Moment, period: Period) {
        self.work.period = Some(period);
        self.go_on(now);
    }

    /// Leaves the cluster: the node's cells become free at once.
    pub fn leave(&mut self, now: Moment) {
        self.now = now;
        self.take_leave();
    }

    /// The node's number in plans.
    pub fn id(&self) -> Option<NodeId> {
        self.id
    }

    /// Identifies the store's tree (its time of creation), once it was read; 0 before that.
    pub fn tree(&self) -> u64 {
        self.tree.unwrap_or(0)
    }

    /// Whether the member has joined, and is connected to the store.
    pub fn is_joined(&self) -> bool {
        self.session.is_joined()
    }

    /// Why the member cannot take part, if it cannot.
    pub fn out(&self) -> Option<&str> {
        self.session.out.as_deref()
    }

    /// What this node knows of its cluster, for a repair of the store.
    pub fn known(&self) -> Known {
        let settings = &self.settings;
        // A member that has never taken part only knows what was kept on disk.
        let kept = settings.kept.as_ref();
        let kept_tree = kept.map(|kept| kept.tree);
        let (tree, state) = match self.state() {
            Some(state) => (self.tree.or(kept_tree), Some(state)),
            None => (kept_tree.or(self.tree), kept.map(|kept| &kept.state)),
        };
        Known {
            keys: settings.keys.clone(),
            node: settings.name.clone(),
            tree,
            begun: self.replica.begun_tree(),
            state: state.cloned(),
            initial: settings.initial.clone(),
            jobs_known: self.jobs_known(),
            version: settings.version.clone(),
            lease_ns: settings.ttl_ns() + settings.lead.ahead_ns + settings.lead.clock_error_ns,
        }
    }

    /// What a restarted daemon is to find on disk, if this one has taken part.
    pub fn kept(&self) -> Option<Kept> {
        Some(Kept { tree: self.tree?, id: self.id?.0, state: self.state()?.clone() })
    }

    /// Why no plan is made and no node is declared silent or dead, if the store's content is damaged or missing.
    pub fn alarm(&self) -> Option<&str> {
        self.session.alarm.as_deref()
    }

    /// The planner's state as last read; while the stored one is damaged or missing, the last good one.
    pub fn state(&self) -> Option<&State> {
        self.replica.state.as_ref().or(self.replica.lost.as_ref()).map(|state| &state.value)
    }

    /// The store's revision up to which changes are known here.
    pub fn revision(&self) -> u64 {
        self.replica.revision
    }

    /// The store's revision at which [`Member::state`] was last changed; 0 if it is unknown.
    pub fn state_revision(&self) -> u64 {
        self.replica.state.as_ref().or(self.replica.lost.as_ref()).map_or(0, |state| state.revision)
    }

    /// All known jobs, including ended ones.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.replica.jobs.values().map(|job| &job.value)
    }

    /// The record of a job.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.replica.jobs.get(&id.0).map(|job| &job.value)
    }

    /// The nodes that take part, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.replica.nodes.iter().map(|(name, live)| (name.as_str(), &live.value.node))
    }

    /// The known nodes that do not take part now, and when they left the plan, since the Unix epoch, by the clock of the member that
    /// planned it; `None` if no plan was made since.
    pub fn gone(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        let away = self.replica.names.keys().filter(|name| !self.replica.nodes.contains_key(*name));
        away.map(|name| (name.as_str(), self.replica.left.get(name).copied()))
    }

    /// Since when a node of the plan has been silent, by the clock of the member that planned then.
    pub fn silent_since(&self, name: &str) -> Option<Time> {
        self.state()?.silent.get(&NodeId(*self.replica.names.get(name)?)).copied()
    }

    /// The name of a node, whether or not it takes part now.
    pub fn name_of(&self, id: NodeId) -> Option<&str> {
        self.replica.by_id.get(&id).map(String::as_str)
    }

    /// The generation in use; `None` while the node runs no gang slots.
    pub fn in_use(&self) -> Option<u64> {
        self.follow.in_use()
    }

    /// The number of this daemon's users' requests that have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.outbox.unanswered()
    }

    fn say(&mut self, notice: Notice) {
        self.actions.push_back(Action::Say(notice));
    }

    fn send(&mut self, flight: Flight, op: Op) -> OpId {
        self.last_op += 1;
        let id = OpId(self.last_op);
        // This machine's own store always answers, if late: without its answer it would not be known what was carried out.
        let until = self.settings.is_shared.then(|| self.now.steady + self.settings.answer_ns_max());
        self.flights.insert(id, (flight, until));
        self.actions.push_back(Action::Store(id, op));
        id
    }

    fn is_under_way(&self, is: impl Fn(&Flight) -> bool) -> bool {
        self.flights.values().any(|(flight, _)| is(flight))
    }

    /// Does everything that can be done now.
    fn go_on(&mut self, now: Moment) {
        self.now = now;
        self.go_on_fencing();
        let late = self.flights.values().any(|(_, until)| until.is_some_and(|until| until <= now.steady));
        if self.session.is_over() {
            // The lease that could not be revoked expires by itself.
            return if late {
                self.left()
            };
        }
        if late {
            self.fall(StoreError::Unavailable("no answer in time".to_owned()));
        }
        self.go_on_session();
        self.go_on_following();
        if self.session.is_joined() {
            self.pump_outbox();
            self.pump_acks();
            self.pump_record();
            self.go_on_planning();
        }
        self.check_work();
    }
}
