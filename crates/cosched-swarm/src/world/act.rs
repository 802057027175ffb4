//! A node does what its member, its driver and its processes want, until nobody wants anything.

use super::{Broken, MS, S, World};
use crate::host::{Driver, Host, Local, Mangle, Phase};
use crate::invariants::Seen;
use cosched_cluster::store::{Do, Op};
use cosched_cluster::wire::{Attempt, Job, PartEnd};
use cosched_cluster::{Action, Member, Moment, Notice};
use cosched_core::cluster::{Part, Plan};
use cosched_core::{AgentAction, AgentConfig, Disposition, JobId, Reason};
use std::collections::VecDeque;
use std::sync::Arc;

impl World {
    /// Something happens to a node's member.
    pub fn tell(&mut self, node: usize, what: impl FnOnce(&mut Member, Moment)) {
        let now = self.moment(node);
        let host = &mut self.hosts[node];
        host.processes.advance(self.now);
        if self.now >= host.hung_until {
            if std::mem::take(&mut host.thawed) {
                host.refresh(now.wall);
            }
            if let Some(driver) = &mut host.driver {
                driver.handle_timeout(now.wall);
            }
            if let Some(member) = &mut host.member {
                what(member, now);
            }
        }
        self.settle(node);
    }

    fn settle(&mut self, node: usize) {
        loop {
            let mut busy = false;
            if self.now >= self.hosts[node].hung_until {
                self.keep_fences(node);
                while let Some(action) = self.hosts[node].member.as_mut().and_then(Member::poll_action) {
                    self.act(node, action);
                    busy = true;
                }
                self.know(node);
                while let Some(action) = self.hosts[node].driver.as_mut().and_then(Driver::poll_action) {
                    self.act_of_agent(node, action);
                    busy = true;
                }
            }
            self.apply(node);
            for job in self.hosts[node].processes.settle(self.now) {
                self.ended(node, job);
                busy = true;
            }
            if !busy {
                break;
            }
        }
        self.show_slot(node);
        self.set_wake(node);
    }

    fn know(&mut self, node: usize) {
        let wall = self.moment(node).wall;
        let host = &mut self.hosts[node];
        if let (Some(driver), Some(state)) = (&mut host.driver, host.member.as_ref().and_then(Member::state)) {
            driver.know(wall, state, &host.processes);
        }
    }

    /// The daemon leaves for the guard until when jobs may live.
    fn keep_fences(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if let Some(member) = &host.member {
            host.fences = member.fences().map(|fenced| (fenced.job, (fenced.attempt, fenced.at))).collect();
        }
    }

    /// The guard of a daemon that is dead or hangs ends what others may begin anew.
    pub(super) fn guard_fences(&mut self, node: usize) {
        let (now, steady) = (self.now, self.moment(node).steady);
        let host = &mut self.hosts[node];
        if host.member.is_some() && now >= host.hung_until || self.broken == Some(Broken::NobodyFences) {
            return;
        }
        host.processes.advance(now);
        for (job, (attempt, at)) in &host.fences {
            let part = host.processes.parts.get_mut(job).filter(|part| part.attempt == *attempt && !part.ended);
            if let Some(part) = part.filter(|_| *at <= steady) {
                part.dies_at = Some(now);
            }
        }
        self.tell(node, |_, _| ());
    }

    /// Stops and continues processes.
    fn apply(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        let keeps = host.member.is_none() && self.broken == Some(Broken::NobodyThaws);
        for (id, part) in host.processes.parts.iter_mut().filter(|(_, part)| !part.ended) {
            part.to = match &host.driver {
                _ if part.forgotten => Disposition::Run,
                Some(driver) if !host.thawed => driver.disposition(*id, part),
                _ if keeps => part.to,
                _ => Disposition::Run,
            };
            match part.to {
                Disposition::Stop => drop(part.stopped_since.get_or_insert(self.now)),
                _ => part.stopped_since = None,
            }
        }
        if let Some(driver) = &host.driver {
            host.cycle_ns_max = host.cycle_ns_max.max(driver.cycle_ns());
        }
    }

