//! Users: they submit jobs of all kinds from any node, and change their requests.

use super::{S, World};
use cosched_cluster::AskId;
use cosched_cluster::wire::{
    Ask, By, Class, JobAsk, KillHow, MainProcess, NodeAsk, OnNodeLoss, Packing, Policy, Queue, Shares, Sharing, WantAsk,
};
use cosched_core::cluster::Stage;
use cosched_core::{JobId, Reason, Standing};
use cosched_node::SIGTERM;

/// The administrator.
pub const ROOT: By = By { uid: 0, gid: 0, admin: true };

/// An ordinary user; the group has the same number.
pub fn user(uid: u32) -> By {
    By { uid, gid: uid, admin: false }
}

/// A job of `cpus` CPUs.
pub fn job(name: &str, cpus: u32) -> JobAsk {
    JobAsk {
        name: name.to_owned(),
        command: vec!["true".to_owned()],
        cwd: None,
        environment: Vec::new(),
        log_path: None,
        class: Class::Batch,
        policy: None,
        share_permille: None,
        want: WantAsk::Total { cpus, memory_per_cpu_bytes: 1 << 20, disk_bytes: 0 },
        queue: None,
        on_node_loss: OnNodeLoss::Kill,
        waiting: None,
        lead: None,
        main: None,
        groups: Vec::new(),
        once: false,
        terms: Default::default(),
    }
}

/// A job of one CPU of a certain node, with `memory_bytes` of memory there.
pub fn job_on(name: &str, node: &str, memory_bytes: u64) -> JobAsk {
    let part = NodeAsk { node: node.to_owned(), cpus: 1, cpus_min: 1, memory_bytes, disk_bytes: 0 };
    JobAsk { want: WantAsk::PerNode(vec![part]), ..job(name, 1) }
}

/// A request to submit the job.
pub fn submit(job: JobAsk) -> Ask {
    Ask::Submit(Box::new(job))
}

/// The queues of a lively world: time-shared, with limits, exclusive.
pub(crate) const QUEUES: [&str; 3] = ["normal", "short", "alone"];

/// The time limit of the queue `short`, in nanoseconds.
pub(crate) const SHORT_NS: u64 = 20 * S;

fn shares(dice: &mut crate::dice::Dice) -> Shares {
    let mut share = || dice.between(1, 16) as u32;
    Shares { express: share(), interactive: share(), batch: share(), standby: share() }
}

/// The memory that jobs may request on a node, or for each CPU, in bytes.
const MEMORY: [u64; 4] = [0, 1 << 20, 1 << 26, 1 << 28];

fn node_ask(dice: &mut crate::dice::Dice, node: String, memory_bytes: u64) -> NodeAsk {
    NodeAsk { node, cpus: dice.between(1, 4) as u32, cpus_min: 1, memory_bytes, disk_bytes: 0 }
}

/// The queues in a random order, with random limits; sometimes one is left out.
fn queues(dice: &mut crate::dice::Dice) -> Vec<Queue> {
    let first = dice.below(3) as usize;
    let queue = |name: &str| Queue {
        name: name.to_owned(),
        exclusive: name == QUEUES[2],
        memory_bytes_max: None,
        disk_bytes_max: None,
        time_ns_max: (name == QUEUES[1]).then_some(SHORT_NS / 2),
        ..Queue::default()
    };
    let many = if dice.one_in(4) { 2 } else { 3 };
    (0..many).map(|k| queue(QUEUES[(first + k) % 3])).collect()
}

/// Half of all kills are by force; the others are a SIGTERM, with force after a while or never.
fn kill_how(dice: &mut crate::dice::Dice) -> KillHow {
    let grace_ms = dice.pick(&[None, Some(0), Some(500), Some(3_000), Some(20_000)]);
    if dice.one_in(2) { KillHow::FORCE } else { KillHow { signal: SIGTERM, grace_ms } }
}

impl World {
    /// A user sends a request to a node; `None` if no daemon is running.
    pub fn ask(&mut self, node: usize, by: By, ask: Ask) -> Option<AskId> {
        let now = self.moment(node);
        let name = match &ask {
            // With `once`, several launchers request one job, so the name does not tell whose answer it is.
            Ask::Submit(job) if !job.once => job.name.clone(),
            _ => String::new(),
        };
        if self.log.is_some() {
            let text: String = format!("{ask:?}").chars().take(200).collect();
            self.note(|| format!("n{node}: user {} asks: {text}", by.uid));
        }
        self.counts.asks += 1;
        let host = &mut self.hosts[node];
        let daemon = host.node.as_mut().filter(|_| self.now >= host.hung_until)?;
        let id = daemon.tell(now, |member, now| member.ask(now, by, ask)).ok()?;
        if !name.is_empty() {
            host.asked.insert(id, name);
        }
        self.tell(node, |_, _| ());
        Some(id)
    }

