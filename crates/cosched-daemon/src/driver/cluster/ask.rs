//! Passes users' requests to the node, and its answers back to the users.

use super::super::adopt::Adoption;
use super::super::{Driver, Reply, job_reply};
use super::operate;
use crate::refuse::{Answer, invalid};
use crate::rights::Peer;
use crate::words;
use cosched_api::{
    Class, JobRequest, KillRequest, NodeRequest, NodeResources, OnNodeLoss, PolicyRequest, ResourcesRequest,
};
use cosched_cluster::wire::{Ask, By, JobAsk, KillHow, MainProcess};
use cosched_core::cluster::NEVER;
use cosched_core::{JobId, SlotShare};
use cosched_linux::process::Held;
use cosched_node::{ForAll, Outcome, Refusal, Request, RequestId, Want, WantOfNode, rights};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a user's request waits for the store.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Requests whose client has disconnected are removed whenever the number of waiting ones has grown by this.
const FORGET_STEP: usize = 64;

pub(super) type To = oneshot::Sender<Answer<Reply>>;

/// The receiver of a request's result.
#[derive(Debug)]
pub(super) enum Asker {
    User(To),
    /// A changed setting in the configuration file of a single machine.
    File(Ask),
}

/// A process that becomes the main process of a job as soon as the job has its place.
#[derive(Debug)]
pub(super) struct Launcher {
    /// The process; `None` where processes are to be added later.
    pub(super) held: Option<Held>,
    /// The existing processes that are to become the job.
    pub(super) adoption: Option<Adoption>,
    /// The user who requested the job, if that is not its owner.
    pub(super) by: Option<u32>,
}

/// The requests of the daemon itself.
pub(super) const DAEMON: By = By { uid: 0, gid: 0, admin: true };

impl Driver {
    /// The requester, in the form for the planner.
    fn by(&self, peer: Peer) -> By {
        By { gid: crate::users::group_of(peer.uid).unwrap_or(peer.uid), ..self.caller(peer) }
    }

    /// The same for the node's own checks. They need no group, which would have to be read from a file.
    pub(in super::super) fn caller(&self, peer: Peer) -> By {
        By { uid: peer.uid, gid: peer.uid, admin: self.rights.is_admin(peer) }
    }

    /// Passes a request on to the node.
    pub(in super::super) fn ask(&mut self, peer: Peer, request: Request, reply: To) {
        let by = match request {
            Request::Wait(_) | Request::Exited(..) | Request::Loads(_) => self.caller(peer),
            _ => self.by(peer),
        };
        let id = self.cluster.next_request();
        self.ask_as(by, id, request, Asker::User(reply));
    }

    pub(super) fn ask_as(&mut self, by: By, id: RequestId, request: Request, asker: Asker) {
        let cluster = &mut self.cluster;
        cluster.asked.insert(id, asker);
        cluster.node.request(cluster.moment(), by, id, request);
        cluster.forget_gone();
    }

    /// Returns the result of a request.
    pub(super) fn answered(&mut self, id: RequestId, answer: Result<Outcome, Refusal>) {
        let Some(asker) = self.cluster.asked.remove(&id) else { return };
        let answer = match answer {
            Ok(outcome) => self.shown(outcome),
            Err(why) => Err(self.refusal(why)),
        };
        match (asker, answer) {
            (Asker::User(reply), answer) => drop(reply.send(answer)),
            (Asker::File(ask), Err(e)) => self.file_refused(&ask, &e.what, &e.why),
            (Asker::File(_), Ok(_)) => (),
        }
    }

    fn shown(&mut self, outcome: Outcome) -> Answer<Reply> {
        match outcome {
            Outcome::Job(id) => self.view_job(id.0).map(job_reply),
            Outcome::Local(id) => self.view_local(id.0).map(job_reply),
            Outcome::Status => Ok(Reply::Status(Box::new(self.view_status()))),
            Outcome::Loads(node, acks) => self.loads_read(node, &acks),
        }
    }

    /// Answers the requests that wait for the end of this turn.
    pub(in super::super) fn answer_late(&mut self) {
        while let Some((id, outcome)) = self.cluster.node.poll_answer() {
            self.answered(id, Ok(outcome));
        }
        self.cluster.failures.clear();
    }

