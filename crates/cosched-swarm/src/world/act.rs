//! A node carries out what its daemon and its processes request, until nothing is left to do.

use super::{Broken, Event, MS, S, World};
use crate::host::{Host, Local, Phase, SlotBegins};
use crate::invariants::Seen;
use cosched_cluster::store::{Do, Op};
use cosched_cluster::wire::{Attempt, Job, PartEnd};
use cosched_cluster::{Member, Moment, Notice};
use cosched_core::cluster::{Part, Stage, State};
use cosched_core::{Disposition, JobId};
use cosched_node::{Action, Began, Input, Node, SIGKILL, Sampled, Waits};
use std::collections::VecDeque;

impl World {
    /// Runs `what` on the node's control plane.
    pub fn tell(&mut self, node: usize, what: impl FnOnce(&mut Member, Moment)) {
        self.tell_daemon(node, |daemon, now| daemon.tell(now, what));
    }

    /// Passes an input to the node's daemon.
    pub(super) fn handle(&mut self, node: usize, input: Input) {
        self.tell_daemon(node, |daemon, now| daemon.handle(now, input));
    }

    pub(super) fn tell_daemon(&mut self, node: usize, what: impl FnOnce(&mut Node, Moment)) {
        let now = self.moment(node);
        let host = &mut self.hosts[node];
        host.processes.advance(self.now);
        if self.now >= host.hung_until {
            host.thawed = false;
            if let Some(daemon) = &mut host.node {
                what(daemon, now);
            }
        }
        self.settle(node);
    }

    fn settle(&mut self, node: usize) {
        loop {
            let mut busy = false;
            if self.now >= self.hosts[node].hung_until {
                self.keep_fences(node);
                // A slow disk may make the daemon wait after any action.
                while self.now >= self.hosts[node].hung_until
                    && let Some(action) = self.hosts[node].node.as_mut().and_then(Node::poll_action)
                {
                    self.act(node, action);
                    busy = true;
                    if self.breaks(DIES_ONE_IN) {
                        self.dies_in_between(node);
                    }
                }
            }
            self.apply(node);
            for job in self.hosts[node].processes.settle(self.now) {
                self.emptied(node, job);
                busy = true;
            }
            if !busy {
                break;
            }
        }
        while let Some((request, outcome)) = self.hosts[node].node.as_mut().and_then(Node::poll_answer) {
            self.answered(node, request, Ok(outcome));
        }
        self.show_slot(node);
        self.set_wake(node);
    }

    /// Whether a fault with the odds of one in `once_in` occurs; never in a calm world.
    pub(super) fn breaks(&mut self, once_in: u64) -> bool {
        self.lively && !self.calm && self.dice.one_in(once_in)
    }

    /// The daemon dies after one of several actions, and is restarted.
    fn dies_in_between(&mut self, node: usize) {
        self.counts.faults += 1;
        self.crash(node);
        let starts = self.now + self.dice.between(20 * MS, 2 * S);
        self.push(starts, Event::Starts { node });
    }

    /// The daemon leaves the deadlines of its jobs for the guard.
    fn keep_fences(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if let Some(daemon) = &host.node {
            host.fences = daemon.member().fences().map(|fenced| (fenced.job, (fenced.attempt, fenced.at))).collect();
        }
    }

    /// The guard of a daemon that is dead or hangs ends the jobs that other nodes may restart.
    pub(super) fn guard_fences(&mut self, node: usize) {
        let (now, steady) = (self.now, self.moment(node).steady);
        let host = &mut self.hosts[node];
        if host.node.is_some() && now >= host.hung_until || self.broken == Some(Broken::NoFence) {
            return;
        }
        host.processes.advance(now);
        for (job, (attempt, at)) in &host.fences {
            let part = host.processes.parts.get_mut(job).filter(|part| part.of.attempt == *attempt && part.is_alive());
            if let Some(part) = part.filter(|_| *at <= steady) {
                part.dies_at = Some(now);
            }
        }
        self.tell(node, |_, _| ());
    }

