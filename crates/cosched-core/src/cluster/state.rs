//! All that the planner of a cluster knows, as plain data.
//!
//! This is what lies in the store: whoever reads it can go on planning, and two that plan from the same state plan the
//! same. Places are told by node and CPU, never by column, so that they hold when nodes come and go.

use super::fair::{FairShare, Usage};
use super::layout::Span;
use super::queue::Queue;
use super::terms::{Suspended, Terms};
use crate::class::{Class, Shares};
use crate::id::{JobId, NodeId};
use crate::job::{Policy, Sharing};
use crate::plan::Standing;
use crate::policy::share::SlotShare;
use crate::reason::Reason;
use crate::time::Time;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

/// Where a gang that spans nodes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packing {
    /// Into the first row with room.
    FirstFit,
    /// Into the row that has the least room left.
    BestFit,
    /// Onto a block of 2^k neighbouring nodes; see `buddy.rs`.
    Buddy,
}

/// The time of the day, as far as shares depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// Working hours: interactive jobs are the more urgent ones.
    Working,
    /// Off-hours: batch jobs are.
    Off,
}

/// What an operator sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The length of a slot, in [`crate::SLOT_LENGTH_NS`].
    pub slot_length_ns: u64,
    /// The policy of jobs that have none of their own.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// Where new gangs go.
    pub packing: Packing,
    /// The most rows (the multiprogramming level); a new gang waits rather than make one more. At least 1.
    pub rows_max: u32,
    /// What the classes are worth in working hours.
    pub working: Shares,
    /// What they are worth in off-hours.
    pub off: Shares,
    /// What the time is now.
    pub period: Period,
    /// What a thread of a program that is not registered is worth, as a share.
    pub other_share: u32,
    /// The most CPU time of a node that gangs that span nodes may have together, in thousandths; 1 to 1000.
    pub ceiling_permille: u32,
    /// After so long a silence a node is dead, in nanoseconds; [`NEVER`]: only when an operator says so.
    pub node_dead_after_ns: u64,
    /// The queues, the most urgent first; at least one.
    pub queues: Vec<Queue>,
    /// Whether who has used little comes first in a queue, and how that counts.
    pub fair_share: Option<FairShare>,
}

/// A time that never comes.
pub const NEVER: u64 = u64::MAX;

/// After so long a silence a node is dead, unless somebody says otherwise. Slurm's SlurmdTimeout and the default eviction time of
/// Kubernetes are the same.
pub const NODE_DEAD_AFTER_NS: u64 = 300_000_000_000;

impl Default for Config {
    fn default() -> Config {
        let working = Shares::default();
        Config {
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::Buddy,
            rows_max: 64,
            // The paper gives an order: by night "batch … very good throughput", interactive may be reduced.
            off: Shares { interactive: working.batch, batch: working.interactive, ..working },
            working,
            period: Period::Working,
            other_share: working.batch,
            ceiling_permille: 1000,
            node_dead_after_ns: NODE_DEAD_AFTER_NS,
            queues: vec![Queue::default()],
            fair_share: None,
        }
    }
}

impl Config {
    /// The shares that hold now.
    pub fn shares(&self) -> &Shares {
        match self.period {
            Period::Working => &self.working,
            Period::Off => &self.off,
        }
    }
}

/// What a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Its CPUs, a column of the matrix each; at least 1.
    pub cpus: u32,
    /// Its memory for jobs.
    pub memory_bytes: u64,
    /// Its disk space for jobs.
    pub disk_bytes: u64,
}

/// A node that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// What it has.
    pub capacity: Capacity,
    /// It gets no new jobs; those that it has go on.
    pub drains: bool,
    /// Runnable threads of programs that are not registered, as last heard.
    pub other_threads_seen: u32,
    /// The same, as the plan counts on: heard values are taken over when the node joins and at every rebalancing.
    pub other_threads: u32,
}

/// What a job wants of one node. Source: LLNL, "Gang Scheduler Design" (program registration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeWant {
    /// The node.
    pub node: NodeId,
    /// CPUs at a time.
    pub cpus: u32,
    /// What is enough, on a node that has fewer than `cpus`.
    pub cpus_min: u32,
    /// Memory there.
    pub memory_bytes: u64,
    /// Disk space there.
    pub disk_bytes: u64,
}

