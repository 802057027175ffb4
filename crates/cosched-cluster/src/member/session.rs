//! How a member joins the cluster, renews its lease, and recovers when the store is lost.
//!
//! Lease, read, claim the name, watch. Any failure on the way, or later, leads back to the start: while outcomes are unknown,
//! only reading everything again shows the true content. A lease that is still alive is kept, so that other nodes notice nothing.

use super::Member;
use super::replica::{At, Live, Replica};
use super::types::{Action, Notice, OpId};
use crate::store::{Compare, Do, Done, Entry, Key, LeaseId, Op, OpDone, Range, Revision, StoreError, Txn};
use crate::wire::{Ack, Node, encode};
use cosched_core::{NodeId, Time};

/// The first wait before the store is tried again; it doubles up to the longest.
const RETRY_NS_MIN: u64 = 100_000_000;
const RETRY_NS_MAX: u64 = 3_000_000_000;

/// The purpose of a store operation in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flight {
    /// See whether the old lease is still alive.
    Resume(Time),
    /// A new lease, requested at this time.
    Grant(Time),
    /// Read everything.
    Read,
    /// Create the tree or a name.
    Make,
    /// Claim the name.
    Claim,
    /// Start the watch.
    Watch,
    /// Renew the lease; sent at this time.
    Renew(Time),
    /// Read the state before a renewal counts: when the renewal was sent, until when it lasts, and the revision of the state known then.
    ReadState(Time, Time, Revision),
    /// Write the node's record.
    Record,
    /// Write what the node acknowledges.
    Ack(Ack),
    /// Write users' requests, up to this number, and delete these replies.
    Asks(u64, Vec<String>),
    /// Read the other nodes' acknowledgements; this generation was the newest known one.
    Acks(u64),
    /// Read the acknowledgements for a user.
    Loads(OpId),
    /// Commit a plan.
    Commit,
    /// Revoke the lease.
    Leave,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Not connected; the store is tried again at this time.
    Away(Time),
    /// Joining.
    Entering,
    Joined,
    /// No longer a member, or never one.
    #[default]
    Over,
}

/// The state of a member's connection to the store.
#[derive(Debug, Default)]
pub(super) struct Session {
    phase: Phase,
    pub(super) lease: Option<LeaseId>,
    /// Until when the granted lease lasts, at the least.
    granted_until: Time,
    /// When it was requested.
    pub(super) granted_at: Time,
    /// When it is renewed next.
    renew_at: Time,
    pub(super) watch: Option<OpId>,
    retry_ns: u64,
    /// Since when the store is lost; `None` while it is not.
    pub(super) lost_since: Option<Time>,
    pub(super) was_joined: bool,
    /// This daemon has seen a plan that was made with the present boot of its machine, in this life of the store.
    pub(super) was_counted: bool,
    /// Since when the member has been connected without an interruption.
    pub(super) since: Time,
    /// Since when another daemon was seen to have the name.
    pub(super) name_taken_since: Option<Time>,
    /// Since when the name has been kept for another machine while no node takes part, and the state then.
    pub(super) name_kept_since: Option<(Time, Revision)>,
    /// The last content that was reported as unusable, so that it is reported once.
    pub(super) said: Option<String>,
    /// The last refusal of the store that was reported, until a renewal succeeds.
    refused: Option<String>,
    /// The number of attempts to join; varies the waits, so that nodes do not all try at the same times.
    tries: u64,
    /// A change of the state that was read but that the watch has not reported: it has to do so before the next renewal.
    untold: Option<Revision>,
    /// The node's record has to be written again.
    pub(super) record_changed: bool,
    /// A key of this node was deleted, and is being written again.
    rewrites: Option<Key>,
    /// Why no plan is made and no node is declared silent or dead: the store's content is damaged.
    pub(super) alarm: Option<String>,
    /// Why the member cannot take part.
    pub(super) out: Option<String>,
}

impl Session {
    pub(super) fn new(now: Time) -> Session {
        Session {
            phase: Phase::Away(now),
            granted_until: now,
            granted_at: now,
            renew_at: now,
            retry_ns: RETRY_NS_MIN,
            since: now,
            ..Session::default()
        }
    }

    pub(super) fn is_joined(&self) -> bool {
        self.phase == Phase::Joined
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }
}

