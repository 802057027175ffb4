//! One step of planning: requests in their order, and jobs that are over. Nodes that join and leave: `nodes.rs`.
//!
//! Users' rights are checked again here, where the job's owner is known for certain; changes of existing jobs:
//! `steer.rs`.

use super::finish;
use super::replica::Replica;
use super::sizes::sizes;
use crate::store::{Revision, TXN_OPS_MAX};
use crate::wire::{Answer, Ask, Attempt, By, Class, Exit, Job, JobAsk, Name, PartEnd, Queue, Request, WantAsk};
use cosched_core::cluster::{
    Input, JobRecord, JobSpec, Limit, NodeWant, Place, Planner, Queue as CoreQueue, Refusal, Stage, Want,
};
use cosched_core::{JobId, NodeId, Reason, SlotShare, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of waiting jobs of one user; administrators are not limited.
const USER_WAITING_MAX: usize = 1000;

/// The maximum number of jobs that are listed in a refusal.
const JOBS_NAMED_MAX: usize = 10;

/// One step of planning, in progress.
pub(super) struct Batch<'a> {
    pub(super) replica: &'a Replica,
    pub(super) planner: Planner,
    pub(super) wall: Time,
    refuse_submits: bool,
    /// Whether a job was submitted.
    pub(super) submits: bool,
    /// Records of jobs that were loaded; changed ones are written.
    pub(super) jobs: BTreeMap<u64, Job>,
    /// The requests that this step carries out or refuses.
    pub(super) taken: Vec<(Revision, String)>,
    /// The answer to each; `None` where no user waits for it.
    pub(super) answers: Vec<Option<Answer>>,
    /// The reason for a new plan, if there is one.
    pub(super) reason: Option<Reason>,
    /// Nodes whose machine was rebooted, that left the plan or are back: their names are written again.
    pub(super) names: BTreeMap<String, Name>,
}

pub(super) type Outcome = Result<Answer, Answer>;

/// The share of the slots for a number of thousandths.
pub(super) fn slot_share(permille: Option<u32>, what: &str) -> Result<Option<SlotShare>, Answer> {
    let share = |permille| {
        let out = || Answer::refused(what, format!("a share of {permille} ‰ is out of range"), "Give 1 to 1000.");
        SlotShare::new(permille).ok_or_else(out)
    };
    permille.map(share).transpose()
}

/// A job's path: `%j` becomes the job's number, which is known from here on, and `%%` a percent sign.
fn path_of(path: &str, id: u64) -> String {
    let parts: Vec<String> = path.split("%%").map(|part| part.replace("%j", &id.to_string())).collect();
    parts.join("%")
}