/// What a job wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// These nodes, each once.
    PerNode(Vec<NodeWant>),
    /// So many CPUs, wherever it is best.
    Total {
        /// CPUs at a time, of all nodes together.
        cpus: u32,
        /// Memory for each of them.
        memory_per_cpu_bytes: u64,
        /// Disk space on each of its nodes.
        disk_bytes: u64,
    },
}

impl Want {
    /// Nodes in the order in which they are placed.
    pub(super) fn sort(&mut self) {
        if let Want::PerNode(wants) = self {
            wants.sort_by_key(|want| want.node);
        }
    }
}

/// What becomes of a job one of whose nodes is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnNodeLoss {
    /// Its other processes are ended.
    Kill,
    /// Its other processes go on.
    Keep,
    /// Its other processes are ended, and it is started anew.
    Requeue,
}

/// A job as its owner asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Its name.
    pub id: JobId,
    /// Its owner, a user's number.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy; `None` follows the cluster's.
    pub policy: Option<Policy>,
    /// The part of the slots that it has at most.
    pub slot_share: Option<SlotShare>,
    /// CPUs, memory and disk space.
    pub want: Want,
    /// Its queue, by its place in [`Config::queues`].
    pub queue: u32,
    /// What becomes of it when a node is lost.
    pub on_node_loss: OnNodeLoss,
    /// When it may start, and how long it may run.
    pub terms: Terms,
}

impl JobSpec {
    /// A job of user 0 in the first queue that asks for nothing else: the cluster's policy, no share, no terms, killed with its node.
    pub fn new(id: JobId, class: Class, want: Want) -> JobSpec {
        JobSpec {
            id,
            owner: 0,
            class,
            policy: None,
            slot_share: None,
            want,
            queue: 0,
            on_node_loss: OnNodeLoss::Kill,
            terms: Terms::default(),
        }
    }
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits for the reason; with a place, it is held there: it has started, and must not run.
    Waiting(Reason),
    /// It has a place and may run.
    Ready,
    /// Its processes are being ended; then it waits anew.
    Clearing,
    /// Its processes are being ended for good.
    Ending(Reason),
}

/// A job's part of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The node.
    pub node: NodeId,
    /// CPUs at a time.
    pub cpus: u32,
    /// Memory: what was asked for, or what was seen to be used if that is more.
    pub memory_bytes: u64,
    /// Disk space.
    pub disk_bytes: u64,
}

/// Cells of a gang on one node: neighbouring CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The node.
    pub node: NodeId,
    /// CPUs of the node, by their numbers from 0.
    pub cpus: Span,
}

/// Where a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its nodes, ascending.
    pub parts: Vec<Part>,
    /// Its row and its cells in it, ascending, while it is a gang with slots that spans nodes.
    pub home: Option<(u32, Vec<Cells>)>,
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// What its owner asks for; class and policy are the present ones.
    pub spec: JobSpec,
    /// Jobs of a queue are served in this order.
    pub order: u64,
    /// Whether it takes part while it is ready.
    pub standing: Standing,
    /// What auto has chosen.
    pub choice: Policy,
    /// How far it has come.
    pub stage: Stage,
    /// Where it is.
    pub place: Option<Place>,
    /// Since when it is ready; time limits count from here.
    pub ready_since: Time,
    /// For how long it was suspended since.
    pub suspended: Suspended,
}

/// The whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What the operator has set.
    pub config: Config,
    /// Of the present plan; rises by one from plan to plan.
    pub generation: u64,
    /// The first slot in which the present plan holds.
    pub from_slot: u64,
    /// The turn of the cycle in that slot.
    pub start: u32,
    /// When each row last had its turn, so that the one that waits longest comes first in the next plan.
    pub row_turns: Vec<Time>,
    /// Jobs of the present plan that may run before it holds.
    pub early: Vec<JobId>,
    /// The order of the next job.
    pub next_order: u64,
    /// The nodes that take part.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// Nodes that do not take part now, and get no new jobs when they do again.
    pub drained_away: BTreeSet<NodeId>,
    /// What users have used, while that counts.
    pub usage: BTreeMap<u32, Usage>,
    /// Nodes of the plan whose lease is out, and since when: their jobs go on, their gangs that span nodes have no slots, and they
    /// get no new ones.
    pub silent: BTreeMap<NodeId, Time>,
    /// Parts of jobs on nodes that are dead, which the jobs have back when the node turns out to live.
    pub kept: BTreeMap<NodeId, BTreeMap<JobId, Part>>,
    /// Every job that has not ended.
    pub jobs: BTreeMap<JobId, JobRecord>,
}