impl Member {
    pub(super) fn session_timeout(&self) -> Option<Time> {
        match self.session.phase {
            Phase::Away(until) => Some(until),
            Phase::Joined if !self.is_renewing() => Some(self.session.renew_at),
            _ => None,
        }
    }

    pub(super) fn go_on_session(&mut self) {
        let now = self.now.steady;
        match self.session.phase {
            Phase::Away(until) if until <= now => {
                self.session.phase = Phase::Entering;
                match self.session.lease {
                    Some(lease) => self.send(Flight::Resume(now), Op::KeepAlive(lease)),
                    None => self.send(Flight::Grant(now), Op::Grant { ttl_s: self.settings.ttl_s }),
                };
            }
            Phase::Joined if self.session.renew_at <= now && !self.is_renewing() => {
                if let Some(lease) = self.session.lease {
                    self.send(Flight::Renew(now), Op::KeepAlive(lease));
                }
            }
            _ => (),
        }
    }

    fn is_renewing(&self) -> bool {
        self.is_under_way(|flight| matches!(flight, Flight::Renew(_) | Flight::ReadState(..)))
    }

    /// The store is lost, or what is known of its content cannot be relied on.
    pub(super) fn fall(&mut self, why: StoreError) {
        let wait = match why {
            // Nothing is wrong with the store: the revision or the lease was only too old.
            StoreError::Compacted(_) | StoreError::LeaseNotFound => 0,
            _ => self.retry_ns(),
        };
        if why == StoreError::LeaseNotFound {
            self.session.lease = None;
        }
        let first = self.session.lost_since.is_none();
        // A refusal is reported even if the store was unreachable before, because an operator has to act on it. But once.
        let refused = matches!(why, StoreError::Denied(_) | StoreError::Fault(_)).then(|| why.to_string());
        let news = refused.is_some() && self.session.refused != refused;
        let again = refused.is_some() && !news;
        if self.session.is_joined() && !again || first && !self.session.was_joined || news {
            self.session.lost_since.get_or_insert(self.now.steady);
            self.say(Notice::StoreLost(why));
        }
        if news {
            self.session.refused = refused;
        }
        self.away(wait);
        if wait > 0 {
            self.session.retry_ns = (2 * self.session.retry_ns).min(RETRY_NS_MAX);
        }
    }

    /// The next wait: three quarters to all of `retry_ns`, different on each node, because all have lost the same store at the same time.
    fn retry_ns(&mut self) -> u64 {
        self.session.tries += 1;
        let mixed = (self.settings.instance ^ self.session.tries).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.session.retry_ns / 4 * 3 + mixed % (self.session.retry_ns / 4)
    }

    /// A session has lasted until a lease was renewed: an earlier refusal no longer applies.
    fn holds(&mut self) {
        self.session.retry_ns = RETRY_NS_MIN;
        if self.session.refused.take().is_some() {
            self.is_back();
        }
    }

    fn is_back(&mut self) {
        if let (true, Some(since)) = (self.session.was_joined, self.session.lost_since.take()) {
            self.say(Notice::StoreBack(self.now.steady - since));
        }
    }

    pub(super) fn away(&mut self, wait_ns: u64) {
        self.session.phase = Phase::Away(self.now.steady + wait_ns);
        self.flights.clear();
        self.work.stop();
        self.follow.written = None;
        if let Some(watch) = self.session.watch.take() {
            self.actions.push_back(Action::Drop(watch));
        }
    }

    /// This daemon does not take part until an operator acts.
    pub(super) fn give_up(&mut self, why: String) {
        self.end(why.clone());
        self.say(Notice::Out(why));
    }

    /// The member is over: no request is answered from now on.
    fn end(&mut self, why: String) {
        self.away(0);
        self.session.phase = Phase::Over;
        self.session.out = Some(why);
        self.lapse();
        self.abandon_asks();
    }

    /// The result of an operation.
    pub(super) fn land(&mut self, flight: Flight, done: Result<OpDone, StoreError>) {
        match done {
            Ok(done) => self.land_well(flight, done),
            Err(_) if flight == Flight::Leave => self.left(),
            Err(StoreError::TooLarge | StoreError::TooManyOps) if flight == Flight::Commit => self.commit_too_large(),
            Err(why) => self.fall(why),
        }
    }