    /// A user submits the `n`th job.
    pub fn submit_random(&mut self, n: u64) {
        if self.dice.one_in(6) {
            return self.several_submit(n);
        }
        let nodes = self.hosts.len() as u64;
        let mut ask = job(&format!("job {n}"), 1);
        ask.want = self.some_want();
        let dice = &mut self.dice;
        ask.class = dice.pick(&[Class::Express, Class::Interactive, Class::Interactive, Class::Batch, Class::Standby]);
        ask.policy = dice.pick(&[None, None, None, Some(Policy::Gang), Some(Policy::Local), Some(Policy::Auto)]);
        let queue = dice.pick(&[None, None, None, Some(QUEUES[0]), Some(QUEUES[1]), Some(QUEUES[2])]);
        ask.queue = queue.map(str::to_owned);
        ask.on_node_loss = dice.pick(&[OnNodeLoss::Kill, OnNodeLoss::Keep, OnNodeLoss::Requeue]);
        if let WantAsk::PerNode(wants) = &ask.want
            && dice.one_in(2)
        {
            ask.lead = Some(wants[0].node.clone());
        }
        let by = dice.pick(&[ROOT, user(1), user(2), user(3)]);
        let node = dice.below(nodes) as usize;
        // Some programs run where they were started, whichever nodes their job has; some are killed before the job
        // begins.
        if ask.lead.is_none() && dice.one_in(3) {
            let lives_ns = dice.pick(&[0, S / 10, 10 * S, 60 * S]);
            let host = &mut self.hosts[node];
            host.last_main += 1;
            host.mains.insert(host.last_main, self.now + lives_ns);
            (ask.lead, ask.main) = (Some(host.name.clone()), Some(MainProcess { pid: host.last_main, start_ticks: 0 }));
        }
        self.random_request(node, by, submit(ask));
    }

    /// Launchers on some nodes request one job, most of them at nearly the same time, some again, some for other nodes.
    fn several_submit(&mut self, n: u64) {
        let nodes = self.hosts.len() as u64;
        let (many, first) = (self.dice.between(1, nodes), self.dice.below(nodes));
        let names: Vec<String> = (0..many).map(|k| format!("n{}", (first + k) % nodes)).collect();
        let wants = names.into_iter().map(|name| node_ask(&mut self.dice, name, 1 << 20)).collect();
        // A name is used again after a while.
        let mut ask = job(&format!("once {}", n / 16), 1);
        (ask.want, ask.once) = (WantAsk::PerNode(wants), true);
        ask.on_node_loss = self.dice.pick(&[OnNodeLoss::Keep, OnNodeLoss::Keep, OnNodeLoss::Kill, OnNodeLoss::Requeue]);
        let by = user(self.dice.between(1, 2) as u32);
        for _ in 0..self.dice.between(1, many + 1) {
            let node = ((first + self.dice.below(many)) % nodes) as usize;
            self.ask(node, by, submit(ask.clone()));
            let wait = self.dice.pick(&[0, 0, S / 1000, S / 20]);
            self.run(wait);
        }
    }

    /// A random request for resources.
    fn some_want(&mut self) -> WantAsk {
        let nodes = self.hosts.len() as u64;
        let all: u64 = self.hosts.iter().map(|host| u64::from(host.capacity.cpus)).sum();
        let dice = &mut self.dice;
        let memory = dice.pick(&MEMORY);
        match dice.below(4) {
            // A few want more than the cluster has.
            0 => WantAsk::Total { cpus: dice.between(1, all + 1) as u32, memory_per_cpu_bytes: memory, disk_bytes: 0 },
            1 => WantAsk::Total { cpus: dice.between(1, 3) as u32, memory_per_cpu_bytes: memory, disk_bytes: 1 << 28 },
            _ => {
                let many = if dice.one_in(2) { 1 } else { dice.between(1, nodes) };
                let first = dice.below(nodes);
                let names: Vec<String> = (0..many).map(|k| format!("n{}", (first + k) % nodes)).collect();
                WantAsk::PerNode(names.into_iter().map(|name| node_ask(dice, name, memory)).collect())
            }
        }
    }

