//! What operators and owners change while a cluster runs, and how busy its nodes are.
//!
//! Resources, queues and settings go to whoever plans. Loads are read from the store when somebody asks: each node tells
//! there how busy it is, and tells anew when that has changed enough.

use super::super::{Driver, Reply, resources};
use super::ask::{ANSWER_TIME_MAX, Pending};
use super::{Cluster, words};
use crate::config::{fair_share_of, queue_of};
use crate::refuse::{Answer, no_such_job, refuse};
use crate::rights::Peer;
use cosched_api::{ErrorBody, ErrorCode, LoadList, NodeLoad, PolicyRequest, Queue, QueuesRequest, ResourcesRequest};
use cosched_cluster::wire::{self, Ack, Ask, Measured, NodeAsk, WantAsk};
use cosched_cluster::{Moment, OpId, check_name};
use cosched_core::cluster::{Config, JobRecord, Stage};
use cosched_core::{JobId, NodeId, Standing};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// So many nodes are named in an error.
const NAMES_MAX: usize = 20;
/// What a number of rows can be.
const ROWS: std::ops::RangeInclusive<u32> = 1..=1000;
/// What a class can be worth.
const SHARES: std::ops::RangeInclusive<u32> = 1..=1000;

/// Who waits for how busy a node is, or all are.
#[derive(Debug)]
pub(super) struct LoadAsker {
    node: Option<String>,
    since: Instant,
    reply: oneshot::Sender<Answer<Reply>>,
}

impl LoadAsker {
    /// When to stop waiting.
    pub(super) fn due(&self) -> Instant {
        self.since + ANSWER_TIME_MAX
    }
}

/// What this node tells of itself.
pub(super) fn measured(moment: Moment, load: &cosched_linux::observe::Load) -> Measured {
    Measured {
        at_ns: moment.wall.0,
        runnable: load.runnable,
        load_milli: load.average.map(|load| (load * 1000.0).round() as u32),
        memory_available_bytes: load.memory_available_bytes,
    }
}

impl Driver {
    /// `GET /v1/load?node=…` of another node (`Some`), or `GET /v1/loads`.
    pub(in super::super) fn ask_load(&mut self, node: Option<String>, reply: oneshot::Sender<Answer<Reply>>) {
        let cluster = &mut self.cluster;
        if let Some(name) = node.as_deref()
            && !cluster.member().nodes().any(|(known, _)| known == name)
        {
            let error = if cluster.alone { self.no_other_node(name) } else { cluster.no_such_node(name) };
            return drop(reply.send(Err(error)));
        }
        match cluster.tell(|member, now| member.read_loads(now, node.as_deref())) {
            Some(op) => drop(cluster.load_askers.insert(op, LoadAsker { node, since: Instant::now(), reply })),
            None => drop(reply.send(Err(cluster.store_is_away()))),
        }
    }

    /// What the nodes have said.
    pub(super) fn loads_read(&mut self, op: OpId, acks: &BTreeMap<String, Ack>) {
        let own = self.view_load().ok();
        let cluster = &mut self.cluster;
        let Some(asker) = cluster.load_askers.remove(&op) else { return };
        let answer = match asker.node {
            Some(name) => cluster.load_of(&name, acks).map(Reply::Load).ok_or_else(|| silent(&name)),
            None => {
                let of = |name: &String| match &own {
                    Some(own) if own.name == *name => Some(own.clone()),
                    _ => cluster.load_of(name, acks),
                };
                Ok(Reply::Loads(LoadList { nodes: acks.keys().filter_map(of).collect() }))
            }
        };
        let _ = asker.reply.send(answer);
    }

    /// Users do not wait for ever for a store that was lost meanwhile.
    pub(super) fn overdue_loads(&mut self) {
        let cluster = &mut self.cluster;
        let late = cluster.load_askers.iter().filter(|(_, asker)| asker.due() <= Instant::now());
        let late: Vec<OpId> = late.map(|(op, _)| *op).collect();
        for op in late {
            let error = cluster.store_is_away();
            if let Some(asker) = cluster.load_askers.remove(&op) {
                let _ = asker.reply.send(Err(error));
            }
        }
    }

