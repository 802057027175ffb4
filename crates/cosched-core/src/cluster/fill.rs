//! A node's plan under the cluster's plan: its single-node jobs fill the free CPUs.
//!
//! Problem: "For programs which execute exclusively on one computer, scheduling decisions are made at the beginning of
//! each time-slice. These programs lack entries in the Ousterhout matrix, but make use of available entries based upon
//! current conditions. This permits the gang scheduler to rapidly respond to changes in the workload." (LLNL, "Gang
//! Scheduler Design".)
//! Rule. The node has its own planner for them, the same one that runs a single machine. In each turn of the cluster's
//! cycle the gangs that span nodes have their CPUs; the rest goes to the node's own gangs, whole gangs only, the one that was
//! served least for its share first. These may use any free CPUs, not certain ones: only the gangs that span nodes have places.
//! The cluster's plan provides for enough free CPUs, by open turns. On a node without a gang that spans nodes, the node's own
//! plan applies unchanged.
//! Units: turns.

use super::plan::{Plan as ClusterPlan, PlannedJob as ClusterJob};
use super::sound::check_filled;
use super::state::Stage;
use crate::class::Shares;
use crate::id::{JobId, NodeId};
use crate::job::Policy;
use crate::matrix::Matrix;
use crate::plan::{Plan, PlannedJob, Standing, Turn};
use crate::policy::local;
use crate::policy::share::{self, SlotShare};
use crate::sound::Flaw;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The node's plan. `own` is its own planner's plan for the single-node jobs alone, with the same slots.
///
/// Its generation is the sum of both, so that it rises whenever one of them does. A job that the cluster has placed on
/// this node alone is in `own` as soon as the host has submitted it there; this includes a job that has lost its other nodes.
/// Jobs that the cluster holds do not run, except for those in `released` (`adrift.rs`).
///
/// A plan that contradicts itself or the cluster's plan is replaced by one without slots, and the flaw is returned.
pub fn fill(
    cluster: &ClusterPlan,
    node: NodeId,
    own: &Plan,
    shares: &Shares,
    released: &BTreeSet<JobId>,
) -> (Plan, Option<Flaw>) {
    let mut plan = filled(cluster, node, own, shares, released);
    let flaw = check_filled(&plan, cluster, node).err();
    if flaw.is_some() {
        plan.drop_slots();
    }
    (plan, flaw)
}

fn filled(cluster: &ClusterPlan, node: NodeId, own: &Plan, shares: &Shares, released: &BTreeSet<JobId>) -> Plan {
    let mut plan = own.clone();
    plan.generation = cluster.generation + own.generation;
    let spanning: Vec<(JobId, &ClusterJob, u32)> = cluster
        .jobs
        .iter()
        .filter(|(id, job)| job.parts.len() > 1 && !own.jobs.contains_key(id))
        .filter_map(|(id, job)| Some((*id, job, cluster.part(*id, node)?.cpus)))
        .collect();
    let is_held = |id: &JobId| cluster.jobs.get(id).is_some_and(is_held) && !released.contains(id);
    hold(&mut plan, is_held);
    let is_placed = own.matrix.has_places();
    plan.jobs.extend(spanning.iter().map(|(id, job, cpus)| (*id, planned(job, *cpus, is_placed))));
    if spanning.iter().any(|(_, job, _)| job.home.is_some()) {
        // A sleeping gang has no open turns in the cluster's plan.
        lull(&mut plan, |id| cluster.jobs.get(id).is_some_and(|job| job.standing == Standing::Asleep));
        let filled = Filled::new(cluster, node, &plan, shares);
        (plan.matrix, plan.turns) = (filled.matrix(cluster, &mut plan), filled.turns);
        plan.slot_length_ns = cluster.slot_length_ns;
        plan.from_slot = cluster.from_slot.max(own.from_slot);
    } else {
        clear(&mut plan);
    }
    weigh(&mut plan, shares);
    plan
}

/// The plan of a node that follows no plan of the cluster: its own plan, without the jobs that are held (`adrift.rs`).
pub fn without(own: &Plan, held: &BTreeSet<JobId>, shares: &Shares) -> Plan {
    let mut plan = own.clone();
    if !held.is_empty() {
        hold(&mut plan, |id| held.contains(id));
        clear(&mut plan);
        weigh(&mut plan, shares);
    }
    plan
}

/// Marks these jobs as not running.
fn hold(plan: &mut Plan, is_held: impl Fn(&JobId) -> bool) {
    for (_, job) in plan.jobs.iter_mut().filter(|(id, _)| is_held(id)) {
        (job.standing, job.home, job.turns) = (Standing::Suspended, None, 0);
    }
}