    /// A changed request for a job's resources: mostly of the nodes that the job has, because it keeps them.
    fn other_want(&mut self, job: u64) -> WantAsk {
        let place = self.state.as_ref().and_then(|state| state.jobs.get(&JobId(job))?.place.as_ref());
        let name = |id| self.hosts.iter().find_map(|host| host.member()?.name_of(id));
        let parts = place.map_or(&[][..], |place| &place.parts);
        let names: Vec<String> = parts.iter().filter_map(|part| Some(name(part.node)?.to_owned())).collect();
        if names.is_empty() || self.dice.one_in(4) {
            return self.some_want();
        }
        let memory = self.dice.pick(&MEMORY);
        WantAsk::PerNode(names.into_iter().map(|name| node_ask(&mut self.dice, name, memory)).collect())
    }

    /// A user or an operator changes something.
    pub fn change_random(&mut self) {
        let known = self.state.as_ref().map_or(1, |state| state.next_order.max(1));
        let nodes = self.hosts.len() as u64;
        // Mostly one of the newest.
        let job = known - self.dice.below(known.min(8));
        let want = self.other_want(job);
        let how = kill_how(&mut self.polite);
        let dice = &mut self.dice;
        let ask = match dice.below(24) {
            // Some are less than a slot a second.
            22 => Ask::Share { job, permille: Some(dice.between(50, 1000) as u32) },
            23 => Ask::Share { job, permille: dice.pick(&[None, Some(200), Some(500)]) },
            18..=20 => Ask::Resources { job, want },
            21 => match dice.one_in(2) {
                true => Ask::Packing { packing: dice.pick(&[Packing::FirstFit, Packing::BestFit, Packing::Buddy]) },
                false => Ask::RowsMax { rows: dice.between(1, 64) as u32 },
            },
            16 => Ask::Shares { working: shares(dice), off: shares(dice) },
            17 => Ask::Queues { queues: queues(dice) },
            0..=2 => Ask::Suspend { job },
            3..=5 => Ask::Resume { job },
            6 | 7 => Ask::Kill { job, how },
            8 => Ask::Class { job, class: dice.pick(&[Class::Express, Class::Batch, Class::Standby]) },
            9 => Ask::Policy { job, policy: dice.pick(&[None, Some(Policy::Gang), Some(Policy::Local)]) },
            10 => Ask::ClusterPolicy { policy: dice.pick(&[Policy::Gang, Policy::Gang, Policy::Local, Policy::Auto]) },
            11 => Ask::ClusterSharing { sharing: dice.pick(&[Sharing::Strict, Sharing::Paired, Sharing::Soft]) },
            12 => Ask::SlotLength { ns: dice.between(50, 300) * super::MS },
            13 => Ask::Ceiling { permille: dice.between(100, 1000) as u32 },
            _ => Ask::Drain { node: format!("n{}", dice.below(nodes)), drains: dice.one_in(2) },
        };
        let by = dice.pick(&[ROOT, ROOT, ROOT, user(1)]);
        let node = dice.below(nodes) as usize;
        self.random_request(node, by, ask);
    }

    /// Ends everything that holds jobs back, such as suspensions and drained nodes.
    pub(crate) fn release_all(&mut self) {
        let Some(state) = self.state.clone() else { return };
        let suspended = |(id, job): (&JobId, &cosched_core::cluster::JobRecord)| {
            (job.standing == Standing::Suspended).then_some(*id)
        };
        for id in state.jobs.iter().filter_map(suspended) {
            self.ask(0, ROOT, Ask::Resume { job: id.0 });
        }
        // A node that got another number was counted twice for a while, and jobs of that size were accepted.
        let too_large = state.jobs.iter().filter(|(_, job)| job.stage == Stage::Waiting(Reason::TooLarge));
        for (id, _) in too_large {
            self.ask(0, ROOT, Ask::Kill { job: id.0, how: KillHow::FORCE });
        }
        let drained = state.nodes.iter().filter(|(_, node)| node.drains).map(|(id, _)| *id);
        let drained: Vec<_> = drained.collect();
        let name_of = |world: &World, id| Some(world.hosts[0].member()?.name_of(id)?.to_owned());
        for id in drained {
            if let Some(node) = name_of(self, id) {
                self.ask(0, ROOT, Ask::Drain { node, drains: false });
            }
        }
    }
}