    fn land_well(&mut self, flight: Flight, done: OpDone) {
        match (flight, done) {
            (Flight::Resume(at), OpDone::KeptAlive { ttl_s }) if ttl_s > 0 => self.has_lease(at, ttl_s),
            (Flight::Resume(..), OpDone::KeptAlive { .. }) => {
                self.session.lease = None;
                self.away(0);
            }
            (Flight::Grant(at), OpDone::Granted { lease, ttl_s, .. }) => {
                self.session.lease = Some(lease);
                self.has_lease(at, ttl_s);
            }
            (Flight::Read, OpDone::Txn { revision, done, .. }) => self.read(revision, done),
            (Flight::Make, OpDone::Txn { .. }) => self.start_reading(),
            (Flight::Claim, OpDone::Txn { revision, succeeded: true, .. }) => self.claimed(revision),
            (Flight::Claim, OpDone::Txn { .. }) => self.start_reading(),
            (Flight::Watch, OpDone::Watching) => self.joined(),
            (Flight::Renew(at), OpDone::KeptAlive { ttl_s }) => self.renewed(at, ttl_s),
            (Flight::ReadState(at, until, known), OpDone::Txn { done, .. }) => {
                self.read_state((at, until, known), done)
            }
            (Flight::Record, OpDone::Txn { revision, succeeded: true, .. }) => self.record_written(revision),
            // Another daemon has the node's name, or the lease has expired: reading everything again shows which.
            (Flight::Record, OpDone::Txn { succeeded: false, .. }) => {
                self.fall(StoreError::LeaseNotFound);
            }
            (Flight::Ack(ack), OpDone::Txn { .. }) => self.acknowledged(ack),
            (Flight::Asks(upto, read), OpDone::Txn { revision, succeeded, done }) => {
                self.asks_written((upto, read), revision, succeeded, done);
            }
            (Flight::Acks(newest), OpDone::Txn { succeeded, done, .. }) => {
                self.acks_read(succeeded.then_some(newest), done);
            }
            (Flight::Loads(id), OpDone::Txn { done, .. }) => {
                let acks = self.acks_of(done);
                self.actions.push_back(Action::Loads(id, acks));
            }
            (Flight::Commit, OpDone::Txn { revision, succeeded, .. }) => self.committed(revision, succeeded),
            (Flight::Leave, _) => self.left(),
            _ => (),
        }
    }

    fn has_lease(&mut self, asked_at: Time, ttl_s: u64) {
        self.session.granted_at = asked_at;
        self.session.granted_until = asked_at + ttl_s * 1_000_000_000;
        self.session.renew_at = asked_at + ttl_s * 1_000_000_000 / 3;
        self.start_reading();
    }

    pub(super) fn start_reading(&mut self) {
        let keys = &self.settings.keys;
        let asked = Range::one(keys.asked(&self.settings.name));
        let then = vec![Do::Get(keys.watched()), Do::Get(asked)];
        self.send(Flight::Read, Op::Txn(Txn { then, ..Txn::default() }));
    }

    /// Everything was read; the next step is to claim the name.
    fn read(&mut self, revision: Revision, done: Vec<Done>) {
        let mut got = done.into_iter().map(Done::entries);
        let entries = got.next().unwrap_or_default();
        let asked: Option<Entry> = got.next().unwrap_or_default().pop();
        let mut before = std::mem::replace(&mut self.replica, Replica::read(&self.settings.keys, revision, entries));
        // The planner may have a state that was never committed, or one that is not in a restored copy of the store.
        self.work.planner = None;
        self.follow.lose_sight();
        self.replica.remember_begun(&before);
        // The last good state: any that was read after its loss was never used.
        before.state = before.lost.take().or_else(|| before.state.take());
        if self.replica.is_of(self.tree) {
            self.replica.lost.clone_from(&before.state);
        } else {
            self.keep_numbers(&before);
        }
        self.keep_state();
        self.outbox.found_written(&self.settings, asked.as_ref());
        let made_ns = match &self.replica.tree {
            None => return self.no_tree(&before),
            Some(Ok(tree)) => tree.made_ns,
            Some(Err(_)) => 0,
        };
        self.ensure_planner();
        if let Some(why) = self.damage() {
            return self.unusable(why);
        }
        self.know_tree(made_ns, &before);
        // From here on the store's content counts; a new cluster has lost nothing.
        self.replica.lost = None;
        if self.is_refused() {
            return;
        }
        let own = &self.settings.name;
        let named = self.replica.names.get(own).filter(|_| self.replica.is_named(own));
        let Some(id) = named else { return self.make_name() };
        self.id = Some(NodeId(*id));
        self.claim();
    }

