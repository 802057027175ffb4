//! The control plane of one node, as a state machine without input and output.
//!
//! Problem: daemons do not talk to each other. They share a store that may be slow, may vanish for a while, and may have
//! carried out what it did not answer. Rule. Users' requests become keys; whoever plans reads them, makes the next state
//! and commits it, with the replies and without the requests, in one transaction that fails if anybody else has. So
//! every request is applied exactly once, whoever dies, and there is no leader: the member with the lowest number plans
//! at once, the next one a little later if there is still something to do. Everybody makes the plan from the state by
//! itself. A member that loses the store keeps its plan, and when the store is back it reads everything anew.
//!
//! The host calls `handle_*`, does what `poll_action` says and calls `handle_timeout` at `poll_timeout`.
//! Source: DESIGN.md, chapter 6; the manner of quinn-proto.

mod after;
mod anew;
mod apply;
mod commit;
mod due;
mod ended;
mod fence;
mod finish;
mod follow;
mod here;
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
use here::Here;
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
    here: Here,
    work: Work,
    /// The node's number, once it is known.
    id: Option<NodeId>,
    /// When the last renewal was asked for under which the plan counts the node as heard; `None` before the first.
    heard_at: Option<Time>,
    /// When the tree was made that was read last.
    tree: Option<u64>,
    /// Operations under way: what for, and until when an answer is waited for.
    flights: BTreeMap<OpId, (Flight, Time)>,
    last_op: u64,
    actions: VecDeque<Action>,
}

impl Member {
    /// A member that has not met the store yet. `found` are the node's jobs.
    pub fn new(now: Moment, settings: Settings, found: &[Found]) -> Member {
        let mut member = Member {
            follow: Follow::new(settings.clock),
            here: Here::new(found),
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

    /// What came of an operation.
    pub fn handle_done(&mut self, now: Moment, op: OpId, done: Result<OpDone, StoreError>) {
        self.now = now;
        if let Some((flight, _)) = self.flights.remove(&op) {
            self.land(flight, done);
        }
        self.go_on(now);
    }

    /// What a watch tells.
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

    /// It is `now`.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.go_on(now);
    }

    /// When the member wants to be woken, by the steady clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        let deadline = self.flights.values().map(|(_, until)| *until).min();
        let session = [self.session_timeout(), self.fence_timeout()];
        let times = [deadline, self.follow_timeout(), self.work_timeout()].into_iter().chain(session);
        times.flatten().min()
    }

