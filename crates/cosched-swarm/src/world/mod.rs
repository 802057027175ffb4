//! The world: true time, nodes, a store and a network between them, and what is to happen next.

mod act;
mod anew;
mod asks;
mod by_hand;
mod daemon;
mod look;
mod network;
mod time;
mod trouble;
mod users;

pub use look::{Counts, Violation};
pub(crate) use users::{QUEUES, SHORT_NS};
pub use users::{ROOT, job, job_on, submit, user};

use crate::dice::Dice;
use crate::host::{Host, Mangle};
use crate::invariants::{self, Invariant, Seen};
use cosched_cluster::store::{MemoryStore, Op, OpDone, Revision, StoreError};
use cosched_cluster::wire::{Answer, Ask};
use cosched_cluster::{Keys, Moment, OpId, Settings};
use cosched_core::AgentConfig;
use cosched_core::cluster::{Capacity, State};
use std::collections::{BTreeMap, VecDeque};

/// A millisecond, in nanoseconds.
pub const MS: u64 = 1_000_000;
/// A second, in nanoseconds.
pub const S: u64 = 1_000_000_000;

/// How the world is broken on purpose, so that an invariant has something to notice. Always in what is around the
/// control plane, never in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// One node does not do what its plan says.
    Mangle(Mangle),
    /// A driver does not hear of new plans after its tenth.
    OldPlans,
    /// There is no guard: what a dead daemon has stopped stays so.
    NobodyThaws,
    /// The guard of a daemon that is dead or hangs does not end what others begin anew.
    NobodyFences,
    /// A daemon that is out of touch lets nobody go on who is held for want of memory.
    HoldsOn,
    /// A daemon does not say that processes have ended.
    EndsUntold,
    /// A daemon does not say that a main process outside of its job's nodes has ended.
    MainsUntold,
    /// The store loses its last writes when it is started anew.
    StoreForgets,
    /// The store does not always look at the conditions of a transaction.
    NoConditions,
    /// Whoever plans answers, and what users wanted to be suspended goes on.
    Disobeys,
    /// A node says that it has twice its memory.
    Boasts,
    /// Daemons that are started do not know which numbers of jobs were given.
    NumbersUntold,
    /// A node's load is told as large and small in turn.
    Flickers,
}

#[derive(Debug)]
enum Event {
    /// An operation reaches the store.
    Arrives { node: usize, life: u64, store: u64, op: OpId, what: Op },
    /// Its answer reaches the member.
    Answers { node: usize, life: u64, op: OpId, done: Result<OpDone, StoreError> },
    /// A watch looks for news.
    Tells { node: usize, life: u64, watch: OpId },
    /// A watch ends.
    Cuts { node: usize, life: u64, watch: OpId },
    /// A daemon is started, if none is.
    Starts { node: usize },
    /// The daemon looks at its clock.
    LooksAtClock { node: usize },
    /// A time service sets the clock right, and is heard of a moment later.
    SetsClock { node: usize },
    /// The guard looks whether the daemon hangs.
    Guards { node: usize },
    /// A daemon that hung goes on.
    Wakes { node: usize },
    /// The store is back, with its data.
    StoreIsBack,
    /// Messages are neither lost nor late any more.
    Clears,
    /// A daemon that took leave is gone, and is started again later.
    Leaves { node: usize, starts_after: u64 },
    /// An operator repairs what was deleted or damaged.
    Repairs,
    /// A second has passed.
    Ticks,
}

/// What happened last, for people.
#[derive(Debug, Default)]
pub struct Log {
    /// Whether all of it is printed.
    pub prints: bool,
    /// The last lines.
    pub last: VecDeque<String>,
}

/// How many lines of a log are kept.
const LINES: usize = 60;

