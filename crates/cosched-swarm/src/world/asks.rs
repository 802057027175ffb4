//! Requests of users to their daemons, which check permissions and answer each request once.

use super::{S, World};
use crate::host::Requested;
use crate::invariants::Seen;
use cosched_cluster::wire::{Answer, Ask, By, Exit, JobAsk, NodeAsk, WantAsk};
use cosched_core::{JobId, SlotShare};
use cosched_node::{ForAll, Input, Outcome, Refusal, Request, RequestId, Want, WantOfNode};

/// Every request is answered within this time, except those that wait for the end of a job: the store is waited for for 10 s, by a clock
/// that drifts.
const ANSWER_NS_MAX: u64 = 12 * S;

impl World {
    /// A user sends a request to the daemon; `None` if no daemon is running.
    pub fn request(&mut self, node: usize, by: By, what: Request) -> Option<RequestId> {
        let id = self.takes(node, by, what)?;
        self.tell(node, |_, _| ());
        Some(id)
    }

    fn takes(&mut self, node: usize, by: By, what: Request) -> Option<RequestId> {
        if self.log.is_some() {
            let text: String = format!("{what:?}").chars().take(200).collect();
            self.note(|| format!("n{node}: user {} requests: {text}", by.uid));
        }
        let (now, moment) = (self.now, self.moment(node));
        let host = &mut self.hosts[node];
        let daemon = host.node.as_mut().filter(|_| now >= host.hung_until)?;
        host.last_request += 1;
        let id = RequestId(host.last_request);
        host.requests.insert(id, Requested { by, what: what.clone(), at: now });
        daemon.request(moment, by, id, what);
        Some(id)
    }

    /// Like [`World::ask`], but half of the requests go through the daemon's own checks.
    pub(super) fn random_request(&mut self, node: usize, by: By, ask: Ask) {
        self.counts.asks += 1;
        if self.dice.one_in(2) {
            self.ask(node, by, ask);
            return;
        }
        let what = match ask {
            Ask::Submit(job) => {
                let has_process = leads_from(&self.hosts[node].name, &job);
                Request::Submit { owner: by, job, has_process }
            }
            Ask::Suspend { job } => Request::Suspend(JobId(job)),
            Ask::Resume { job } => Request::Resume(JobId(job)),
            Ask::Class { job, class } => Request::Class(JobId(job), class),
            Ask::Policy { job, policy } => Request::Policy(JobId(job), policy),
            Ask::Share { job, permille } => Request::Share(JobId(job), permille.and_then(SlotShare::new)),
            Ask::Kill { job, how } => Request::Kill { job: JobId(job), how, here: self.dice.one_in(4) },
            Ask::Resources { job, want } => Request::Resources(JobId(job), wanted(want)),
            ask => Request::Change(ForAll::Policy, vec![ask]),
        };
        self.request(node, by, what);
    }

    /// The launcher that waits for the main process of a job reports that it has ended.
    pub(super) fn launcher_reports(&mut self, node: usize, job: JobId) {
        let owner = self.hosts[node].processes.parts.get(&job).map(|part| part.job.owner);
        let Some(uid) = owner else { return };
        self.takes(node, By { uid, gid: uid, admin: false }, Request::Exited(job, Exit::default()));
    }

    /// A launcher's process enters its job after the job has begun; some launchers have ended by then.
    pub(super) fn enters_late(&mut self, node: usize, job: JobId, request: RequestId) {
        if self.hosts[node].requests.contains_key(&request) {
            self.answered(node, request, Ok(Outcome::Job(job)));
        }
        if self.breaks(4) {
            return self.reply(node, Input::NotEntered(job));
        }
        self.looks_at_job(node, job);
    }

    /// A user gets an answer.
    pub(super) fn answered(&mut self, node: usize, request: RequestId, answer: Result<Outcome, Refusal>) {
        let is_done = answer.is_ok();
        let is_unwritten = matches!(answer, Err(Refusal::Unwritten(_)));
        if let Ok(Outcome::Loads(_, acks)) = answer {
            self.hosts[node].loads = Some(acks);
        }
        match self.hosts[node].requests.remove(&request) {
            Some(Requested { by, what, .. }) => {
                if is_done {
                    self.is_told_here(node, &what);
                }
                if is_unwritten {
                    self.is_not_written(&what);
                }
                self.see(&Seen::Answer { by, what: &what, is_done });
            }
            None => self.see(&Seen::Unsound { node, why: "a request has two answers" }),
        }
    }

    /// A user was told that a job could not be written: it must not begin later.
    fn is_not_written(&mut self, what: &Request) {
        let Request::Submit { job, .. } = what else { return };
        let [what, why, hint] = ["the job is refused", "the state cannot be written", ""].map(str::to_owned);
        if !job.once {
            self.see(&Seen::Answered { name: &job.name, answer: &Answer::Refused { what, why, hint } });
        }
    }

    /// Some launchers end while they wait. No user waits too long for an answer.
    pub(super) fn look_at_requests(&mut self, node: usize) {
        let host = &self.hosts[node];
        if self.now < host.hung_until || host.node.is_none() {
            return;
        }
        let since = |one: &Requested| self.now - one.at.max(host.hung_until);
        let waits = |one: &&Requested| !matches!(one.what, Request::Wait(_)) && since(one) > ANSWER_NS_MAX;
        if let Some(one) = host.requests.values().find(waits) {
            let why = format!("{:?} has no answer", one.what);
            return self.see(&Seen::Unsound { node, why: &why });
        }
        let launches = |what: &Request| matches!(what, Request::Submit { has_process: true, .. });
        let launchers = host.requests.iter().filter(|(_, one)| launches(&one.what));
        let launchers: Vec<RequestId> = launchers.map(|(id, _)| *id).collect();
        for id in launchers {
            if self.breaks(20) {
                self.handle(node, Input::LauncherGone(id));
            }
        }
    }
}

fn wanted(want: WantAsk) -> Want {
    match want {
        WantAsk::Total { cpus, memory_per_cpu_bytes, .. } => {
            let memory_bytes = Some(memory_per_cpu_bytes * u64::from(cpus));
            Want { cpus: Some(cpus), memory_bytes, ..Want::default() }
        }
        WantAsk::PerNode(asks) => {
            let of = |ask: NodeAsk| WantOfNode {
                node: Some(ask.node),
                cpus: Some(ask.cpus),
                cpus_min: Some(ask.cpus_min),
                memory_bytes: Some(ask.memory_bytes),
                disk_bytes: Some(ask.disk_bytes),
            };
            Want { nodes: asks.into_iter().map(of).collect(), ..Want::default() }
        }
    }
}

fn leads_from(name: &str, job: &JobAsk) -> bool {
    job.main.is_none() && job.lead.as_deref() == Some(name)
}
