//! Carries out the actions of the control plane and the local scheduler, or passes them on to the host.

use crate::Node;
use crate::part::Part;
use crate::request::{Refusal, SIGKILL, SIGTERM};
use crate::types::{Action, PartOf, Why};
use cosched_cluster::wire::{Attempt, Job, KillHow, PartEnd};
use cosched_cluster::{Action as Wanted, Notice};
use cosched_core::cluster::{LocalAction, LocalJob, Part as Place, Stage};
use cosched_core::{AgentAction, JobId, Reason, SlotShare};

impl Node {
    pub(crate) fn act(&mut self, wanted: Wanted) {
        let action = match wanted {
            Wanted::Store(op, what) => Action::Store(op, what),
            Wanted::Drop(op) => Action::Drop(op),
            Wanted::Reply(ask, answer) => return self.replied(ask, answer),
            Wanted::Loads(op, acks) => return self.loads_read(op, acks),
            Wanted::Say(notice) => return self.say(notice),
            Wanted::Missed { generation, slots } => Action::Missed { generation, slots },
            Wanted::Behind(many) => Action::Behind(many),
            Wanted::Use(plan) => {
                self.local.use_plan(plan.clone());
                Action::Uses(plan)
            }
            Wanted::RunNoSlots(reason) => {
                self.local.no_slots();
                Action::NoSlots(reason)
            }
            Wanted::StartEarly(id) => return self.local.start_early(id),
            Wanted::StartPart { job, part } => return self.begin(job, part),
            Wanted::KillPart { job, attempt, reason } => return self.kill(job, attempt, reason),
            Wanted::ClosePart { job, attempt } => return self.close_part(job, attempt),
            Wanted::Forgotten(id) => return self.forgotten(id),
        };
        self.actions.push_back(action);
    }

    fn say(&mut self, notice: Notice) {
        self.actions.push_back(Action::Say(notice));
    }

    /// A job has a place on this node.
    fn begin(&mut self, job: Box<Job>, place: Place) {
        let id = JobId(job.id);
        if self.has(id) {
            // It is a part of a cluster whose store was lost. Any process that came into its cgroup would become part of it.
            self.member.part_ended(self.now, id, job.attempt, PartEnd::default());
            self.answer_launcher(id, Err(Refusal::NumberTaken(id)));
            return self.actions.push_back(Action::Taken(id));
        }
        let record = self.member.state().and_then(|state| state.jobs.get(&id));
        let parts = record.and_then(|record| record.place.as_ref()).map_or(&[][..], |place| &place.parts);
        let names = || parts.iter().filter_map(|part| self.member.name_of(part.node));
        let (lead, alike) = (job.leader(names()) == Some(&*self.name), job.is_alike(names()));
        let (class, policy) = (job.ask.class.into(), job.ask.policy.map(Into::into));
        let scheduled = LocalJob {
            owner: job.owner.uid,
            class,
            policy,
            slot_share: job.ask.share_permille.and_then(SlotShare::new),
            cpus: place.cpus,
            memory_bytes: place.memory_bytes,
            suspended: false,
            spans: parts.len() > 1,
            exclusive_cores: job.ask.terms.exclusive_cores,
        };
        let of = PartOf {
            attempt: job.attempt,
            tree: self.member.tree(),
            lead,
            alike,
            closing: job.closing,
            grace_ms: None,
            planned_ms: None,
            decided: job.decided,
        };
        self.parts.insert(id, Part::new(self.now, of));
        self.local.begin(id, scheduled);
        // Launchers begin the first attempt of a job only.
        let launcher = self.launcher_of(id).filter(|_| lead && job.attempt == 0);
        self.actions.push_back(Action::Begin { job, part: place, launcher });
    }

