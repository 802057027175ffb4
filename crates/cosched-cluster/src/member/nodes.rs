//! The nodes in a step of planning: joins, leaves, capacities and loads.

use super::apply::Batch;
use super::commit::capacity;
use crate::wire::{Ack, Answer, By, Job, Name};
use cosched_core::cluster::{Input, JobRecord};
use cosched_core::{JobId, NodeId};
use std::collections::BTreeMap;

impl Batch<'_> {
    /// Handles nodes that left, joined, or changed.
    pub(super) fn nodes(&mut self, lost: &[NodeId]) {
        for id in lost {
            let silent = self.planner.state().silent.contains_key(id);
            match silent || !self.planner.has_parts(*id) && self.led_from(*id).is_empty() {
                true => {
                    self.leave(*id);
                    self.lose_mains(*id);
                }
                false => self.input(Input::Silent(*id)),
            }
        }
        for (name, live) in &self.replica.nodes {
            let node = &live.value.node;
            let (id, capacity) = (NodeId(node.id), capacity(node));
            let planned = self.planner.state().nodes.get(&id).map(|record| record.capacity);
            let new_boot = self.replica.is_new_boot(name, node) && !self.is_full();
            if new_boot {
                let (boot, home) = (node.boot.clone(), Some(node.home.clone()));
                let written = Name { id: node.id, boot, home, left_ns: None, tree: self.replica.made_ns() };
                self.names.insert(name.clone(), written);
            }
            if new_boot {
                self.leave(id);
                self.input(Input::Restarted(id));
            } else if planned.is_some_and(|planned| planned != capacity) {
                self.input(Input::Resize(id, capacity));
            }
            if new_boot {
                self.lose_mains(id);
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

    /// A node is lost. Jobs that continue without it, and whose main process was there, end as soon as they have no process,
    /// because the main process's end can no longer be reported.
    fn leave(&mut self, id: NodeId) {
        let name = self.replica.name_of(id).to_owned();
        let led = |job: &Job| job.ask.lead.as_ref() == Some(&name);
        let parts =
            self.planner.state().jobs.iter().filter(|(_, job)| {
                job.place.as_ref().is_some_and(|place| place.parts.iter().any(|part| part.node == id))
            });
        let had: Vec<u64> = parts.map(|(job, _)| job.0).collect();
        self.input(Input::Leave(id));
        for job in had {
            if let Some(job) = self.load(job).filter(|job| led(job)) {
                job.closing = true;
            }
        }
    }

    /// The node's processes are lost, including main processes of jobs that have all their parts on other nodes, or none yet. A job
    /// that continues ends as soon as it has no process. In later attempts the main process is always on a node that has a part.
    fn lose_mains(&mut self, id: NodeId) {
        for id in self.led_from(id) {
            self.input(Input::MainLost(id));
            if let Some(job) = self.load(id.0) {
                job.closing = true;
            }
        }
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
            self.leave(id);
            self.lose_mains(id);
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
