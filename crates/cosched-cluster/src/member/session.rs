//! A member's way into the cluster, its lease, and what happens when the store is lost.
//!
//! Lease, read, claim the name, watch. Whatever fails on the way, or later, leads back to the beginning: with unknown
//! outcomes about, nothing but reading anew tells what is. A lease that still lives is kept, so that nobody notices.

use super::Member;
use super::replica::{At, Live, Replica};
use super::types::{Action, Notice, OpId};
use crate::store::{Compare, Do, Done, Entry, Key, LeaseId, Op, OpDone, Range, Revision, StoreError, Txn};
use crate::wire::{Ack, Node, encode};
use cosched_core::{NodeId, Time};

/// The first wait before the store is tried again; it doubles up to the longest.
const RETRY_NS_MIN: u64 = 100_000_000;
const RETRY_NS_MAX: u64 = 3_000_000_000;

/// How often it is looked whether a name has become free.
const NAME_RETRY_NS: u64 = 500_000_000;

/// What an operation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flight {
    /// To see whether the old lease still lives.
    Resume(Time),
    /// A new lease, asked for at this time.
    Grant(Time),
    /// Everything.
    Read,
    /// To make the tree or a name.
    Make,
    /// To claim the name.
    Claim,
    /// The watch from a revision on.
    Watch,
    /// To renew the lease, asked for at this time.
    Renew(Time),
    /// The state before a renewal counts, which was asked for at the first time and would last until the other, when this one was known.
    ReadState(Time, Time, Revision),
    /// The node's record.
    Record,
    /// What it has acknowledged.
    Ack(Ack),
    /// Users' requests, up to this one, and the deletion of these replies.
    Asks(u64, Vec<String>),
    /// What others have acknowledged, when this generation was the newest that was known.
    Acks(u64),
    /// The same, for a user.
    Loads(OpId),
    /// A plan.
    Commit,
    /// To give up the lease.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The store is tried again then.
    Away(Time),
    /// On the way in.
    Entering,
    Joined,
    /// Not any more, or not at all.
    Over,
}

/// How a member stands with the store.
#[derive(Debug)]
pub(super) struct Session {
    phase: Phase,
    lease: Option<LeaseId>,
    /// When the lease that was granted ends, at the least.
    granted_until: Time,
    /// When it was asked for.
    pub(super) granted_at: Time,
    /// The next renewal.
    renew_at: Time,
    pub(super) watch: Option<OpId>,
    retry_ns: u64,
    /// Since when the store is lost; `None` while it is not.
    pub(super) lost_since: Option<Time>,
    pub(super) was_joined: bool,
    /// Since when the member is in touch without an interruption.
    pub(super) since: Time,
    /// Since when another daemon was seen to have the name.
    name_taken_since: Option<Time>,
    /// What was last said to be unusable, to say it once.
    pub(super) said: Option<String>,
    /// What the store was last said to refuse, until it holds again for a renewal.
    refused: Option<String>,
    /// How often it was tried to get in, so that nodes do not all try at the same times.
    tries: u64,
    /// A change of the state that was read and that the watch has not told: it has until the next renewal.
    untold: Option<Revision>,
    /// The node's record is to be written anew.
    pub(super) record_changed: bool,
    /// A key of this node is gone, and is being written again.
    rewrites: Option<Key>,
    /// Why nothing is planned and nobody is judged: what lies in the store is damaged.
    pub(super) alarm: Option<String>,
    /// Why the member cannot take part.
    pub(super) out: Option<String>,
}

impl Session {
    pub(super) fn new(now: Time) -> Session {
        Session {
            phase: Phase::Away(now),
            lease: None,
            granted_until: now,
            granted_at: now,
            renew_at: now,
            watch: None,
            retry_ns: RETRY_NS_MIN,
            lost_since: None,
            was_joined: false,
            since: now,
            name_taken_since: None,
            said: None,
            refused: None,
            tries: 0,
            untold: None,
            record_changed: false,
            rewrites: None,
            alarm: None,
            out: None,
        }
    }

