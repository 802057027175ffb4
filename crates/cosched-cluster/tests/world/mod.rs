//! A small world for members: one store in memory, a network that delays and loses, hosts that run jobs. One seed sets
//! everything.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use cosched_cluster::store::{Do, MemoryStore, Op, OpDone, Range, Revision, StoreError};
use cosched_cluster::wire::{Answer, Ask, Attempt, By, Class, Job, JobAsk, OnNodeLoss, PartEnd, WantAsk, decode};
use cosched_cluster::{Action, AskId, Found, Keys, Member, Moment, Notice, OpId, Settings};
use cosched_core::cluster::{Capacity, Plan, State};
use cosched_core::{JobId, Reason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;
/// The world begins then, by the wall clock.
pub const EPOCH: u64 = 1_700_000_000 * S;

/// SplitMix64 (Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

#[derive(Debug)]
enum Event {
    /// An operation reaches the store.
    Arrives { node: usize, life: u64, op: OpId, what: Op },
    /// Its answer reaches the member.
    Answers { node: usize, life: u64, op: OpId, done: Result<OpDone, StoreError> },
    /// A watch looks for news.
    Tells { node: usize, life: u64, watch: OpId },
    /// The last process of a job ends on a node.
    Ends { node: usize, job: JobId, attempt: Attempt },
}

#[derive(Debug)]
struct Watch {
    range: Range,
    next: Revision,
}

/// A job's processes on a node. They outlive the daemon.
#[derive(Clone, Copy, Debug)]
struct Local {
    attempt: Attempt,
    ended: bool,
    closing: bool,
}

/// A node: its daemon may be down.
#[derive(Debug)]
pub struct Host {
    pub name: String,
    pub member: Option<Member>,
    life: u64,
    watches: BTreeMap<OpId, Watch>,
    /// Nothing passes until then.
    pub cut_until: u64,
    /// Requests and answers may pass in one direction only.
    jobs: BTreeMap<JobId, Local>,
    pub plan: Option<Arc<Plan>>,
    pub no_slots: Vec<Reason>,
    pub answers: BTreeMap<AskId, Vec<Answer>>,
    /// Jobs that were asked for in this life, by request.
    asked: BTreeMap<AskId, String>,
    pub notices: Vec<Notice>,
    pub behind: u64,
    pub wall_ahead: i64,
    pub settings: Settings,
}

pub struct World {
    pub now: u64,
    pub store: MemoryStore,
    pub dice: Dice,
    pub hosts: Vec<Host>,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    /// The store answers nothing until then, and does everything afterwards.
    pub store_stops_until: u64,
    /// In thousandths: how much is lost, and how much takes seconds.
    pub lossy: u64,
    pub slow: u64,
    /// Operations other than renewals, by kind.
    pub ops: BTreeMap<&'static str, u64>,
    /// What users were told, by the name of the job.
    pub told: BTreeMap<String, Answer>,
    pub keys: Keys,
    generation: u64,
    state_revision: Option<Revision>,
    pub compacts: bool,
    pub trace: bool,
    /// How long jobs run.
    pub job_ns_max: u64,
}

impl World {
    pub fn new(seed: u64, nodes: usize) -> World {
        let keys = Keys::new("test").unwrap();
        let mut world = World {
            now: 0,
            store: MemoryStore::new(),
            dice: Dice(seed),
            hosts: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            store_stops_until: 0,
            lossy: 0,
            slow: 0,
            ops: BTreeMap::new(),
            told: BTreeMap::new(),
            keys,
            generation: 0,
            state_revision: None,
            compacts: false,
            trace: std::env::var_os("COSCHED_TRACE").is_some(),
            job_ns_max: 3 * S,
        };
        for node in 0..nodes {
            world.add_host(&format!("n{node}"));
        }
        world
    }

    pub fn add_host(&mut self, name: &str) -> usize {
        let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
        let mut settings = Settings::new(self.keys.clone(), name, 0, capacity);
        settings.home = format!("home of {name} {}", self.hosts.len());
        self.hosts.push(Host {
            name: name.to_owned(),
            member: None,
            life: 0,
            watches: BTreeMap::new(),
            cut_until: 0,
            jobs: BTreeMap::new(),
            plan: None,
            no_slots: Vec::new(),
            answers: BTreeMap::new(),
            asked: BTreeMap::new(),
            notices: Vec::new(),
            behind: 0,
            wall_ahead: 0,
            settings,
        });
        self.hosts.len() - 1
    }

    pub fn moment(&self, node: usize) -> Moment {
        let wall = (EPOCH + self.now).saturating_add_signed(self.hosts[node].wall_ahead);
        // Steady clocks begin anywhere.
        Moment { steady: Time(self.now + 17 * S * (node as u64 + 1)), wall: Time(wall) }
    }

    /// Starts the daemon of a node; its jobs are as they were.
    pub fn start(&mut self, node: usize) {
        let now = self.moment(node);
        let host = &mut self.hosts[node];
        host.life += 1;
        host.settings.instance = host.life << 32 | self.dice.below(1 << 32);
        let found = |(job, local): (&JobId, &Local)| Found {
            job: *job,
            attempt: local.attempt,
            ended: local.ended.then(PartEnd::default),
        };
        let found: Vec<Found> = host.jobs.iter().map(found).collect();
        host.member = Some(Member::new(now, host.settings.clone(), &found));
        self.drain(node);
    }

    /// The daemon dies; its lease and its jobs do not.
    pub fn crash(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.member = None;
        host.watches.clear();
        host.plan = None;
        // Nobody waits for answers any more.
        host.asked.clear();
    }

    /// The whole node dies, with all its processes.
    pub fn power_off(&mut self, node: usize) {
        self.crash(node);
        self.hosts[node].jobs.values_mut().for_each(|local| local.ended = true);
    }

    pub fn tell(&mut self, node: usize, what: impl FnOnce(&mut Member, Moment)) {
        let now = self.moment(node);
        if let Some(member) = &mut self.hosts[node].member {
            what(member, now);
        }
        self.drain(node);
    }

    pub fn ask(&mut self, node: usize, by: By, ask: Ask) -> Option<AskId> {
        let now = self.moment(node);
        let name = match &ask {
            Ask::Submit(job) => job.name.clone(),
            _ => String::new(),
        };
        let host = &mut self.hosts[node];
        let id = host.member.as_mut()?.ask(now, by, ask).ok()?;
        if !name.is_empty() {
            host.asked.insert(id, name);
        }
        self.drain(node);
        Some(id)
    }

    fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn delay(&mut self) -> u64 {
        if self.dice.below(1000) < self.slow {
            3 * S / 2 + self.dice.below(2 * S)
        } else {
            MS / 5 + self.dice.below(2 * MS)
        }
    }

    fn is_cut(&mut self, node: usize) -> bool {
        self.now < self.hosts[node].cut_until || self.dice.below(1000) < self.lossy
    }

    /// Does what a member wants.
    fn drain(&mut self, node: usize) {
        while let Some(action) = self.hosts[node].member.as_mut().and_then(Member::poll_action) {
            if self.trace && !matches!(action, Action::Store(_, Op::KeepAlive(_))) {
                let text = format!("{action:?}");
                eprintln!("{:>9.3} n{node} {}", self.now as f64 / 1e9, text.chars().take(160).collect::<String>());
            }
            self.act(node, action);
        }
    }

    fn act(&mut self, node: usize, action: Action) {
        let life = self.hosts[node].life;
        match action {
            Action::Store(op, what) => {
                let kind = match &what {
                    Op::KeepAlive(_) => "renewals",
                    Op::Txn(txn) if txn.then.iter().all(|op| matches!(op, Do::Get(_))) => "reads",
                    Op::Txn(_) => "writes",
                    _ => "others",
                };
                *self.ops.entry(kind).or_default() += 1;
                if !self.is_cut(node) {
                    let at = self.now + self.delay();
                    self.push(at, Event::Arrives { node, life, op, what });
                }
            }
            Action::Drop(op) => drop(self.hosts[node].watches.remove(&op)),
            Action::Use(plan) => self.hosts[node].plan = Some(plan),
            Action::RunNoSlots(reason) => {
                self.hosts[node].plan = None;
                self.hosts[node].no_slots.push(reason);
            }
            Action::StartHere { job, part } => self.start_here(node, &job, part.cpus),
            Action::KillHere { job, attempt, .. } => {
                let at = self.now + 20 * MS + self.dice.below(200 * MS);
                self.push(at, Event::Ends { node, job, attempt });
            }
            Action::CloseHere { job, attempt } => {
                if let Some(local) = self.hosts[node].jobs.get_mut(&job) {
                    local.closing = true;
                }
                let at = self.now + 10 * MS;
                self.push(at, Event::Ends { node, job, attempt });
            }
            Action::Reply(id, answer) => {
                let host = &mut self.hosts[node];
                host.answers.entry(id).or_default().push(answer.clone());
                if let Some(name) = host.asked.remove(&id) {
                    assert_eq!(self.told.insert(name, answer), None, "answered twice");
                }
            }
            Action::Behind(many) => self.hosts[node].behind = many,
            Action::Say(notice) => self.hosts[node].notices.push(notice),
            Action::StartEarly(_) | Action::Missed { .. } => (),
        }
    }

    fn start_here(&mut self, node: usize, job: &Job, cpus: u32) {
        assert!(cpus > 0);
        let (id, attempt) = (JobId(job.id), job.attempt);
        let old = self.hosts[node].jobs.get(&id);
        assert!(
            old.is_none_or(|old| old.ended && old.attempt != attempt),
            "job {id} started twice on n{node}: {old:?}"
        );
        self.hosts[node].jobs.insert(id, Local { attempt, ended: false, closing: false });
        let at = self.now + 10 * MS + self.dice.below(self.job_ns_max);
        self.push(at, Event::Ends { node, job: id, attempt });
    }

    fn ends(&mut self, node: usize, job: JobId, attempt: Attempt) {
        let local = self.hosts[node].jobs.get_mut(&job).filter(|local| local.attempt == attempt && !local.ended);
        let Some(local) = local else { return };
        local.ended = true;
        let end = PartEnd { cpu_time_ns: 1, ..PartEnd::default() };
        self.tell(node, |member, now| member.part_ended(now, job, attempt, end));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrives { node, life, op, what } => {
                if self.now < self.store_stops_until {
                    let at = self.store_stops_until + 1;
                    return self.push(at, Event::Arrives { node, life, op, what });
                }
                let watch = match &what {
                    Op::Watch { range, from } => Some(Watch { range: range.clone(), next: *from }),
                    _ => None,
                };
                let before = self.store.revision();
                let done = self.store.call(Time(self.now), what);
                self.check_generations();
                if let (Some(watch), Ok(_), true) = (watch, &done, self.hosts[node].life == life) {
                    self.hosts[node].watches.insert(op, watch);
                    self.tell_watches();
                }
                if self.store.revision() != before {
                    self.tell_watches();
                }
                if !self.is_cut(node) {
                    let at = self.now + self.delay();
                    self.push(at, Event::Answers { node, life, op, done });
                }
            }
            Event::Answers { node, life, op, done } => {
                if self.hosts[node].life == life && self.now >= self.hosts[node].cut_until {
                    self.tell(node, |member, now| member.handle_done(now, op, done));
                }
            }
            Event::Tells { node, life, watch: id } => {
                let cut = self.now < self.hosts[node].cut_until || self.now < self.store_stops_until;
                if self.hosts[node].life != life {
                    return;
                }
                let Some(watch) = self.hosts[node].watches.get_mut(&id) else { return };
                if cut {
                    let at = self.now + 100 * MS;
                    return self.push(at, Event::Tells { node, life, watch: id });
                }
                match self.store.news(&watch.range, watch.next) {
                    Ok(news) => {
                        watch.next = news.revision + 1;
                        self.tell(node, |member, now| member.handle_news(now, id, news));
                    }
                    Err(e) => {
                        self.hosts[node].watches.remove(&id);
                        self.tell(node, |member, now| member.handle_watch_lost(now, id, e));
                    }
                }
            }
            Event::Ends { node, job, attempt } => self.ends(node, job, attempt),
        }
    }

    fn tell_watches(&mut self) {
        for node in 0..self.hosts.len() {
            let ids: Vec<OpId> = self.hosts[node].watches.keys().copied().collect();
            for watch in ids {
                let at = self.now + MS / 5 + self.dice.below(3 * MS);
                let life = self.hosts[node].life;
                self.push(at, Event::Tells { node, life, watch });
            }
        }
    }

    /// Generations rise by one.
    fn check_generations(&mut self) {
        let revision = self.store.read(&Range::one(self.keys.state())).pop().map(|entry| entry.mod_revision);
        if revision == self.state_revision {
            return;
        }
        self.state_revision = revision;
        if let Some(state) = self.state() {
            let (old, new) = (self.generation, state.generation);
            assert!(new == old || new == old + 1, "generation {old} is followed by {new}");
            self.generation = new;
        }
    }

    pub fn state(&self) -> Option<State> {
        let entry = self.store.read(&Range::one(self.keys.state())).pop()?;
        Some(decode(&entry.value).unwrap())
    }

    pub fn jobs(&self) -> Vec<Job> {
        let range = Range::prefix(&format!("{}jobs/", self.keys.prefix()));
        self.store.read(&range).iter().map(|entry| decode(&entry.value).unwrap()).collect()
    }

    pub fn under(&self, folder: &str) -> usize {
        self.store.read(&Range::prefix(&format!("{}{folder}/", self.keys.prefix()))).len()
    }

    /// Lets time pass.
    pub fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        let mut steps = 0_u64;
        loop {
            let wake = |node: usize| {
                let offset = 17 * S * (node as u64 + 1);
                let at = self.hosts[node].member.as_ref()?.poll_timeout()?;
                Some((at.0.saturating_sub(offset).max(self.now), node))
            };
            let wake = (0..self.hosts.len()).filter_map(wake).min();
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let expiry = self.store.next_expiry().map(|at| at.0).filter(|_| self.now >= self.store_stops_until);
            let Some(next) = [wake.map(|(at, _)| at), event, expiry].into_iter().flatten().min() else { break };
            if next > end {
                break;
            }
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(steps < 100_000, "time stands still at {next}: {wake:?} {event:?} {expiry:?}");
            self.now = self.now.max(next);
            if expiry.is_some_and(|at| at <= self.now) {
                let before = self.store.revision();
                self.store.expire(Time(self.now));
                if self.store.revision() != before {
                    self.tell_watches();
                }
            } else if event.is_some_and(|at| at <= self.now) {
                let (_, event) = self.events.pop_first().unwrap();
                self.happens(event);
            } else if let Some((_, node)) = wake {
                self.tell(node, |member, now| member.handle_timeout(now));
            }
            if self.compacts && self.dice.below(200) == 0 && self.store.revision() > 1 {
                let _ = self.store.compact(self.store.revision());
            }
        }
        self.now = end;
    }

    /// Jobs whose processes are there, on any node.
    pub fn running(&self) -> BTreeSet<(usize, JobId)> {
        let of = |(node, host): (usize, &Host)| {
            let alive: Vec<(usize, JobId)> =
                host.jobs.iter().filter(|(_, local)| !local.ended).map(|(job, _)| (node, *job)).collect();
            alive
        };
        self.hosts.iter().enumerate().flat_map(of).collect()
    }

    /// After all has become quiet: one plan everywhere, every request once, every job in a final state.
    pub fn check_end(&self) {
        let state = self.state().unwrap();
        for (node, host) in self.hosts.iter().enumerate() {
            let member = host.member.as_ref().unwrap();
            assert!(member.is_joined(), "n{node}: {:?}", host.notices);
            assert_eq!(member.state(), Some(&state), "n{node}");
            assert_eq!(member.in_use(), Some(state.generation), "n{node}");
            assert_eq!(host.plan.as_ref().map(|plan| plan.generation), Some(state.generation), "n{node}");
            assert_eq!(host.plan, self.hosts[0].plan, "n{node}");
            assert_eq!((host.behind, member.unanswered()), (0, 0), "n{node}");
        }
        assert_eq!((self.under("requests"), self.under("replies")), (0, 0));
        assert_eq!(state.jobs.len(), 0, "{:?}", state.jobs);
        let mut names = BTreeMap::new();
        for job in self.jobs() {
            assert!(job.end.is_some(), "{job:?}");
            assert_eq!(names.insert(job.ask.name.clone(), job.id), None, "{} twice", job.ask.name);
        }
        for (name, answer) in &self.told {
            match answer {
                Answer::Submitted { job } => assert_eq!(names.get(name), Some(job)),
                Answer::Refused { .. } => assert_eq!(names.get(name), None),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(self.running(), BTreeSet::new());
    }
}

pub fn user(uid: u32) -> By {
    By { uid, gid: uid, admin: false }
}

pub const ROOT: By = By { uid: 0, gid: 0, admin: true };

pub fn job(name: &str, cpus: u32) -> JobAsk {
    JobAsk {
        name: name.to_owned(),
        command: vec!["true".to_owned()],
        cwd: None,
        environment: Vec::new(),
        log_path: None,
        class: Class::Batch,
        policy: None,
        want: WantAsk::Total { cpus, memory_per_cpu_bytes: 1 << 20, disk_bytes: 0 },
        queue: None,
        on_node_loss: OnNodeLoss::Kill,
        lead: None,
    }
}

pub fn submit(job: JobAsk) -> Ask {
    Ask::Submit(Box::new(job))
}
