//! Between nodes and the store: delay, loss, partition, and a store that hangs or goes away and comes back.
//!
//! Operations of one daemon may overtake each other, as parallel calls do; the events of a watch arrive in order, as in a
//! stream.

use super::{Broken, Event, MS, S, World};
use crate::host::Watch;
use crate::invariants::Seen;
use cosched_cluster::OpId;
use cosched_cluster::store::{Do, Event as Change, Op, OpDone, Range, StoreError, Txn};
use cosched_cluster::wire::{Answer, Ask, Job, Reply, Request, decode, encode};
use cosched_core::cluster::State;
use cosched_core::{Standing, Time};
use std::collections::BTreeMap;

impl World {
    fn delay(&mut self) -> u64 {
        if self.dice.below(1000) < self.slow {
            3 * S / 2 + self.dice.below(2 * S)
        } else {
            MS / 5 + self.dice.below(2 * MS)
        }
    }

    fn is_cut(&mut self, node: usize) -> bool {
        self.now < self.hosts[node].cut_until || self.dice.below(1000) < self.lossy
    }

    /// A member sends an operation to the store.
    pub(super) fn asks(&mut self, node: usize, op: OpId, what: Op) {
        let kind = match &what {
            Op::KeepAlive(_) => "renewals",
            // The second half of a renewal: whether the state has changed. The value is sent only if it has.
            Op::Txn(txn) if txn.then.is_empty() => "checks",
            Op::Txn(txn) if txn.then.iter().all(|op| matches!(op, Do::Get(_))) => "reads",
            Op::Txn(_) => "writes",
            _ => "others",
        };
        *self.ops.entry(kind).or_default() += 1;
        self.see(&Seen::Asked { node, what: kind });
        if self.is_single {
            return self.asks_own(node, op, what);
        }
        if !self.is_cut(node) {
            let at = self.now + self.delay();
            let life = self.hosts[node].life;
            self.push(at, Event::Arrives { node, life, store: self.store_life, op, what });
        }
    }

    pub(super) fn arrives(&mut self, (node, life, store): (usize, u64, u64), op: OpId, what: Op) {
        if self.now < self.store_stops_until {
            return self.push(self.store_stops_until + 1, Event::Arrives { node, life, store, op, what });
        }
        // A connection does not outlive the store's process.
        if self.now < self.store_away_until || store != self.store_life {
            let done = Err(StoreError::Unavailable("connection refused".to_owned()));
            let at = self.now + self.delay();
            return self.push(at, Event::Answers { node, life, op, done });
        }
        let mut done = match self.refusal(node, &what) {
            Some(why) => Err(why),
            None => self.carries_out_op((node, life), op, what),
        };
        // A connection that breaks at the wrong moment: the operation was carried out, and its caller does not learn it.
        if self.lossy > 0 && self.dice.below(2000) < self.lossy {
            done = Err(StoreError::Unavailable("connection reset".to_owned()));
        }
        if !self.is_cut(node) {
            let at = self.now + self.delay();
            self.push(at, Event::Answers { node, life, op, done });
        }
    }

    pub(super) fn carries_out_op(
        &mut self,
        (node, life): (usize, u64),
        op: OpId,
        mut what: Op,
    ) -> Result<OpDone, StoreError> {
        if let (Some(Broken::NoConditions), Op::Txn(txn)) = (self.broken, &mut what) {
            txn.compare.clear();
        }
        if let (Some(Broken::Disobeys), Op::Txn(txn)) = (self.broken, &mut what) {
            lets_go_on(txn, &self.keys.state());
        }
        let watch = match &what {
            Op::Watch { range, from } => Some(Watch { range: range.clone(), next: *from, ended: false }),
            _ => None,
        };
        let done = self.store.call(self.store_time(), what);
        self.look_at_store();
        if let (Some(watch), Ok(_), true) = (watch, &done, self.hosts[node].life == life) {
            self.hosts[node].watches.insert(op, watch);
            self.tell_watches();
        }
        done
    }