    /// `POST /v1/jobs/{id}/resources`
    pub(in super::super) fn change_resources(
        &mut self,
        peer: Peer,
        id: u64,
        request: ResourcesRequest,
        reply: oneshot::Sender<Answer<Reply>>,
    ) {
        // Whose job it is comes first: to others its resources are nobody's business.
        let allowed = self.cluster_record(id).and_then(|record| self.rights.change_job(peer, &record));
        match allowed.and_then(|()| self.other_want(id, request)) {
            Ok(want) => self.change(peer, id, Ask::Resources { job: id, want }, reply),
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// What a job wants from now on.
    fn other_want(&self, id: u64, request: ResourcesRequest) -> Answer<WantAsk> {
        let ResourcesRequest { nodes, cpus, mem_bytes } = request;
        if cpus.is_none() && mem_bytes.is_none() {
            if nodes.is_empty() {
                let why = "`nodes` is an empty list, and neither `cpus` nor `mem_bytes` is there";
                return Err(invalid("no resources are given", why, "Give one entry for each node, or `cpus`."));
            }
            return Ok(WantAsk::PerNode(nodes.iter().map(|node| self.node_ask(node)).collect::<Answer<_>>()?));
        }
        if !nodes.is_empty() {
            return Err(resources::twice());
        }
        if cpus == Some(0) {
            return Err(invalid("a job cannot have 0 CPUs", "it could never run", "Ask for 1 or more."));
        }
        let job = self.cluster.member().job(JobId(id));
        match &job.ok_or_else(|| no_such_job(id))?.ask.want {
            WantAsk::Total { cpus: had, memory_per_cpu_bytes, disk_bytes } => {
                let cpus = cpus.unwrap_or(*had);
                let each = mem_bytes.map_or(*memory_per_cpu_bytes, |bytes| bytes.div_ceil(u64::from(cpus)));
                Ok(WantAsk::Total { cpus, memory_per_cpu_bytes: each, disk_bytes: *disk_bytes })
            }
            WantAsk::PerNode(asks) => match &asks[..] {
                [had] => Ok(WantAsk::PerNode(vec![of_one_node(had, cpus, mem_bytes)])),
                many => {
                    let names: Vec<&str> = many.iter().take(NAMES_MAX).map(|ask| ask.node.as_str()).collect();
                    Err(invalid(
                        format!("how job {id} is to divide that is not said"),
                        format!("it asked for {} nodes, one by one", many.len()),
                        format!("Say what it wants of each: {}.", names.join(", ")),
                    ))
                }
            },
        }
    }

    /// `PUT /v1/queues`
    pub(in super::super) fn change_queues(
        &mut self,
        peer: Peer,
        request: QueuesRequest,
        reply: oneshot::Sender<Answer<Reply>>,
    ) {
        let checked = self.rights.change_for_all(peer, "the queues are not").and_then(|()| {
            let fair_share = request.fair_share.map(check_fair_share).transpose()?;
            Ok((check_queues(request.queues)?, fair_share))
        });
        match checked {
            Ok((queues, fair_share)) => {
                if let Some(fair_share) = fair_share {
                    // Requests are carried out in their order.
                    let (nobody, _) = oneshot::channel();
                    self.send_ask(peer, Ask::FairShare { fair_share }, Pending::Status { reply: nobody });
                }
                self.send_ask(peer, Ask::Queues { queues }, Pending::Status { reply });
            }
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// Says once that the configuration has other queues than the cluster, which go on.
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
                "the queues of the configuration are not the cluster's, which hold: `cosched queues` shows them, and \
                 `cosched queues set FILE` changes them for all nodes"
            );
        }
    }
}

impl Cluster {
    fn no_such_node(&self, name: &str) -> ErrorBody {
        let mut names: Vec<&str> = self.member().nodes().map(|(name, _)| name).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let hint = format!("Nodes that are there: {}{rest}.", names.join(", "));
        refuse(
            ErrorCode::NotFound,
            format!("there is no node `{name}`"),
            "no node of this name has a lease in the cluster now",
            hint,
        )
    }

    fn store_is_away(&self) -> ErrorBody {
        let why = self.problem.clone().unwrap_or_else(|| "it is slow".to_owned());
        let hint = "Ask again when it is back; `cosched status` shows its state. This node's own load needs no store.";
        refuse(ErrorCode::Internal, "the cluster's store does not answer", why, hint)
    }