    /// Stops and continues processes.
    fn apply(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let keeps = host.node.is_none() && self.broken == Some(Broken::NoThaw);
        let member = host.node.as_ref().map(Node::member).filter(|member| !member.is_joined());
        let adrift = member.and_then(Member::state).filter(|_| self.broken == Some(Broken::HoldsOn));
        for (id, part) in host.processes.parts.iter_mut().filter(|(_, part)| part.is_alive()) {
            let to = match &host.node {
                Some(_) if adrift.is_some_and(|state| waits(state, *id)) => Disposition::Stop,
                Some(daemon) if !host.thawed => daemon.local().disposition(*id),
                _ if keeps => part.to,
                _ => Disposition::Run,
            };
            let never = part.job.suspended && self.broken == Some(Broken::NoFreezers);
            part.to = if never { Disposition::Run } else { self.freezers.switch(part, to, self.now) };
            let unheard = part.termed.is_some() && self.broken == Some(Broken::DeafToTerm);
            match part.to {
                Disposition::Stop => drop(part.stopped_since.get_or_insert(self.now)),
                _ if unheard => (),
                _ => {
                    part.stopped_since = None;
                    if let Some(delay) = part.termed.take() {
                        part.dies_in(delay, self.now);
                    }
                }
            }
        }
        if let Some(daemon) = &host.node {
            let plan = daemon.local().plan();
            host.cycle_ns_max = host.cycle_ns_max.max(plan.slot_length_ns * plan.turns.len() as u64);
        }
    }

    fn show_slot(&mut self, node: usize) {
        let wall = self.moment(node).wall;
        let deaf = node == 0 && self.broken == Some(Broken::OldPlans);
        let host = &mut self.hosts[node];
        // One that waits for its disk has a new plan in part; its slot thread still has the former one (seed 12827).
        let is_whole = !host.thawed && self.now >= host.hung_until;
        let Some(daemon) = host.node.as_ref().filter(|_| is_whole) else { return };
        let (Some(id), Some(slot)) = (daemon.member().id(), SlotBegins::of(daemon.local(), wall)) else { return };
        let slot = match &host.heard_plan {
            Some(plan) if deaf => slot.by(plan.clone(), id),
            _ => slot,
        };
        if host.shown.as_ref().is_some_and(|shown| shown.is_shown_by(&slot)) {
            return;
        }
        host.shown = Some(slot.clone());
        let (cpus, sound) = (host.capacity.cpus, host.is_sound(self.now));
        self.counts.slots += 1;
        self.see(&Seen::Slot { node, id: id.0, cpus, sound, wall_ns: wall.0, slot: &slot });
    }

    fn act(&mut self, node: usize, action: Action) {
        if self.log.is_some()
            && let Some(text) = text_of(&action)
        {
            self.note(|| format!("n{node}: {text}"));
        }
        match action {
            Action::Store(op, what) => self.asks(node, op, what),
            Action::Drop(op) => drop(self.hosts[node].watches.remove(&op)),
            Action::Uses(plan) => {
                self.see(&Seen::Uses { node, plan: &plan });
                let host = &mut self.hosts[node];
                if plan.generation <= 10 {
                    host.heard_plan = Some(plan.clone());
                }
                host.plan = Some(plan);
            }
            Action::NoSlots(reason) => {
                let host = &mut self.hosts[node];
                host.plan = None;
                host.no_slots.push(reason);
            }
            Action::Begin { job, part, .. } => self.begin(node, &job, part),
            Action::Enter(job, request) => self.enters_late(node, job, request),
            Action::Exited(job, _) => self.looks_at_job(node, job),
            Action::Answer(request, answer) => self.answered(node, request, answer),
            Action::Signal { job, signal, .. } => self.signal(node, job, signal),
            Action::KillRest(job) => self.kill_rest(node, job),
            Action::Finish(job, attempt) => self.finish(node, job, attempt),
            Action::Report(job, attempt) => self.report(node, job, attempt),
            // The write to the disk fails; the next daemon finds only what is kept of the job later.
            Action::Keep(_) if self.breaks(10) => (),
            Action::Keep(id) => {
                if self.writes_to_disk(node) {
                    self.hosts[node].keep(id);
                }
            }
            Action::Reply(id, answer) => {
                let host = &mut self.hosts[node];
                host.answers.entry(id).or_default().push(answer.clone());
                if let Some(name) = host.asked.remove(&id) {
                    self.see(&Seen::Answered { name: &name, answer: &answer });
                    self.told.insert(name, answer);
                }
            }
            Action::Behind(many) => self.hosts[node].behind = many,
            Action::Say(notice) => self.says(node, notice),
            Action::Missed { .. } => self.counts.missed += 1,
            Action::Sample(job) => self.samples(node, job),
            Action::CountBlocks(job) => {
                self.reply(node, Input::Blocks(job, if job.0 % 3 == 1 { 1_000_000 } else { 0 }))
            }
            Action::Chose { .. } => self.counts.chosen += 1,
            Action::Unsound(flaw) => self.see(&Seen::Unsound { node, why: &flaw.to_string() }),
            Action::Refused(_, why) => self.see(&Seen::Unsound { node, why: &why.to_string() }),
            Action::Forgotten(job) => {
                let part = self.hosts[node].processes.parts.get_mut(&job);
                part.into_iter().for_each(|part| part.forgotten = true);
            }
            Action::Withdraw { ask, keys, why } => self.withdraws(node, keys, Input::Withdrawn(ask, why)),
            Action::Release(_)
            | Action::Taken(_)
            | Action::Plan
            | Action::OrderWaits
            | Action::Sleeps { .. }
            | Action::Dropped { .. } => (),
        }
    }

