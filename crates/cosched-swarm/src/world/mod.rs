//! The world: true time, nodes, a store and a network between them, and a queue of events.

mod act;
mod asks;
mod by_hand;
mod daemon;
mod disk;
mod effects;
mod freezer;
mod look;
mod network;
mod refusals;
mod restore;
mod time;
mod trouble;
mod twins;
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

/// How the world is broken on purpose, so that an invariant has something to notice. The breakage is always in the
/// environment of the control plane, never in the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// One node does not do what its plan says.
    Mangle(Mangle),
    /// The first node's driver does not receive plans after generation 10.
    OldPlans,
    /// There is no guard: processes that a dead daemon has stopped stay stopped.
    NoThaw,
    /// The guard of a daemon that is dead or hangs does not end the jobs that other nodes may restart.
    NoFence,
    /// A daemon that is out of touch keeps stopping jobs that were held for want of memory.
    HoldsOn,
    /// A daemon does not report that processes have ended.
    EndsUntold,
    /// A daemon does not report that a main process outside its job's nodes has ended.
    MainsUntold,
    /// The store loses its last writes when it is restarted.
    StoreForgets,
    /// The store does not always check the conditions of a transaction.
    NoConditions,
    /// The planner answers a user's request to suspend a job as done, and the job continues.
    Disobeys,
    /// A node reports twice its memory.
    Boasts,
    /// Daemons that are started do not know which job numbers were given.
    NumbersUntold,
    /// A node's load is reported as large and small in turn.
    Flickers,
    /// No signal reaches a process.
    NoSignals,
    /// No freezer stops a job that a user has suspended.
    NoFreezers,
    /// Programs ignore SIGTERM, although they promised to obey it.
    DeafToTerm,
    /// What is left of a job after its grace time is not killed.
    RestLives,
}

#[derive(Debug)]
enum Event {
    /// An operation reaches the store.
    Arrives { node: usize, life: u64, store: u64, op: OpId, what: Op },
    /// The answer to an operation reaches the member.
    Answers { node: usize, life: u64, op: OpId, done: Result<OpDone, StoreError> },
    /// A watch checks for events to deliver.
    Tells { node: usize, life: u64, watch: OpId },
    /// A watch ends.
    Cuts { node: usize, life: u64, watch: OpId },
    /// A daemon is started, if none is.
    Starts { node: usize },
    /// The daemon checks its clock.
    LooksAtClock { node: usize },
    /// A time service corrects the clock, and the daemon learns of it a moment later.
    SetsClock { node: usize },
    /// The guard checks whether the daemon hangs.
    Guards { node: usize },
    /// A daemon that hung continues.
    Wakes { node: usize },
    /// The store is back, with its data.
    StoreIsBack,
    /// Messages are no longer lost or late.
    Clears,
    /// A daemon that left in an orderly way has ended, and is restarted later.
    Leaves { node: usize, starts_after: u64 },
    /// An operator repairs what was deleted or damaged.
    Repairs,
    /// A machine fails whose name another one is about to get.
    Fails { node: usize },
    /// An administrator gives up the jobs of a machine that had another one's name.
    DeclaresDead { twin: usize },
    /// A second has passed.
    Ticks,
}

/// A log of events in text, of which the last lines are kept.
#[derive(Debug, Default)]
pub struct Log {
    /// Whether every line is also printed.
    pub prints: bool,
    /// The last lines.
    pub last: VecDeque<String>,
}

/// Distinguishes the dice of faults that were added later from those of a seed.
const MORE: u64 = 0x6d6f_7265_6d6f_7265;

/// The number of lines that are kept.
const LINES: usize = 60;