    pub(super) fn is_joined(&self) -> bool {
        self.phase == Phase::Joined
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(super) fn lease(&self) -> Option<LeaseId> {
        self.lease
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

    /// The store is lost, or what is known of it cannot be relied on.
    pub(super) fn fall(&mut self, why: StoreError) {
        let wait = match why {
            // Nothing is wrong with the store: it was only too long ago.
            StoreError::Compacted(_) | StoreError::LeaseNotFound => 0,
            _ => self.retry_ns(),
        };
        if why == StoreError::LeaseNotFound {
            self.session.lease = None;
        }
        let first = self.session.lost_since.is_none();
        // That the store refuses us is told even after it was away: somebody has to do something about it. But once.
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

    /// The next wait: three quarters to all of it, another one on each node, for all have lost the same store at the same time.
    fn retry_ns(&mut self) -> u64 {
        self.session.tries += 1;
        let mixed = (self.settings.instance ^ self.session.tries).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.session.retry_ns / 4 * 3 + mixed % (self.session.retry_ns / 4)
    }

    /// A session has held for as long as it takes to renew a lease: what was refused is not any more.
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

    /// This daemon takes no part: somebody has to do something about it.
    fn give_up(&mut self, why: String) {
        self.end(why.clone());
        self.say(Notice::Out(why));
    }

    /// Nothing more will be done for anybody.
    fn end(&mut self, why: String) {
        self.away(0);
        self.session.phase = Phase::Over;
        self.session.out = Some(why);
        self.lapse();
        self.abandon_asks();
    }

    /// An operation is done.
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
            // Somebody else has the node's name, or its lease ran out: reading anew tells.
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

    /// Everything was read; now the name is to be claimed.
    fn read(&mut self, revision: Revision, done: Vec<Done>) {
        let mut got = done.into_iter().map(|done| match done {
            Done::Got(entries) => entries,
            _ => Vec::new(),
        });
        let entries = got.next().unwrap_or_default();
        let asked: Option<Entry> = got.next().unwrap_or_default().pop();
        let mut before = std::mem::replace(&mut self.replica, Replica::read(&self.settings.keys, revision, entries));
        // It may be of a state that came to nothing, or that a copy which was put back does not have.
        self.work.planner = None;
        self.follow.lose_sight();
        self.replica.remember_begun(&before);
        // What was read since then was never used.
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
        // What there is holds now; in a new cluster nothing is missed.
        self.replica.lost = None;
        let own = &self.settings.name;
        let named = self.replica.names.get(own).filter(|_| !self.replica.nameless.contains(own));
        let Some(id) = named else { return self.make_name() };
        self.id = Some(NodeId(*id));
        self.claim();
    }

    fn claim(&mut self) {
        if let (Some(id), true) = (self.id, self.replica.lacks_boot(&self.settings.name)) {
            return self.tell_boot(id.0);
        }
        let key = self.settings.keys.node(&self.settings.name);
        let compare = match self.replica.nodes.get(&self.settings.name) {
            None => Compare::absent(key.clone()),
            Some(At { value: Live { node, lease }, revision }) => {
                let mine = node.instance == self.settings.instance;
                if mine && *lease == self.session.lease && *node == self.record() {
                    return self.start_watch();
                }
                let is_dead = self.settings.dead.as_ref().is_none_or(|dead| dead.contains(&node.instance));
                if !mine && (node.home != self.settings.home || !is_dead) {
                    let home = node.home.clone();
                    return self.name_is_taken(&home);
                }
                Compare::unchanged(key.clone(), *revision)
            }
        };
        self.session.name_taken_since = None;
        let lease = self.session.lease;
        // What is known already counts as acknowledged from the first moment, or planners would wait for this node.
        let measured = self.follow.measured;
        let ack = Ack { generation: self.replica.generation(), other_threads: self.follow.load, measured };
        let then = vec![
            Do::Put { key, value: encode(&self.record()), lease },
            Do::Put { key: self.settings.keys.ack(&self.settings.name), value: encode(&ack), lease },
        ];
        self.follow.written = Some(ack);
        self.session.record_changed = false;
        self.send(Flight::Claim, Op::Txn(Txn { compare: vec![compare], then, or_else: vec![] }));
    }

    /// The watch will tell so, too, but until then an older record must not be taken for a newer one.
    fn claimed(&mut self, revision: Revision) {
        let live = Live { node: self.record(), lease: self.session.lease };
        self.replica.nodes.insert(self.settings.name.clone(), At { value: live, revision });
        self.start_watch();
    }

    /// Another daemon has the name. It may be dead, then its lease ends; otherwise there are two.
    fn name_is_taken(&mut self, home: &str) {
        let since = *self.session.name_taken_since.get_or_insert(self.now.steady);
        if self.now.steady - since <= self.settings.grace_ns() {
            return self.away(NAME_RETRY_NS);
        }
        let name = &self.settings.name;
        if *home == self.settings.home {
            return self.give_up(format!(
                "the name {name} is taken by a copy of this machine: a living coschedd with the same machine-id and state \
                 directory, {home}, takes part in this cluster as {name}. Give this machine a machine-id and a `node` of its \
                 own, and an empty state directory; the other one goes on"
            ));
        }
        self.give_up(format!(
            "the name {name} is taken: another coschedd, {home}, takes part in this cluster as {name}. Give each node a \
             name of its own (`node` in cosched.toml), or stop the other daemon"
        ));
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
        // News may be told before it is said that the watch has begun.
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
            // Who reads well may be refused again as soon as it writes.
            self.is_back();
        }
        self.session.was_joined = true;
        self.state_is_known();
        self.confirm_lease(self.session.granted_until);
        self.is_heard(self.session.granted_at);
        self.say_again();
        self.changed();
    }

    /// Something in the copy has changed.
    pub(super) fn changed(&mut self) {
        if !self.session.is_joined() {
            return;
        }
        if self.replica.tree.is_none() || self.replica.nameless.contains(&self.settings.name) {
            // Reading tells whether all is gone or only this key.
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
        // Whatever of the state is known in this session was read after its lease was asked for.
        self.is_heard(self.session.granted_at);
        self.state_is_known();
        self.take_replies();
        // Both look at all jobs, and most changes are requests and answers.
        if self.replica.is_news_of_jobs {
            self.here_changed();
            self.work.ends = self.has_ends();
        }
        self.look_for_work();
    }

    /// Planners count on it that a node knows the state of before its renewal: the renewal counts when that was asked for, of
    /// all of the store, for one member of it may be behind. While nothing changes, nothing is carried.
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
                // It is gone, and the watch has told neither that nor what was before: the renewal does not count.
                return;
            }
            if newest.is_some_and(|newest| newest < known) {
                return self.fall(StoreError::Unavailable("the store is an earlier copy of what it was".to_owned()));
            }
            self.session.untold = newest.filter(|newest| *newest > self.replica.revision);
            entries.into_iter().for_each(|entry| self.replica.put(&self.settings.keys, entry));
            self.changed();
            if !self.session.is_joined() {
                // What was read cannot be used, and the plan in it is not known: the renewal does not count.
                return;
            }
        }
        self.confirm_lease(until);
        self.is_heard(asked_at);
        self.holds();
    }

    /// Writes the node's record anew.
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

    /// The watch tells so later, too.
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

    /// The lease is gone, or will be soon.
    pub(super) fn left(&mut self) {
        self.flights.clear();
        self.say(Notice::Left);
    }
}
