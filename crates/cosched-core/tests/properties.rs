//! Invariants of the planner and the matrix after every input, whatever came before.

use cosched_core::{
    Class, Disposition, Job, JobId, Matrix, Node, NodeId, Packing, Plan, Planner, PlannerAction, PlannerConfig,
    PlannerInput, Policy, Reason, Shares, Sharing, SlotShare, Standing, Time, Turn,
};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Three numbers that are mapped to an input; small, so that jobs recur and shrinking is quick.
type Step = (u8, u64, u32);

/// Gang is more frequent than the others, otherwise the matrix would stay small.
const POLICIES: [Policy; 7] =
    [Policy::Gang, Policy::Local, Policy::Gang, Policy::Auto, Policy::Gang, Policy::Pb, Policy::Dcs];
const SHARINGS: [Sharing; 3] = [Sharing::Strict, Sharing::Paired, Sharing::Soft];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Half of all steps are arrivals, otherwise the matrix would stay empty.
    prop::collection::vec((prop_oneof![Just(0_u8), 0..16_u8], 0..16_u64, 0..48_u32), 1..40)
}

fn configs() -> impl Strategy<Value = PlannerConfig> {
    let nodes = prop::collection::vec(1..6_u32, 1..4);
    let shares = (1..20_u32, 0..9_u32, 1..5_u32, 0..3_u32);
    let choices = (0..POLICIES.len(), 0..SHARINGS.len(), any::<bool>());
    (nodes, shares, choices).prop_map(|(cpus, shares, (policy, sharing, best))| PlannerConfig {
        nodes: cpus.iter().zip(0..).map(|(cpus, id)| Node { id: NodeId(id), cpus: *cpus }).collect(),
        slot_length_ns: 100_000_000,
        policy: POLICIES[policy],
        sharing: SHARINGS[sharing],
        packing: if best { Packing::BestFit } else { Packing::FirstFit },
        shares: Shares { express: shares.0, interactive: shares.1, batch: shares.2, standby: shares.3 },
    })
}

fn input((kind, job, value): Step) -> PlannerInput {
    let (id, class) = (JobId(job), Class::ALL[value as usize % 4]);
    let named = POLICIES[value as usize % POLICIES.len()];
    let policy = (value % 5 > 0).then_some(named);
    match kind {
        // Some request a node, some too many CPUs or none, some a node that does not exist.
        0 => PlannerInput::Submit(Job {
            id,
            owner: 0,
            class,
            policy: policy.filter(|_| value > 40),
            cpus: value % 7,
            node: (value % 5 == 0).then_some(NodeId(value / 12)),
        }),
        1 | 2 => PlannerInput::End(id),
        3 => PlannerInput::Suspend(id),
        4 => PlannerInput::Resume(id),
        5 => PlannerInput::Asleep(id),
        6 => PlannerInput::Awake(id),
        7 => PlannerInput::Class(id, class),
        8 => PlannerInput::JobPolicy(id, policy),
        9 => PlannerInput::MachinePolicy(policy.unwrap_or(Policy::Gang)),
        10 => PlannerInput::MachineSharing(SHARINGS[value as usize % 3]),
        11 => PlannerInput::Choice(id, named, Reason::WaitsMuch),
        12 => PlannerInput::Cpus(id, value % 7),
        13 | 14 => PlannerInput::Share(id, SlotShare::new(value % 21 * 50)),
        _ => PlannerInput::SlotLength(u64::from(value) * 5_000_000),
    }
}

/// In the slot in which a plan takes effect, as many of the running gangs continue as in any turn of its cycle.
fn check_handover(before: &Plan, after: &Plan, now: Time) -> Result<(), TestCaseError> {
    let running = before.turn(before.slot_at(now)).map_or(&[][..], |turn| &turn.run);
    let go_on = |turn: &Turn| turn.run.iter().filter(|id| running.contains(id)).count();
    let most = after.turns.iter().map(go_on).max();
    prop_assert_eq!(after.turn(after.slot_at(now)).map(go_on), most, "{:?} ran, now {:?}", running, after.turns);
    Ok(())
}

