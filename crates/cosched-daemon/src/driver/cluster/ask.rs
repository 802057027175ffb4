//! What users ask for goes to the control plane; the answer comes later (`reply.rs`).

use super::super::change::{SIGKILL, asks_to_end};
use super::super::{Driver, Reply, job_reply, machine};
use super::here::Launcher;
use super::{operate, view, words};
use crate::decided;
use crate::record::Record;
use crate::refuse::{Answer, no_such_job, refuse};
use crate::rights::Peer;
use cosched_api::{
    Class, ClassRequest, ErrorCode, ExitReport, Job, JobRequest, KillRequest, NodeRequest, NodeResources, OnNodeLoss,
    PolicyRequest, ProcessRequest,
};
use cosched_cluster::wire::{Ask, By, Exit, JobAsk, KillHow, MainProcess, NodeAsk, WantAsk};
use cosched_core::cluster::NEVER;
use cosched_core::{Asker, Bound, Decisions, JobId};
use cosched_linux::process::Held;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// So long a user waits for the store.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

pub(super) type To = oneshot::Sender<Answer<Reply>>;

/// Who waits for what came of a request.
#[derive(Debug)]
pub(super) enum Pending {
    /// A new job.
    Submit { launcher: Launcher },
    /// A change of a job; how it is to end, if that was asked.
    Job { id: u64, reply: To, kill: Option<(Peer, KillRequest)> },
    /// A change of the cluster.
    Status { reply: To },
    /// What the configuration file of a machine alone says anew.
    File { ask: Ask },
}

/// The daemon itself asks.
pub(super) const DAEMON: By = By { uid: 0, gid: 0, admin: true };

impl Driver {
    pub(in super::super) fn change_node(&mut self, peer: Peer, name: String, request: NodeRequest, reply: To) {
        if let Err(e) = self.rights.change_for_all(peer, &format!("node {name} is not")) {
            return drop(reply.send(Err(e)));
        }
        let dead = request.dead.then(|| Ask::Dead { node: name.clone() });
        let drain = request.drains.map(|drains| Ask::Drain { node: name, drains });
        self.send_asks(peer, [drain, dead].into_iter().flatten(), reply);
    }

    fn by(&self, peer: Peer) -> By {
        let gid = crate::users::group_of(peer.uid).unwrap_or(peer.uid);
        By { uid: peer.uid, gid, admin: self.rights.is_admin(peer) }
    }

    pub(super) fn send_ask(&mut self, peer: Peer, ask: Ask, pending: Pending) {
        self.send_ask_by(self.by(peer), ask, pending);
    }

    pub(super) fn send_ask_by(&mut self, by: By, ask: Ask, pending: Pending) {
        let cluster = &mut self.cluster;
        match cluster.tell(|member, now| member.ask(now, by, ask)) {
            Ok(id) => drop(cluster.pending.insert(id, (Instant::now(), pending))),
            Err(e) => {
                let hint = "`cosched status` shows the state of the store.";
                let error = refuse(ErrorCode::Internal, "the request is not taken", e.to_string(), hint);
                match pending {
                    Pending::Submit { launcher: Launcher { reply: Some(reply), .. } }
                    | Pending::Job { reply, .. }
                    | Pending::Status { reply } => drop(reply.send(Err(error))),
                    Pending::Submit { .. } | Pending::File { .. } => (),
                }
            }
        }
    }

