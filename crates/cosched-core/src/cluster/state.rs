//! Everything that the planner of a cluster knows, as plain data.
//!
//! This is what the store holds: any daemon that reads it can continue planning, and two planners with the same state make the
//! same plan. Places are given by node and CPU, never by column, so that they stay valid when nodes join and leave.

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

/// Where a gang that spans nodes is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packing {
    /// Into the first row with enough room.
    FirstFit,
    /// Into the row that has the least room left afterwards.
    BestFit,
    /// Onto an aligned block of 2^k neighbouring nodes; see `buddy.rs`.
    Buddy,
}

/// The time of day, as far as shares depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// Working hours: interactive jobs have the larger share.
    Working,
    /// Off-hours: batch jobs have it.
    Off,
}

/// The operator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The length of a slot, in [`crate::SLOT_LENGTH_NS`].
    pub slot_length_ns: u64,
    /// The policy of jobs that have none of their own.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// How new gangs are placed.
    pub packing: Packing,
    /// The maximum number of rows (the multiprogramming level); a new gang waits when it would need another row. At least 1.
    pub rows_max: u32,
    /// The classes' shares in working hours.
    pub working: Shares,
    /// The classes' shares in off-hours.
    pub off: Shares,
    /// Which of the two applies now.
    pub period: Period,
    /// The share of a thread of a program that is not registered.
    pub other_share: u32,
    /// The largest part of a node's CPU time that all gangs that span nodes may have together, in thousandths; 1 to 1000.
    pub ceiling_permille: u32,
    /// How long a node may be silent before it counts as dead, in nanoseconds; [`NEVER`]: until an operator says that it is dead.
    pub node_dead_after_ns: u64,
    /// The queues, the most urgent first; at least one.
    pub queues: Vec<Queue>,
    /// Whether, and how, users with little past usage come first in a queue.
    pub fair_share: Option<FairShare>,
}

/// A time that never comes.
pub const NEVER: u64 = u64::MAX;

/// How long a node may be silent before it counts as dead, if the operator sets nothing else. The same as Slurm's SlurmdTimeout and the
/// default eviction time of Kubernetes.
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
    /// The shares that apply in the present period.
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

/// A node that takes part in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its capacity.
    pub capacity: Capacity,
    /// It gets no new jobs; its present jobs continue.
    pub drains: bool,
    /// Runnable threads of programs that are not registered, as last reported.
    pub other_threads_seen: u32,
    /// The same, as plans use it: the reported value is copied here when the node joins and at every rebalancing.
    pub other_threads: u32,
}

/// What a job requests of one node. Source: LLNL, "Gang Scheduler Design" (program registration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeWant {
    /// The node.
    pub node: NodeId,
    /// CPUs at the same time.
    pub cpus: u32,
    /// The CPUs that are enough on a node that has fewer than `cpus`.
    pub cpus_min: u32,
    /// Memory on the node.
    pub memory_bytes: u64,
    /// Disk space on the node.
    pub disk_bytes: u64,
}

/// The resources that a job requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// On these nodes; no node is listed twice.
    PerNode(Vec<NodeWant>),
    /// A number of CPUs, on the nodes that the planner picks.
    Total {
        /// CPUs at the same time, on all nodes together.
        cpus: u32,
        /// Memory for each of these CPUs.
        memory_per_cpu_bytes: u64,
        /// Disk space on each of its nodes.
        disk_bytes: u64,
    },
}

impl Want {
    /// Sorts the nodes: this is the order in which they are placed.
    pub(super) fn sort(&mut self) {
        if let Want::PerNode(wants) = self {
            wants.sort_by_key(|want| want.node);
        }
    }
}

/// What happens to a job when one of its nodes is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnNodeLoss {
    /// Its other processes are killed.
    Kill,
    /// Its other processes continue.
    Keep,
    /// Its other processes are killed, and it is started again from the beginning.
    Requeue,
}