/// A plan without the parts that may differ between two planners with the same decisions.
fn content(plan: &Plan) -> Plan {
    Plan { from_slot: 0, ..plan.clone() }
}

fn check(plan: &Plan, nodes: &[Node], shares: &Shares) -> Result<(), TestCaseError> {
    check_homes(plan)?;
    check_turns(plan, nodes)?;
    check_rows(plan, shares)?;
    check_shares(plan)?;
    check_dispositions(plan)
}

/// Every gang with slots has as many cells as CPUs, in one row, on one node; no other job has any.
fn check_homes(plan: &Plan) -> Result<(), TestCaseError> {
    let (columns, rows) = (plan.matrix.columns(), plan.matrix.rows());
    let mut cells = 0;
    for (id, job) in &plan.jobs {
        let gang = job.policy == Policy::Gang && job.standing == Standing::Scheduled;
        prop_assert_eq!(job.home.is_some(), gang, "job {}", id);
        prop_assert_eq!(job.turns > 0, gang, "job {}", id);
        let Some((row, own)) = &job.home else { continue };
        cells += own.len();
        prop_assert_eq!(own.len(), job.cpus as usize);
        prop_assert!(own.iter().all(|c| rows[*row as usize].cells()[*c as usize] == Some(*id)));
        prop_assert!(own.iter().all(|c| columns[*c as usize].node == columns[own[0] as usize].node));
    }
    let taken = rows.iter().flat_map(|r| r.cells()).filter(|cell| cell.is_some()).count();
    prop_assert_eq!(cells, taken, "every cell is of a gang's home");
    prop_assert!(rows.iter().all(|r| r.free() < columns.len()), "no row is empty");
    Ok(())
}

/// In a turn no column is used twice, and no node gives more CPUs than it has.
fn check_turns(plan: &Plan, nodes: &[Node]) -> Result<(), TestCaseError> {
    let mut owned: BTreeMap<JobId, u32> = BTreeMap::new();
    for turn in &plan.turns {
        prop_assert!(turn.run.is_sorted_by(|a, b| a < b), "{:?}", turn);
        let mut columns = BTreeSet::new();
        let mut used: BTreeMap<NodeId, u32> = BTreeMap::new();
        for id in &turn.run {
            *owned.entry(*id).or_default() += 1;
            let (row, own) = plan.jobs[id].home.as_ref().unwrap();
            *used.entry(plan.matrix.columns()[own[0] as usize].node).or_default() += plan.jobs[id].cpus;
            // A single-CPU guest has some free column; it does not matter which.
            if own.len() > 1 || *row == turn.row {
                prop_assert!(own.iter().all(|c| columns.insert(*c)), "a column twice in {:?}\n{}", turn, plan.matrix);
            }
        }
        let residents: BTreeSet<JobId> = plan.matrix.rows()[turn.row as usize].jobs().collect();
        let has_share = |id: &&JobId| plan.jobs[*id].slot_share.is_some();
        let mut must = residents.iter().filter(|id| !has_share(id));
        prop_assert!(must.all(|id| turn.run.contains(id)), "a resident does not run in {:?}", turn);
        for node in nodes {
            prop_assert!(used.get(&node.id).is_none_or(|cpus| *cpus <= node.cpus), "node {} in {turn:?}", node.id.0);
        }
    }
    for (id, job) in &plan.jobs {
        prop_assert_eq!(job.turns, owned.get(id).copied().unwrap_or(0), "job {}", id);
    }
    Ok(())
}