    /// How busy a node is: what it said itself, and what the plan has for it.
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
    let why = "it has joined, and has not said so yet";
    refuse(ErrorCode::Conflict, format!("how busy node {name} is is not known"), why, "Ask again in a moment.")
}

/// The CPUs and the memory of a job of one node; the rest stays.
fn of_one_node(had: &NodeAsk, cpus: Option<u32>, mem_bytes: Option<u64>) -> NodeAsk {
    let wanted = cpus.unwrap_or(had.cpus);
    // Who was content with fewer still is.
    let cpus_min = if had.cpus_min < had.cpus { had.cpus_min.min(wanted) } else { wanted };
    NodeAsk {
        node: had.node.clone(),
        cpus: wanted,
        cpus_min,
        memory_bytes: mem_bytes.unwrap_or(had.memory_bytes),
        disk_bytes: had.disk_bytes,
    }
}

/// How usage is to count.
fn check_fair_share(read: cosched_api::FairShare) -> Answer<Option<wire::FairShare>> {
    let wrong = |why| invalid("the queues are not changed", why, "Give durations; a weight of 0s is none.");
    Ok(fair_share_of(read).map_err(wrong)?.map(Into::into))
}

/// Whether these can be the queues of a cluster.
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
            let why = format!("the queue `{}` is there twice", queue.name);
            return Err(invalid(what, why, "Give each queue a name of its own."));
        }
    }
    let known = |queue| {
        let queue = queue_of(queue).map_err(|(wrong, why, hint)| invalid(what, format!("{wrong}: {why}"), hint))?;
        Ok(wire::Queue::from(&queue))
    };
    queues.into_iter().map(known).collect()
}

/// Whether settings that only a cluster keeps are in their ranges. Several go to the store one after the other, so none may
/// be refused there.
pub(super) fn check_policy(request: &PolicyRequest) -> Answer<()> {
    if let Some(rows) = request.rows_max.filter(|rows| !ROWS.contains(rows)) {
        return Err(invalid(
            format!("there cannot be {rows} rows at most"),
            "it is out of range: 1 to 1000",
            "64 is the default.",
        ));
    }
    for shares in [request.shares, request.off_hours].into_iter().flatten() {
        let all = [shares.express, shares.interactive, shares.batch, shares.standby];
        if let Some(share) = all.into_iter().find(|share| !SHARES.contains(share)) {
            let hint = "What counts is how they stand to each other: 12, 6, 3 and 1, for example.";
            return Err(invalid(format!("a class cannot be worth {share}"), "it is out of range: 1 to 1000", hint));
        }
    }
    Ok(())
}

/// A node renews its lease every third of it: twice as long is the least that tells a dead one from one that stumbled.
pub(super) fn check_dead_after(request: &PolicyRequest, lease: Duration) -> Answer<()> {
    let least = 2 * lease;
    match request.node_dead_after_ms.map(Duration::from_millis) {
        Some(after) if !after.is_zero() && after < least => Err(invalid(
            format!("nodes cannot be dead after {} ms", after.as_millis()),
            format!("it is less than twice `node_lease`, which is {} s", lease.as_secs()),
            "5min is the default; 0 (`never`) leaves it to operators.",
        )),
        _ => Ok(()),
    }
}

/// The shares of the classes, where they are to change; those that are not said stay.
pub(super) fn shares(request: &PolicyRequest, present: Option<&Config>) -> Option<Ask> {
    let present = present.cloned().unwrap_or_default();
    let working = request.shares.map_or_else(|| (&present.working).into(), words::shares);
    let off = request.off_hours.map_or_else(|| (&present.off).into(), words::shares);
    (request.shares.is_some() || request.off_hours.is_some()).then_some(Ask::Shares { working, off })
}

fn invalid(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> ErrorBody {
    refuse(ErrorCode::Invalid, what, why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::ClassShares;

    #[test]
    fn cpus_or_memory_alone_leave_the_rest_as_it_is() {
        let had = NodeAsk { node: "a".to_owned(), cpus: 4, cpus_min: 2, memory_bytes: 5, disk_bytes: 6 };
        let other = |cpus, cpus_min, memory_bytes| NodeAsk { cpus, cpus_min, memory_bytes, ..had.clone() };
        assert_eq!(of_one_node(&had, Some(8), None), other(8, 2, 5));
        assert_eq!(of_one_node(&had, Some(1), Some(9)), other(1, 1, 9));
        assert_eq!(of_one_node(&had, None, Some(9)), other(4, 2, 9));
        let whole = NodeAsk { cpus_min: 4, ..had.clone() };
        assert_eq!(of_one_node(&whole, Some(3), None), other(3, 3, 5));
    }

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
        assert!(check_policy(&ok).is_ok());
        assert!(check_policy(&PolicyRequest { rows_max: Some(0), ..ok.clone() }).is_err());
        assert!(check_policy(&PolicyRequest { off_hours: worth(0), ..ok.clone() }).is_err());
        let present = Config::default();
        let Some(Ask::Shares { working, off }) = shares(&ok, Some(&present)) else { panic!("they change") };
        assert_eq!((working.batch, off), (3, (&present.off).into()));
        assert_eq!(shares(&PolicyRequest::default(), Some(&present)), None);
    }
}