    fn says(&mut self, node: usize, notice: Notice) {
        self.counts.conflicts += u64::from(notice == Notice::Conflict);
        if let Notice::Unsound(why) = &notice {
            self.see(&Seen::Unsound { node, why });
        }
        self.hosts[node].notices.push(notice);
    }

    fn samples(&mut self, node: usize, job: JobId) {
        let part = self.hosts[node].processes.parts.get(&job).filter(|part| !part.ended);
        if let Some(cpu_ns) = part.map(|part| part.cpu_ns) {
            self.reply(node, Input::Sampled(job, Sampled { cpu_ns, waits: waits_of(job, cpu_ns), held: 0.0 }));
        }
    }

    /// Tells the daemon whether any process of a job is alive on the node.
    pub(super) fn looks_at_job(&mut self, node: usize, job: JobId) {
        let alive = self.hosts[node].processes.parts.get(&job).is_some_and(Local::is_alive);
        self.reply(node, Input::Populated(job, alive));
    }

    /// The host's reply to an action of the daemon.
    pub(super) fn reply(&mut self, node: usize, input: Input) {
        let now = self.moment(node);
        if let Some(daemon) = &mut self.hosts[node].node {
            daemon.handle(now, input);
        }
    }

    fn begin(&mut self, node: usize, job: &Job, place: Part) {
        let (id, attempt) = (JobId(job.id), job.attempt);
        self.counts.begun += 1;
        let lives = |host: &Host| {
            let part = host.processes.parts.get(&id);
            part.is_some_and(|part| part.is_alive() && !part.forgotten && part.of.attempt < attempt)
        };
        let older = self.hosts.iter().position(lives);
        self.see(&Seen::Begun { node, job: id, attempt, older });
        let phases = if self.lively {
            self.life_of(job)
        } else {
            [Phase::Sleeps(10 * MS + self.dice.below(self.job_ns_max))].into()
        };
        let asked = place.memory_bytes;
        let memory_bytes = match self.dice.below(8) {
            0 if self.lively => asked + asked / 2,
            _ => asked / 8 * self.dice.between(1, 8),
        };
        let host = &mut self.hosts[node];
        let Some((of, scheduled)) = host.node.as_ref().and_then(|daemon| daemon.part(id)) else { return };
        let (of, scheduled) = (*of, *scheduled);
        // It gets no cgroup; its record says so.
        let fails = self.breaks(100);
        // Some launchers end before their process has entered the job.
        let comes = !fails && !self.breaks(50);
        let phases = if comes { phases } else { VecDeque::new() };
        let host = &mut self.hosts[node];
        let part = Local {
            of,
            job: scheduled,
            submitted_ms: job.submitted_ns / MS,
            store_life: self.store_life,
            phases,
            sleeps_until: None,
            dies_at: None,
            ignores_kill: self.lively && self.dice.one_in(3),
            termed: None,
            forgotten: false,
            ended: fails,
            cpu_ns: 0,
            memory_bytes,
            told_bytes: asked,
            to: Disposition::Run,
            stopped_since: None,
            switch: None,
        };
        host.processes.parts.insert(id, part);
        if fails {
            self.note(|| format!("n{node}: job {id} gets no cgroup"));
            self.reply(node, Input::Failed(id));
            return self.report(node, id, attempt);
        }
        self.reply(node, Input::Began(id, Began { populated: comes, comes }));
    }

    /// The phases of a job's threads. Nodes agree on them only by chance.
    fn life_of(&mut self, job: &Job) -> VecDeque<Phase> {
        let dice = &mut self.dice;
        let mut phases = VecDeque::new();
        for _ in 0..dice.between(1, 4) {
            phases.push_back(Phase::Computes(dice.between(20 * MS, 2 * S)));
            if dice.one_in(2) {
                phases.push_back(Phase::Sleeps(dice.between(10 * MS, 2 * S)));
            }
        }
        // Some wait for a user, who is having lunch.
        if job.id.is_multiple_of(5) {
            phases.push_back(Phase::Sleeps(dice.between(5 * S, 40 * S)));
            phases.push_back(Phase::Computes(dice.between(20 * MS, 2 * S)));
        }
        phases
    }

    fn signal(&mut self, node: usize, job: JobId, signal: i32) {
        if self.broken == Some(Broken::NoSignals) {
            return;
        }
        let delay = self.dice.between(20 * MS, 220 * MS);
        if signal == SIGKILL {
            return self.dies(node, job, delay);
        }
        let part = self.hosts[node].processes.parts.get_mut(&job).filter(|part| part.is_alive() && !part.ignores_kill);
        part.into_iter().for_each(|part| part.termed = Some(delay));
    }