    /// `POST /v1/jobs`
    pub(in super::super) fn submit(&mut self, peer: Peer, request: JobRequest, reply: To) {
        let owner = self.rights.owner(peer, request.owner_uid);
        match owner.and_then(|owner| Ok((owner, self.checked(peer, owner, request)?))) {
            Ok((owner, (ask, held))) => {
                let launcher = Launcher::new((owner, peer.uid), held, reply);
                // An administrator's right to choose express, and the owner's name.
                let by = By { admin: self.rights.is_admin(peer), ..self.by(Peer { uid: owner, pid: None }) };
                self.send_ask_by(by, Ask::Submit(Box::new(ask)), Pending::Submit { launcher });
            }
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// What can be refused before anybody else hears of it is refused here.
    fn checked(&self, peer: Peer, owner: u32, request: JobRequest) -> Answer<(JobAsk, Option<Held>)> {
        super::super::register::check_once(&request)?;
        if request.command.is_empty() {
            let hint = "Give the program and its arguments.";
            return Err(refuse(ErrorCode::Invalid, "the job has no command", "`command` is an empty list", hint));
        }
        let held = match request.pid {
            0 if owner != peer.uid => None,
            0 => self.check_empty_jobs(peer).map(|()| None)?,
            _ if owner != peer.uid => return Err(super::super::register::process_for_another(owner)),
            pid => Some(self.hold_own(peer, pid, request.on_node_loss == Some(OnNodeLoss::Requeue))?),
        };
        let default_class = if request.detached { Class::Batch } else { Class::Interactive };
        let class = request.class.unwrap_or(default_class);
        self.rights.submit(peer, class)?;
        let on_node_loss = request.on_node_loss.unwrap_or(OnNodeLoss::Kill);
        let own = Some(self.cluster.own_name.clone());
        let want = self.want(&request)?;
        // Where the first process is to come: a job that is empty ends there.
        let own = match &want {
            WantAsk::PerNode(asks) if request.pid == 0 && !asks.iter().any(|ask| Some(&ask.node) == own.as_ref()) => {
                asks.first().map(|ask| ask.node.clone())
            }
            _ => own,
        };
        // Nobody knows where the first process is to come, or whether it comes on all nodes: then each says when it is empty.
        let all_alike = match &want {
            WantAsk::Total { .. } => request.pid == 0,
            WantAsk::PerNode(asks) => request.once && asks.len() > 1,
        };
        let ask = JobAsk {
            want,
            name: request.name.unwrap_or_else(|| crate::record::base_name(&request.command)),
            // What is to be started anew has to be whole.
            command: match on_node_loss {
                OnNodeLoss::Requeue => request.command,
                _ => crate::record::shown(request.command),
            },
            cwd: request.cwd,
            environment: if on_node_loss == OnNodeLoss::Requeue { request.environment } else { Vec::new() },
            log_path: request.log_path,
            class: words::class(class),
            policy: request.policy.map(words::policy),
            waiting: request.waiting.map(words::waiting),
            queue: request.queue,
            groups: self.groups_with_rights(owner),
            on_node_loss: words::on_node_loss(on_node_loss),
            lead: own.filter(|_| !all_alike),
            main: held.as_ref().map(|held| MainProcess { pid: held.pid(), start_ticks: held.start_ticks() }),
            once: request.once,
        };
        Ok((ask, held))
    }

    /// Those groups of a user that have a right on a queue.
    fn groups_with_rights(&self, uid: u32) -> Vec<u32> {
        let state = self.cluster.member().state();
        let queues = state.map(|state| state.config.queues.as_slice()).unwrap_or_default();
        let has_right = |group: &u32| queues.iter().any(|queue| queue.rights.groups.contains(group));
        if queues.iter().all(|queue| queue.rights.groups.is_empty()) {
            return Vec::new();
        }
        crate::users::groups_of(uid).unwrap_or_default().into_iter().filter(has_right).collect()
    }

    /// Nodes by name, or CPUs: on this node, where the program starts, if it has so many, else wherever it is best.
    fn want(&self, request: &JobRequest) -> Answer<WantAsk> {
        if !request.nodes.is_empty() {
            if request.cpus.is_some() || request.mem_bytes.is_some() {
                return Err(super::super::resources::twice());
            }
            return Ok(WantAsk::PerNode(request.nodes.iter().map(|node| self.node_ask(node)).collect::<Answer<_>>()?));
        }
        let here = self.identity.cpus.len() as u32;
        match request.cpus {
            Some(0) => {
                Err(refuse(ErrorCode::Invalid, "a job cannot have 0 CPUs", "it could never run", "Ask for 1 or more."))
            }
            Some(cpus) if cpus > here && !self.cluster.alone => {
                let memory_per_cpu_bytes = request.mem_bytes.unwrap_or(0).div_ceil(u64::from(cpus));
                Ok(WantAsk::Total { cpus, memory_per_cpu_bytes, disk_bytes: 0 })
            }
            cpus => {
                let memory_bytes = request.mem_bytes;
                let node = NodeResources { cpus, memory_bytes, ..NodeResources::default() };
                Ok(WantAsk::PerNode(vec![self.node_ask(&node)?]))
            }
        }
    }

    pub(super) fn node_ask(&self, asked: &NodeResources) -> Answer<NodeAsk> {
        let cluster = &self.cluster;
        let name = if asked.name.is_empty() { cluster.own_name.as_str() } else { asked.name.as_str() };
        let has = || match cluster.member().nodes().find(|(known, _)| *known == name) {
            Some((_, node)) => node.cpus,
            None if name == cluster.own_name => self.identity.cpus.len() as u32,
            // Whoever plans says that there is no such node.
            None => 1,
        };
        let cpus = asked.cpus.unwrap_or_else(has);
        let cpus_min = asked.cpus_min.unwrap_or(cpus);
        if cpus == 0 || cpus_min == 0 || cpus_min > cpus {
            return Err(refuse(
                ErrorCode::Invalid,
                format!("a job cannot want {cpus} CPUs and at least {cpus_min} of node {name}"),
                "it takes 1 and more, and the second number is not the larger one",
                "Correct the numbers.",
            ));
        }
        if cluster.alone {
            self.check_one_machine(name, cpus_min, asked.memory_bytes)?;
        }
        let (memory_bytes, disk_bytes) = (asked.memory_bytes.unwrap_or(0), asked.disk_bytes.unwrap_or(0));
        Ok(NodeAsk { node: name.to_owned(), cpus, cpus_min, memory_bytes, disk_bytes })
    }

    /// The owner and the class of a job of the cluster, for the rights.
    pub(super) fn cluster_record(&self, id: u64) -> Answer<Record> {
        if !self.is_met() && self.live.contains_key(&id) {
            return self.record(id).cloned();
        }
        let job = self.cluster.member().job(JobId(id));
        job.map(|job| view::record_of(job, &self.boot_id)).ok_or_else(|| no_such_job(id))
    }

    /// A change that an administrator may have decided otherwise. Whoever plans checks it again; here the answer has names.
    fn decide(
        &mut self,
        peer: Peer,
        id: u64,
        ask: Ask,
        reply: To,
        change: impl FnOnce(&mut Decisions, &Record, Asker) -> Result<(), Bound>,
    ) {
        let record = self.cluster_record(id).and_then(|record| {
            self.rights.change_job(peer, &record)?;
            decided::after(&self.rights, peer, &record, |decided, asker| change(decided, &record, asker))
        });
        match record {
            Ok(_) => self.send_ask(peer, ask, Pending::Job { id, reply, kill: None }),
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// A change that its owner may make.
    pub(in super::super) fn change(&mut self, peer: Peer, id: u64, ask: Ask, reply: To) {
        self.change_or_kill(peer, ask, (id, reply), None);
    }

    fn change_or_kill(&mut self, peer: Peer, ask: Ask, (id, reply): (u64, To), kill: Option<(Peer, KillRequest)>) {
        match self.cluster_record(id).and_then(|record| self.rights.change_job(peer, &record)) {
            Ok(()) => self.send_ask(peer, ask, Pending::Job { id, reply, kill }),
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// A signal after which programs end goes to all nodes; another one only to a job that is here alone.
    pub(in super::super) fn kill_job(&mut self, peer: Peer, id: u64, request: KillRequest, reply: To) {
        let KillRequest { signal, grace_ms, here } = request;
        if here && !self.is_own(id) {
            return drop(reply.send(self.kill_part(peer, id, request).map(job_reply)));
        }
        if signal == SIGKILL || asks_to_end(signal) {
            let how = KillHow { signal, grace_ms };
            let ask = Ask::Kill { job: id, how };
            let has_problem = self.cluster.problem.is_some();
            if has_problem && self.state.jobs.contains_key(&id) {
                return self.kill_without_store(peer, request, ask, (id, reply));
            }
            return self.change_or_kill(peer, ask, (id, reply), Some((peer, request)));
        }
        let here = self.live.contains_key(&id) && self.is_own(id);
        let answer = match here || self.is_over(id) {
            true => self.kill(peer, id, request).map(job_reply),
            false => self.cluster_record(id).and_then(|_| {
                Err(refuse(
                    ErrorCode::Unsupported,
                    format!("signal {signal} cannot be sent to job {id}"),
                    "it is not on this node alone, and only signals that end programs go to all nodes",
                    "Use 15 (TERM) or 9 (KILL), or ask the daemon of the job's node.",
                ))
            }),
        };
        let _ = reply.send(answer);
    }

    /// The store takes nothing now: what is here ends at once, and the store hears of it later. Whoever asks waits for the other nodes.
    fn kill_without_store(&mut self, peer: Peer, request: KillRequest, ask: Ask, (id, reply): (u64, To)) {
        match self.kill_part(peer, id, request) {
            Ok(view) if self.is_own(id) => {
                let (nobody, _) = oneshot::channel();
                self.change(peer, id, ask, nobody);
                drop(reply.send(Ok(job_reply(view))));
            }
            Ok(_) => self.change(peer, id, ask, reply),
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// A signal to what is here of a job that has other nodes too.
    pub(super) fn kill_part(&mut self, peer: Peer, id: u64, request: KillRequest) -> Answer<Job> {
        self.cluster_record(id).and_then(|record| self.rights.change_job(peer, &record))?;
        if self.live.contains_key(&id) {
            if request.signal == SIGKILL || asks_to_end(request.signal) {
                self.kill(peer, id, request)?;
                self.cluster.node.close(JobId(id));
                return self.view_job(id);
            }
            self.kill(peer, id, request)?;
        }
        self.view_job(id)
    }

    pub(in super::super) fn set_policy(&mut self, peer: Peer, request: PolicyRequest, reply: To) {
        if let Err(e) =
            self.rights.change_machine(peer).and_then(|()| machine::check_slot_length(request.slot_length_ms))
        {
            return drop(reply.send(Err(e)));
        }
        if let Some(ceiling) = request.ceiling.filter(|ceiling| !(0.01..=1.0).contains(ceiling)) {
            let hint = "It is a part of a node's CPU time: 0.8 leaves a fifth to everybody else.";
            let what = format!("the ceiling cannot be {ceiling}");
            return drop(reply.send(Err(refuse(ErrorCode::Invalid, what, "it is out of range: 0.01 to 1", hint))));
        }
        let lease = self.config.cluster.node_lease;
        if let Err(e) = operate::check_policy(&request).and_then(|()| operate::check_dead_after(&request, lease)) {
            return drop(reply.send(Err(e)));
        }
        let state = self.cluster.member().state();
        let shares = operate::shares(&request, state.map(|state| &state.config));
        let asks = [
            request.policy.map(|policy| Ask::ClusterPolicy { policy: words::policy(policy) }),
            request.sharing.map(|sharing| Ask::ClusterSharing { sharing: machine::core_sharing(sharing).into() }),
            request.slot_length_ms.map(|ms| Ask::SlotLength { ns: ms * 1_000_000 }),
            request.ceiling.map(|ceiling| Ask::Ceiling { permille: (ceiling * 1000.0).round() as u32 }),
            request.packing.map(|packing| Ask::Packing { packing: words::packing(packing) }),
            request.rows_max.map(|rows| Ask::RowsMax { rows }),
            request
                .node_dead_after_ms
                .map(|ms| Ask::NodeDeadAfter { ns: if ms == 0 { NEVER } else { ms.saturating_mul(1_000_000) } }),
            shares,
        ];
        self.send_asks(peer, asks.into_iter().flatten(), reply);
    }

    /// They are carried out in their order: when the last one is, all are.
    fn send_asks(&mut self, peer: Peer, asks: impl Iterator<Item = Ask>, reply: To) {
        let mut asks: Vec<Ask> = asks.collect();
        let Some(last) = asks.pop() else {
            return drop(reply.send(Ok(Reply::Status(Box::new(self.view_status())))));
        };
        for ask in asks {
            let (nobody, _) = oneshot::channel();
            self.send_ask(peer, ask, Pending::Status { reply: nobody });
        }
        self.send_ask(peer, last, Pending::Status { reply });
    }

    /// `GET /v1/jobs/{id}/wait`
    pub(in super::super) fn wait(&mut self, id: u64, reply: To) {
        let (forgotten, over) = (self.is_forgotten(id), self.is_over(id));
        let is_known = self.cluster.member().job(JobId(id)).is_some();
        let waiters = match self.live.get_mut(&id).filter(|_| forgotten) {
            Some(live) => &mut live.waiters,
            None if is_known && !over => self.cluster.waiters.entry(id).or_default(),
            None => return drop(reply.send(self.view_job(id).map(job_reply))),
        };
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(reply);
    }

    /// The main process of a job has ended: that is the end of its part here, or it has none.
    pub(in super::super) fn exited(&mut self, peer: Peer, id: u64, report: ExitReport, reply: To) {
        if self.is_forgotten(id) {
            let noted = self.main_exited(peer, id, report);
            self.settle(false);
            return drop(reply.send(noted.and_then(|()| self.view_here(id)).map(job_reply)));
        }
        match self.note_exit(peer, id, report) {
            // On one machine it is written then.
            Ok(()) => self.cluster.askers.push((id, reply)),
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    fn note_exit(&mut self, peer: Peer, id: u64, report: ExitReport) -> Answer<()> {
        if self.live.contains_key(&id) {
            return self.main_exited(peer, id, report);
        }
        let record = self.cluster_record(id)?;
        self.rights.change_job(peer, &record)?;
        self.main_ended_elsewhere(id, Exit { code: report.exit.code, signal: report.exit.signal });
        Ok(())
    }

    /// Why a process cannot enter a job that is not here.
    pub(in super::super) fn cannot_enter(&self, id: u64, pid: i32) -> cosched_api::ErrorBody {
        match self.cluster_record(id) {
            Ok(_) => not_here(id, pid, self.is_over(id)),
            Err(e) => e,
        }
    }

    /// `POST /v1/jobs/{id}/resume`
    pub(in super::super) fn resume(&mut self, peer: Peer, id: u64, reply: To) {
        self.decide(peer, id, Ask::Resume { job: id }, reply, |decided, _, asker| decided.resume(asker));
    }

    /// `POST /v1/jobs/{id}/class`
    pub(in super::super) fn reclass(&mut self, peer: Peer, id: u64, request: ClassRequest, reply: To) {
        let class = words::class(request.class);
        match self.cluster_record(id).and_then(|record| self.rights.reclass(peer, &record, request.class)) {
            Ok(()) => {
                let ask = Ask::Class { job: id, class };
                self.decide(peer, id, ask, reply, |decided, job, asker| {
                    decided.reclass(job.uid, asker, machine::core_class(job.class), class.into())
                });
            }
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// `POST /v1/jobs/{id}/policy`
    pub(in super::super) fn job_policy(&mut self, peer: Peer, id: u64, request: PolicyRequest, reply: To) {
        if let Err(e) = super::super::change::check_own_policy(&request) {
            return drop(reply.send(Err(e)));
        }
        let policy = request.policy.map(words::policy);
        let ask = Ask::Policy { job: id, policy };
        self.decide(peer, id, ask, reply, |decided, job, asker| {
            let present = job.own_policy.map(machine::core_policy);
            decided.repolicy(job.uid, asker, present, policy.map(Into::into))
        });
    }

    /// The main process of a job that had begun before its number was known here.
    pub(super) fn enter_late(&mut self, id: u64, request: ProcessRequest) -> Answer<Job> {
        let owner = Peer { uid: self.record(id)?.uid, pid: None };
        self.add_process(owner, id, request)?;
        self.remember(id, |record| record.by_api = false);
        self.view_job(id)
    }
}

fn not_here(id: u64, pid: i32, over: bool) -> cosched_api::ErrorBody {
    let what = format!("process {pid} cannot enter job {id}");
    let (why, hint) = match over {
        true => (
            format!("job {id} has ended"),
            format!("`cosched show {id}` says how; `cosched ps` lists those that live."),
        ),
        false => (
            "the job has no place on this node, or none yet".to_owned(),
            format!("`cosched show {id}` lists its nodes, and what it waits for."),
        ),
    };
    refuse(ErrorCode::Conflict, what, why, hint)
}