    fn claim(&mut self) {
        if let (Some(id), true) = (self.id, self.replica.lacks_boot(&self.settings.name)) {
            return self.tell_boot(id.0);
        }
        let key = self.settings.keys.node(&self.settings.name);
        let is_known_here = self.replica.homes.get(&self.settings.name) == Some(&self.settings.home);
        let compare = match self.replica.nodes.get(&self.settings.name) {
            None => Compare::absent(key.clone()),
            Some(At { value: Live { node, lease }, .. })
                if is_known_here && *lease == self.session.lease && *node == self.record() =>
            {
                return self.start_watch();
            }
            Some(At { revision, .. }) => Compare::unchanged(key.clone(), *revision),
        };
        let lease = self.session.lease;
        // The known generation counts as acknowledged from the start, otherwise planners would wait for this node.
        let measured = self.follow.measured;
        let ack = Ack { generation: self.replica.generation(), other_threads: self.follow.load, measured };
        let mut compare = vec![compare];
        let mut then = vec![
            Do::Put { key, value: encode(&self.record()), lease },
            Do::Put { key: self.settings.keys.ack(&self.settings.name), value: encode(&ack), lease },
        ];
        if let (false, Some(id)) = (is_known_here, self.id) {
            // As long as no job was placed here since: the machine that had the name may have been back for a moment.
            compare.push(Compare::unchanged(self.settings.keys.state(), self.replica.state_revision()));
            let boot = self.replica.boots.get(&self.settings.name).cloned().unwrap_or_default();
            let value = encode(&self.own_name(id.0, boot));
            then.push(Do::Put { key: self.settings.keys.name(&self.settings.name), value, lease: None });
        }
        self.follow.written = Some(ack);
        self.session.record_changed = false;
        self.send(Flight::Claim, Op::Txn(Txn { compare, then, or_else: vec![] }));
    }

    /// The watch reports this record, too, but until then an older one must not be taken for a newer one.
    fn claimed(&mut self, revision: Revision) {
        let live = Live { node: self.record(), lease: self.session.lease };
        self.replica.nodes.insert(self.settings.name.clone(), At { value: live, revision });
        self.start_watch();
    }

    /// The node's record as it should be.
    pub(super) fn record(&self) -> Node {
        let capacity = self.settings.capacity;
        Node {
            id: self.id.map_or(0, |id| id.0),
            instance: self.settings.instance,
            home: self.settings.home.clone(),
            boot: self.settings.boot.clone(),
            cpus: capacity.cpus,
            memory_bytes: capacity.memory_bytes,
            disk_bytes: capacity.disk_bytes,
            clock: self.settings.clock,
            version: self.settings.version.clone(),
            jobs_known: self.settings.jobs_known,
        }
    }

    fn start_watch(&mut self) {
        let (range, from) = (self.settings.keys.watched(), self.replica.revision + 1);
        let watch = self.send(Flight::Watch, Op::Watch { range, from });
        // Changes may be reported before the answer that the watch has begun.
        self.session.watch = Some(watch);
    }

    fn joined(&mut self) {
        self.session.phase = Phase::Joined;
        self.session.since = self.now.steady;
        self.session.said = None;
        self.session.alarm = None;
        self.session.untold = None;
        self.replica.lost = None;
        if let (false, Some(id)) = (self.session.was_joined, self.id) {
            self.session.lost_since = None;
            self.say(Notice::Joined(id));
        } else if self.session.refused.is_none() {
            // A member that may read may still be refused as soon as it writes.
            self.is_back();
        }
        self.session.was_joined = true;
        self.state_is_known();
        self.confirm_lease(self.session.granted_until);
        self.is_heard(self.session.granted_at);
        self.say_again();
        self.changed();
    }