/// Numbers, times in nanoseconds and sums of bytes in a state are below this: with what comes to them they stay in 64 bits.
pub const NUMBERS_END: u64 = 1 << 62;
/// All nodes together have no more CPUs than this, nor jobs and other programs more threads.
const CPUS_MAX: u64 = 1 << 24;
/// No share is larger.
const SHARE_MAX: u32 = 1000;

impl State {
    /// Whether nothing in it is so large, or so small, that nothing can be computed of it.
    pub(super) fn can_be_counted(&self) -> bool {
        let config = &self.config;
        let is_small = |number: u64| number < NUMBERS_END;
        let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0, u64::saturating_add);
        let parts = || {
            let places = self.jobs.values().filter_map(|job| job.place.as_ref());
            places.flat_map(|place| &place.parts).chain(self.kept.values().flat_map(BTreeMap::values))
        };
        let times =
            self.row_turns.iter().chain(self.silent.values()).chain(self.jobs.values().map(|job| &job.ready_since));
        let more = self.jobs.values().flat_map(|job| {
            let terms = &job.spec.terms;
            let begin = terms.begin.map(|begin| begin.0);
            let since = job.suspended.since.map(|since| since.0);
            [begin, since, terms.time_ns_max, Some(job.suspended.ns)].into_iter().flatten()
        });
        let numbers = [self.generation, self.next_order, self.from_slot.saturating_mul(config.slot_length_ns)];
        numbers.into_iter().chain(times.map(|time| time.0)).chain(more).all(is_small)
            && self.jobs.iter().all(|(id, job)| is_small(id.0) && is_small(job.order))
            && is_small(sum(&mut parts().map(|part| part.memory_bytes)))
            && is_small(sum(&mut parts().map(|part| part.disk_bytes)))
            && sum(&mut parts().map(|part| part.cpus.into())) <= CPUS_MAX
            && sum(&mut self.nodes.values().map(|node| node.capacity.cpus.into())) <= CPUS_MAX
            && sum(&mut self.nodes.values().map(|node| node.other_threads.into())) <= CPUS_MAX
            && Class::ALL.iter().all(|class| config.working.of(*class).max(config.off.of(*class)) <= SHARE_MAX)
            && config.other_share <= SHARE_MAX
            && config.ceiling_permille > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BadState, Planner};

    #[test]
    fn what_nobody_can_count_with_is_no_state() {
        let is_bad = |change: &dyn Fn(&mut State)| {
            let mut state = State::default();
            change(&mut state);
            Planner::new(state).err() == Some(BadState::Numbers)
        };
        let cpus = |cpus| NodeRecord {
            capacity: Capacity { cpus, memory_bytes: 1, disk_bytes: 1 },
            drains: false,
            other_threads_seen: 0,
            other_threads: 0,
        };
        assert!(!is_bad(&|state| state.next_order = NUMBERS_END - 1));
        assert!(is_bad(&|state| state.next_order = u64::MAX));
        assert!(is_bad(&|state| state.row_turns.push(Time(u64::MAX))));
        assert!(is_bad(&|state| (state.from_slot, state.config.slot_length_ns) = (1 << 40, 1 << 40)));
        assert!(is_bad(&|state| state.config.ceiling_permille = 0));
        assert!(is_bad(&|state| state.config.working.standby = u32::MAX));
        assert!(is_bad(&|state| {
            state.nodes.insert(NodeId(0), cpus(u32::MAX));
            state.nodes.insert(NodeId(1), cpus(1));
        }));
    }
}