/// The world.
pub struct World {
    /// True time since it began, in nanoseconds.
    pub now: u64,
    /// The store's own data; delay, loss and failures between it and the nodes are in `network.rs`.
    pub store: MemoryStore,
    /// The random numbers.
    pub dice: Dice,
    /// The random numbers of refusals and of disks.
    pub more: Dice,
    /// The random numbers of polite kills.
    polite: Dice,
    /// The random numbers of machines with another one's name.
    pub(crate) twins: Dice,
    /// The cgroups' freezers.
    pub(crate) freezers: freezer::Freezers,
    /// There is one node, whose store is a file of its own.
    pub is_single: bool,
    /// The nodes.
    pub hosts: Vec<Host>,
    /// When each node wants to be woken.
    wakes: Vec<Option<u64>>,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    /// The store answers nothing until then, and does everything afterwards; its leases expire meanwhile.
    pub store_stops_until: u64,
    /// The store refuses all operations until then, and renews all leases for their whole length when it is back.
    pub store_away_until: u64,
    /// It refuses whatever needs room until then.
    no_room_until: u64,
    /// It refuses this many operations in a thousand until then.
    refused: u64,
    refuses_until: u64,
    /// How many messages in a thousand are lost.
    pub lossy: u64,
    /// How many messages in a thousand take seconds.
    pub slow: u64,
    /// Whether the store forgets old revisions.
    pub compacts: bool,
    /// The number of operations by kind.
    pub ops: BTreeMap<&'static str, u64>,
    /// The answers to users, by the name of the job.
    pub told: BTreeMap<String, Answer>,
    /// The names of the keys in the store.
    pub keys: Keys,
    /// The longest time for which jobs sleep that do nothing else.
    pub job_ns_max: u64,
    /// Whether jobs compute, sleep, use memory and ignore kills; otherwise they only sleep, and end.
    pub lively: bool,
    /// No new processes enter jobs, and no more faults occur.
    calm: bool,
    /// The settings of the agents.
    pub agent: AgentConfig,
    /// The first invariant violation.
    pub violation: Option<Violation>,
    /// Counters for reports.
    pub counts: Counts,
    /// The log of events, if one is wanted.
    pub log: Option<Log>,
    /// How the world is broken on purpose.
    pub broken: Option<Broken>,
    checks: Vec<(&'static str, Box<dyn Invariant>)>,
    /// The life of the store: how often it has lost its data or was restored from a copy.
    store_life: u64,
    /// Users' requests without an answer, with their place in the order; and those that were just answered as done.
    wanted: BTreeMap<String, (u64, Ask)>,
    done: BTreeMap<(u64, String), Ask>,
    /// What users were told of killed and suspended jobs.
    are_done: effects::Told,
    /// The revision at which this life of the store began.
    life_began: Revision,
    /// A copy made of the store, to be restored later.
    copy: Option<MemoryStore>,
    /// What the store will contain when it is back, if not its present data.
    another: Option<MemoryStore>,
    /// The last revision that was shown to the invariants.
    looked: Revision,
    state: Option<State>,
    /// What nodes really have, by number.
    capacity: BTreeMap<u32, Capacity>,
    /// The last values of the state, for a store that forgets writes.
    states: VecDeque<Vec<u8>>,
}

impl World {
    /// A world of `nodes` nodes whose daemons have all started and joined.
    pub fn started(seed: u64, nodes: usize) -> World {
        let mut world = World::new(seed, nodes);
        (0..nodes).for_each(|node| world.start(node));
        world.run(3 * S);
        world
    }

    /// A world of `nodes` nodes whose daemons are still to be started.
    pub fn new(seed: u64, nodes: usize) -> World {
        let keys = Keys::new("test").unwrap_or_else(|e| unreachable!("{e}"));
        let mut world = World {
            now: 0,
            store: MemoryStore::new(),
            dice: Dice(seed),
            more: Dice(seed ^ MORE),
            polite: Dice(seed ^ (MORE << 2)),
            twins: Dice(seed ^ (MORE << 3)),
            freezers: freezer::Freezers { dice: Dice(seed ^ (MORE << 1)), late_one_in: 0 },
            is_single: false,
            hosts: Vec::new(),
            wakes: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            store_stops_until: 0,
            store_away_until: 0,
            no_room_until: 0,
            refused: 0,
            refuses_until: 0,
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
            are_done: effects::Told::default(),
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

    /// Adds a node, and returns its index.
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

    /// Reports an event to the invariants, and keeps the first violation.
    fn see(&mut self, seen: &Seen) {
        see(&mut self.checks, &mut self.violation, self.now, seen);
    }

    /// Logs a line, if a log is wanted.
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

/// The part of [`World::see`] that borrows no other part of the world.
fn see(checks: &mut [(&'static str, Box<dyn Invariant>)], violation: &mut Option<Violation>, at_ns: u64, seen: &Seen) {
    for (invariant, check) in checks {
        if let Err(what) = check.see(seen) {
            violation.get_or_insert(Violation { invariant, what, at_ns });
        }
    }
}
