//! The nodes in a step of planning: joins, leaves, capacities and loads.

use super::apply::{Batch, is_done_on};
use super::commit::capacity;
use crate::wire::{Ack, Answer, By, Name};
use cosched_core::cluster::{Input, JobRecord, OnNodeLoss, Stage};
use cosched_core::{JobId, NodeId};
use std::collections::BTreeMap;

impl Batch<'_> {
    /// Handles nodes that left, joined, or changed.
    pub(super) fn nodes(&mut self, lost: &[NodeId]) {
        for id in lost {
            let silent = self.planner.state().silent.contains_key(id);
            match silent || !self.planner.has_parts(*id) && self.led_from(*id).is_empty() {
                true => drop(self.lose(*id)),
                false => self.input(Input::Silent(*id)),
            }
        }
        for (name, live) in &self.replica.nodes {
            let node = &live.value.node;
            let (id, capacity) = (NodeId(node.id), capacity(node));
            let planned = self.planner.state().nodes.get(&id).map(|record| record.capacity);
            let new_boot = self.replica.is_new_boot(name, node);
            if new_boot && (!self.lose(id) || self.is_full()) {
                continue;
            }
            if new_boot {
                let (boot, home) = (node.boot.clone(), Some(node.home.clone()));
                let written = Name { id: node.id, boot, home, left_ns: None, tree: self.replica.made_ns() };
                self.names.insert(name.clone(), written);
            }
            if new_boot {
                self.input(Input::Restarted(id));
            } else if planned.is_some_and(|planned| planned != capacity) {
                self.input(Input::Resize(id, capacity));
            }
            if self.planner.state().silent.contains_key(&id) {
                self.input(Input::Heard(id));
            }
            if planned.is_none() || new_boot {
                self.input(Input::Join(id, capacity));
            }
        }
        self.note_who_left();
    }

    /// Records when nodes left the plan, for display. A node that is back has not left.
    fn note_who_left(&mut self) {
        let replica = self.replica;
        for (name, id) in &replica.names {
            let there = self.planner.state().nodes.contains_key(&NodeId(*id)) || replica.nodes.contains_key(name);
            if there != replica.left.contains_key(name) || self.names.contains_key(name) || self.is_full() {
                continue;
            }
            let boot = replica.boots.get(name).cloned().unwrap_or_default();
            let left_ns = (!there).then_some(self.wall.0);
            let home = replica.homes.get(name).cloned();
            self.names.insert(name.clone(), Name { id: *id, boot, home, left_ns, tree: replica.made_ns() });
        }
    }

    /// A node is lost, with all processes that it had; among these may be main processes of jobs that have all their parts on other nodes, or
    /// none yet. A job that continues without its main process ends as soon as it has no process, because nothing else reports its end.
    /// Returns whether that is all: what does not fit into this transaction follows in the next, and the node leaves the plan with the last.
    fn lose(&mut self, node: NodeId) -> bool {
        for job in self.led_from(node) {
            self.input(Input::MainLost(job));
            if !self.close_without_main(job) {
                return false;
            }
        }
        let name = self.replica.name_of(node).to_owned();
        let goes_on = |record: &JobRecord| {
            let parts = record.place.as_ref().map_or(&[][..], |place| &place.parts);
            let ends = matches!(record.spec.on_node_loss, OnNodeLoss::Kill)
                || record.spec.on_node_loss == OnNodeLoss::Keep && parts.len() < 2;
            parts.iter().any(|part| part.node == node) && !ends
        };
        // Or whose other processes have ended already.
        let closes = |id: &JobId, record: &JobRecord| {
            let others =
                record.place.iter().flat_map(|place| &place.parts).map(|part| part.node).filter(|other| *other != node);
            self.known(id.0)
                .is_some_and(|job| job.ask.lead.as_ref() == Some(&name) || is_done_on(job, self.replica, others))
        };
        let jobs = self.planner.state().jobs.iter().filter(|(id, record)| goes_on(record) && closes(id, record));
        let jobs: Vec<JobId> = jobs.map(|(id, _)| *id).collect();
        if !jobs.into_iter().all(|job| self.close_without_main(job)) {
            return false;
        }
        self.input(Input::Leave(node));
        true
    }

    /// Returns whether there was room for it.
    fn close_without_main(&mut self, id: JobId) -> bool {
        let record = self.planner.state().jobs.get(&id);
        let ends = record.is_none_or(|record| matches!(record.stage, Stage::Ending(_)));
        if ends || self.known(id.0).is_none_or(|job| job.closing) {
            return true;
        }
        if self.is_full() && !self.jobs.contains_key(&id.0) {
            return false;
        }
        self.load(id.0).into_iter().for_each(|job| job.closing = true);
        true
    }

    /// The jobs whose main process is on this node, but no part.
    fn led_from(&self, id: NodeId) -> Vec<JobId> {
        let name = self.replica.name_of(id).to_owned();
        let elsewhere = |record: &JobRecord| {
            record.place.as_ref().is_none_or(|place| place.parts.iter().all(|part| part.node != id))
        };
        let jobs = self.planner.state().jobs.iter().filter(|(_, record)| elsewhere(record));
        let led = |id: &JobId| self.known(id.0).is_some_and(|job| job.is_led_from(&name));
        jobs.map(|(id, _)| *id).filter(led).collect()
    }

    /// An operator reports that a node is dead. That is refused for a live node.
    pub(super) fn dead(&mut self, by: By, name: &str) -> Result<Answer, Answer> {
        let what = "the node is not declared dead";
        if !by.admin {
            return Err(Answer::refused(what, "it is for administrators", "Ask one of them."));
        }
        let id = self.any_node(name, what)?;
        if self.replica.nodes.contains_key(name) {
            let hint = "`cosched nodes --drain` keeps new jobs off it; a node is dead when its machine is off.";
            return Err(Answer::refused(what, format!("node {name} is alive: its lease is valid"), hint));
        }
        if self.planner.state().nodes.contains_key(&id) {
            if !self.lose(id) {
                let why = "its jobs do not fit into one change; as many as do are closed";
                return Err(Answer::refused(what, why, "Ask again."));
            }
            self.note_who_left();
        }
        Ok(Answer::Done)
    }

    /// The nodes' reported loads. They take effect at the next rebalancing; at once while there is no row.
    pub(super) fn loads(&mut self, acks: &BTreeMap<String, Ack>, rebalances: bool) {
        let mut news = false;
        for (name, ack) in acks {
            let Some(id) = self.replica.names.get(name).map(|id| NodeId(*id)) else { continue };
            let seen = self.planner.state().nodes.get(&id).map(|node| node.other_threads_seen);
            if seen.is_some_and(|seen| seen != ack.other_threads) {
                self.input(Input::Load(id, ack.other_threads));
                news = true;
            }
        }
        let rows = self.planner.state().jobs.values().any(|job| job.place.as_ref().is_some_and(|p| p.home.is_some()));
        if rebalances || news && !rows {
            self.input(Input::Rebalance);
        }
    }
}
