//! The store loses its data, or is restored from an earlier copy: it begins another life.

use super::{S, World};
use crate::invariants::Seen;
use cosched_cluster::store::{Event as Change, MemoryStore, Range, Revision};
use cosched_cluster::wire::{Job, Node, decode};
use cosched_core::cluster::State;
use cosched_core::{JobId, Time};

/// How long it may take until the planner knows of a node.
const NEWS_NS: u64 = S;

impl World {
    /// The store is away for a while, and comes back without its data or with an earlier copy of it.
    pub(super) fn store_becomes_another(&mut self, ns: u64) {
        let copy = self.copy.take().filter(|_| self.dice.one_in(2));
        let what = if copy.is_some() { "an earlier copy of its data" } else { "no data" };
        self.note(|| format!("store: will come back with {what}"));
        self.another = Some(copy.unwrap_or_default());
        self.store_goes_away(ns);
    }

    /// The store is back.
    pub(super) fn comes_back(&mut self) {
        if let Some(store) = self.another.take() {
            self.begins_another_life(store);
        }
        self.store.extend_leases(Time(self.now));
    }

    /// For tests: the store comes back at once with the contents of `store`.
    pub fn put_store(&mut self, store: MemoryStore) {
        self.another = Some(store);
        self.store_goes_away(S);
    }

    pub(super) fn begins_another_life(&mut self, mut store: MemoryStore) {
        store.leases_unlike(&self.store);
        self.store = store;
        self.store_life += 1;
        self.life_began = self.store.revision();
        self.looked = self.life_began + 1;
        self.states.clear();
        self.capacity.clear();
        (0..self.hosts.len()).for_each(|node| self.note_capacity(node));
        self.state = self.state();
        self.note(|| "store: comes back with other data".to_owned());
        self.nothing_is_told();
        self.see(&Seen::AnotherStore);
        self.shows_contents();
    }

    /// Reports what the store still has of its earlier life to the invariants as if it had just been written.
    fn shows_contents(&mut self) {
        let requests = format!("{}requests/", self.keys.prefix());
        for entry in self.store.read(&Range::prefix(&requests)) {
            self.see(&Seen::Request { id: entry.key.strip_prefix(&requests).unwrap_or_default(), came: true });
        }
        // In the order of a transaction: the state says which jobs are ending.
        if let Some(state) = self.state.clone() {
            self.shows_state(&state);
        }
        for job in self.jobs() {
            self.see(&Seen::Record(&job));
        }
    }

    pub(super) fn shows_state(&mut self, state: &State) {
        let now_wall_ns = self.now + crate::clock::EPOCH_NS;
        let nodes = self.store.read(&Range::prefix(&format!("{}nodes/", self.keys.prefix())));
        let heard = nodes.iter().filter_map(|entry| Some(decode::<Node>(&entry.value).ok()?.id)).collect();
        let seen = Seen::State { state, heard: &heard, capacity: &self.capacity, now_wall_ns };
        super::see(&mut self.checks, &mut self.violation, self.now, &seen);
    }

    /// A job was accepted: no participating node may have a job of an earlier life of the store with the same or a
    /// higher number.
    pub(super) fn look_at_number(&mut self, job: &Job, is_new: bool) {
        if !is_new {
            return;
        }
        for node in 0..self.hosts.len() {
            let host = &self.hosts[node];
            // A record that came with a copy says nothing about the node: it may not have heard of this life yet.
            let own = |(record, at): (Node, _)| record.instance == host.settings.instance && at > self.life_began;
            let is_known = host.heard.is_some_and(|(_, at)| at + NEWS_NS < self.now);
            let takes_part = is_known && self.record_of(node).is_some_and(own);
            let earlier = host.processes.parts.iter().filter(|(_, part)| part.store_life < self.store_life);
            let known = earlier.map(|(id, _)| id.0).max().filter(|_| takes_part && host.node.is_some());
            if let Some(known) = known {
                self.see(&Seen::Numbered { job: JobId(job.id), node, known });
            }
        }
    }

    /// A node's record was written or removed; a rewritten record keeps the time at which it first appeared in this
    /// life of the store.
    pub(super) fn hears_of(&mut self, name: &str, change: &Change) {
        let record = decode::<Node>(&change.entry.value).ok().filter(|_| !change.deleted);
        let Some(host) = self.hosts.iter_mut().find(|host| host.name == name) else { return };
        let of = record.map(|record| (self.store_life, record.instance));
        if host.heard.map(|(of, _)| of) != of {
            host.heard = of.map(|of| (of, self.now));
        }
    }

    /// The record of a participating node in the store, and its revision.
    pub(super) fn record_of(&self, node: usize) -> Option<(Node, Revision)> {
        let entry = self.store.read(&Range::one(self.keys.node(&self.hosts[node].name))).pop()?;
        Some((decode(&entry.value).ok()?, entry.mod_revision))
    }
}