    /// The grace time of a job's processes is over.
    fn kill_rest(&mut self, node: usize, job: JobId) {
        if self.broken != Some(Broken::RestLives) {
            self.dies(node, job, 0);
        }
    }

    /// All processes of a job end after `delay` nanoseconds, or sooner.
    fn dies(&mut self, node: usize, job: JobId, delay: u64) {
        if let Some(part) = self.hosts[node].processes.parts.get_mut(&job).filter(|part| part.is_alive()) {
            part.dies_in(delay, self.now);
        }
    }

    /// The last process of a job has ended on a node. The launcher that waits for the main process reports its exit; some launchers
    /// have ended too.
    fn emptied(&mut self, node: usize, job: JobId) {
        self.note(|| format!("n{node}: the last process of job {job} ended"));
        if self.now < self.hosts[node].hung_until {
            return;
        }
        self.reply(node, Input::Populated(job, false));
        let leads = self.hosts[node].processes.parts.get(&job).is_some_and(|part| part.of.lead);
        if leads && !self.dice.one_in(8) {
            self.launcher_reports(node, job);
        }
    }

    /// Launchers whose main process has ended while no daemon listened report it now, unless they have ended too.
    pub(super) fn launchers_report(&mut self, node: usize) {
        let parts = self.hosts[node].processes.parts.iter();
        let ended = parts.filter(|(_, part)| !part.ended && part.of.lead && !part.is_alive());
        let ended: Vec<JobId> = ended.map(|(job, _)| *job).collect();
        for job in ended {
            if !self.dice.one_in(8) {
                self.launcher_reports(node, job);
                self.tell(node, |_, _| ());
            }
        }
    }

    /// A job is over on a node.
    fn finish(&mut self, node: usize, job: JobId, attempt: Attempt) {
        let part = self.hosts[node].processes.parts.get_mut(&job).filter(|part| part.of.attempt == attempt);
        let alive = part.as_ref().is_some_and(|part| part.is_alive());
        part.into_iter().for_each(|part| part.ended = true);
        if alive {
            self.see(&Seen::Unsound { node, why: "an ended job has processes" });
        }
        if self.broken != Some(Broken::EndsUntold) {
            self.report(node, job, attempt);
        }
    }

    fn report(&mut self, node: usize, job: JobId, attempt: Attempt) {
        let part = self.hosts[node].processes.parts.get(&job).filter(|part| part.of.attempt == attempt);
        let end = part.map_or_else(PartEnd::default, Local::end);
        self.reply(node, Input::Over { job, attempt, end });
    }
}

/// A daemon dies after one action in this number.
const DIES_ONE_IN: u64 = 3000;

fn waits(state: &State, id: JobId) -> bool {
    state.jobs.get(&id).is_some_and(|job| matches!(job.stage, Stage::Waiting(_)))
}

/// How a program waits, for auto: of three jobs one spins unseen, in which programs take turns at times, one blocks by itself very often, and one
/// is blocked in observed waits half of its time.
fn waits_of(job: JobId, cpu_ns: u64) -> Waits {
    let waits = cpu_ns / 1_000_000;
    match job.0 % 3 {
        2 => Waits { processes: 1, polls: waits, waits, spin_ns: cpu_ns / 2, block_ns: cpu_ns, ..Waits::default() },
        of => Waits { in_turns: of == 0 && waits % 2 == 1, ..Waits::default() },
    }
}

/// An action as a line of the log; `None` for the uninteresting ones.
fn text_of(action: &Action) -> Option<String> {
    Some(match action {
        Action::Store(_, Op::KeepAlive(_)) => return None,
        Action::Store(id, Op::Txn(txn)) => {
            let of = |op: &Do| match op {
                Do::Put { key, .. } => format!("+{}", short(key)),
                Do::Delete(range) => format!("-{}", short(&range.first)),
                Do::Get(range) => format!("?{}", short(&range.first)),
            };
            let ops: Vec<String> = txn.then.iter().map(of).collect();
            format!("txn {}: {}", id.0, ops.join(" "))
        }
        Action::Store(id, op) => format!("op {}: {op:?}", id.0),
        Action::Sample(_) | Action::CountBlocks(_) | Action::Plan => return None,
        Action::Uses(plan) => format!("uses generation {}, {} turns", plan.generation, plan.turns.len()),
        Action::Begin { job, part, .. } => {
            format!("begins job {}, life {}, {} CPUs", job.id, job.attempt, part.cpus)
        }
        other => format!("{other:?}"),
    })
}

fn short(key: &str) -> &str {
    key.splitn(4, '/').nth(3).unwrap_or(key)
}
