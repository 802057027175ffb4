//! Changes by operators and owners while a cluster runs, and the load of its nodes.
//!
//! Resources, queues and settings are requests to the planner. Loads are read from the store on request: each node writes its load there, and again
//! when it has changed enough.

use super::super::{Driver, Reply, machine};
use super::Cluster;
use crate::config::{fair_share_of, queue_of};
use crate::refuse::{Answer, conflict, invalid};
use crate::rights::Peer;
use crate::words;
use cosched_api::{ErrorBody, LoadList, NodeLoad, PolicyRequest, Queue, QueuesRequest};
use cosched_cluster::wire::{self, Ack, Ask, Measured};
use cosched_cluster::{Moment, check_name};
use cosched_core::cluster::{Config, JobRecord, Stage};
use cosched_core::{NodeId, Standing};
use cosched_node::{ForAll, Request};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::oneshot;

/// The range of the number of rows.
const ROWS: std::ops::RangeInclusive<u32> = 1..=1000;
/// The range of a class's share.
const SHARES: std::ops::RangeInclusive<u32> = 1..=1000;

/// This node's own load report.
pub(super) fn measured(moment: Moment, load: &cosched_linux::observe::Load) -> Measured {
    Measured {
        at_ns: moment.wall.0,
        runnable: load.runnable,
        load_milli: load.average.map(|load| (load * 1000.0).round() as u32),
        memory_available_bytes: load.memory_available_bytes,
    }
}

impl Driver {
    /// The answer from the nodes' load reports: one node or all.
    pub(super) fn loads_read(&mut self, node: Option<String>, acks: &BTreeMap<String, Ack>) -> Answer<Reply> {
        let own = self.view_load().ok();
        let cluster = &self.cluster;
        if let Some(name) = node {
            return cluster.load_of(&name, acks).map(Reply::Load).ok_or_else(|| silent(&name));
        }
        let of = |name: &String| match &own {
            Some(own) if own.name == *name => Some(own.clone()),
            _ => cluster.load_of(name, acks),
        };
        Ok(Reply::Loads(LoadList { nodes: acks.keys().filter_map(of).collect() }))
    }

    /// `PUT /v1/queues`
    pub(in super::super) fn change_queues(
        &mut self,
        peer: Peer,
        request: QueuesRequest,
        reply: oneshot::Sender<Answer<Reply>>,
    ) {
        let checked = request.fair_share.map(check_fair_share).transpose();
        match checked.and_then(|fair_share| Ok((fair_share, check_queues(request.queues)?))) {
            Ok((fair_share, queues)) => {
                // Requests are carried out in order.
                let fair_share = fair_share.map(|fair_share| Ask::FairShare { fair_share });
                let asks = fair_share.into_iter().chain([Ask::Queues { queues }]).collect();
                self.ask(peer, Request::Change(ForAll::Queues, asks), reply);
            }
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// Warns once if the configuration has other queues than the cluster, which keeps its own.
    pub(super) fn compare_queues(&mut self) {
        let (config, cluster) = (&self.config.cluster, &mut self.cluster);
        if !config.queues_are_set || cluster.compared {
            return;
        }
        let Some(state) = cluster.member().state().filter(|_| cluster.member().is_joined()) else { return };
        let differ = state.config.queues != config.queues;
        cluster.compared = true;
        if differ {
            tracing::warn!(
                cluster = cluster.name,
                "the queues of the configuration differ from the cluster's and are ignored: `cosched queues` shows \
                 them, and `cosched queues set FILE` changes them for all nodes"
            );
        }
    }
}

impl Cluster {
    /// The load of a node: its own report, and its part of the plan.
    fn load_of(&self, name: &str, acks: &BTreeMap<String, Ack>) -> Option<NodeLoad> {
        let (_, node) = self.member().nodes().find(|(known, _)| *known == name)?;
        let measured = acks.get(name)?.measured?;
        let id = NodeId(node.id);
        let active = |job: &&JobRecord| {
            job.standing != Standing::Suspended && matches!(job.stage, Stage::Ready | Stage::Ending(_))
        };
        let jobs = self.member().state().into_iter().flat_map(|state| state.jobs.values()).filter(active);
        let parts = jobs.filter_map(|job| {
            let part = job.place.as_ref()?.parts.iter().find(|part| part.node == id)?;
            Some((part.cpus, job.spec.want.memory_bytes(id, part.cpus)))
        });
        let parts: Vec<(u32, u64)> = parts.collect();
        let load = |at: usize| f64::from(measured.load_milli[at]) / 1000.0;
        Some(NodeLoad {
            name: name.to_owned(),
            cpus: node.cpus,
            runnable: measured.runnable,
            load_1min: load(0),
            load_5min: load(1),
            load_15min: load(2),
            jobs: parts.len() as u32,
            job_cpus: parts.iter().map(|(cpus, _)| cpus).sum(),
            memory_bytes: node.memory_bytes,
            memory_available_bytes: measured.memory_available_bytes,
            memory_declared_bytes: parts.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)),
            measured_unix_ms: Some(measured.at_ns / 1_000_000),
        })
    }
}

fn silent(name: &str) -> ErrorBody {
    let why = "it has joined, and has not reported its load yet";
    conflict(format!("the load of node {name} is not known"), why, "Ask again in a moment.")
}

