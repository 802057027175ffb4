//! Invariants of the planner of a cluster after every input, whatever came before.

use cosched_core::cluster::{
    Action, Capacity, Config, Input, JobRecord, JobSpec, LINEUPS_MAX, NodeWant, OnNodeLoss, Packing, Period, Plan,
    Planner, Queue, Stage, State, Want, fill,
};
use cosched_core::{
    Class, Job, JobId, Node, NodeId, Plan as NodePlan, Planner as NodePlanner, PlannerConfig, PlannerInput, Policy,
    Shares, Sharing, SlotShare, Standing, Time,
};
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use std::collections::{BTreeMap, BTreeSet};

/// Four numbers that are mapped to an input; small, so that jobs and nodes recur.
type Step = (u8, u64, u32, u32);

const SLOT_NS: u64 = 100_000_000;
const POLICIES: [Policy; 6] = [Policy::Gang, Policy::Local, Policy::Gang, Policy::Auto, Policy::Gang, Policy::Dcs];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Half of all steps are arrivals, otherwise the cluster would stay empty.
    prop::collection::vec((prop_oneof![Just(0_u8), 0..36_u8], 0..14_u64, 0..60_u32, 0..60_u32), 1..45)
}

fn capacity(cpus: u32) -> Capacity {
    Capacity { cpus, memory_bytes: 10 * u64::from(cpus), disk_bytes: 100 }
}

fn states() -> impl Strategy<Value = State> {
    let packing = prop_oneof![Just(Packing::FirstFit), Just(Packing::BestFit), Just(Packing::Buddy)];
    let ceiling = prop_oneof![Just(1000), 300..1000_u32];
    (packing, 1..6_u32, ceiling, 1..20_u32).prop_map(|(packing, rows_max, ceiling_permille, express)| {
        let name = |name: &str| name.to_owned();
        let limited = Queue {
            name: name("limited"),
            memory_bytes_max: Some(90),
            time_ns_max: Some(30 * SLOT_NS),
            ..Queue::default()
        };
        let alone = Queue { name: name("alone"), exclusive: true, ..Queue::default() };
        let working = Shares { express, ..Shares::default() };
        let queues = vec![Queue::default(), alone, limited];
        State {
            config: Config { packing, rows_max, ceiling_permille, working, queues, ..Config::default() },
            ..State::default()
        }
    })
}

fn want(a: u32, b: u32) -> Want {
    let want = |k: u32| NodeWant {
        node: NodeId((a + k * (1 + b % 2)) % 6),
        cpus: 1 + (a + k) % 4,
        cpus_min: 1 + (a + k) % 3,
        memory_bytes: u64::from(b % 25),
        disk_bytes: u64::from(a % 70),
    };
    match b % 3 {
        0 => Want::PerNode((0..1 + a % 4).map(want).collect()),
        _ => Want::Total { cpus: a % 14, memory_per_cpu_bytes: u64::from(b % 13), disk_bytes: 3 },
    }
}

/// The queues in another order and with other limits; sometimes one is left out.
fn queues(a: u32, b: u32) -> Vec<Queue> {
    let queue = |name: &str| Queue {
        name: name.to_owned(),
        exclusive: name == "alone",
        memory_bytes_max: (name == "limited").then_some(u64::from(b)),
        time_ns_max: (name == "limited").then_some(30 * SLOT_NS),
        ..Queue::default()
    };
    let names = ["", "alone", "limited"];
    (0..if b.is_multiple_of(5) { 2 } else { 3 }).map(|k| queue(names[((a + k) % 3) as usize])).collect()
}