/// Rows have turns in proportion to their best gang's share, each within the bound stated in policy/gang.rs.
fn check_rows(plan: &Plan, shares: &Shares) -> Result<(), TestCaseError> {
    let share = |id: JobId| u64::from(shares.of(plan.jobs[&id].class));
    let weights: Vec<u64> = plan.matrix.rows().iter().map(|r| r.jobs().map(share).max().unwrap_or(0)).collect();
    let sum: u64 = weights.iter().sum();
    let cycle = plan.turns.len() as u64;
    for (row, weight) in weights.iter().enumerate() {
        let turns = plan.turns.iter().enumerate().filter(|(_, t)| t.row as usize == row).map(|(i, _)| i as u64);
        let mut at: Vec<u64> = turns.collect();
        prop_assert_eq!(at.len() as u64 * sum, weight * cycle, "row {} of\n{}", row, plan.matrix);
        at.push(at[0] + cycle);
        let widest = at.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        prop_assert!(widest <= 2 * sum.div_ceil(*weight), "row {} waits {} turns, weights {:?}", row, widest, weights);
    }
    Ok(())
}

/// Over a cycle no job has more than its share of the slots, nor two slots more in any part of it, and a job that is alone has all of it.
fn check_shares(plan: &Plan) -> Result<(), TestCaseError> {
    let cycle = plan.turns.len();
    for (id, share) in plan.jobs.iter().filter_map(|(id, job)| Some((*id, job.slot_share?.permille() as usize))) {
        let runs: Vec<usize> = plan.turns.iter().map(|turn| usize::from(turn.run.contains(&id))).collect();
        let all: usize = runs.iter().sum();
        prop_assert!(all * 1000 <= share * cycle, "job {}: {} of {} turns, {} ‰", id, all, cycle, share);
        for length in [1, 2, 3, 5, 10, 50].into_iter().filter(|length| *length <= cycle) {
            let most = runs.iter().chain(&runs).copied().collect::<Vec<_>>();
            let most = most.windows(length).map(|part| part.iter().sum::<usize>()).max().unwrap_or(0);
            prop_assert!(most * 1000 <= share * length + 2000, "job {}: {} of {} turns, {} ‰", id, most, length, share);
        }
        if plan.jobs.values().filter(|job| job.turns > 0).count() == 1 && all > 0 {
            prop_assert_eq!(all * 1000, share * cycle, "job {} is alone", id);
        }
    }
    Ok(())
}

fn check_dispositions(plan: &Plan) -> Result<(), TestCaseError> {
    for slot in 0..plan.turns.len().max(1) as u64 {
        for (id, disposition) in plan.dispositions(slot) {
            let owns = plan.turn(slot).is_some_and(|turn| turn.run.contains(&id));
            let job = &plan.jobs[&id];
            let expected = match (job.standing, job.policy, plan.sharing) {
                (Standing::Suspended, ..) => Disposition::Stop,
                (Standing::Asleep, ..) | (_, Policy::Local | Policy::Pb | Policy::Dcs, _) => Disposition::Run,
                (_, Policy::Auto, _) => return Err(TestCaseError::fail("auto is never in force")),
                _ if owns => Disposition::Run,
                _ if job.slot_share.is_some() => Disposition::Stop,
                (_, Policy::Gang, Sharing::Strict) => Disposition::Stop,
                (_, Policy::Gang, Sharing::Paired | Sharing::Soft) => Disposition::Background,
            };
            prop_assert_eq!(disposition, expected, "job {} in slot {}", id, slot);
        }
    }
    prop_assert!(plan.jobs.values().all(|job| (1..=10_000).contains(&job.weight)));
    Ok(())
}

/// The requests, modelled in the simplest way: the machine's policy, each job's own, and auto's choice.
#[derive(Default)]
struct Asked {
    machine: Option<Policy>,
    jobs: BTreeMap<JobId, (Option<Policy>, Policy)>,
    shares: BTreeSet<JobId>,
}