    /// Something in the copy of the store has changed.
    pub(super) fn changed(&mut self) {
        if !self.session.is_joined() {
            return;
        }
        let own = &self.settings.name;
        if self.replica.tree.is_none() || !self.replica.is_named(own) || self.replica.lacks_boot(own) {
            // Reading everything shows whether the whole tree is gone or only this key, or a repair has written the name.
            return self.away(0);
        }
        self.ensure_planner();
        if let Some(why) = self.damage() {
            return self.unusable(why);
        }
        match self.replica.nodes.get(&self.settings.name) {
            Some(live) if live.value.node.instance != self.settings.instance => {
                let home = live.value.node.home.clone();
                let name = &self.settings.name;
                return self.give_up(format!("another coschedd, {home}, has taken the name {name} over"));
            }
            None => {
                self.session.record_changed = true;
                self.session.rewrites = Some(self.settings.keys.node(&self.settings.name));
            }
            _ => (),
        }
        self.session.was_counted |= self.is_counted();
        // The state that is known in this session was read after its lease was requested.
        self.is_heard(self.session.granted_at);
        self.state_is_known();
        self.take_replies();
        // Both go through all jobs, and most changes are requests and answers.
        if self.replica.is_news_of_jobs {
            self.local_changed();
            self.work.ends = self.has_ends();
        }
        self.look_for_work();
    }

    /// Planners rely on it that a node knows every state older than its renewal. So a renewal counts from when it was sent, and only after the
    /// state was read from a quorum, because a single member of the store may be behind. While the state is unchanged, it is not transferred.
    fn renewed(&mut self, asked_at: Time, ttl_s: u64) {
        if ttl_s == 0 {
            return self.fall(StoreError::LeaseNotFound);
        }
        let until = asked_at + ttl_s * 1_000_000_000;
        self.session.renew_at = asked_at + ttl_s * 1_000_000_000 / 3;
        let key = self.settings.keys.state();
        let known = self.replica.state_revision();
        let compare = vec![Compare::unchanged(key.clone(), known)];
        let or_else = vec![Do::Get(Range::one(key))];
        self.send(Flight::ReadState(asked_at, until, known), Op::Txn(Txn { compare, then: vec![], or_else }));
    }

    fn read_state(&mut self, (asked_at, until, known): (Time, Time, Revision), done: Vec<Done>) {
        if self.session.untold.is_some_and(|untold| self.replica.revision < untold) {
            return self.fall(StoreError::Unavailable("the watch is silent".to_owned()));
        }
        if let Some(Done::Got(entries)) = done.into_iter().next() {
            let newest = entries.first().map(|entry| entry.mod_revision);
            if newest.is_none() && self.replica.state.is_some() {
                // The state is gone, and the watch has reported neither that nor an earlier change: the renewal does not count.
                return;
            }
            if newest.is_some_and(|newest| newest < known) {
                return self
                    .fall(StoreError::Unavailable("the store was replaced by an earlier copy of its data".to_owned()));
            }
            self.session.untold = newest.filter(|newest| *newest > self.replica.revision);
            entries.into_iter().for_each(|entry| self.replica.put(&self.settings.keys, entry));
            self.changed();
            if !self.session.is_joined() {
                // What was read cannot be used, so its plan is not known: the renewal does not count.
                return;
            }
        }
        self.confirm_lease(until);
        self.is_heard(asked_at);
        self.holds();
    }

    /// Writes the node's record again.
    pub(super) fn pump_record(&mut self) {
        if !self.session.record_changed || self.is_under_way(|flight| *flight == Flight::Record) {
            return;
        }
        let key = self.settings.keys.node(&self.settings.name);
        let known = self.replica.nodes.get(&self.settings.name);
        let compare = vec![
            known.map_or_else(|| Compare::absent(key.clone()), |known| Compare::unchanged(key.clone(), known.revision)),
        ];
        self.session.record_changed = false;
        let then = vec![Do::Put { key, value: encode(&self.record()), lease: self.session.lease }];
        self.send(Flight::Record, Op::Txn(Txn { compare, then, or_else: vec![] }));
    }

    /// The watch reports the record later, too.
    fn record_written(&mut self, revision: Revision) {
        if let Some(key) = self.session.rewrites.take() {
            let live = Live { node: self.record(), lease: self.session.lease };
            self.replica.nodes.insert(self.settings.name.clone(), At { value: live, revision });
            self.say(Notice::KeyGone(key));
        }
    }

    pub(super) fn take_leave(&mut self) {
        if self.session.is_over() {
            return;
        }
        self.end("this daemon has left the cluster".to_owned());
        match self.session.lease {
            Some(lease) => drop(self.send(Flight::Leave, Op::Revoke(lease))),
            None => self.left(),
        }
    }

    /// The lease was revoked, or expires soon.
    pub(super) fn left(&mut self) {
        self.flights.clear();
        self.say(Notice::Left);
    }
}