/// A job as its owner submitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Its identifier.
    pub id: JobId,
    /// Its owner's user ID.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy; `None` follows the cluster's.
    pub policy: Option<Policy>,
    /// The largest part of the slots that it may have.
    pub slot_share: Option<SlotShare>,
    /// CPUs, memory and disk space.
    pub want: Want,
    /// Its queue, as an index into [`Config::queues`].
    pub queue: u32,
    /// What happens to it when a node is lost.
    pub on_node_loss: OnNodeLoss,
    /// When it may start, and how long it may run.
    pub terms: Terms,
}

impl JobSpec {
    /// A job of user 0 in the first queue with defaults for everything else: the cluster's policy, no share, no terms, killed with its node.
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

/// The stage of a job between submission and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits, for this reason. If it has a place, it is held there: it has started, but must not run.
    Waiting(Reason),
    /// It has a place and may run.
    Ready,
    /// Its processes are being killed; then it waits again.
    Clearing,
    /// Its processes are being killed, and then it is over.
    Ending(Reason),
}

/// A job's part on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The node.
    pub node: NodeId,
    /// CPUs at the same time.
    pub cpus: u32,
    /// Memory: the request, or the observed use if that is more.
    pub memory_bytes: u64,
    /// Disk space.
    pub disk_bytes: u64,
}

/// Cells of a gang on one node: a range of neighbouring CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The node.
    pub node: NodeId,
    /// CPUs of the node, by their numbers from 0.
    pub cpus: Span,
}

/// Where a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its nodes, ascending.
    pub parts: Vec<Part>,
    /// Its row and its cells in that row, ascending; only for a gang with slots that spans nodes.
    pub home: Option<(u32, Vec<Cells>)>,
}

/// The planner's record of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The owner's request, with the present class and policy.
    pub spec: JobSpec,
    /// Its position in its queue: jobs are served in ascending order.
    pub order: u64,
    /// Whether it is scheduled while it is ready.
    pub standing: Standing,
    /// The policy that auto has chosen for it.
    pub choice: Policy,
    /// Its present stage.
    pub stage: Stage,
    /// Where it runs; `None` while it has no place.
    pub place: Option<Place>,
    /// When it became ready; time limits count from here.
    pub ready_since: Time,
    /// For how long it has been suspended since then.
    pub suspended: Suspended,
}

/// The whole state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The operator's settings.
    pub config: Config,
    /// The generation of the present plan; each plan has the next number.
    pub generation: u64,
    /// The first slot in which the present plan is in force.
    pub from_slot: u64,
    /// The turn of the cycle in that slot.
    pub start: u32,
    /// When each row last had its turn, so that the row that has waited longest comes first in the next plan.
    pub row_turns: Vec<Time>,
    /// Jobs of the present plan that may run before the plan is in force.
    pub early: Vec<JobId>,
    /// The [`JobRecord::order`] of the next job.
    pub next_order: u64,
    /// The nodes that take part.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// Drained nodes that do not take part now: they still get no new jobs when they come back.
    pub drained_away: BTreeSet<NodeId>,
    /// Each user's past usage, while fair share is on.
    pub usage: BTreeMap<u32, Usage>,
    /// Nodes of the plan whose lease has expired, and since when: their jobs continue there, their gangs that span nodes have no slots,
    /// and they get no new jobs.
    pub silent: BTreeMap<NodeId, Time>,
    /// Parts of jobs on dead nodes, which the jobs get back if the node turns out to be alive.
    pub kept: BTreeMap<NodeId, BTreeMap<JobId, Part>>,
    /// Every job that has not ended.
    pub jobs: BTreeMap<JobId, JobRecord>,
}

/// Numbers, times in nanoseconds and sums of bytes in a state are below this, so that arithmetic on them does not overflow 64 bits.
pub const NUMBERS_END: u64 = 1 << 62;
/// The limit on the CPUs of all nodes together, on those of all parts of jobs, and on the threads of other programs.
const CPUS_MAX: u64 = 1 << 24;
/// The largest share.
const SHARE_MAX: u32 = 1000;

impl State {
    /// Whether all numbers are within the limits above, and not zero where they must not be, so that the planner can compute with them.
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