fn input((kind, job, a, b): Step) -> Input {
    let (id, node) = (JobId(job), NodeId(a % 6));
    let class = Class::ALL[b as usize % 4];
    match kind {
        0 | 1 => {
            let want = want(a, b);
            let queue = if b % 4 == 0 { a % 4 } else { 0 };
            let on_node_loss = [OnNodeLoss::Kill, OnNodeLoss::Keep, OnNodeLoss::Requeue][a as usize % 3];
            let policy = (b % 7 == 0).then_some(POLICIES[a as usize % POLICIES.len()]);
            Input::Submit(JobSpec { policy, queue, on_node_loss, ..JobSpec::new(id, class, want) })
        }
        2..=4 => Input::End(id),
        5 | 6 => Input::Join(node, capacity(1 + b % 5)),
        7 => Input::Leave(node),
        8 => Input::Drain(node, b % 2 == 0),
        9 => Input::Load(node, b % 9),
        10 | 11 => Input::Rebalance,
        12 => Input::Suspend(id),
        13 => Input::Resume(id),
        14 => Input::Class(id, class),
        15 => Input::JobPolicy(id, Some(POLICIES[a as usize % POLICIES.len()])),
        16 => Input::Asleep(id),
        17 => Input::Awake(id),
        18 => Input::Memory(id, node, u64::from(b)),
        19 => Input::Period(if b % 2 == 0 { Period::Off } else { Period::Working }),
        20 => Input::Cleared(id),
        22 => Input::Kill(id),
        23 | 24 => Input::Resources(id, want(a, b)),
        25 => Input::RowsMax(b % 7),
        26 => Input::Packing([Packing::FirstFit, Packing::BestFit, Packing::Buddy][b as usize % 3]),
        27 => Input::Queues(queues(a, b)),
        28 => Input::Silent(node),
        29 => Input::Heard(node),
        30 => Input::Resize(node, capacity(1 + b % 5)),
        31 => Input::LosePart(id, node),
        32 => Input::Restarted(node),
        33 | 34 => Input::Share(id, SlotShare::new((a + b) % 11 * 100)),
        _ if b % 5 == 0 => Input::SlotLength(u64::from(a + 8) * 5_000_000),
        _ => Input::Ceiling(a * 20),
    }
}

fn cluster(state: State) -> Planner {
    let mut planner = Planner::new(state).unwrap();
    for (id, cpus) in [4, 4, 2, 5].into_iter().enumerate() {
        planner.handle(Time(0), Time(0), Input::Join(NodeId(id as u32), capacity(cpus))).unwrap();
    }
    planner
}

fn actions(planner: &mut Planner) -> Vec<Action> {
    std::iter::from_fn(|| planner.poll_action()).collect()
}

fn is_gang_with_cells(job: &cosched_core::cluster::PlannedJob, state: &State) -> bool {
    job.parts.iter().all(|part| !state.silent.contains_key(&part.node))
        && job.stage == Stage::Ready
        && job.standing == Standing::Scheduled
        && job.policy == Policy::Gang
        && job.parts.len() > 1
}

/// A gang has as many cells as CPUs on each of its nodes, all in one row; no other job has any, and no two have the same.
fn check_homes(plan: &Plan, state: &State) -> Result<(), TestCaseError> {
    let mut owner: BTreeMap<(u32, u32), JobId> = BTreeMap::new();
    for (id, job) in &plan.jobs {
        prop_assert_eq!(job.home.is_some(), is_gang_with_cells(job, state), "job {}: {:?}", id, job);
        let Some((row, spans)) = &job.home else { continue };
        let cpus: Vec<(NodeId, u32)> =
            plan.layout.cpus_of(spans).iter().map(|(at, cpus)| (plan.layout.nodes()[*at as usize].id, *cpus)).collect();
        let wanted: Vec<(NodeId, u32)> = job.parts.iter().map(|part| (part.node, part.cpus)).collect();
        prop_assert_eq!(cpus, wanted, "job {}", id);
        for column in spans.iter().flat_map(|span| span.first..span.end()) {
            prop_assert_eq!(owner.insert((*row, column), *id), None, "two in row {} column {}", row, column);
        }
        prop_assert!(plan.rows[*row as usize].residents.contains(id));
    }
    let lived_in: Vec<bool> = plan.rows.iter().map(|row| !row.residents.is_empty()).collect();
    let (open, rows) = lived_in.split_last().unwrap();
    prop_assert!(!open && rows.iter().all(|lived_in| *lived_in), "no row is empty but that of open turns");
    Ok(())
}

/// In no slot do two gangs have the same CPU; the plan's shares agree with its slots; every row has its turn.
fn check_slots(plan: &Plan) -> Result<(), TestCaseError> {
    let length = plan.length();
    let mut owned: BTreeMap<JobId, u64> = BTreeMap::new();
    for slot in plan.from_slot..plan.from_slot + length {
        let run = plan.run(slot);
        prop_assert!(run.is_sorted_by(|a, b| a < b));
        let mut used = BTreeSet::new();
        for id in run {
            *owned.entry(*id).or_default() += 1;
            let (_, spans) = plan.jobs[id].home.as_ref().unwrap();
            for column in spans.iter().flat_map(|span| span.first..span.end()) {
                prop_assert!(used.insert(column), "column {} twice in slot {}", column, slot);
            }
        }
        prop_assert_eq!(run, plan.run(slot + length), "it repeats");
    }
    for (id, job) in &plan.jobs {
        let part = owned.get(id).copied().unwrap_or(0) * u64::from(LINEUPS_MAX);
        let turns = |slots: u64| slots * plan.turns.len() as u64 / length.max(1);
        prop_assert!(u64::from(job.turns_16) == turns(part).max(part.min(1)), "job {}", id);
        if let Some(share) = job.slot_share {
            let slots = owned.get(id).copied().unwrap_or(0);
            prop_assert!(slots * 1000 <= length * u64::from(share.permille()), "job {}: {} slots", id, slots);
        }
        prop_assert_eq!(job.turns_16 > 0, job.home.is_some(), "nobody starves: job {}", id);
    }
    Ok(())
}

