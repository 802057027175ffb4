//! What must always hold, a file each, and what they are told.

mod answers;
mod bounded_stop;
mod by_rule;
mod cells;
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

use crate::host::SlotBegins;
use cosched_cluster::wire::{Answer, Ask, Attempt, By, Job};
use cosched_core::JobId;
use cosched_core::cluster::{Capacity, Plan, State};
use cosched_node::Request;
use std::collections::{BTreeMap, BTreeSet};

/// What an invariant is told, as the world goes on.
#[derive(Debug)]
pub enum Seen<'a> {
    /// The planner's state in the store is another one. By number, `capacity` is what nodes really have.
    State {
        /// The new one.
        state: &'a State,
        /// The nodes whose records are in the store, by number.
        heard: &'a BTreeSet<u32>,
        /// What each node really has, at the most.
        capacity: &'a BTreeMap<u32, Capacity>,
        /// True wall-clock time, in nanoseconds.
        now_wall_ns: u64,
    },
    /// A daemon begins to run by a plan.
    Uses {
        /// The node.
        node: usize,
        /// The plan.
        plan: &'a Plan,
    },
    /// Something that was made on a node contradicts itself, as the code that is shipped has noticed.
    Unsound {
        /// The node.
        node: usize,
        /// What does not hold.
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
        /// Whether its clock is right, and it knows.
        sound: bool,
        /// Its wall clock, in nanoseconds.
        wall_ns: u64,
        /// Who runs.
        slot: &'a SlotBegins,
    },
    /// Processes are stopped, and neither a user nor a lack of memory wants it.
    Stopped {
        /// The node.
        node: usize,
        /// Whose processes.
        job: JobId,
        /// For how long, in nanoseconds.
        for_ns: u64,
        /// The bound.
        most_ns: u64,
    },
    /// A request came into the store (`true`) or went.
    Request {
        /// Its name.
        id: &'a str,
        /// Whether it came.
        came: bool,
    },
    /// A user was told what came of a job that was asked for.
    Answered {
        /// The job's name.
        name: &'a str,
        /// The answer.
        answer: &'a Answer,
    },
    /// A user has an answer of his daemon.
    Answer {
        /// Who.
        by: By,
        /// To what.
        what: &'a Request,
        /// It is not refused.
        is_done: bool,
    },
    /// Users' requests that a transaction has answered as done, in their order, and the state after it.
    Done {
        /// What was asked for.
        asks: &'a [Ask],
        /// The state.
        state: &'a State,
        /// The numbers of nodes by their names.
        ids: &'a BTreeMap<String, u32>,
    },
    /// A record of a job came into the store or changed.
    Record(&'a Job),
    /// The processes of a job are begun on a node.
    Begun {
        /// The node.
        node: usize,
        /// The job.
        job: JobId,
        /// In which life.
        attempt: Attempt,
        /// A node where processes of an earlier life are left.
        older: Option<usize>,
    },
    /// The store has lost its data, or was put back to an earlier copy of it. What it has is told next.
    AnotherStore,
    /// A job has got its number.
    Numbered {
        /// The number.
        job: JobId,
        /// A node that takes part.
        node: usize,
        /// The highest number that is known there from an earlier life of the store.
        known: u64,
    },
    /// Somebody asks the store for something.
    Asked {
        /// The node.
        node: usize,
        /// What, in a word or two.
        what: &'a str,
    },
    /// From now on nothing happens that anybody would have to write down (`true`).
    Quiet(bool),
    /// Long after all faults are over and all processes have ended.
    Over(&'a Over),
}

/// What is left at the end.
#[derive(Debug, Default)]
pub struct Over {
    /// Jobs that have no end, in a word or two.
    pub open: Vec<String>,
    /// Processes that are there, by node.
    pub alive: Vec<(usize, JobId)>,
    /// What is wrong with nodes: not joined, another plan, requests without an answer.
    pub nodes: Vec<String>,
    /// What lies in the store that should not.
    pub litter: Vec<String>,
}

/// What names a plan: when the store begins another life, generations come again, and nodes that have not heard of that
/// go on by plans of before for a while.
type PlanId = (u64, u64, u32);

fn id_of(plan: &Plan) -> PlanId {
    (plan.generation, plan.from_slot, plan.start)
}

/// Something that must always hold.
pub trait Invariant: Send {
    /// Its name, which is that of its file.
    fn name(&self) -> &'static str;

    /// Takes note.
    ///
    /// # Errors
    /// It does not hold: what was seen.
    fn see(&mut self, seen: &Seen) -> Result<(), String>;
}

/// All of them.
pub fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(cells::Cells),
        Box::<one_row::OneRow>::default(),
        Box::<outdated::Outdated>::default(),
        Box::new(bounded_stop::BoundedStop),
        Box::new(final_states::FinalStates),
        Box::<generations::Generations>::default(),
        Box::<exactly_once::ExactlyOnce>::default(),
        Box::<memory::Memory>::default(),
        Box::new(numbers::Numbers),
        Box::<obeyed::Obeyed>::default(),
        Box::<quiet::Quiet>::default(),
        Box::<one_life::OneLife>::default(),
        Box::<spared::Spared>::default(),
        Box::new(sound::Sound),
        Box::<by_rule::ByRule>::default(),
        Box::<answers::Answers>::default(),
        Box::<shares::SlotShares>::default(),
    ]
}

/// Whether an invariant notices a broken world, in one of a few seeds. For the test of each.
#[cfg(test)]
pub(crate) fn is_noticed(broken: crate::world::Broken, by: &str) -> bool {
    let options = crate::run::Options { nodes: Some(3), jobs: 30, minutes: 4, broken: Some(broken) };
    let whole = crate::run::Options { broken: None, ..options };
    let violation = |seed, options| crate::run::seed(seed, options).violation;
    (0..500).any(|seed| {
        let noticed = violation(seed, &options).is_some_and(|violation| violation.invariant == by);
        // It is the fault that is noticed, not something else.
        noticed && violation(seed, &whole).is_none()
    })
}