    pub(super) fn answers(&mut self, node: usize, life: u64, op: OpId, done: Result<OpDone, StoreError>) {
        let host = &self.hosts[node];
        if host.life != life || self.now < host.cut_until || self.now < host.deaf_until {
            return;
        }
        if self.now < host.hung_until {
            return self.push(host.hung_until, Event::Answers { node, life, op, done });
        }
        self.tell_daemon(node, |daemon, now| daemon.done(now, op, done));
    }

    pub(super) fn tells(&mut self, node: usize, life: u64, id: OpId) {
        let host = &mut self.hosts[node];
        if host.life != life {
            return;
        }
        let Some(watch) = host.watches.get_mut(&id).filter(|watch| !watch.ended) else { return };
        let until = [host.cut_until, host.deaf_until, host.blind_until, host.hung_until];
        let until = until.into_iter().chain([self.store_stops_until, self.store_away_until]).max().unwrap_or(0);
        if self.now < until {
            let late = if self.is_single { 0 } else { 100 * MS };
            return self.push(until + late, Event::Tells { node, life, watch: id });
        }
        match self.store.news(&watch.range, watch.next) {
            Ok(news) => {
                watch.next = news.revision + 1;
                self.tell(node, |member, now| member.handle_news(now, id, news));
            }
            Err(e) => {
                host.watches.remove(&id);
                self.tell(node, |member, now| member.handle_watch_lost(now, id, e));
            }
        }
    }

    pub(super) fn cuts(&mut self, node: usize, life: u64, watch: OpId) {
        // A node that cannot hear it now gets it as soon as it can.
        let until = self.hosts[node].cut_until.max(self.hosts[node].hung_until);
        if self.now < until {
            self.hosts[node].watches.get_mut(&watch).into_iter().for_each(|watch| watch.ended = true);
            return self.push(until, Event::Cuts { node, life, watch });
        }
        if self.hosts[node].life == life && self.hosts[node].watches.remove(&watch).is_some() {
            let why = StoreError::Unavailable("the stream ended".to_owned());
            self.tell(node, |member, now| member.handle_watch_lost(now, watch, why));
        }
    }

    /// The store has changed: watches report it after a while.
    fn tell_watches(&mut self) {
        for node in 0..self.hosts.len() {
            let life = self.hosts[node].life;
            let ids: Vec<OpId> = self.hosts[node].watches.keys().copied().collect();
            for watch in ids {
                // A daemon tells itself what it has written before anything else happens.
                let late = if self.is_single { 0 } else { MS / 5 + self.dice.below(3 * MS) };
                let at = self.now + late;
                self.push(at, Event::Tells { node, life, watch });
            }
        }
    }

    /// Shows the invariants what has changed in the store, and lets watches report it.
    pub(super) fn look_at_store(&mut self) {
        if self.store.revision() < self.looked {
            return;
        }
        let all = Range::prefix(self.keys.prefix());
        let news = self.store.news(&all, self.looked).unwrap_or_default();
        self.looked = self.store.revision() + 1;
        if news.events.is_empty() {
            return;
        }
        for change in &news.events {
            self.look_at_change(change);
        }
        self.look_at_answers();
        self.tell_watches();
    }