/// The gangs of a node have no more of it than the ceiling, unless the longest cycle is too short for that.
fn check_ceiling(planner: &Planner) -> Result<(), TestCaseError> {
    let (plan, permille) = (planner.plan(), u64::from(planner.state().config.ceiling_permille));
    let cycle = plan.turns.len() as u64 * u64::from(LINEUPS_MAX);
    if plan.turns.len() >= 512 {
        return Ok(());
    }
    for laid in plan.layout.nodes() {
        let of = |(id, job): (&JobId, &cosched_core::cluster::PlannedJob)| {
            plan.part(*id, laid.id).map_or(0, |part| u64::from(part.cpus) * u64::from(job.turns_16))
        };
        let used: u64 = plan.jobs.iter().map(of).sum();
        let has = u64::from(laid.span.count) * cycle;
        prop_assert!(used * 1000 <= has * permille, "node {}: {} of {}, {} ‰", laid.id.0, used, has, permille);
    }
    Ok(())
}

/// Ready jobs never need more memory than a node has, unless there is only one; no job is on a node where it must not be.
fn check_nodes(state: &State) -> Result<(), TestCaseError> {
    for (id, node) in &state.nodes {
        let part = |job: &JobRecord| {
            let parts = job.place.as_ref().map(|place| &place.parts[..]).unwrap_or_default();
            parts.iter().find(|part| part.node == *id).copied()
        };
        let here: Vec<(&JobRecord, _)> =
            state.jobs.values().filter_map(|job| part(job).map(|part| (job, part))).collect();
        // A held job that is to end must run to handle the signal, and a job that requests no memory takes none from others.
        let ready = here.iter().filter(|(job, part)| job.stage == Stage::Ready && part.memory_bytes > 0);
        let memory: u64 = ready.clone().map(|(_, part)| part.memory_bytes).sum();
        prop_assert!(memory <= node.capacity.memory_bytes || ready.count() == 1, "node {}: {:?}", id.0, here);
        prop_assert!(here.iter().map(|(_, part)| part.disk_bytes).sum::<u64>() <= node.capacity.disk_bytes);
        prop_assert!(here.iter().all(|(_, part)| part.cpus <= node.capacity.cpus));
        let exclusive = here.iter().any(|(job, _)| state.config.queues[job.spec.queue as usize].exclusive);
        prop_assert!(!exclusive || here.len() == 1, "a node for one alone: {:?}", here);
    }
    for job in state.jobs.values() {
        let parts = job.place.iter().flat_map(|place| &place.parts);
        prop_assert!(parts.clone().all(|part| state.nodes.contains_key(&part.node)));
        prop_assert!(parts.map(|part| part.node).is_sorted_by(|a, b| a < b));
        prop_assert!(
            job.place.is_some() || matches!(job.stage, Stage::Waiting(_) | Stage::Clearing | Stage::Ending(_))
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(Cases { cases: 512, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn a_plan_is_sound_after_every_input(state in states(), steps in steps()) {
        let mut planner = cluster(state);
        for (i, step) in steps.into_iter().enumerate() {
            let before = planner.plan().clone();
            let (now, rows_max) = (Time(i as u64 * 37_000_000), planner.state().config.rows_max);
            actions(&mut planner);
            let input = input(step);
            let comes_back = !matches!(input, Input::Submit(_) | Input::End(_) | Input::Rebalance | Input::Resources(..));
            let accepted = planner.handle(now, Time(now.0 + 500_000_000), input).is_ok();
            planner.handle_timeout(now, Time(now.0 + 500_000_000));
            let done = actions(&mut planner);
            prop_assert!(accepted || done.iter().all(|a| !matches!(a, Action::Start(_))));
            let after = planner.plan();
            prop_assert!(after.generation >= before.generation);
            if after.generation > before.generation {
                prop_assert!(after.holds_from() >= before.holds_from(), "plans follow each other");
                prop_assert!(after.holds_from() >= Time(now.0 + 500_000_000));
            } else {
                prop_assert_eq!(after, &before);
            }
            // Gangs that return to their nodes get a row in any case; new ones wait if they would need one row too many.
            let rows = (after.rows.len() as u32 - 1, (before.rows.len() as u32).saturating_sub(1));
            prop_assert!(comes_back || rows.0 <= rows.1.max(rows_max), "{:?} rows, at most {}", rows, rows_max);
            prop_assert_eq!(after.check(), Ok(()));
            prop_assert!(done.iter().all(|action| !matches!(action, Action::Unsound(_))), "{:?}", done);
            check_homes(after, planner.state())?;
            check_slots(after)?;
            check_ceiling(&planner)?;
            check_nodes(planner.state())?;
        }
    }

    #[test]
    fn whoever_reads_the_state_plans_the_same(state in states(), steps in steps()) {
        let mut planner = cluster(state);
        for (i, step) in steps.into_iter().enumerate() {
            let now = Time(i as u64 * 37_000_000);
            let mut other = Planner::new(planner.state().clone()).unwrap();
            prop_assert_eq!(other.plan(), planner.plan());
            actions(&mut planner);
            let input = input(step);
            let holds_from = Time(now.0 + 300_000_000);
            prop_assert_eq!(other.handle(now, holds_from, input.clone()), planner.handle(now, holds_from, input));
            other.handle_timeout(now, holds_from);
            planner.handle_timeout(now, holds_from);
            prop_assert_eq!(actions(&mut other), actions(&mut planner));
            prop_assert_eq!(other.state(), planner.state());
        }
    }

    #[test]
    fn a_refused_input_leaves_no_trace(state in states(), steps in steps()) {
        let mut planner = cluster(state);
        for step in steps {
            let before = planner.state().clone();
            if planner.handle(Time(0), Time(0), input(step)).is_err() {
                prop_assert_eq!(planner.state(), &before);
            }
        }
    }

    #[test]
    fn a_waiting_job_starts_once_all_others_are_gone(state in states(), steps in steps()) {
        let mut planner = cluster(state);
        for step in steps {
            let _ = planner.handle(Time(0), Time(0), input(step));
        }
        for id in 0..6 {
            let _ = planner.handle(Time(0), Time(0), Input::Leave(NodeId(id)));
            planner.handle(Time(0), Time(0), Input::Join(NodeId(id), capacity(6))).unwrap();
            planner.handle(Time(0), Time(0), Input::Drain(NodeId(id), false)).unwrap();
        }
        let waiting = |planner: &Planner| {
            let waits = |(id, job): (&JobId, &JobRecord)| matches!(job.stage, Stage::Waiting(_)).then_some(*id);
            planner.state().jobs.iter().filter_map(waits).collect::<Vec<_>>()
        };
        for _ in 0..40 {
            let rest = waiting(&planner);
            let done: Vec<JobId> = planner.state().jobs.keys().filter(|id| !rest.contains(id)).copied().collect();
            prop_assert!(rest.is_empty() || !done.is_empty(), "nobody runs and somebody waits: {:?}", planner.state());
            for id in done {
                let input = match planner.state().jobs[&id].stage {
                    Stage::Clearing => Input::Cleared(id),
                    _ => Input::End(id),
                };
                planner.handle(Time(0), Time(0), input).unwrap();
            }
        }
        prop_assert!(planner.state().jobs.is_empty());
        prop_assert!(planner.plan().turns.is_empty());
    }

    #[test]
    fn a_node_fills_what_is_free(state in states(), steps in steps(), local in prop::collection::vec((1..5_u32, 0..4_usize), 0..5)) {
        let (mut planner, node) = (cluster(state), NodeId(0));
        for (id, (cpus, class)) in (100..).zip(&local) {
            planner.handle(Time(0), Time(0), Input::Submit(of_node(node, id, *cpus, Class::ALL[*class]))).unwrap();
        }
        for step in steps {
            // The node stays unchanged, and with it the slots.
            let input = match input(step) {
                Input::Leave(NodeId(0)) | Input::Restarted(NodeId(0)) | Input::Resize(NodeId(0), _) => continue,
                Input::SlotLength(_) | Input::Period(_) => continue,
                input => input,
            };
            let _ = planner.handle(Time(0), Time(0), input);
            check_filled(planner.plan(), own_planner(planner.plan(), node).plan(), node)?;
        }
    }
}

/// A job of one node that needs neither memory nor disk space.
fn of_node(node: NodeId, id: u64, cpus: u32, class: Class) -> JobSpec {
    let want = Want::PerNode(vec![NodeWant { node, cpus, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 }]);
    JobSpec::new(JobId(id), class, want)
}

/// The planner of one node, with the jobs that are its own submitted as a host would do it.
fn own_planner(cluster: &Plan, node: NodeId) -> NodePlanner {
    let mut own = NodePlanner::new(PlannerConfig {
        nodes: vec![Node { id: node, cpus: 4 }],
        slot_length_ns: SLOT_NS,
        policy: Policy::Gang,
        sharing: Sharing::Soft,
        packing: cosched_core::Packing::FirstFit,
        shares: Shares::default(),
    });
    for (id, job) in cluster.jobs.iter().filter(|(_, job)| job.parts.len() == 1 && job.parts[0].node == node) {
        let cpus = job.parts[0].cpus;
        let told = Job { id: *id, owner: 0, class: job.class, policy: Some(job.policy), cpus, node: None };
        own.handle(Time(0), PlannerInput::Submit(told)).unwrap();
        own.handle(Time(0), PlannerInput::Share(*id, job.slot_share)).unwrap();
        match job.standing {
            Standing::Suspended => own.handle(Time(0), PlannerInput::Suspend(*id)).unwrap(),
            Standing::Asleep => own.handle(Time(0), PlannerInput::Asleep(*id)).unwrap(),
            Standing::Scheduled => (),
        }
    }
    own
}

/// The node's plan gives every CPU once, gangs that span nodes have what the cluster's plan gives them, and no job starves.
fn check_filled(cluster: &Plan, own: &NodePlan, node: NodeId) -> Result<(), TestCaseError> {
    let (plan, flaw) = fill(cluster, node, own, &Shares::default(), &BTreeSet::new());
    prop_assert_eq!(flaw, None);
    let spans = |id: &JobId| cluster.jobs.get(id).is_some_and(|job| job.home.is_some());
    let spanning = cluster.jobs.keys().any(|id| spans(id) && cluster.part(*id, node).is_some());
    if !spanning && own.jobs.keys().all(|id| cluster.jobs[id].stage == Stage::Ready) {
        prop_assert_eq!(&plan.turns, &own.turns, "the node's own plan holds");
    }
    for slot in cluster.from_slot..cluster.from_slot + plan.turns.len() as u64 {
        let Some(turn) = plan.turn(slot) else { continue };
        let cpus: u32 = turn.run.iter().map(|id| plan.jobs[id].cpus).sum();
        prop_assert!(cpus <= 4, "slot {}: {:?}", slot, turn);
        if spanning {
            let here = |id: &&JobId| cluster.part(**id, node).is_some() && spans(id);
            let of_cluster: Vec<&JobId> = cluster.run(slot).iter().filter(here).collect();
            let of_node: Vec<&JobId> = turn.run.iter().filter(|id| spans(id)).collect();
            prop_assert_eq!(of_cluster, of_node, "slot {}", slot);
        }
    }
    for (id, job) in &plan.jobs {
        let gang = job.policy == Policy::Gang && job.standing == Standing::Scheduled;
        prop_assert_eq!(job.home.is_some(), gang, "job {}: {:?}", id, job);
        prop_assert_eq!(job.turns > 0, gang, "nobody starves: job {}: {:?}\n{:?}", id, job, plan.turns);
        prop_assert!((1..=10_000).contains(&job.weight));
    }
    Ok(())
}

/// Regression, found by the property above: two gangs of the node and one with a share of 100 % beside gangs that span nodes.
#[test]
fn beside_one_with_a_share_no_gang_of_a_node_starves() {
    let (packing, queues) = (Packing::Buddy, queues(0, 91));
    let state = State { config: Config { packing, rows_max: 1, queues, ..Config::default() }, ..State::default() };
    let (mut planner, node) = (cluster(state), NodeId(0));
    for (id, (cpus, class)) in (100..).zip([(4, Class::ALL[2]), (1, Class::ALL[1])]) {
        planner.handle(Time(0), Time(0), Input::Submit(of_node(node, id, cpus, class))).unwrap();
    }
    for step in [(0, 12, 8, 13), (7, 0, 37, 0), (0, 0, 34, 4), (33, 12, 15, 28)] {
        planner.handle(Time(0), Time(0), input(step)).unwrap();
        check_filled(planner.plan(), own_planner(planner.plan(), node).plan(), node).unwrap();
    }
}