/// Marks these gangs as asleep.
fn lull(plan: &mut Plan, sleeps: impl Fn(&JobId) -> bool) {
    for (_, job) in plan.jobs.iter_mut().filter(|(id, job)| job.home.is_some() && sleeps(id)) {
        (job.standing, job.home, job.turns) = (Standing::Asleep, None, 0);
    }
}

/// Removes the suspended jobs from all turns.
fn clear(plan: &mut Plan) {
    let held: Vec<JobId> =
        plan.jobs.iter().filter(|(_, job)| job.standing == Standing::Suspended).map(|(id, _)| *id).collect();
    plan.turns.iter_mut().for_each(|turn| turn.run.retain(|id| !held.contains(id)));
    held.iter().for_each(|id| plan.matrix.remove(*id));
}

/// Whether a job has started and must not run.
fn is_held(job: &ClusterJob) -> bool {
    matches!(job.stage, Stage::Waiting(_))
}

/// A job that spans nodes, as a node sees it before it has turns.
fn planned(job: &ClusterJob, cpus: u32, is_placed: bool) -> PlannedJob {
    let standing = match job.stage {
        Stage::Waiting(_) => Standing::Suspended,
        // Processes that are to end must be able to run.
        Stage::Clearing | Stage::Ending(_) => Standing::Asleep,
        Stage::Ready => job.standing,
    };
    let ClusterJob { class, auto, weight, slot_share, .. } = *job;
    // A gang without cells, because one of its nodes is silent, is left to the operating system.
    let left = standing == Standing::Scheduled && job.home.is_none() && job.policy == Policy::Gang;
    let policy = if left { Policy::Local } else { job.policy };
    PlannedJob {
        class,
        policy,
        auto,
        cpus,
        standing,
        slot_share,
        weight,
        home: None,
        alone_on: None,
        is_placed,
        turns: 0,
    }
}

/// Sets the weights of the node's jobs against each other; the node's own plan has them already.
fn weigh(plan: &mut Plan, shares: &Shares) {
    let cycle = plan.turns.len().max(1) as u32;
    let part = |job: &PlannedJob| local::Part {
        share: shares.of(job.class),
        cpus: job.cpus,
        turns: if job.turns > 0 { (job.turns, cycle) } else { (1, 1) },
    };
    let weights = local::weights(&plan.jobs.values().map(part).collect::<Vec<_>>());
    plan.jobs.values_mut().zip(weights).for_each(|(job, weight)| job.weight = weight);
}

/// The maximum number of repetitions of the cycle, so that the node's own gangs take turns on the free CPUs; exceeded only
/// where a gang would otherwise have no turn.
const REPEATS_MAX: usize = 8;

/// The number of turns at which repetition stops.
const TURNS_MAX: usize = 4096;

struct Filled {
    node: NodeId,
    turns: Vec<Turn>,
    own: Vec<JobId>,
}