    fn look_at_change(&mut self, change: &Change) {
        let entry = &change.entry;
        let Some(rest) = entry.key.strip_prefix(self.keys.prefix()) else { return };
        let (folder, name) = rest.split_once('/').unwrap_or((rest, ""));
        match folder {
            "state" if !change.deleted => {
                let Ok(state) = decode::<State>(&entry.value) else { return };
                let old = self.state.as_ref().map_or(0, |state| state.generation);
                self.counts.plans += u64::from(state.generation != old);
                let (generation, jobs) = (state.generation, state.jobs.len());
                let from_ns = (state.from_slot * state.config.slot_length_ns).saturating_sub(crate::clock::EPOCH_NS);
                let from_s = from_ns as f64 / S as f64;
                self.note(|| format!("store: state, generation {generation} from {from_s:.4}, {jobs} jobs"));
                self.states.push_back(entry.value.clone());
                if self.states.len() > 3 {
                    self.states.pop_front();
                }
                self.shows_state(&state);
                self.state = Some(state);
            }
            "requests" => {
                // A request that is written again while it still exists is reported as a new one, because that must never
                // happen.
                self.see(&Seen::Request { id: name, came: !change.deleted });
                let request = decode::<Request>(&entry.value).ok().filter(|of| !change.deleted && of.by.is_some());
                if let Some(request) = request {
                    if let Ask::Dead { node } = &request.ask
                        && let Some(id) = self.numbers().get(node)
                    {
                        self.see(&Seen::GivenUp(*id));
                    }
                    self.wanted.insert(name.to_owned(), (entry.create_revision, request.ask));
                }
            }
            "replies" if !change.deleted => {
                let done = decode::<Reply>(&entry.value).is_ok_and(|reply| reply.answer == Answer::Done);
                if let Some((at, ask)) = self.wanted.remove(name).filter(|_| done) {
                    self.done.insert((at, name.to_owned()), ask);
                }
            }
            "jobs" if !change.deleted => {
                if let Ok(job) = decode::<Job>(&entry.value) {
                    let is_new = entry.create_revision == entry.mod_revision;
                    self.look_at_number(&job, is_new);
                    self.counts.jobs = self.counts.jobs.max(job.id);
                    self.see(&Seen::Record(&job));
                }
            }
            "nodes" => {
                let what = if change.deleted { "was deleted" } else { "was written" };
                self.hears_of(name, change);
                self.note(|| format!("store: the lease key of {name} {what}"));
            }
            _ => (),
        }
    }

    /// Checks the state that a transaction wrote against the answers that it gave.
    fn look_at_answers(&mut self) {
        let asks: Vec<Ask> = std::mem::take(&mut self.done).into_values().collect();
        let Some(state) = self.state.clone().filter(|_| !asks.is_empty()) else { return };
        self.are_told(&asks);
        let ids = self.numbers();
        self.see(&Seen::Done { asks: &asks, state: &state, ids: &ids });
    }

    /// The numbers of nodes by their names, including nodes that are away: they can be drained.
    fn numbers(&self) -> BTreeMap<String, u32> {
        let folder = format!("{}ids/", self.keys.prefix());
        let given = self.store.read(&Range::prefix(&folder)).into_iter().filter_map(|entry| {
            Some((String::from_utf8(entry.value).ok()?, entry.key.strip_prefix(&folder)?.parse().ok()?))
        });
        let record = |node: usize| Some((self.hosts[node].name.clone(), self.record_of(node)?.0.id));
        given.chain((0..self.hosts.len()).filter_map(record)).collect()
    }

    /// Restores the store from an old copy, if the world is broken in this way.
    pub(super) fn forget_writes(&mut self) {
        if self.broken != Some(Broken::StoreForgets) {
            return;
        }
        if let Some(value) = self.states.pop_front() {
            let then = vec![Do::Put { key: self.keys.state(), value, lease: None }];
            let _ = self.store.call(Time(self.now), Op::Txn(Txn { then, ..Txn::default() }));
            self.look_at_store();
        }
    }
}

/// Removes all suspensions from the state that a transaction writes.
fn lets_go_on(txn: &mut Txn, key: &str) {
    for change in &mut txn.then {
        if let Do::Put { key: of, value, .. } = change
            && of == key
            && let Ok(mut state) = decode::<State>(value)
        {
            state.jobs.values_mut().for_each(|job| job.standing = Standing::Scheduled);
            *value = encode(&state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 6593: answers about a node that was away, and drained again, could not be told from missing answers.
    #[test]
    fn a_node_that_is_away_has_its_number() {
        let mut world = World::started(0, 2);
        let all = world.numbers();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["n0", "n1"]);
        world.power_off(1);
        world.run(8 * S);
        assert!(world.record_of(1).is_none(), "it is not heard");
        assert_eq!(world.numbers(), all);
    }
}