    /// `PUT /v1/nodes/{name}`
    pub(in super::super) fn change_node(&mut self, peer: Peer, name: String, request: NodeRequest, reply: To) {
        let dead = request.dead.then(|| Ask::Dead { node: name.clone() });
        let drain = request.drains.map(|drains| Ask::Drain { node: name.clone(), drains });
        let asks = [drain, dead].into_iter().flatten().collect();
        self.ask(peer, Request::Change(ForAll::Node(name), asks), reply);
    }

    /// `POST /v1/jobs`
    pub(in super::super) fn submit(&mut self, peer: Peer, request: JobRequest, reply: To) {
        match self.checked(peer, request) {
            Ok((owner, job, held, adoption)) => {
                let id = self.cluster.next_request();
                let has_process = held.is_some() || adoption.is_some();
                self.cluster
                    .launchers
                    .insert(id, Launcher { held, adoption, by: (owner != peer.uid).then_some(peer.uid) });
                // The owner's name with the requester's right to choose express.
                let owner = By { admin: self.rights.is_admin(peer), ..self.by(Peer { uid: owner, pid: None }) };
                let request = Request::Submit { owner, job: Box::new(job), has_process };
                self.ask_as(self.caller(peer), id, request, Asker::User(reply));
            }
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// Refuses here everything that can be refused before the request leaves the daemon.
    fn checked(&self, peer: Peer, request: JobRequest) -> Answer<(u32, JobAsk, Option<Held>, Option<Adoption>)> {
        let owner = rights::owner(self.caller(peer), request.owner_uid).map_err(|why| self.refusal(why))?;
        super::super::register::check_once(&request)?;
        self.check_without_cgroups(peer, owner, &request)?;
        if request.command.is_empty() {
            let hint = "Give the program and its arguments.";
            return Err(invalid("the job has no command", "`command` is an empty list", hint));
        }
        self.check_wait(request.waiting)?;
        let (found, mut adoption) = match &request.adopt {
            Some(adopt) => {
                super::super::adopt::check_request(&request, owner, peer)?;
                self.adoption(peer, adopt).map(|(held, adoption)| (held, Some(adoption)))?
            }
            None => (None, None),
        };
        let held = match request.pid {
            _ if adoption.is_some() => found,
            0 if owner != peer.uid => None,
            0 => self.check_empty_jobs(peer).map(|()| None)?,
            _ if owner != peer.uid => return Err(super::super::register::process_for_another(owner)),
            pid => Some(self.hold_own(peer, pid, request.on_node_loss == Some(OnNodeLoss::Requeue))?),
        };
        let default_class = if request.detached { Class::Batch } else { Class::Interactive };
        let on_node_loss = request.on_node_loss.unwrap_or(OnNodeLoss::Kill);
        let node = &self.cluster.node;
        let want =
            node.want(&want(&request.nodes, request.cpus, request.mem_bytes)).map_err(|why| self.refusal(why))?;
        if request.exclusive_cores {
            node.whole_cores(&want).map_err(|why| self.refusal(why))?;
        }
        let share = match request.share_from_quota {
            true => Some(self.share_from_quota(peer, adoption.as_mut())?),
            false => request.share_max.map(words::slot_share).transpose()?,
        };
        let terms = self.terms(&request, held.as_ref())?;
        let job = JobAsk {
            lead: node.lead(&want, held.is_some() || adoption.is_some(), request.once),
            want,
            name: request.name.unwrap_or_else(|| crate::record::base_name(&request.command)),
            // The command of a job that may be requeued has to be complete.
            command: match on_node_loss {
                OnNodeLoss::Requeue => request.command,
                _ => crate::record::shown(request.command),
            },
            cwd: request.cwd,
            environment: if on_node_loss == OnNodeLoss::Requeue { request.environment } else { Vec::new() },
            log_path: request.log_path,
            class: words::class(request.class.unwrap_or(default_class)),
            policy: request.policy.map(words::policy),
            share_permille: share.map(SlotShare::permille),
            waiting: request.waiting.map(words::waiting),
            queue: request.queue,
            groups: self.groups_with_rights(owner),
            on_node_loss: words::on_node_loss(on_node_loss),
            // No launcher reports the end of an adopted process: the job is over when it is empty.
            main: held
                .as_ref()
                .filter(|_| adoption.is_none())
                .map(|held| MainProcess { pid: held.pid(), start_ticks: held.start_ticks() }),
            once: request.once,
            terms,
        };
        Ok((owner, job, held, adoption))
    }

    /// The groups of a user that have a right on a queue.
    fn groups_with_rights(&self, uid: u32) -> Vec<u32> {
        let state = self.cluster.member().state();
        let queues = state.map(|state| state.config.queues.as_slice()).unwrap_or_default();
        let has_right = |group: &u32| queues.iter().any(|queue| queue.rights.groups.contains(group));
        if queues.iter().all(|queue| queue.rights.groups.is_empty()) {
            return Vec::new();
        }
        crate::users::groups_of(uid).unwrap_or_default().into_iter().filter(has_right).collect()
    }

    /// `POST /v1/jobs/{id}/kill`
    pub(in super::super) fn kill_job(&mut self, peer: Peer, id: u64, request: KillRequest, reply: To) {
        let KillRequest { signal, grace_ms, here } = request;
        let how = KillHow { signal, grace_ms };
        self.ask(peer, Request::Kill { job: JobId(id), how, here }, reply);
    }

    /// `POST /v1/jobs/{id}/resources`
    pub(in super::super) fn change_resources(&mut self, peer: Peer, id: u64, request: ResourcesRequest, reply: To) {
        let want = want(&request.nodes, request.cpus, request.mem_bytes);
        self.ask(peer, Request::Resources(JobId(id), want), reply);
    }

    /// `POST /v1/jobs/{id}/policy`
    pub(in super::super) fn job_policy(&mut self, peer: Peer, id: u64, request: PolicyRequest, reply: To) {
        let checked = super::super::change::check_own_policy(&request);
        match checked.and_then(|()| self.check_policy_without_cgroups(request.policy)) {
            Ok(()) => self.ask(peer, Request::Policy(JobId(id), request.policy.map(words::policy)), reply),
            Err(e) => drop(reply.send(Err(e))),
        }
    }

    /// `PUT /v1/policy`
    pub(in super::super) fn set_policy(&mut self, peer: Peer, request: PolicyRequest, reply: To) {
        let checked = operate::check_policy(&request, self.config.cluster.node_lease);
        if let Err(e) = checked.and_then(|()| self.check_policy_without_cgroups(request.policy)) {
            return drop(reply.send(Err(e)));
        }
        let state = self.cluster.member().state();
        let shares = operate::shares(&request, state.map(|state| &state.config));
        let asks = [
            request.policy.map(|policy| Ask::ClusterPolicy { policy: words::policy(policy) }),
            request.sharing.map(|sharing| Ask::ClusterSharing { sharing: words::core_sharing(sharing).into() }),
            request.slot_length_ms.map(|ms| Ask::SlotLength { ns: ms * 1_000_000 }),
            request.ceiling.map(|ceiling| Ask::Ceiling { permille: (ceiling * 1000.0).round() as u32 }),
            request.packing.map(|packing| Ask::Packing { packing: words::packing(packing) }),
            request.rows_max.map(|rows| Ask::RowsMax { rows }),
            request
                .node_dead_after_ms
                .map(|ms| Ask::NodeDeadAfter { ns: if ms == 0 { NEVER } else { ms.saturating_mul(1_000_000) } }),
            shares,
        ];
        let asks = asks.into_iter().flatten().collect();
        self.ask(peer, Request::Change(ForAll::Policy, asks), reply);
    }
}

impl super::Cluster {
    pub(super) fn next_request(&mut self) -> RequestId {
        self.last_request += 1;
        RequestId(self.last_request)
    }

    /// Forgets requests whose clients disconnected, such as those that wait for the end of a job.
    fn forget_gone(&mut self) {
        if self.asked.len() < self.asked_after_look + FORGET_STEP {
            return;
        }
        let is_gone = |asker: &Asker| matches!(asker, Asker::User(reply) if reply.is_closed());
        self.node.forget(|id| self.asked.get(&id).is_none_or(is_gone));
        self.asked.retain(|_, asker| !is_gone(asker));
        self.asked_after_look = 2 * self.asked.len();
    }
}

fn want(nodes: &[NodeResources], cpus: Option<u32>, memory_bytes: Option<u64>) -> Want {
    let of = |node: &NodeResources| WantOfNode {
        node: Some(node.name.clone()).filter(|name| !name.is_empty()),
        cpus: node.cpus,
        cpus_min: node.cpus_min,
        memory_bytes: node.memory_bytes,
        disk_bytes: node.disk_bytes,
    };
    Want { nodes: nodes.iter().map(of).collect(), cpus, memory_bytes }
}