/// Checks the settings of fair share.
fn check_fair_share(read: cosched_api::FairShare) -> Answer<Option<wire::FairShare>> {
    let wrong =
        |why| invalid("the queues are not changed", why, "Give durations; a weight of 0s switches fair share off.");
    Ok(fair_share_of(read).map_err(wrong)?.map(Into::into))
}

/// Checks whether these can be the queues of a cluster.
fn check_queues(queues: Vec<Queue>) -> Answer<Vec<wire::Queue>> {
    let what = "the queues are not changed";
    if queues.is_empty() {
        return Err(invalid(what, "there is none", "Give at least one: a job needs a queue."));
    }
    for (at, queue) in queues.iter().enumerate() {
        if let Err(e) = check_name(&queue.name) {
            return Err(invalid(
                what,
                format!("`{}` cannot be a queue's name: {e}", queue.name),
                "Choose another name.",
            ));
        }
        if queues[..at].iter().any(|other| other.name == queue.name) {
            let why = format!("the queue `{}` is listed twice", queue.name);
            return Err(invalid(what, why, "Give each queue a name of its own."));
        }
    }
    let known = |queue| {
        let queue = queue_of(queue).map_err(|(wrong, why, hint)| invalid(what, format!("{wrong}: {why}"), hint))?;
        Ok(wire::Queue::from(queue))
    };
    queues.into_iter().map(known).collect()
}

/// Checks the ranges of settings. Several requests go to the store one after the other, so none may be refused there.
pub(super) fn check_policy(request: &PolicyRequest, node_lease: Duration) -> Answer<()> {
    machine::check_slot_length(request.slot_length_ms)?;
    if let Some(ceiling) = request.ceiling.filter(|ceiling| !(0.01..=1.0).contains(ceiling)) {
        let hint = "It is a part of a node's CPU time: 0.8 leaves a fifth to processes outside jobs.";
        return Err(invalid(format!("the ceiling cannot be {ceiling}"), "it is out of range: 0.01 to 1", hint));
    }
    if let Some(rows) = request.rows_max.filter(|rows| !ROWS.contains(rows)) {
        return Err(invalid(
            format!("the most rows cannot be {rows}"),
            "it is out of range: 1 to 1000",
            "64 is the default.",
        ));
    }
    for shares in [request.shares, request.off_hours].into_iter().flatten() {
        let all = [shares.express, shares.interactive, shares.batch, shares.standby];
        if let Some(share) = all.into_iter().find(|share| !SHARES.contains(share)) {
            let hint = "Only their ratios matter: 12, 6, 3 and 1, for example.";
            return Err(invalid(
                format!("a class cannot have the share {share}"),
                "it is out of range: 1 to 1000",
                hint,
            ));
        }
    }
    check_dead_after(request, node_lease)
}

/// A node renews its lease after each third of it. Twice the lease is the least time that distinguishes a dead node from one that stalled for a
/// moment.
fn check_dead_after(request: &PolicyRequest, lease: Duration) -> Answer<()> {
    let least = 2 * lease;
    match request.node_dead_after_ms.map(Duration::from_millis) {
        Some(after) if !after.is_zero() && after < least => Err(invalid(
            format!("nodes cannot count as dead after {} ms", after.as_millis()),
            format!("it is less than twice `node_lease`, which is {} s", lease.as_secs()),
            "5min is the default; 0 (`never`) leaves it to operators.",
        )),
        _ => Ok(()),
    }
}

/// The shares of the classes, where they are to change; shares that are not given stay.
pub(super) fn shares(request: &PolicyRequest, present: Option<&Config>) -> Option<Ask> {
    let present = present.cloned().unwrap_or_default();
    let working = request.shares.map_or_else(|| present.working.into(), words::shares);
    let off = request.off_hours.map_or_else(|| present.off.into(), words::shares);
    (request.shares.is_some() || request.off_hours.is_some()).then_some(Ask::Shares { working, off })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::ClassShares;

    const LEASE: Duration = Duration::from_secs(10);

    #[test]
    fn queues_and_settings_that_cannot_be_are_refused() {
        let queue = |name: &str| Queue { name: name.to_owned(), ..Queue::default() };
        assert!(check_queues(vec![queue("a"), queue("b")]).is_ok());
        for (queues, word) in [
            (vec![], "none"),
            (vec![queue("a"), queue("a")], "twice"),
            (vec![queue("a b")], "name"),
            (vec![Queue { time_ms_max: Some(0), ..queue("a") }], "time_max"),
            (vec![Queue { groups: vec!["no such group".to_owned()], ..queue("a") }], "unknown on this machine"),
        ] {
            let e = check_queues(queues).unwrap_err();
            assert!(e.why.contains(word), "{e:?}");
        }
        let worth = |batch| Some(ClassShares { express: 12, interactive: 6, batch, standby: 1 });
        let ok = PolicyRequest { rows_max: Some(1), shares: worth(3), ..PolicyRequest::default() };
        assert!(check_policy(&ok, LEASE).is_ok());
        assert!(check_policy(&PolicyRequest { rows_max: Some(0), ..ok.clone() }, LEASE).is_err());
        assert!(check_policy(&PolicyRequest { off_hours: worth(0), ..ok.clone() }, LEASE).is_err());
        let present = Config::default();
        let Some(Ask::Shares { working, off }) = shares(&ok, Some(&present)) else { panic!("they change") };
        assert_eq!((working.batch, off), (3, present.off.into()));
        assert_eq!(shares(&PolicyRequest::default(), Some(&present)), None);
    }
}