impl Filled {
    fn new(cluster: &ClusterPlan, node: NodeId, plan: &Plan, shares: &Shares) -> Filled {
        let own: Vec<JobId> = plan.jobs.iter().filter(|(_, job)| job.home.is_some()).map(|(id, _)| *id).collect();
        let has = cluster.layout.index_of(node).map_or(0, |at| cluster.layout.nodes()[at].span.count);
        let shares_of = |id: &JobId| Some((*id, plan.jobs[id].slot_share?));
        let slot_shares: BTreeMap<JobId, SlotShare> = own.iter().filter_map(shares_of).collect();
        let mut served: BTreeMap<JobId, u64> = own.iter().map(|id| (*id, 0)).collect();
        let (cycle, length) = (cluster.turns.len() as u64, cluster.length());
        // Slot k has turn k modulo the length; the cluster counts from the slot in which its plan takes effect.
        let begin = (length - cluster.from_slot % length) + cluster.begin();
        let mut run = |slot: usize, may: &dyn Fn(JobId) -> bool| {
            if slot == 0 {
                // Also after the pass by which shares are earned: in the turns that are kept, all gangs start from zero.
                served.values_mut().for_each(|served| *served = 0);
            }
            let k = (slot as u64 + begin) % length;
            let run = cluster.run_of(k).iter().copied();
            let mut run: Vec<JobId> = run.filter(|id| cluster.part(*id, node).is_some()).collect();
            let mut free = has.saturating_sub(run.iter().map(|id| plan.jobs[id].cpus).sum::<u32>());
            let mut queue: Vec<JobId> = own.iter().copied().filter(|id| may(*id)).collect();
            queue.sort_by_key(|id| (served[id] * 65_536 / u64::from(shares.of(plan.jobs[id].class)), *id));
            for id in queue {
                let cpus = plan.jobs[&id].cpus;
                if cpus <= free {
                    free -= cpus;
                    run.push(id);
                    served.entry(id).and_modify(|served| *served += 1);
                }
            }
            run.sort_unstable();
            run
        };
        let length = length as usize;
        let often = own.len().clamp(1, REPEATS_MAX).min((TURNS_MAX / length).max(1));
        let mut repeat = |often: usize| match slot_shares.is_empty() {
            true => (0..often * length).map(|slot| run(slot, &|_| true)).collect(),
            false => {
                let often = often * share::repeats(often * length, slot_shares.values().copied());
                share::pace(&slot_shares, often * length, &mut run)
            }
        };
        // Each repetition serves a gang that was not served before, if any repetition serves one.
        let (mut often, mut runs): (usize, Vec<Vec<JobId>>) = (often, repeat(often));
        let is_served = |runs: &[Vec<JobId>], id: &JobId| runs.iter().any(|run| run.binary_search(id).is_ok());
        while often < own.len() && !own.iter().all(|id| is_served(&runs, id)) {
            often = (2 * often).min(own.len());
            runs = repeat(often);
        }
        let row = |slot: usize| cluster.turns[((slot as u64 + begin) % cycle) as usize].row;
        let turns = runs.into_iter().enumerate().map(|(slot, run)| Turn { row: row(slot), run }).collect();
        Filled { node, turns, own }
    }