/// The world.
pub struct World {
    /// True time since it began, in nanoseconds.
    pub now: u64,
    /// The store's own data; what stands between it and the nodes is in `network.rs`.
    pub store: MemoryStore,
    /// Chance.
    pub dice: Dice,
    /// The nodes.
    pub hosts: Vec<Host>,
    /// When each wants to be woken.
    wakes: Vec<Option<u64>>,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    /// The store answers nothing until then, and does everything afterwards; its leases run out meanwhile.
    pub store_stops_until: u64,
    /// The store refuses everybody until then, and gives all leases their whole length when it is back.
    pub store_away_until: u64,
    /// In thousandths: how much is lost, and how much takes seconds.
    pub lossy: u64,
    /// The second of these.
    pub slow: u64,
    /// Whether the store forgets old revisions.
    pub compacts: bool,
    /// Operations by kind.
    pub ops: BTreeMap<&'static str, u64>,
    /// What users were told, by the name of the job.
    pub told: BTreeMap<String, Answer>,
    /// Where all lies in the store.
    pub keys: Keys,
    /// How long jobs sleep that do nothing else.
    pub job_ns_max: u64,
    /// Whether jobs compute, sleep, use memory and ignore kills; otherwise they sleep, and end.
    pub lively: bool,
    /// No new processes come into jobs.
    calm: bool,
    /// How agents judge.
    pub agent: AgentConfig,
    /// The first invariant that did not hold.
    pub violation: Option<Violation>,
    /// For reports.
    pub counts: Counts,
    /// What happens, if somebody wants to know.
    pub log: Option<Log>,
    /// How it is broken on purpose.
    pub broken: Option<Broken>,
    checks: Vec<Box<dyn Invariant>>,
    /// Which life of the store it is: it has lost its data, or was put back to a copy, so often.
    store_life: u64,
    /// What users have asked for and was not answered, and its place in the order; what was answered as done just now.
    wanted: BTreeMap<String, (u64, Ask)>,
    done: BTreeMap<(u64, String), Ask>,
    /// The revision with which that began.
    life_began: Revision,
    /// The copy that somebody has made of it.
    copy: Option<MemoryStore>,
    /// What the store is to be when it is back, if not what it was.
    another: Option<MemoryStore>,
    /// Up to this revision the store was looked at.
    looked: Revision,
    state: Option<State>,
    /// What nodes really have, by number.
    capacity: BTreeMap<u32, Capacity>,
    /// The last values of the state, for a store that forgets.
    states: VecDeque<Vec<u8>>,
}

impl World {
    /// A world of so many nodes, all of whose daemons have been started and have met.
    pub fn started(seed: u64, nodes: usize) -> World {
        let mut world = World::new(seed, nodes);
        (0..nodes).for_each(|node| world.start(node));
        world.run(3 * S);
        world
    }

    /// A world of so many nodes, all of whose daemons are still to be started.
    pub fn new(seed: u64, nodes: usize) -> World {
        let keys = Keys::new("test").unwrap_or_else(|e| unreachable!("{e}"));
        let mut world = World {
            now: 0,
            store: MemoryStore::new(),
            dice: Dice(seed),
            hosts: Vec::new(),
            wakes: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            store_stops_until: 0,
            store_away_until: 0,
            lossy: 0,
            slow: 0,
            compacts: false,
            ops: BTreeMap::new(),
            told: BTreeMap::new(),
            keys,
            job_ns_max: 3 * S,
            lively: false,
            calm: false,
            agent: AgentConfig::default(),
            violation: None,
            counts: Counts::default(),
            log: None,
            broken: None,
            checks: invariants::all(),
            store_life: 0,
            wanted: BTreeMap::new(),
            done: BTreeMap::new(),
            life_began: 0,
            copy: None,
            another: None,
            looked: 1,
            state: None,
            capacity: BTreeMap::new(),
            states: VecDeque::new(),
        };
        for node in 0..nodes {
            world.add_host(&format!("n{node}"));
        }
        world.push(S, Event::Ticks);
        world
    }

    /// One more node.
    pub fn add_host(&mut self, name: &str) -> usize {
        let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
        let mut settings = Settings::new(self.keys.clone(), name, 0, capacity);
        settings.initial.node_dead_after_ns = 10 * S;
        settings.home = format!("home of {name} {}", self.hosts.len());
        // Steady clocks begin anywhere.
        let steady = 17 * S * (self.hosts.len() as u64 + 1);
        self.hosts.push(Host::new(settings, steady));
        self.wakes.push(None);
        self.hosts.len() - 1
    }

    /// What a node's clocks show.
    pub fn moment(&self, node: usize) -> Moment {
        self.hosts[node].clock.at(self.now)
    }

    fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    /// Tells the invariants; the first that does not hold is kept.
    fn see(&mut self, seen: &Seen) {
        see(&mut self.checks, &mut self.violation, self.now, seen);
    }

    /// Writes down what happens, if somebody wants to know.
    fn note(&mut self, what: impl FnOnce() -> String) {
        let Some(log) = &mut self.log else { return };
        let line = format!("{:>10.4} {}", self.now as f64 / S as f64, what());
        if log.prints {
            println!("{line}");
        }
        if log.last.len() == LINES {
            log.last.pop_front();
        }
        log.last.push_back(line);
    }
}

/// The part of [`World::see`] that leaves the rest of the world alone.
fn see(checks: &mut [Box<dyn Invariant>], violation: &mut Option<Violation>, at_ns: u64, seen: &Seen) {
    for check in checks {
        if let Err(what) = check.see(seen) {
            violation.get_or_insert(Violation { invariant: check.name(), what, at_ns });
        }
    }
}