    fn show_slot(&mut self, node: usize) {
        let wall = self.moment(node).wall;
        let host = &mut self.hosts[node];
        let (sound, thawed) = (host.is_sound(self.now), host.thawed);
        let id = host.member.as_ref().and_then(Member::id);
        let slot = host.driver.as_mut().filter(|_| !thawed).and_then(|driver| driver.slot(wall));
        if let (Some(id), Some(slot)) = (id, slot) {
            let cpus = host.capacity.cpus;
            self.counts.slots += 1;
            self.see(&Seen::Slot { node, id: id.0, cpus, sound, wall_ns: wall.0, slot: &slot });
        }
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
            Action::Use(plan) => self.uses(node, plan),
            Action::RunNoSlots(reason) => {
                let wall = self.moment(node).wall;
                let host = &mut self.hosts[node];
                host.plan = None;
                host.no_slots.push(reason);
                if let Some(driver) = &mut host.driver {
                    driver.no_slots(wall, &host.processes);
                }
            }
            Action::StartEarly(job) => {
                if let Some(driver) = self.driver(node) {
                    driver.start_early(job);
                }
            }
            Action::StartHere { job, part } => self.start_here(node, &job, part),
            Action::KillHere { job, reason: Reason::Departure, .. } if self.is_unknown(node, job) => {
                self.forgotten(node, job);
            }
            Action::KillHere { job, attempt, .. } => self.kill_here(node, job, attempt),
            Action::CloseHere { job, attempt } => {
                let parts = &mut self.hosts[node].processes.parts;
                if let Some(part) = parts.get_mut(&job).filter(|part| part.attempt == attempt) {
                    part.closing = true;
                }
            }
            Action::Forgotten(job) => self.forgotten(node, job),
            Action::Reply(id, answer) => {
                let host = &mut self.hosts[node];
                host.answers.entry(id).or_default().push(answer.clone());
                if let Some(name) = host.asked.remove(&id) {
                    self.see(&Seen::Answered { name: &name, answer: &answer });
                    self.told.insert(name, answer);
                }
            }
            Action::Loads(_, acks) => self.hosts[node].loads = Some(acks),
            Action::Behind(many) => self.hosts[node].behind = many,
            Action::Say(notice) => {
                self.counts.conflicts += u64::from(notice == Notice::Conflict);
                if let Notice::Unsound(why) = &notice {
                    self.see(&Seen::Unsound { node, why });
                }
                let (wall, host) = (self.moment(node).wall, &mut self.hosts[node]);
                if matches!(notice, Notice::StoreLost(_) | Notice::StoreBack(_) | Notice::Joined(_)) {
                    host.refresh(wall);
                }
                host.notices.push(notice);
            }
            Action::Missed { .. } => self.counts.missed += 1,
        }
    }

    /// The node's driver, made as soon as the node has a number.
    pub(super) fn driver(&mut self, node: usize) -> Option<&mut Driver> {
        let last = node + 1 == self.hosts.len();
        let mangle = match self.broken {
            Some(Broken::Mangle(Mangle::OneLate)) if !last => None,
            Some(Broken::Mangle(mangle)) => Some(mangle),
            _ => None,
        };
        let host = &mut self.hosts[node];
        let id = host.member.as_ref()?.id()?;
        // A store without its data gives another number.
        host.driver.take_if(|driver| driver.node() != id);
        let config = AgentConfig { node: id, ..self.agent.clone() };
        Some(host.driver.get_or_insert_with(|| Driver::new(id, host.capacity.cpus, config, mangle)))
    }

    fn uses(&mut self, node: usize, plan: Arc<Plan>) {
        self.see(&Seen::Uses { node, plan: &plan });
        let wall = self.moment(node).wall;
        let shares = self.hosts[node].member.as_ref().and_then(|member| Some(*member.state()?.config.shares()));
        self.hosts[node].plan = Some(Arc::clone(&plan));
        let deaf = self.broken == Some(Broken::OldPlans) && node == 0 && plan.generation > 10;
        if self.driver(node).is_none() || deaf {
            return;
        }
        let host = &mut self.hosts[node];
        if let Some(driver) = &mut host.driver {
            driver.use_plan(wall, plan, shares.unwrap_or_default(), &host.processes);
        }
    }

    fn act_of_agent(&mut self, node: usize, action: AgentAction) {
        let now = self.moment(node);
        let host = &mut self.hosts[node];
        let Some(member) = &mut host.member else { return };
        match action {
            AgentAction::Sample { job } => {
                let used = host.processes.parts.get(&job).filter(|part| !part.ended).map(|part| part.cpu_ns);
                if let (Some(driver), Some(used)) = (&mut host.driver, used) {
                    driver.cpu_time(now.wall, job, used);
                }
            }
            AgentAction::Asleep { job, .. } => member.asleep(now, job, true),
            AgentAction::Awake { job, .. } => member.asleep(now, job, false),
            AgentAction::Dropped { job, .. } => member.dropped(now, job),
            AgentAction::Unsound(flaw) => self.see(&Seen::Unsound { node, why: &flaw.to_string() }),
            AgentAction::Set { .. } => (),
        }
    }

    fn start_here(&mut self, node: usize, job: &Job, part: Part) {
        let (id, attempt) = (JobId(job.id), job.attempt);
        if self.hosts[node].processes.parts.get(&id).is_some_and(|part| part.is_alive()) {
            // Of an earlier life of the store: the node took no part when the number was given.
            return self.number_is_taken(node, id, attempt);
        }
        self.counts.begun += 1;
        let lives = |host: &Host| {
            let part = host.processes.parts.get(&id);
            part.is_some_and(|part| part.is_alive() && !part.forgotten && part.attempt < attempt)
        };
        let older = self.hosts.iter().position(lives);
        self.see(&Seen::Begun { node, job: id, attempt, older });
        let phases = if self.lively {
            self.life_of(job)
        } else {
            [Phase::Sleeps(10 * MS + self.dice.below(self.job_ns_max))].into()
        };
        let place = self.state.as_ref().and_then(|state| state.jobs.get(&id)?.place.clone());
        let parts = place.iter().flat_map(|place| &place.parts).map(|part| part.node);
        let host = &self.hosts[node];
        let names = parts.filter_map(|node| host.member.as_ref()?.name_of(node));
        let follows = job.ask.lead.is_some() && job.leader(names) != Some(&host.name);
        let asked = part.memory_bytes;
        let memory_bytes = match self.dice.below(8) {
            0 if self.lively => asked + asked / 2,
            _ => asked / 8 * self.dice.between(1, 8),
        };
        let local = Local {
            attempt,
            cpus: part.cpus,
            spans: place.is_some_and(|place| place.parts.len() > 1),
            follows: follows || job.ask.once,
            once: job.ask.once,
            told_empty: None,
            closing: job.closing,
            forgotten: false,
            tree: self.hosts[node].member.as_ref().map_or(0, Member::tree),
            submitted_ms: job.submitted_ns / MS,
            store_life: self.store_life,
            phases,
            sleeps_until: None,
            dies_at: None,
            ignores_kill: self.lively && self.dice.one_in(3),
            ended: false,
            cpu_ns: 0,
            memory_bytes,
            told_bytes: asked,
            to: Disposition::Run,
            stopped_since: None,
        };
        let wall = self.moment(node).wall;
        let host = &mut self.hosts[node];
        host.processes.parts.insert(id, local);
        host.refresh(wall);
    }

    fn number_is_taken(&mut self, node: usize, job: JobId, attempt: Attempt) {
        self.note(|| format!("n{node}: another job {job} lives here"));
        let now = self.moment(node);
        if let Some(member) = &mut self.hosts[node].member {
            member.part_ended(now, job, attempt, PartEnd::default());
        }
    }

    /// Whether a job is to end here because the store has no word of it.
    fn is_unknown(&self, node: usize, job: JobId) -> bool {
        self.hosts[node].member.as_ref().is_some_and(|member| member.job(job).is_none())
    }

    /// The store has lost a job: it goes on here, and nobody stops it any more.
    fn forgotten(&mut self, node: usize, job: JobId) {
        self.note(|| format!("n{node}: job {job} is known here only"));
        if let Some(part) = self.hosts[node].processes.parts.get_mut(&job) {
            (part.forgotten, part.closing) = (true, true);
        }
    }

    /// What a job's threads do. It is the same on all nodes that have not computed yet by chance only.
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

    fn kill_here(&mut self, node: usize, job: JobId, attempt: Attempt) {
        let delay = self.dice.between(20 * MS, 220 * MS);
        let parts = &mut self.hosts[node].processes.parts;
        if let Some(part) = parts.get_mut(&job).filter(|part| part.attempt == attempt && !part.ended) {
            let delay = if part.ignores_kill { delay + 2 * S } else { delay };
            part.dies_at.get_or_insert(self.now + delay);
        }
    }

    /// The last process of a job has ended on a node.
    fn ended(&mut self, node: usize, job: JobId) {
        let now = self.moment(node);
        self.note(|| format!("n{node}: the last process of job {job} ended"));
        let host = &mut self.hosts[node];
        let Some(part) = host.processes.parts.get(&job) else { return };
        let (attempt, end) = (part.attempt, PartEnd { cpu_time_ns: part.cpu_ns.max(1), ..PartEnd::default() });
        if self.now < host.hung_until {
            host.missed_ends.push((job, attempt, end));
            return;
        }
        host.refresh(now.wall);
        let untold = self.broken == Some(Broken::EndsUntold);
        if let Some(member) = host.member.as_mut().filter(|_| !untold) {
            member.part_ended(now, job, attempt, end);
        }
    }
}

/// An action in a line, if it is worth one.
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
        Action::Use(plan) => format!("uses generation {}, {} turns", plan.generation, plan.turns.len()),
        Action::StartHere { job, part } => {
            format!("begins job {}, life {}, {} CPUs", job.id, job.attempt, part.cpus)
        }
        other => format!("{other:?}"),
    })
}

fn short(key: &str) -> &str {
    key.splitn(4, '/').nth(3).unwrap_or(key)
}
