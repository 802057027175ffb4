//! What must always hold, one file for each invariant, and the events that they are told.

mod answers;
mod bounded_stop;
mod by_rule;
mod cells;
mod effects;
mod exactly_once;
mod final_states;
mod generations;
mod memory;
mod numbers;
mod obeyed;
mod one_life;
mod one_row;
mod outdated;
mod quiet;
mod shares;
mod sound;
mod spared;

pub(crate) use bounded_stop::REST_NS as STOPPED_REST_NS;
pub(crate) use effects::{ALIVE, OBEYS, RUNS};

use crate::host::SlotBegins;
use cosched_cluster::wire::{Answer, Ask, Attempt, By, Job};
use cosched_core::JobId;
use cosched_core::cluster::{Capacity, Plan, State};
use cosched_node::Request;
use std::collections::{BTreeMap, BTreeSet};

/// An event in the world, as reported to the invariants.
#[derive(Debug)]
pub enum Seen<'a> {
    /// The planner's state in the store has changed.
    State {
        /// The new one.
        state: &'a State,
        /// The numbers of the nodes that have records in the store.
        heard: &'a BTreeSet<u32>,
        /// The most that each node really has, by the node's number.
        capacity: &'a BTreeMap<u32, Capacity>,
        /// True wall-clock time, in nanoseconds.
        now_wall_ns: u64,
    },
    /// A daemon starts to use a plan.
    Uses {
        /// The node.
        node: usize,
        /// The plan.
        plan: &'a Plan,
    },
    /// Something made on a node contradicts itself, as the production code has noticed.
    Unsound {
        /// The node.
        node: usize,
        /// What is inconsistent.
        why: &'a str,
    },
    /// A slot begins on a node.
    Slot {
        /// The node.
        node: usize,
        /// Its number in plans.
        id: u32,
        /// The CPUs that it has.
        cpus: u32,
        /// Whether its clock is correct and it knows that.
        sound: bool,
        /// Its wall clock, in nanoseconds.
        wall_ns: u64,
        /// The gangs that run in it.
        slot: &'a SlotBegins,
    },
    /// Processes are stopped although neither a user nor a lack of memory requires it.
    Stopped {
        /// The node.
        node: usize,
        /// The job to which they belong.
        job: JobId,
        /// For how long, in nanoseconds.
        for_ns: u64,
        /// The bound, in nanoseconds.
        most_ns: u64,
    },
    /// Processes show nothing of what a user was told.
    Lingers {
        /// The node.
        node: usize,
        /// The job to which they belong.
        job: JobId,
        /// What they do.
        what: &'static str,
        /// For how long, in nanoseconds.
        for_ns: u64,
    },
    /// A request was written to the store (`true`) or was removed.
    Request {
        /// Its name.
        id: &'a str,
        /// Whether it was written.
        came: bool,
    },
    /// A user was told the outcome of a job request.
    Answered {
        /// The job's name.
        name: &'a str,
        /// The answer.
        answer: &'a Answer,
    },
    /// A user's request was answered by the daemon.
    Answer {
        /// The user.
        by: By,
        /// The request.
        what: &'a Request,
        /// Whether it was carried out (not refused).
        is_done: bool,
    },
    /// Users' requests that a transaction has answered as done, in order, and the state after it.
    Done {
        /// The requests.
        asks: &'a [Ask],
        /// The state after the transaction.
        state: &'a State,
        /// The numbers of nodes by their names.
        ids: &'a BTreeMap<String, u32>,
    },
    /// An administrator asks for a node, by its number, to be declared dead.
    GivenUp(u32),
    /// A job's record was written or has changed.
    Record(&'a Job),
    /// The processes of a job are started on a node.
    Begun {
        /// The node.
        node: usize,
        /// The job.
        job: JobId,
        /// The job's life (attempt).
        attempt: Attempt,
        /// A node on which processes of an earlier life are left.
        older: Option<usize>,
    },
    /// The store has lost its data, or was restored from an earlier copy. What it contains is reported next.
    AnotherStore,
    /// A job has got its number.
    Numbered {
        /// The number.
        job: JobId,
        /// A node that takes part.
        node: usize,
        /// The highest number from an earlier life of the store that this node knows.
        known: u64,
    },
    /// A node sends an operation to the store.
    Asked {
        /// The node.
        node: usize,
        /// The kind of operation.
        what: &'a str,
    },
    /// Whether the cluster is idle from now on, so that no node has a reason to write (`true`).
    Quiet(bool),
    /// The end: long after all faults are over and all processes have ended.
    Over(&'a Over),
}

/// What is left at the end.
#[derive(Debug, Default)]
pub struct Over {
    /// Jobs that have not ended, in a word or two.
    pub open: Vec<String>,
    /// Processes still alive, by node.
    pub alive: Vec<(usize, JobId)>,
    /// What is wrong with nodes: not joined, another plan, requests without an answer.
    pub nodes: Vec<String>,
    /// Keys in the store that should no longer exist.
    pub litter: Vec<String>,
}

/// The name of a plan. When the store begins another life, generations repeat, and nodes that have not heard of it
/// continue with plans of the earlier life for a while.
type PlanId = (u64, u64, u32);

fn id_of(plan: &Plan) -> PlanId {
    (plan.generation, plan.from_slot, plan.start)
}

/// A property that must always hold.
pub trait Invariant: Send {
    /// Takes note of an event.
    ///
    /// # Errors
    /// The property is violated: describes what was seen.
    fn see(&mut self, seen: &Seen) -> Result<(), String>;
}

/// All invariants, each with the name of its file.
pub fn all() -> Vec<(&'static str, Box<dyn Invariant>)> {
    vec![
        ("cells", Box::new(cells::Cells)),
        ("one_row", Box::<one_row::OneRow>::default()),
        ("outdated", Box::<outdated::Outdated>::default()),
        ("bounded_stop", Box::new(bounded_stop::BoundedStop)),
        ("final_states", Box::new(final_states::FinalStates)),
        ("generations", Box::<generations::Generations>::default()),
        ("exactly_once", Box::<exactly_once::ExactlyOnce>::default()),
        ("memory", Box::<memory::Memory>::default()),
        ("numbers", Box::new(numbers::Numbers)),
        ("effects", Box::new(effects::Effects)),
        ("obeyed", Box::<obeyed::Obeyed>::default()),
        ("quiet", Box::<quiet::Quiet>::default()),
        ("one_life", Box::<one_life::OneLife>::default()),
        ("spared", Box::<spared::Spared>::default()),
        ("sound", Box::new(sound::Sound)),
        ("by_rule", Box::<by_rule::ByRule>::default()),
        ("answers", Box::<answers::Answers>::default()),
        ("shares", Box::<shares::SlotShares>::default()),
    ]
}