impl Asked {
    fn take(&mut self, input: PlannerInput) {
        match input {
            PlannerInput::Submit(job) => drop(self.jobs.insert(job.id, (job.policy, Policy::Gang))),
            PlannerInput::End(id) => {
                self.jobs.remove(&id);
                self.shares.remove(&id);
            }
            PlannerInput::Share(id, Some(_)) => drop(self.shares.insert(id)),
            PlannerInput::Share(id, None) => drop(self.shares.remove(&id)),
            PlannerInput::JobPolicy(id, policy) => drop(self.jobs.entry(id).and_modify(|job| job.0 = policy)),
            PlannerInput::Choice(id, policy, _) => {
                let policy = if policy == Policy::Auto { Policy::Gang } else { policy };
                self.jobs.entry(id).and_modify(|job| job.1 = policy);
            }
            PlannerInput::MachinePolicy(policy) => self.machine = Some(policy),
            _ => (),
        }
    }

    /// Every job has the policy that it or the machine requests; under auto the one that was chosen for it.
    fn check(&self, plan: &Plan, config: &PlannerConfig) -> Result<(), TestCaseError> {
        prop_assert!(plan.jobs.keys().eq(self.jobs.keys()));
        for (id, (own, choice)) in &self.jobs {
            let asked = own.or(self.machine).unwrap_or(config.policy);
            let auto = asked == Policy::Auto;
            let expected = match (self.shares.contains(id), auto) {
                (true, _) => Policy::Gang,
                (false, true) => *choice,
                (false, false) => asked,
            };
            prop_assert_eq!((plan.jobs[id].policy, plan.jobs[id].auto), (expected, auto), "job {}", id);
        }
        Ok(())
    }
}