    fn kill(&mut self, id: JobId, attempt: Attempt, reason: Reason) {
        // A job must not be killed because the store does not know it.
        if reason == Reason::Departure && self.is_forgotten(id) {
            return self.forgotten(id);
        }
        let (job, at_limit) = (self.member.job(id), self.how_at_limit(id));
        let by_user = reason == Reason::UserRequest;
        // A time limit must not turn a user's KILL into a TERM.
        let counts = |how: &KillHow| by_user || at_limit.is_some() && how.signal == SIGKILL;
        let asked = job.and_then(|job| job.kill_how).filter(counts);
        let KillHow { signal, grace_ms } = asked.or(at_limit).unwrap_or(KillHow::FORCE);
        let killed_by = job.filter(|_| by_user).and_then(|job| job.killed_by);
        let why = killed_by.map_or(Why::Reason(reason), Why::User);
        let Some(part) = self.parts.get(&id).filter(|part| part.of.attempt == attempt) else {
            return self.actions.push_back(Action::Report(id, attempt));
        };
        if part.populated {
            self.actions.push_back(Action::Signal { job: id, signal, why, asked: None });
            let most_ms = at_limit.and_then(|how| how.grace_ms);
            let grace_ms = grace_ms.filter(|_| signal != SIGKILL).into_iter().chain(most_ms).min();
            // Of the member that plans only an administrator gets a longer time than the one before.
            let is_longer = |earlier: u64| grace_ms.is_none_or(|ms| ms > earlier);
            let puts_off = part.of.planned_ms.is_some_and(is_longer) && at_limit.is_none();
            if let Some(part) = self.parts.get_mut(&id) {
                part.of.planned_ms = asked.and_then(|how| how.grace_ms);
            }
            self.kill_in(id, grace_ms, puts_off);
        }
        self.close(id);
    }

    /// How a job is killed that exceeds a time limit. If its queue has one, the user cannot choose a longer grace time.
    pub(crate) fn how_at_limit(&self, id: JobId) -> Option<KillHow> {
        let (state, job) = (self.member.state()?, self.member.job(id)?);
        let record = state.jobs.get(&id)?;
        let Stage::Ending(Reason::TimeLimit | Reason::RunTime) = record.stage else { return None };
        let queue = state.config.queues.get(record.spec.queue as usize)?;
        let most = queue.time_ns_max.map_or(u64::MAX, |_| KillHow::GRACE_MS);
        let grace_ms = job.ask.terms.grace_ms.unwrap_or(KillHow::GRACE_MS).min(most);
        Some(KillHow { signal: SIGTERM, grace_ms: Some(grace_ms) })
    }

    /// The job's main process has ended on another node.
    fn close_part(&mut self, id: JobId, attempt: Attempt) {
        match self.parts.get(&id).filter(|part| part.of.attempt == attempt) {
            Some(_) => self.close(id),
            None => self.actions.push_back(Action::Report(id, attempt)),
        }
    }

    /// A store that has lost its data knows no job: no job is killed because of that, nor kept stopped, because no plan would ever resume it.
    /// It is over when it has no process.
    fn forgotten(&mut self, id: JobId) {
        if self.has(id) {
            self.local.suspend(id, false);
            self.local.leave(id);
            self.actions.push_back(Action::Forgotten(id));
            self.close(id);
        }
    }

    pub(crate) fn act_local(&mut self, action: LocalAction) {
        let action = match action {
            LocalAction::Keep(id, _) => Action::Keep(id),
            LocalAction::Refused(id, why) => Action::Refused(id, why),
            LocalAction::Agent(action) => match action {
                AgentAction::Sample { job } => Action::Sample(job),
                AgentAction::Asleep { job, reason } => return self.sleeps(job, true, reason),
                AgentAction::Awake { job, reason } => return self.sleeps(job, false, reason),
                AgentAction::Dropped { job, reason } => {
                    self.member.dropped(self.now, job);
                    Action::Dropped { job, reason }
                }
                AgentAction::Unsound(flaw) => Action::Unsound(flaw),
                AgentAction::Set { .. } => return,
            },
        };
        self.actions.push_back(action);
    }

    /// Always reported to the cluster, which may not have received it, or disagree. Only changes are reported to the host.
    fn sleeps(&mut self, job: JobId, asleep: bool, reason: Reason) {
        self.member.asleep(self.now, job, asleep);
        if self.parts.get_mut(&job).is_some_and(|part| part.is_news_of_sleep(asleep)) {
            self.actions.push_back(Action::Sleeps { job, asleep, reason });
        }
    }
}