    /// The node's part of the cluster's matrix, with the node's own gangs where there is room. Writes the homes and turns of all
    /// jobs to the plan.
    fn matrix(&self, cluster: &ClusterPlan, plan: &mut Plan) -> Matrix {
        let laid = cluster.layout.nodes()[cluster.layout.index_of(self.node).unwrap_or(0)];
        let mut matrix = Matrix::new(&[crate::job::Node { id: self.node, cpus: laid.span.count }]);
        matrix.add_rows(cluster.rows.len());
        let mut turns: BTreeMap<JobId, u32> = BTreeMap::new();
        self.turns.iter().flat_map(|turn| &turn.run).for_each(|id| *turns.entry(*id).or_default() += 1);
        for (id, job) in &mut plan.jobs {
            job.turns = turns.get(id).copied().unwrap_or(0);
            let Some((row, spans)) = cluster.jobs.get(id).and_then(|job| job.home.as_ref()) else { continue };
            let here = |column: &u32| (laid.span.first..laid.span.end()).contains(column);
            let columns = spans.iter().flat_map(|span| span.first..span.end()).filter(here);
            let columns: Vec<u32> = columns.map(|column| column - laid.span.first).collect();
            matrix.put(*row as usize, &columns, *id);
            job.home = Some((*row, columns));
        }
        for id in &self.own {
            let Some(job) = plan.jobs.get_mut(id) else { continue };
            let place = matrix.insert(*id, job.cpus, None, crate::job::Packing::FirstFit);
            job.home = place.map(|place| (place.row as u32, place.columns));
            // It runs in other turns than its row's, on any free CPUs.
            (job.is_placed, job.alone_on) = (false, None);
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Input, JobSpec, NodeWant, Want, two_nodes};
    use crate::{Class, Job, Node, Packing, PlannerConfig, PlannerInput, Reason, Sharing, Time};
    use alloc::sync::Arc;
    use alloc::vec;

    const HERE: NodeId = NodeId(0);

    /// Two nodes of four CPUs, and job 1 with two CPUs on each.
    fn cluster() -> ClusterPlan {
        let mut planner = two_nodes(4);
        let want = |node| NodeWant { node, cpus: 2, cpus_min: 2, memory_bytes: 0, disk_bytes: 0 };
        let want = Want::PerNode([0, 1].map(NodeId).map(want).to_vec());
        let spec = JobSpec::new(JobId(1), Class::Batch, want);
        planner.handle(Time(0), Time(0), Input::Submit(spec)).unwrap();
        ClusterPlan::clone(planner.plan())
    }

    /// The plan of the node's own gangs, numbered from 2, with these numbers of CPUs.
    fn own(cpus: &[u32]) -> Plan {
        own_by(planner(), cpus)
    }

    fn planner() -> crate::Planner {
        crate::Planner::new(PlannerConfig {
            nodes: vec![Node { id: HERE, cpus: 4 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        })
    }

    fn own_by(mut planner: crate::Planner, cpus: &[u32]) -> Plan {
        for (id, cpus) in (2..).zip(cpus) {
            let (class, policy, node) = (Class::Batch, Some(Policy::Gang), Some(HERE));
            let job = Job { id: JobId(id), owner: 0, class, policy, cpus: *cpus, node };
            planner.handle(Time(0), PlannerInput::Submit(job)).unwrap();
        }
        Plan::clone(planner.plan())
    }

    fn turns_of(plan: &Plan, id: u64) -> usize {
        plan.turns.iter().filter(|turn| turn.run.contains(&JobId(id))).count()
    }

    #[test]
    fn what_a_gang_of_the_cluster_leaves_goes_to_the_nodes_own_in_turn() {
        let (plan, flaw) = fill(&cluster(), HERE, &own(&[2, 2]), &Shares::default(), &BTreeSet::new());
        assert_eq!(flaw, None);
        assert_eq!(turns_of(&plan, 1), cluster().turns.len() * plan.turns.len() / cluster().turns.len());
        assert!(plan.turns.iter().all(|turn| turn.run.len() == 2), "two CPUs are left: {:?}", plan.turns);
        assert_eq!(turns_of(&plan, 2), turns_of(&plan, 3), "none is always the first: {:?}", plan.turns);
    }

    #[test]
    fn beside_gangs_that_span_nodes_only_these_have_places() {
        let own = own_by(planner().with_places(Arc::new(crate::Topology::flat(4))), &[2, 1]);
        assert_eq!([2, 3].map(|id| own.place(JobId(id)).map(<[u32]>::len)), [Some(2), Some(1)]);
        let (plan, flaw) = fill(&cluster(), HERE, &own, &Shares::default(), &BTreeSet::new());
        assert_eq!(flaw, None);
        assert_eq!([1, 2, 3].map(|id| plan.place(JobId(id)).map(<[u32]>::len)), [Some(2), None, None]);
    }

    #[test]
    fn a_gang_that_does_not_fit_beside_the_clusters_has_no_slots_there() {
        let (plan, flaw) = fill(&cluster(), HERE, &own(&[3, 1]), &Shares::default(), &BTreeSet::new());
        assert_eq!(flaw, None);
        let mut used = plan.turns.iter().map(|turn| turn.run.iter().map(|id| plan.jobs[id].cpus).sum::<u32>());
        assert!(used.all(|cpus| cpus <= 4), "{:?}", plan.turns);
        assert_eq!((turns_of(&plan, 2), turns_of(&plan, 3)), (0, plan.turns.len()));
    }

    /// A job that waits for memory that others use has started, and must not run.
    #[test]
    fn a_job_that_is_held_does_not_run_unless_it_was_released() {
        let mut cluster = cluster();
        let mut held = cluster.jobs[&JobId(1)].clone();
        (held.stage, held.home, held.turns_16) = (Stage::Waiting(Reason::WaitsForMemory), None, 0);
        held.parts = Arc::from([held.parts[0]]);
        cluster.jobs.insert(JobId(2), held);
        let none = BTreeSet::new();
        let runs = |plan: &Plan| (plan.jobs[&JobId(2)].standing, turns_of(plan, 2) > 0);
        let (plan, flaw) = fill(&cluster, HERE, &own(&[2]), &Shares::default(), &none);
        assert_eq!((runs(&plan), flaw), ((Standing::Suspended, false), None));
        let (plan, _) = fill(&cluster, HERE, &own(&[2]), &Shares::default(), &[JobId(2)].into());
        assert_eq!(runs(&plan), (Standing::Scheduled, true));
        assert_eq!(runs(&without(&own(&[2]), &[JobId(2)].into(), &Shares::default())), (Standing::Suspended, false));
        assert_eq!(runs(&without(&own(&[2]), &none, &Shares::default())), (Standing::Scheduled, true));
    }

    #[test]
    fn what_is_to_end_is_able_to() {
        let mut cluster = cluster();
        let job = cluster.jobs.get_mut(&JobId(1)).unwrap();
        (job.stage, job.home, job.turns_16) = (Stage::Ending(Reason::UserRequest), None, 0);
        let (plan, _) = fill(&cluster, HERE, &own(&[]), &Shares::default(), &BTreeSet::new());
        assert_eq!(plan.otherwise(JobId(1)), crate::Disposition::Run);
        assert_eq!(plan.turns.len(), 0);
    }
}