fn publications(planner: &mut Planner) -> Vec<Arc<Plan>> {
    let publication = |action| match action {
        PlannerAction::Publish(plan, _) => plan,
        PlannerAction::Unsound(flaw) => panic!("{flaw}"),
    };
    std::iter::from_fn(|| planner.poll_action()).map(publication).collect()
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_plan_is_sound_after_every_input(config in configs(), steps in steps()) {
        let mut planner = Planner::new(config.clone());
        for (i, step) in steps.into_iter().enumerate() {
            let before = Arc::clone(planner.plan());
            let now = Time(i as u64 * 37_000_000);
            let accepted = planner.handle(now, input(step)).is_ok();
            let published = publications(&mut planner);
            let after = planner.plan();
            prop_assert!(published.len() <= 1);
            match published.first() {
                Some(plan) => {
                    prop_assert!(accepted && plan == after);
                    prop_assert_eq!(plan.generation, before.generation + 1);
                    prop_assert_ne!(content(plan), Plan { generation: plan.generation, ..content(&before) });
                    check_handover(&before, plan, now)?;
                }
                None => prop_assert!(Arc::ptr_eq(&before, after), "a refused or empty input changes nothing"),
            }
            check(after, &config.nodes, &config.shares)?;
        }
    }

    #[test]
    fn jobs_have_the_policy_that_was_asked_for_or_chosen(config in configs(), steps in steps()) {
        let mut planner = Planner::new(config.clone());
        let mut asked = Asked::default();
        for step in steps {
            let input = input(step);
            let before = Arc::clone(planner.plan());
            if planner.handle(Time(0), input).is_err() {
                continue;
            }
            asked.take(input);
            let after = planner.plan();
            asked.check(after, &config)?;
            if let PlannerInput::Choice(id, ..) = input {
                let same = before.jobs[&id].policy == after.jobs[&id].policy;
                prop_assert!(!same || Arc::ptr_eq(&before, after), "a choice that changes nothing moves nobody");
            }
            // A job that a user suspended stays suspended, whatever is chosen for it; a local job is never asleep.
            let standing = |plan: &Plan, id: &JobId| plan.jobs.get(id).map(|job| job.standing);
            for (id, job) in &after.jobs {
                let resumed = matches!(input, PlannerInput::Resume(other) if other == *id);
                let was = standing(&before, id) == Some(Standing::Suspended);
                prop_assert!(!was || resumed || job.standing == Standing::Suspended, "job {}", id);
                prop_assert!(!job.policy.is_local() || job.standing != Standing::Asleep, "job {}", id);
            }
        }
    }

    #[test]
    fn a_refused_input_leaves_no_trace(config in configs(), steps in steps()) {
        let (mut with, mut without) = (Planner::new(config.clone()), Planner::new(config));
        for step in steps {
            if with.handle(Time(0), input(step)).is_ok() {
                without.handle(Time(0), input(step)).unwrap();
            }
            prop_assert_eq!(with.plan(), without.plan());
        }
    }

    #[test]
    fn the_clock_decides_nothing_but_where_the_cycle_begins(config in configs(), steps in steps(), times in prop::collection::vec(any::<u64>(), 40)) {
        let (mut first, mut second) = (Planner::new(config.clone()), Planner::new(config));
        for (step, time) in steps.into_iter().zip(times) {
            prop_assert_eq!(first.handle(Time(0), input(step)), second.handle(Time(time), input(step)));
            let (mut one, other) = (content(first.plan()), content(second.plan()));
            let n = one.turns.len();
            let begin = (0..n).find(|k| (0..n).all(|i| one.turns[(i + k) % n] == other.turns[i]));
            one.turns.rotate_left(begin.unwrap_or(0));
            // Generations may differ where a cycle that changed and changed back begins elsewhere.
            one.generation = other.generation;
            prop_assert_eq!(one, other);
            if publications(&mut second).pop().is_some() {
                prop_assert_eq!(second.plan().from_slot, second.plan().slot_at(Time(time)), "a plan holds at once");
            }
        }
    }

    #[test]
    fn the_row_at_a_time_is_that_of_its_slot(config in configs(), steps in steps(), slot in 0..1_u64 << 35, part in 0.0..1.0_f64) {
        let mut planner = Planner::new(config);
        for step in steps {
            let _ = planner.handle(Time(0), input(step));
        }
        let plan = planner.plan();
        let within = plan.slot_start(slot) + (part * plan.slot_length_ns as f64) as u64;
        prop_assert_eq!(plan.slot_at(within), slot);
        let cycle = plan.turns.len() as u64;
        prop_assert_eq!(plan.row_at(within), (cycle > 0).then(|| plan.turns[(slot % cycle.max(1)) as usize].row));
    }

    #[test]
    fn unification_loses_nobody_and_needs_no_more_rows(
        cpus in prop::collection::vec(1..6_u32, 1..3),
        gangs in prop::collection::vec((1..6_u32, any::<bool>()), 1..40),
    ) {
        let nodes: Vec<Node> = cpus.iter().zip(0..).map(|(cpus, id)| Node { id: NodeId(id), cpus: *cpus }).collect();
        let mut matrix = Matrix::new(&nodes);
        let mut stay = Vec::new();
        for ((cpus, leaves), id) in gangs.into_iter().zip(0..) {
            if matrix.insert(JobId(id), cpus, None, Packing::FirstFit).is_some() {
                stay.push((JobId(id), cpus, leaves));
            }
        }
        stay.retain(|(id, _, leaves)| {
            if *leaves {
                matrix.remove(*id);
            }
            !leaves
        });
        let node = |m: &Matrix, id| m.home(id).map(|home| m.columns()[home.columns[0] as usize].node);
        let before = matrix.clone();
        matrix.unify();
        prop_assert!(matrix.rows().len() <= before.rows().len());
        for (id, cpus, _) in &stay {
            prop_assert_eq!(matrix.home(*id).map(|home| home.columns.len() as u32), Some(*cpus));
            prop_assert_eq!(node(&matrix, *id), node(&before, *id), "a gang does not leave its node");
        }
        let taken = |m: &Matrix| m.rows().iter().map(|r| r.cells().len() - r.free()).sum::<usize>();
        prop_assert_eq!(taken(&matrix), taken(&before));
        let counted = matrix.rows().iter().map(|r| r.cells().iter().filter(|c| c.is_some()).count()).sum::<usize>();
        prop_assert_eq!(taken(&matrix), counted);
        let mut again = matrix.clone();
        again.unify();
        prop_assert_eq!(again, matrix, "it is done");
    }
}
