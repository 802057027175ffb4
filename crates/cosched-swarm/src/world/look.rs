//! Access to the state of the world, for tests and invariants.

use super::World;
use super::trouble::measured;
use crate::invariants::{Over, Seen};
use cosched_cluster::store::Range;
use cosched_cluster::wire::{Job, decode};
use cosched_core::cluster::{Capacity, Stage, State};
use cosched_core::{JobId, Standing};
use serde::Serialize;
use std::collections::BTreeSet;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Its name; `panic` when the code itself panicked.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    /// When, in nanoseconds since the world began.
    pub at_ns: u64,
}

/// Counters of what has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Events of the simulation.
    pub events: u64,
    /// Jobs that were accepted.
    pub jobs: u64,
    /// Parts of jobs that were started on nodes.
    pub begun: u64,
    /// Plans that were committed.
    pub plans: u64,
    /// Slots, or changes to another plan within one, on all nodes.
    pub slots: u64,
    /// Plans whose commit failed because another planner was faster.
    pub conflicts: u64,
    /// Plans that a node saw too late.
    pub missed: u64,
    /// Policies that auto has chosen for jobs.
    pub chosen: u64,
    /// Requests of users.
    pub asks: u64,
    /// Faults.
    pub faults: u64,
}

/// Whether a user or a lack of memory keeps a job stopped.
pub(super) fn is_held(state: &State, id: JobId) -> bool {
    let held = |job: &cosched_core::cluster::JobRecord| {
        job.standing == Standing::Suspended || matches!(job.stage, Stage::Waiting(_))
    };
    state.jobs.get(&id).is_some_and(held)
}

impl World {
    /// The planner's state in the store.
    pub fn state(&self) -> Option<State> {
        let entry = self.store.read(&Range::one(self.keys.state())).pop()?;
        decode(&entry.value).ok()
    }

    /// Every job's record in the store.
    pub fn jobs(&self) -> Vec<Job> {
        let range = Range::prefix(&format!("{}jobs/", self.keys.prefix()));
        self.store.read(&range).iter().filter_map(|entry| decode(&entry.value).ok()).collect()
    }

    /// The number of keys below `folder`.
    pub fn under(&self, folder: &str) -> usize {
        self.store.read(&Range::prefix(&format!("{}{folder}/", self.keys.prefix()))).len()
    }

    /// Parts of jobs that have live processes, on any node.
    pub fn running(&self) -> BTreeSet<(usize, JobId)> {
        let parts =
            self.hosts.iter().enumerate().flat_map(|(node, host)| {
                host.processes.parts.iter().map(move |(job, part)| (node, *job, part.is_alive()))
            });
        parts.filter(|(.., alive)| *alive).map(|(node, job, _)| (node, job)).collect()
    }

    /// What is left, long after the world has become idle.
    fn over(&self) -> Over {
        let mut over = Over { alive: self.running().into_iter().collect(), ..Over::default() };
        let Some(state) = self.state() else {
            over.nodes.push("there is no state in the store".to_owned());
            return over;
        };
        over.open = state.jobs.iter().map(|(id, job)| format!("job {id}: {job:?}")).collect();
        let records = self.jobs();
        let open = records.iter().filter(|job| job.end.is_none() && !state.jobs.contains_key(&JobId(job.id)));
        over.open.extend(open.map(|job| format!("job {} has a record without an end", job.id)));
        over.nodes = (0..self.hosts.len()).filter_map(|node| self.not_well(node, &state)).collect();
        for folder in ["requests", "replies"] {
            let many = self.under(folder);
            if many > 0 {
                over.litter.push(format!("{many} keys are left under {folder}/"));
            }
        }
        over
    }

    /// What is wrong with a node, if anything.
    fn not_well(&self, node: usize, state: &State) -> Option<String> {
        let host = &self.hosts[node];
        if host.is_gone {
            return None;
        }
        let Some(member) = host.member() else { return Some(format!("the daemon of node {node} is dead")) };
        let using = host.plan.as_ref().map(|plan| plan.generation);
        let unanswered = member.unanswered();
        let why = if !member.is_joined() {
            format!("has not joined: {:?}", host.notices.last())
        } else if member.state() != Some(state) {
            "knows a different state from the store's".to_owned()
        } else if using != Some(state.generation) || member.in_use() != using {
            format!("uses generation {using:?}, and the newest is {}", state.generation)
        } else if host.plan != self.hosts[0].plan {
            "has a different plan of the same generation from node 0".to_owned()
        } else if (host.behind, unanswered) != (0, 0) {
            format!("is {} generations behind, and {unanswered} requests have no answer", host.behind)
        } else {
            return None;
        };
        Some(format!("node {node} {why}"))
    }

    /// Whether every job has ended, and nothing is in progress.
    pub(crate) fn is_over(&self) -> bool {
        let over = self.over();
        over.open.is_empty() && over.alive.is_empty() && over.nodes.is_empty() && over.litter.is_empty()
    }

    /// Shows the invariants what is left once the world is idle.
    pub(crate) fn see_over(&mut self) {
        let over = self.over();
        self.see(&Seen::Over(&over));
    }

    /// The same for tests.
    ///
    /// # Panics
    /// An invariant is violated.
    pub fn check_end(&mut self) {
        self.see_over();
        self.check();
    }

    /// Checks that no invariant was violated so far; for tests.
    ///
    /// # Panics
    /// An invariant was violated.
    pub fn check(&self) {
        if let Some(violation) = &self.violation {
            panic!("{}: {}", violation.invariant, violation.what);
        }
    }

    /// Runs an idle cluster for `ns` nanoseconds; returns the requests to the store in this time: renewals and all
    /// others.
    pub(crate) fn quiet(&mut self, ns: u64) -> (u64, u64) {
        // A daemon that has just started reports its node's load.
        for node in 0..self.hosts.len() {
            self.tell(node, |member, now| member.measured(now, measured(now, 0)));
        }
        self.run(2 * super::S);
        self.ops.clear();
        self.see(&Seen::Quiet(true));
        let end = self.now + ns;
        let mut round = 0;
        while self.now < end && self.violation.is_none() {
            // Loads fluctuate.
            round += 1;
            let flicker = round % 2 * if self.broken == Some(super::Broken::Flickers) { 40 } else { 1 };
            for node in 0..self.hosts.len() {
                self.tell(node, |member, now| {
                    member.load(now, flicker);
                    member.measured(now, measured(now, 400 * flicker));
                });
            }
            self.run(35 * super::S);
        }
        self.see(&Seen::Quiet(false));
        let renewals = self.ops.remove("renewals").unwrap_or(0);
        self.ops.remove("checks");
        (renewals, self.ops.values().sum())
    }

    /// Records what a node really has, by the node's number.
    pub(super) fn note_capacity(&mut self, node: usize) {
        let host = &self.hosts[node];
        let most = Capacity { memory_bytes: host.memory_bytes_whole, ..host.capacity };
        if let Some((record, _)) = self.record_of(node) {
            self.capacity.insert(record.id, most);
        }
    }
}
