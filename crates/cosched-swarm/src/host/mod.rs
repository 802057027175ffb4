//! A node: its clocks, its daemon, which may be dead, and the processes of jobs, which outlive the daemon.

mod processes;
mod slot;

pub use processes::{Local, Phase, Processes};
pub use slot::{Mangle, SlotBegins};

use crate::clock::HostClock;
use cosched_cluster::store::{Range, Revision};
use cosched_cluster::wire::{Ack, Answer, Attempt, By};
use cosched_cluster::{AskId, Found, Member, Notice, OpId, Settings};
use cosched_core::cluster::{Capacity, Plan};
use cosched_core::{JobId, Reason, Time};
use cosched_node::{Node, Request, RequestId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A disk, and until when it is how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk {
    /// No write succeeds.
    pub full_until: u64,
    /// Every third write fails.
    pub errs_until: u64,
    /// A write takes up to twice the daemon's patience.
    pub slow_until: u64,
}

/// Processes that should be gone, or stopped, what they do instead, and since when, in a time in which nothing kept the node from it.
pub(crate) type Lingering = BTreeMap<(JobId, &'static str), u64>;

/// A watch, as the store keeps it.
#[derive(Debug)]
pub struct Watch {
    pub(crate) range: Range,
    pub(crate) next: Revision,
    /// The store has ended it, and the node has not been told yet.
    pub(crate) ended: bool,
}

/// A user's request that has no answer yet.
#[derive(Debug)]
pub(crate) struct Requested {
    pub(crate) by: By,
    pub(crate) what: Request,
    pub(crate) at: u64,
}

/// A node.
#[derive(Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The node whose name it was given.
    pub(crate) twin_of: Option<usize>,
    /// It is switched off for ever.
    pub(crate) is_gone: bool,
    /// The daemon's decision-making part; `None` while the daemon is dead.
    pub node: Option<Node>,
    /// The last slot that was reported to the invariants.
    pub(crate) shown: Option<SlotBegins>,
    /// How often the daemon was started.
    pub(crate) life: u64,
    /// How often the machine was started.
    pub boots: u64,
    /// When the store first had a record of the node, with the store's life and the daemon's instance.
    pub(crate) heard: Option<((u64, u64), u64)>,
    pub(crate) watches: BTreeMap<OpId, Watch>,
    /// No message passes between the node and the store until then.
    pub cut_until: u64,
    /// Its operations reach the store until then, but no answers come back.
    pub deaf_until: u64,
    /// Its watches deliver no events until then.
    pub blind_until: u64,
    /// The store denies access to it until then.
    pub denied_until: u64,
    /// Its disk.
    pub disk: Disk,
    /// The daemon is stopped (as by SIGSTOP) until then.
    pub hung_until: u64,
    /// The guard has thawed all processes because the daemon hung.
    pub(crate) thawed: bool,
    /// Deadlines, left by the daemon for the guard, of jobs that other nodes may restart.
    pub(crate) fences: BTreeMap<JobId, (Attempt, Time)>,
    /// Its jobs.
    pub processes: Processes,
    /// Attempts of jobs that it has killed while out of touch, with the life of the store.
    pub(crate) killed_here: BTreeSet<(u64, JobId, Attempt)>,
    pub(crate) lingering: Lingering,
    /// Main processes of jobs that have no part on this node: the time at which they end, by number.
    pub mains: BTreeMap<i32, u64>,
    /// The last number given to such a process.
    pub(crate) last_main: i32,
    /// The plan in use.
    pub plan: Option<Arc<Plan>>,
    /// The last plan that a node that is broken on purpose (`OldPlans`) learns of.
    pub(crate) heard_plan: Option<Arc<Plan>>,
    /// Why the node stopped running slots, one entry for each time.
    pub no_slots: Vec<Reason>,
    /// Answers to requests, in this life of the daemon.
    pub answers: BTreeMap<AskId, Vec<Answer>>,
    /// The nodes' acknowledgements, as of the last request for them.
    pub loads: Option<BTreeMap<String, Ack>>,
    /// Jobs requested in this life of the daemon, by request.
    pub(crate) asked: BTreeMap<AskId, String>,
    /// Users' requests in this life of the daemon that have no answer yet.
    pub(crate) requests: BTreeMap<RequestId, Requested>,
    pub(crate) last_request: u64,
    /// Notices that the daemon has given.
    pub notices: Vec<Notice>,
    /// How many generations it is behind.
    pub behind: u64,
    /// Its clocks.
    pub clock: HostClock,
    /// Whether the kernel reports the clocks as synchronised.
    pub(crate) clock_ok: bool,
    /// Whether the daemon has checked the clock since it was last set.
    pub(crate) clock_seen: bool,
    /// Whether a time service corrects the clock.
    pub(crate) disciplined: bool,
    /// The longest cycle so far, in nanoseconds.
    pub(crate) cycle_ns_max: u64,
    /// The settings that its member is created with.
    pub settings: Settings,
    /// The real capacity of the machine.
    pub capacity: Capacity,
    /// Its memory in bytes with all of it installed.
    pub(crate) memory_bytes_whole: u64,
}

impl Host {
    pub(crate) fn new(settings: Settings, steady: u64) -> Host {
        Host {
            name: settings.name.clone(),
            twin_of: None,
            is_gone: false,
            node: None,
            shown: None,
            life: 0,
            boots: 0,
            heard: None,
            watches: BTreeMap::new(),
            cut_until: 0,
            deaf_until: 0,
            blind_until: 0,
            denied_until: 0,
            disk: Disk::default(),
            hung_until: 0,
            thawed: false,
            fences: BTreeMap::new(),
            processes: Processes::new(settings.capacity.cpus),
            killed_here: BTreeSet::new(),
            lingering: Lingering::new(),
            mains: BTreeMap::new(),
            last_main: 0,
            plan: None,
            heard_plan: None,
            no_slots: Vec::new(),
            answers: BTreeMap::new(),
            loads: None,
            asked: BTreeMap::new(),
            requests: BTreeMap::new(),
            last_request: 0,
            notices: Vec::new(),
            behind: 0,
            clock: HostClock::new(steady),
            clock_ok: true,
            clock_seen: true,
            disciplined: true,
            cycle_ns_max: 0,
            capacity: settings.capacity,
            memory_bytes_whole: settings.capacity.memory_bytes,
            settings,
        }
    }

    /// Its daemon's control plane; `None` while the daemon is dead.
    pub fn member(&self) -> Option<&Member> {
        self.node.as_ref().map(Node::member)
    }

    /// Sets the machine's capacity, before its daemon is started for the first time.
    pub fn set_capacity(&mut self, capacity: Capacity) {
        (self.capacity, self.settings.capacity) = (capacity, capacity);
        self.memory_bytes_whole = capacity.memory_bytes;
        self.processes = Processes::new(capacity.cpus);
    }

    /// Persists what the next daemon has to find of a job.
    pub(crate) fn keep(&mut self, id: JobId) {
        let kept = self.node.as_ref().and_then(|daemon| daemon.part(id));
        if let (Some((of, job)), Some(part)) = (kept, self.processes.parts.get_mut(&id)) {
            (part.of, part.job) = (*of, *job);
        }
    }

    /// What a daemon finds when it starts.
    pub(crate) fn found(&self) -> Vec<Found> {
        let found = |(job, part): (&JobId, &Local)| {
            let (of, fence) = (part.of, self.fences.get(job));
            Found {
                job: *job,
                attempt: of.attempt,
                tree: of.tree,
                submitted_ms: part.submitted_ms,
                fence_at: fence.filter(|(attempt, _)| *attempt == of.attempt).map(|(_, at)| *at),
                ended: part.ended.then(|| part.end()),
            }
        };
        self.processes.parts.iter().map(found).collect()
    }

    /// Whether slots mean the same on this node as elsewhere.
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        self.node.is_some()
            && self.clock_ok
            && self.clock_seen
            && now >= self.hung_until
            && self.clock.error_ns(now).unsigned_abs() <= self.settings.lead.clock_error_ns / 2
    }
}