impl<'a> Batch<'a> {
    pub(super) fn new(replica: &'a Replica, planner: Planner, wall: Time, refuse_submits: bool) -> Batch<'a> {
        Batch {
            replica,
            planner,
            wall,
            refuse_submits,
            submits: false,
            jobs: BTreeMap::new(),
            taken: Vec::new(),
            answers: Vec::new(),
            reason: None,
            names: BTreeMap::new(),
        }
    }

    /// Applies an input that is not a user's. A refusal by the planner is ignored, because a report may be late.
    pub(super) fn input(&mut self, input: Input) {
        if let Ok(reason) = self.planner.apply(self.wall, input) {
            self.reason = Some(reason);
        }
    }

    /// Carries out all requests in their order, as many as fit into a transaction.
    pub(super) fn requests(&mut self) {
        let replica = self.replica;
        for ((revision, id), request) in &replica.requests {
            // The state and its mark, and for each request its deletion, a reply and a job.
            if self.is_full() {
                break;
            }
            let (waited, outcome) = match request {
                Ok(request) => (request.by.is_some(), self.request(request)),
                Err(e) => (true, Err(Answer::refused("the request cannot be read", e.to_string(), "Ask again."))),
            };
            self.taken.push((*revision, id.clone()));
            self.answers.push(waited.then(|| outcome.unwrap_or_else(|refused| refused)));
        }
    }

    /// Whether another request or job might not fit into the transaction.
    pub(super) fn is_full(&self) -> bool {
        2 * self.taken.len() + self.jobs.len() + self.names.len() + 5 > TXN_OPS_MAX
    }

    fn request(&mut self, request: &Request) -> Outcome {
        let origin = &request.origin;
        match (&request.ask, request.by) {
            (Ask::Submit(ask), Some(by)) => self.submit(by, ask, request.at_ns),
            (Ask::Suspend { job }, Some(by)) => self.suspend(by, *job),
            (Ask::Resume { job }, Some(by)) => self.resume(by, *job),
            (Ask::Kill { job, how }, Some(by)) => self.kill(by, *job, *how),
            (Ask::Class { job, class }, Some(by)) => self.class(by, *job, *class),
            (Ask::Policy { job, policy }, Some(by)) => self.policy(by, *job, *policy),
            (Ask::Share { job, permille }, Some(by)) => self.share(by, *job, *permille),
            (Ask::Resources { job, want }, Some(by)) => self.resources(by, *job, want),
            (Ask::ClusterPolicy { policy }, Some(by)) => self.setting(by, Input::ClusterPolicy((*policy).into())),
            (Ask::ClusterSharing { sharing }, Some(by)) => self.setting(by, Input::ClusterSharing((*sharing).into())),
            (Ask::SlotLength { ns }, Some(by)) => self.setting(by, Input::SlotLength(*ns)),
            (Ask::Ceiling { permille }, Some(by)) => self.setting(by, Input::Ceiling(*permille)),
            (Ask::NodeDeadAfter { ns }, Some(by)) => self.setting(by, Input::NodeDeadAfter(*ns)),
            (Ask::Dead { node }, Some(by)) => self.dead(by, node),
            (Ask::Shares { working, off }, Some(by)) => {
                self.setting(by, Input::Shares((*working).into(), (*off).into()))
            }
            (Ask::Packing { packing }, Some(by)) => self.setting(by, Input::Packing((*packing).into())),
            (Ask::RowsMax { rows }, Some(by)) => self.setting(by, Input::RowsMax(*rows)),
            (Ask::FairShare { fair_share }, Some(by)) => self.setting(by, Input::FairShare(fair_share.map(Into::into))),
            (Ask::Queues { queues }, Some(by)) => self.queues(by, queues),
            (Ask::Drain { node, drains }, Some(by)) => {
                let id = self.any_node(node, "the node cannot be drained")?;
                self.setting(by, Input::Drain(id, *drains))
            }
            (Ask::PartEnded { job, attempt, end }, None) => self.part_ended(origin, *job, *attempt, *end),
            (Ask::PartLost { job, attempt }, None) => {
                if let Some((node, _)) = self.part(origin, *job, *attempt) {
                    self.input(Input::LosePart(JobId(*job), node));
                }
                Ok(Answer::Done)
            }
            (Ask::MainEnded { job, attempt, exit }, None) => self.main_ended(origin, *job, *attempt, *exit),
            (Ask::Asleep { job, attempt }, None) => self.asleep(origin, *job, *attempt, true),
            (Ask::Awake { job, attempt }, None) => self.asleep(origin, *job, *attempt, false),
            (Ask::Empty { job, attempt }, None) => self.empty(origin, *job, *attempt, true),
            (Ask::Occupied { job, attempt }, None) => self.empty(origin, *job, *attempt, false),
            (Ask::Dropped { job, attempt }, None) => self.dropped(origin, *job, *attempt),
            (Ask::Memory { job, attempt, bytes }, None) => self.memory(origin, *job, *attempt, *bytes),
            (Ask::Choice { job, policy, reason }, None) => {
                self.input(Input::Choice(JobId(*job), (*policy).into(), (*reason).into()));
                Ok(Answer::Done)
            }
            (_, Some(_)) => {
                Err(Answer::refused("this is for daemons only", "a user requested it", "Leave this request out."))
            }
            (_, None) => {
                Err(Answer::refused("this is for users only", "a daemon requested it", "Send the request as a user."))
            }
        }
    }

    fn submit(&mut self, by: By, ask: &JobAsk, at_ns: u64) -> Outcome {
        let what = "the job is refused";
        if self.refuse_submits {
            let why = "the existing jobs leave no room for it in the store";
            return Err(Answer::refused(what, why, "Wait until some have ended."));
        }
        if ask.class == Class::Express && !by.admin {
            return Err(Answer::refused(
                what,
                "express is for administrators",
                "Choose interactive, batch or standby.",
            ));
        }
        if let Some(job) = self.same(by, ask, None) {
            return Ok(Answer::Submitted { job });
        }
        self.check_waiting(by)?;
        let id = JobId(self.planner.state().next_order + 1);
        let spec = JobSpec {
            id,
            owner: by.uid,
            class: ask.class.into(),
            policy: ask.policy.map(Into::into),
            slot_share: slot_share(ask.share_permille, what)?,
            want: self.want(&ask.want, what)?,
            queue: self.queue(by, ask)?,
            on_node_loss: ask.on_node_loss.into(),
            terms: self.terms(by, &ask.terms)?,
        };
        self.user_input(Input::Submit(spec), what)?;
        self.submits = true;
        let log_path = ask.log_path.as_deref().map(|path| path_of(path, id.0));
        self.jobs.insert(id.0, Job::new(id.0, by, JobAsk { log_path, ..ask.clone() }, at_ns));
        Ok(Answer::Submitted { job: id.0 })
    }

    /// The state has room for some thousands of waiting jobs, which one user's loop must not take from the others.
    fn check_waiting(&self, by: By) -> Result<(), Answer> {
        let waits = |record: &JobRecord| matches!(record.stage, Stage::Waiting(_));
        let jobs = self.planner.state().jobs.iter().filter(|(_, record)| waits(record));
        let own = jobs.filter(|(id, _)| self.known(id.0).is_some_and(|job| job.owner.uid == by.uid));
        if by.admin || own.count() < USER_WAITING_MAX {
            return Ok(());
        }
        let why = format!("{USER_WAITING_MAX} of your jobs are waiting already, which is the limit for each user");
        Err(Answer::refused("the job is refused", why, "Wait until some have started, or end some of them."))
    }

    /// The job that another launcher has submitted with the same properties, if it is not about to end; for an administrator never a job
    /// that a user submitted.
    fn same(&self, by: By, ask: &JobAsk, but: Option<u64>) -> Option<u64> {
        if !ask.once {
            return None;
        }
        let is_same = |job: &Job, stage: Stage| {
            let known = &job.ask;
            job.owner.uid == by.uid
                && (job.owner.admin || !by.admin)
                && (known.once, &known.name) == (true, &ask.name)
                && known.want.nodes().eq(ask.want.nodes())
                // A job that is being cleared is restarted, even if it was about to be closed.
                && (stage == Stage::Clearing || !job.closing && !matches!(stage, Stage::Ending(_)))
        };
        let mut jobs = self.planner.state().jobs.iter().filter_map(|(id, of)| Some((self.known(id.0)?, of.stage)));
        jobs.find(|(job, stage)| Some(job.id) != but && is_same(job, *stage)).map(|(job, _)| job.id)
    }

    /// A job's record as changed by this step.
    pub(super) fn known(&self, id: u64) -> Option<&Job> {
        self.jobs.get(&id).or_else(|| self.replica.jobs.get(&id).map(|job| &job.value))
    }

    fn want(&self, ask: &WantAsk, what: &str) -> Result<Want, Answer> {
        Ok(match ask {
            WantAsk::Total { cpus, memory_per_cpu_bytes, disk_bytes } => {
                Want::Total { cpus: *cpus, memory_per_cpu_bytes: *memory_per_cpu_bytes, disk_bytes: *disk_bytes }
            }
            WantAsk::PerNode(asks) => {
                let want = |ask: &crate::wire::NodeAsk| {
                    Ok(NodeWant {
                        node: self.node(&ask.node, what)?,
                        cpus: ask.cpus,
                        cpus_min: ask.cpus_min,
                        memory_bytes: ask.memory_bytes,
                        disk_bytes: ask.disk_bytes,
                    })
                };
                Want::PerNode(asks.iter().map(want).collect::<Result<_, Answer>>()?)
            }
        })
    }

    /// The number of a node that takes part.
    fn node(&self, name: &str, what: &str) -> Result<NodeId, Answer> {
        let nodes = &self.planner.state().nodes;
        let id = self.replica.names.get(name).map(|id| NodeId(*id)).filter(|id| nodes.contains_key(id));
        id.ok_or_else(|| {
            let why = match self.replica.names.contains_key(name) {
                true => format!("node {name} is unreachable: its daemon is not running, or cannot reach the store"),
                false => format!("there is no node {name}"),
            };
            let mut known: Vec<&str> = nodes.keys().take(20).map(|id| self.replica.name_of(*id)).collect();
            known.sort_unstable();
            Answer::refused(what, why, format!("Nodes are: {}.", known.join(", ")))
        })
    }

    /// The number of a node that takes part, or has.
    pub(super) fn any_node(&self, name: &str, what: &str) -> Result<NodeId, Answer> {
        match self.replica.names.get(name) {
            Some(id) => Ok(NodeId(*id)),
            None => self.node(name, what),
        }
    }

    /// The queue of a job: the requested one, or the first that its owner may use.
    fn queue(&self, by: By, ask: &JobAsk) -> Result<u32, Answer> {
        let queues = &self.planner.state().config.queues;
        let groups: Vec<u32> = ask.groups.iter().copied().chain([by.gid]).collect();
        let may = |queue: &CoreQueue| by.admin || queue.rights.permit(by.uid, &groups);
        let own: Vec<&str> = queues.iter().filter(|queue| may(queue)).map(|queue| queue.name.as_str()).collect();
        let name = ask.queue.as_deref();
        let refused = |why: String| {
            let hint = match own[..] {
                [] => "Ask an administrator: `cosched queues` shows who may use them.".to_owned(),
                _ => format!("You may use: {}.", own.join(", ")),
            };
            Answer::refused("the job is refused", why, hint)
        };
        match name.or(own.first().copied()) {
            None => Err(refused("you may not use any queue".to_owned())),
            Some(name) => match queues.iter().position(|queue| queue.name == name) {
                None => Err(refused(format!("there is no queue {name}"))),
                Some(at) if !may(&queues[at]) => Err(refused(format!("queue {name} is for other users"))),
                Some(at) => Ok(at as u32),
            },
        }
    }

    pub(super) fn user_input(&mut self, input: Input, what: &str) -> Result<(), Answer> {
        let applied = self.planner.apply(self.wall, input);
        let refused = |refusal| {
            let hint = match refusal {
                Refusal::RunTime { .. } => "Request less, or another queue: `cosched queues` shows their limits.",
                Refusal::DuplicateNode(_) => "Name each node once, with all the CPUs that the job needs there.",
                _ => "`cosched nodes` shows the nodes and their CPUs.",
            };
            Answer::refused(what, self.tell(refusal), hint)
        };
        self.reason = Some(applied.map_err(refused)?);
        Ok(())
    }

    /// The text of a refusal, with the names of nodes and queues.
    fn tell(&self, refusal: Refusal) -> String {
        let name = |id: NodeId| self.replica.name_of(id);
        let more_than_node = |what: &str, node, amounts| {
            let [wanted, has] = sizes(amounts);
            format!("the job wants {wanted} of {what} on node {}, which has {has}", name(node))
        };
        let more_than_left = |what: &str, node, amounts| {
            let [wanted, left] = sizes(amounts);
            format!("the job wants {wanted} of {what} on node {}, and the others there leave {left}", name(node))
        };
        let more_than_permitted = |what: &str, at: u32, amounts, to: &str| {
            let queue = self.planner.state().config.queues.get(at as usize).map_or("", |queue| &queue.name);
            let [wanted, most] = sizes(amounts);
            format!("the job wants {wanted} of {what}, queue {queue} permits {most}{to}")
        };
        match refusal {
            Refusal::FewCpus { node, wanted, has } => {
                format!("the job needs {wanted} CPUs on node {}, which has {has}", name(node))
            }
            Refusal::LittleMemory { node, wanted, has } => more_than_node("memory", node, [wanted, has]),
            Refusal::LittleDisk { node, wanted, has } => more_than_node("disk space", node, [wanted, has]),
            Refusal::NoMemoryNow { node, wanted, left } => more_than_left("memory", node, [wanted, left]),
            Refusal::NoDiskNow { node, wanted, left } => more_than_left("disk space", node, [wanted, left]),
            Refusal::OthersWait(node) => {
                format!("what node {} has left is reserved for earlier jobs that wait for it", name(node))
            }
            Refusal::Queue(at, Limit::Memory { wanted, most }) => more_than_permitted("memory", at, [wanted, most], ""),
            Refusal::Queue(at, Limit::UserMemory { wanted, most }) => {
                more_than_permitted("memory", at, [wanted, most], " to each user")
            }
            Refusal::Queue(at, Limit::Disk { wanted, most }) => {
                more_than_permitted("disk space on a node", at, [wanted, most], "")
            }
            Refusal::DuplicateNode(node) => format!("node {} is named twice", name(node)),
            other => other.to_string(),
        }
    }

    /// Jobs stay in the queue of the same name, so a queue with jobs cannot be left out: the refusal lists its jobs.
    fn queues(&mut self, by: By, queues: &[Queue]) -> Outcome {
        let there = &self.planner.state().config.queues;
        let left_out = |at: u32| there.get(at as usize).filter(|had| queues.iter().all(|new| new.name != had.name));
        let jobs: Vec<String> = self
            .planner
            .state()
            .jobs
            .iter()
            .filter_map(|(id, job)| Some(format!("{id} in {}", left_out(job.spec.queue)?.name)))
            .collect();
        if by.admin && !queues.is_empty() && !jobs.is_empty() {
            let more = jobs.len().saturating_sub(JOBS_NAMED_MAX);
            let named = jobs[..jobs.len() - more].join(", ");
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Err(Answer::refused(
                "the queues are not changed",
                format!("these jobs are in queues that are left out: {named}{rest}"),
                "Keep these queues until their jobs have ended, or end the jobs.",
            ));
        }
        self.setting(by, Input::Queues(queues.iter().cloned().map(Into::into).collect()))
    }

    fn setting(&mut self, by: By, input: Input) -> Outcome {
        let what = "the setting is refused";
        if !by.admin {
            return Err(Answer::refused(what, "it is for administrators", "Ask one of them."));
        }
        self.user_input(input, what).map(|()| Answer::Done)
    }

    pub(super) fn load(&mut self, id: u64) -> Option<&mut Job> {
        if !self.jobs.contains_key(&id) {
            let known = self.replica.jobs.get(&id)?;
            self.jobs.insert(id, known.value.clone());
        }
        self.jobs.get_mut(&id)
    }

    /// A job that has started gets the change at once, or the change is refused; see core's `resources.rs`.
    fn resources(&mut self, by: By, id: u64, ask: &WantAsk) -> Outcome {
        let what = "the job's resources are not changed";
        let job = self.own_job(by, id)?;
        if job.ask.once && !job.ask.want.nodes().eq(ask.nodes()) {
            let why = "its launchers find the job by its nodes";
            return Err(Answer::refused(what, why, "Name the nodes that it has."));
        }
        let want = self.want(ask, what)?;
        let started = self.place_of(id).is_some();
        self.user_input(Input::Resources(JobId(id), want), what)?;
        let wall = self.wall.0;
        self.jobs.entry(id).and_modify(|job| {
            // No process waits for it: the first one comes to where the job is. Once it has come, the lead stays there.
            if !started
                && job.ask.main.is_none()
                && job.ask.lead.as_deref().is_some_and(|lead| ask.nodes().all(|node| node != lead))
            {
                job.ask.lead = ask.nodes().next().map(str::to_owned);
            }
            job.ask.want = ask.clone();
            job.note(wall, Some(by.uid), "resources changed");
        });
        Ok(Answer::Done)
    }

    fn place_of(&self, id: u64) -> Option<&Place> {
        self.planner.state().jobs.get(&JobId(id))?.place.as_ref()
    }

    /// Whether these are all nodes of a job that has a place.
    fn are_all(&self, on: &BTreeSet<String>, id: u64) -> bool {
        self.place_of(id).is_some_and(|place| place.parts.iter().all(|p| on.contains(self.replica.name_of(p.node))))
    }

    /// The node, and the record of a job that has a part there in this attempt.
    fn part(&mut self, origin: &str, id: u64, attempt: Attempt) -> Option<(NodeId, &mut Job)> {
        let node = NodeId(*self.replica.names.get(origin)?);
        self.place_of(id)?.parts.binary_search_by_key(&node, |part| part.node).ok()?;
        let job = self.load(id).filter(|job| job.attempt == attempt)?;
        Some((node, job))
    }

    fn part_ended(&mut self, origin: &str, id: u64, attempt: Attempt, end: PartEnd) -> Outcome {
        let replica = self.replica;
        let parts: Vec<NodeId> =
            self.place_of(id).iter().flat_map(|place| &place.parts).map(|part| part.node).collect();
        if let Some((_, job)) = self.part(origin, id, attempt) {
            job.ended_on.entry(origin.to_owned()).or_insert(end);
            job.closing |= job.leader(parts.iter().map(|node| replica.name_of(*node))) == Some(origin);
        }
        Ok(Answer::Done)
    }

    /// Without its main process a job that has not started never will, and one that has is over when it has no process left.
    fn main_ended(&mut self, origin: &str, id: u64, attempt: Attempt, exit: Exit) -> Outcome {
        let started = self.place_of(id).is_some();
        // In later attempts another node may have the main process than the one where the job was submitted.
        let of_lead =
            |job: &&mut Job| job.attempt == attempt && (attempt > 0 || job.ask.lead.as_deref() == Some(origin));
        if let Some(job) = self.load(id).filter(of_lead) {
            job.main_exit = Some(exit);
            job.closing = true;
            if !started {
                job.killed_by = Some(job.owner.uid);
                self.input(Input::Kill(JobId(id)));
            }
        }
        Ok(Answer::Done)
    }

    /// A gang is asleep when it is asleep on all its nodes.
    fn asleep(&mut self, origin: &str, id: u64, attempt: Attempt, asleep: bool) -> Outcome {
        let dropped = !asleep && self.is_dropped(id);
        let Some((_, job)) = self.part(origin, id, attempt).filter(|_| !dropped) else { return Ok(Answer::Done) };
        if !asleep {
            job.dropped_on.clear();
        }
        match asleep {
            true => job.asleep_on.insert(origin.to_owned()),
            false => job.asleep_on.remove(origin),
        };
        let on = job.asleep_on.clone();
        let all = self.are_all(&on, id);
        self.input(if all { Input::Asleep(JobId(id)) } else { Input::Awake(JobId(id)) });
        Ok(Answer::Done)
    }

    /// Whether a gang was dropped on all its nodes.
    fn is_dropped(&mut self, id: u64) -> bool {
        let on = self.load(id).map(|job| job.dropped_on.clone());
        on.is_some_and(|on| self.are_all(&on, id))
    }

    /// LLNL, "Gang Scheduler Design": a program that uses no CPU "for an extended period … is completely removed". It
    /// has no cells while it sleeps; from now on waking does not give it any either, until its user resumes it.
    fn dropped(&mut self, origin: &str, id: u64, attempt: Attempt) -> Outcome {
        let Some((_, job)) = self.part(origin, id, attempt) else { return Ok(Answer::Done) };
        let is_new = job.dropped_on.insert(origin.to_owned());
        if is_new && self.is_dropped(id) {
            let wall = self.wall.0;
            self.jobs.entry(id).and_modify(|job| job.note(wall, None, "dropped: no CPU used for a long time"));
        }
        Ok(Answer::Done)
    }

    /// The effect follows at the end of the step, because the job may have a process again in the same step.
    fn empty(&mut self, origin: &str, id: u64, attempt: Attempt, empty: bool) -> Outcome {
        if let Some((_, job)) = self.part(origin, id, attempt) {
            match empty {
                true => job.empty_on.insert(origin.to_owned()),
                false => job.empty_on.remove(origin),
            };
        }
        Ok(Answer::Done)
    }

    /// Closes jobs without a main process that have no process on any of their nodes: they are over.
    fn close_empty(&mut self) {
        for (id, job) in &mut self.jobs {
            let record = self.planner.state().jobs.get(&JobId(*id));
            let Some(place) = record.and_then(|record| record.place.as_ref()) else { continue };
            job.closing |= is_done_on(job, self.replica, place.parts.iter().map(|part| part.node));
        }
    }

    fn memory(&mut self, origin: &str, id: u64, attempt: Attempt, bytes: u64) -> Outcome {
        if let Some((node, _)) = self.part(origin, id, attempt) {
            self.input(Input::Memory(JobId(id), node, bytes));
        }
        Ok(Answer::Done)
    }

    /// Ends, or restarts, jobs without any remaining part. Jobs that do not fit into this transaction are handled in the next.
    pub(super) fn finish(&mut self) {
        self.close_empty();
        let ids: Vec<JobId> = self.planner.state().jobs.keys().copied().collect();
        for id in ids {
            if self.is_full() && !self.jobs.contains_key(&id.0) {
                continue;
            }
            let record = &self.planner.state().jobs[&id];
            let job = self.jobs.get(&id.0).or_else(|| self.replica.jobs.get(&id.0).map(|job| &job.value));
            if !finish::is_over(record, job, self.replica) {
                continue;
            }
            // Another submission of the same job may have begun since this one was closing: then it is not restarted.
            let twin = job.and_then(|job| self.same(job.owner, &job.ask, Some(id.0)).filter(|_| job.closing));
            let clearing = record.stage == Stage::Clearing && twin.is_none();
            let why = job.map(|job| finish::why(record, job));
            let wall = self.wall.0;
            match (clearing, self.load(id.0), why) {
                (true, Some(job), _) => job.restart(),
                (false, Some(job), Some(why)) => job.finish(wall, why),
                _ => (),
            }
            if !clearing {
                self.tell_followers(id, why);
            }
            self.input(if clearing { Input::Cleared(id) } else { Input::End(id) });
        }
    }
}

/// Whether a job that ends with its last process has none on these nodes, where all its parts are.
pub(super) fn is_done_on(job: &Job, replica: &Replica, nodes: impl Iterator<Item = NodeId> + Clone) -> bool {
    let mut names = nodes.map(|node| replica.name_of(node));
    job.is_alike(names.clone()) && names.all(|name| job.empty_on.contains(name) || job.ended_on.contains_key(name))
}

#[cfg(test)]
mod tests;