    /// What the host has to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A user asks for something. The answer comes as [`Action::Reply`].
    ///
    /// # Errors
    /// It is not taken, and nothing will come of it.
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
        self.here.ended(job, attempt, end);
        self.job_changed(job);
        self.go_on(now);
    }

    /// The main process of a job that was submitted here has ended, and this node has no part of the job.
    pub fn main_ended(&mut self, now: Moment, job: JobId, attempt: Attempt, exit: Exit) {
        self.now = now;
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

    /// A sleeping gang used no CPU here for very long.
    pub fn dropped(&mut self, now: Moment, job: JobId) {
        let own = &self.settings.name;
        if !self.replica.jobs.get(&job.0).is_some_and(|known| known.value.dropped_on.contains(own)) {
            self.report_of(now, job, |attempt| Ask::Dropped { job: job.0, attempt });
        }
    }

    /// A job without a main process has no process here (`true`), or has one again.
    pub fn empty(&mut self, now: Moment, job: JobId, empty: bool) {
        self.here.note_empty(job, empty);
        self.report_of(now, job, |attempt| here::is_empty(job, attempt, empty));
    }

    /// A job was seen to use so much memory here, in bytes.
    pub fn memory(&mut self, now: Moment, job: JobId, bytes: u64) {
        self.report_of(now, job, |attempt| Ask::Memory { job: job.0, attempt, bytes });
    }

    /// What auto has chosen for a job.
    pub fn choice(&mut self, now: Moment, job: JobId, policy: Policy, reason: WireReason) {
        self.report_of(now, job, |_| Ask::Choice { job: job.0, policy, reason });
    }

    fn report_of(&mut self, now: Moment, job: JobId, report: impl FnOnce(Attempt) -> Ask) {
        self.now = now;
        if let Some(attempt) = self.here.running(job) {
            self.outbox.report(&self.settings, now, report(attempt));
        }
        self.go_on(now);
    }

    /// The runnable threads of programs that are not registered, smoothed.
    pub fn load(&mut self, now: Moment, threads: u32) {
        self.now = now;
        self.follow.load = threads;
        self.go_on(now);
    }

    /// How busy the node is, for people anywhere in the cluster.
    pub fn measured(&mut self, now: Moment, measured: Measured) {
        self.now = now;
        self.follow.measured = Some(measured);
        self.go_on(now);
    }

    /// Reads what a node, or every node, has last said of itself: the answer comes as [`Action::Loads`]. `None` while the
    /// store is out of reach; when it is lost meanwhile no answer comes.
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
        // The error moves all the time; what matters to others is whether there are slots.
        let changed = self.settings.clock.synchronised != clock.synchronised;
        self.settings.clock = clock;
        if changed {
            self.session.record_changed = true;
            self.set_clock(clock);
        }
        self.go_on(now);
    }

    /// What the node has now. Jobs that have a place here lose it.
    pub fn capacity(&mut self, now: Moment, capacity: Capacity) {
        self.now = now;
        if self.settings.capacity != capacity {
            self.settings.capacity = capacity;
            self.session.record_changed = true;
        }
        self.go_on(now);
    }

    /// Working hours or off-hours, by the operator's calendar.
    pub fn calendar(&mut self, now: Moment, period: Period) {
        self.now = now;
        self.work.period = Some(period);
        self.go_on(now);
    }

    /// Takes leave: the node's cells become free at once.
    pub fn leave(&mut self, now: Moment) {
        self.now = now;
        self.take_leave();
    }

    /// The node's number in plans.
    pub fn id(&self) -> Option<NodeId> {
        self.id
    }

    /// What tells the tree of the store from one that was there before, once it was read.
    pub fn tree(&self) -> u64 {
        self.tree.unwrap_or(0)
    }

    /// Whether the member is in touch with the store.
    pub fn is_joined(&self) -> bool {
        self.session.is_joined()
    }

    /// Why the member cannot take part, if it cannot.
    pub fn out(&self) -> Option<&str> {
        self.session.out.as_deref()
    }

    /// What this node knows of its cluster, to repair its store.
    pub fn known(&self) -> Known {
        let settings = &self.settings;
        // Who has never taken part knows nothing but what was kept.
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

    /// What is to be kept for the next life of this daemon, if this one has taken part.
    pub fn kept(&self) -> Option<Kept> {
        Some(Kept { tree: self.tree?, id: self.id?.0, state: self.state()?.clone() })
    }

    /// Why nothing is planned and nobody is judged, if what lies in the store is damaged or gone.
    pub fn alarm(&self) -> Option<&str> {
        self.session.alarm.as_deref()
    }

    /// The planner's state as it is known here; while it is damaged or gone, as it was before.
    pub fn state(&self) -> Option<&State> {
        self.replica.state.as_ref().or(self.replica.lost.as_ref()).map(|state| &state.value)
    }

    /// Up to which revision the store's changes are known here.
    pub fn revision(&self) -> u64 {
        self.replica.revision
    }

    /// When [`Member::state`] was last changed, by the store's revisions; 0 where that is not known.
    pub fn state_revision(&self) -> u64 {
        self.replica.state.as_ref().or(self.replica.lost.as_ref()).map_or(0, |state| state.revision)
    }

    /// The jobs that are known here, ended ones included.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.replica.jobs.values().map(|job| &job.value)
    }

    /// A job.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.replica.jobs.get(&id.0).map(|job| &job.value)
    }

    /// The nodes that are there, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.replica.nodes.iter().map(|(name, live)| (name.as_str(), &live.value.node))
    }

    /// The nodes that were there and are not, and when they left the plan, since the Unix epoch, by the clock of whoever planned
    /// then; `None` until somebody has.
    pub fn gone(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        let away = self.replica.names.keys().filter(|name| !self.replica.nodes.contains_key(*name));
        away.map(|name| (name.as_str(), self.replica.left.get(name).copied()))
    }

    /// Since when nobody hears of a node that is in the plan, by the clock of whoever planned then.
    pub fn silent_since(&self, name: &str) -> Option<Time> {
        self.state()?.silent.get(&NodeId(*self.replica.names.get(name)?)).copied()
    }

    /// The name of a node, whether it is there or not.
    pub fn name_of(&self, id: NodeId) -> Option<&str> {
        self.replica.by_id.get(&id).map(String::as_str)
    }

    /// The generation in use; `None` while the node runs no gang slots.
    pub fn in_use(&self) -> Option<u64> {
        self.follow.in_use()
    }

    /// The requests of users here that have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.outbox.unanswered()
    }

    fn say(&mut self, notice: Notice) {
        self.actions.push_back(Action::Say(notice));
    }

    fn send(&mut self, flight: Flight, op: Op) -> OpId {
        self.last_op += 1;
        let id = OpId(self.last_op);
        self.flights.insert(id, (flight, self.now.steady + self.settings.answer_ns_max()));
        self.actions.push_back(Action::Store(id, op));
        id
    }

    fn is_under_way(&self, is: impl Fn(&Flight) -> bool) -> bool {
        self.flights.values().any(|(flight, _)| is(flight))
    }

    /// Does all that can be done now.
    fn go_on(&mut self, now: Moment) {
        self.now = now;
        self.go_on_fencing();
        let late = self.flights.values().any(|(_, until)| *until <= now.steady);
        if self.session.is_over() {
            // The lease that could not be given up runs out by itself.
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
