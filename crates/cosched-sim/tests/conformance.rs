//! The simulator and the live code make the same decisions.
//!
//! *Which process to boost*: the general engine runs PB and DCS, each node's decisions are recorded with what the node
//! saw, and the live booster of that node is given the same input. Its fairness is off, because the paper's strategies
//! have none; with fairness on, the two agree as long as no job is far from its share. A node of the simulator has at most
//! one process of a job, so its table of processes is the live table of jobs.
//!
//! *Which gang runs when*: the turns of gangs, in the simulator's matrix and in the plan that live nodes follow.

use cosched_core::{
    Agent, AgentAction, AgentConfig, AgentInput, BoostConfig, BoostView, Booster, Class, Disposition, Endpoint, Job,
    JobId, Node, NodeId, OnArrival, Packing, Plan, Planner, PlannerAction, PlannerConfig, PlannerInput, Policy,
    Prepared, Reason, Shares, Sharing, Table, Time,
};
use cosched_sim::{
    Decision, Heuristic, JobChange, JobSpec, JobType, Message, Observer, Params, Slice, Strategy, general,
};
use proptest::prelude::*;
use proptest::strategy::Strategy as Strategy_;
use proptest::test_runner::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MS: u64 = 1_000_000;

/// The live boosters of a cluster, which observe the simulator's decisions.
struct Live {
    config: BoostConfig,
    nodes: BTreeMap<u32, Booster>,
    /// CPU time used so far by each job on each node.
    used_ns: BTreeMap<(u32, u32), u64>,
    /// The number of compared decisions, and the number of boosts among them.
    compared: (u64, u64),
    wrong: Option<String>,
}

impl Live {
    fn new(config: BoostConfig) -> Live {
        Live { config, nodes: BTreeMap::new(), used_ns: BTreeMap::new(), compared: (0, 0), wrong: None }
    }

    /// The decision of the live node on the same view.
    fn decide(&mut self, seen: &Decision<'_>) -> (Option<usize>, Reason) {
        let used = |job: u32| self.used_ns.get(&(seen.node, job)).copied().unwrap_or(0);
        let view = |(job, _, endpoint): &(u32, u32, Endpoint)| {
            let (name, cpu_ns) = (JobId(u64::from(*job)), used(*job));
            BoostView { job: name, endpoint: *endpoint, share: 1, cpu_ns }
        };
        let table: Vec<BoostView> = seen.table.iter().map(view).collect();
        let booster = self.nodes.entry(seen.node).or_insert_with(|| Booster::new(self.config));
        let now = Time(seen.time_ns);
        if self.config.on_arrival == OnArrival::Periodic {
            let boost = booster.look(now, seen.current, &table);
            return (boost.candidate, boost.reason);
        }
        let boost = seen.receiver.and_then(|job| booster.arrived(now, job, seen.current, &table));
        boost.map_or((None, Reason::NoCandidate), |boost| (boost.candidate, boost.reason))
    }
}

impl Observer for Live {
    const TELL_DECISIONS: bool = true;

    fn slice(&mut self, slice: Slice) {
        use cosched_sim::Activity::{Compute, Spin};
        if let (Some((job, _)), Compute | Spin) = (slice.process, slice.activity) {
            *self.used_ns.entry((slice.node, job)).or_default() += slice.end_ns - slice.start_ns;
        }
    }

    fn message(&mut self, _: Message) {}
    fn job(&mut self, _: u64, _: u32, _: JobChange, _: &[u32], _: Option<u32>) {}
    fn row(&mut self, _: u64, _: u32) {}

    fn decision(&mut self, seen: Decision<'_>) {
        // The simulator's interface does not know that a receiver is asleep for I/O: that interrupt moves no process.
        let moves = |place: &usize| seen.receiver.is_none() || seen.table[*place].2 != Endpoint::Blocked;
        let simulated = seen.boosted.filter(moves);
        let (live, reason) = self.decide(&seen);
        self.compared.0 += 1;
        self.compared.1 += u64::from(live.is_some());
        if simulated != live {
            self.wrong.get_or_insert(format!("live {live:?} ({reason}), simulated {simulated:?} of {seen:?}"));
        }
    }
}

/// The paper's rule alone: no job keeps the boost, and shares play no part.
fn unfair(heuristic: Heuristic, on_arrival: OnArrival) -> BoostConfig {
    let (hold_ns_min, quantum_ns, tolerance_ppm) = (0, u64::MAX, None);
    BoostConfig { heuristic, on_arrival, hold_ns_min, quantum_ns, tolerance_ppm, ..BoostConfig::default() }
}

fn watch(params: &Params, jobs: &[JobSpec], config: BoostConfig) -> Live {
    let mut live = Live::new(config);
    general::run(params, jobs, &mut live, &mut |_| true).unwrap();
    live
}

fn boosting() -> Vec<Strategy> {
    let boosts = |strategy: &Strategy| matches!(strategy, Strategy::Dynamic(_, on) if *on != OnArrival::None);
    Strategy::all().filter(boosts).collect()
}

fn crowd(nodes: u32) -> Vec<JobSpec> {
    let spec = |i: u64| JobSpec {
        arrival_ns: i * 7 * MS,
        tasks: 1 + (i as u32 * 5) % nodes,
        exec_ns: (60 + i * 17) * MS,
        kind: JobType::ALL[(i % 6) as usize],
        class: cosched_sim::Class::Batch,
        footprint: cosched_sim::Footprint::default(),
    };
    (0..10).map(spec).collect()
}

#[test]
fn live_boosters_decide_as_the_simulators_nodes() {
    assert_eq!(boosting().len(), 6, "PB and DCS, with each way to wait");
    for strategy in boosting() {
        for heuristic in [Heuristic::Paper, Heuristic::OthersFirst, Heuristic::ServedOnly, Heuristic::ComputingFirst] {
            let params = Params { heuristic, mpl: 4, ..Params::paper(strategy, 4) };
            let live = watch(&params, &crowd(4), unfair(heuristic, params.dynamic().1));
            assert_eq!(live.wrong, None, "{strategy} {heuristic:?}");
            assert!(live.compared.0 > 500 && live.compared.1 > 50, "{strategy}: {:?}", live.compared);
        }
    }
}

#[test]
fn fairness_changes_nothing_while_nobody_is_far_from_his_share() {
    // A tolerance of a hundred seconds: no job is ever that far from its share.
    let tolerant = |config| BoostConfig { tolerance_ppm: Some(100_000_000), ..config };
    for strategy in boosting() {
        let params = Params { mpl: 4, ..Params::paper(strategy, 4) };
        let live = watch(&params, &crowd(4), tolerant(unfair(Heuristic::Paper, params.dynamic().1)));
        assert_eq!(live.wrong, None, "{strategy}");
    }
    // And where the tolerance matters, it has an effect: a job whose messages always wait does not keep the node.
    let params = Params { mpl: 4, ..Params::paper("PB".parse().unwrap(), 4) };
    let strict = BoostConfig { tolerance_ppm: Some(1_000), ..unfair(Heuristic::Paper, OnArrival::Periodic) };
    assert!(watch(&params, &crowd(4), strict).wrong.is_some());
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn they_decide_the_same_on_any_list(
        strategy in prop::sample::select(boosting()),
        jobs in prop::collection::vec((0..50_u64, 1..5_u32, 1..60_u64, 0..6_usize), 1..9),
        (mpl, seed, skew) in (1..6_u32, any::<u64>(), 0.0..2.0_f64),
    ) {
        let spec = |(at_ms, tasks, exec_ms, kind): (u64, u32, u64, usize)| {
            JobSpec { arrival_ns: at_ms * MS, tasks, exec_ns: exec_ms * MS, kind: JobType::ALL[kind], class: cosched_sim::Class::Batch, footprint: cosched_sim::Footprint::default() }
        };
        let jobs: Vec<JobSpec> = jobs.into_iter().map(spec).collect();
        let params = Params { mpl, seed, skew, end_ns: Some(3_000 * MS), ..Params::paper(strategy, 4) };
        let live = watch(&params, &jobs, unfair(Heuristic::Paper, params.dynamic().1));
        prop_assert_eq!(live.wrong, None);
    }
}

/// The row that becomes current, with its time, and the jobs of each row.
#[derive(Default)]
struct Rows {
    turns: Vec<(u64, u32)>,
    homes: BTreeMap<u32, BTreeSet<u64>>,
}

impl Observer for Rows {
    fn slice(&mut self, _: Slice) {}
    fn message(&mut self, _: Message) {}

    fn job(&mut self, _: u64, job: u32, change: JobChange, _: &[u32], row: Option<u32>) {
        if let (JobChange::Started, Some(row)) = (change, row) {
            self.homes.entry(row).or_default().insert(u64::from(job));
        }
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        self.turns.push((time_ns, row));
    }
}

const SLOT_NS: u64 = 100 * MS;

/// A planner for one machine of 4 CPUs, and the plans that it published.
fn plans(inputs: &[(u64, PlannerInput)]) -> Vec<(u64, Arc<Plan>)> {
    let mut planner = Planner::new(PlannerConfig {
        nodes: vec![Node { id: NodeId(0), cpus: 4 }],
        slot_length_ns: SLOT_NS,
        policy: Policy::Gang,
        sharing: Sharing::Soft,
        packing: Packing::FirstFit,
        shares: Shares::default(),
    });
    let mut found = vec![(0, Arc::clone(planner.plan()))];
    for (at_ns, input) in inputs {
        // A refused input changes nothing.
        let _ = planner.handle(Time(*at_ns), *input);
        match planner.poll_action() {
            Some(PlannerAction::Publish(plan, _)) => found.push((*at_ns, plan)),
            Some(PlannerAction::Unsound(flaw)) => panic!("{flaw}"),
            None => (),
        }
    }
    found
}

fn submit(job: u64, cpus: u32) -> PlannerInput {
    PlannerInput::Submit(Job { id: JobId(job), owner: 0, class: Class::Batch, policy: None, cpus, node: None })
}

#[test]
fn gangs_have_the_same_turns_in_the_simulators_matrix_and_in_the_plan() {
    // Widths that fill their rows, so that no free cell is lent and no row is unified.
    for widths in [[4, 4, 4, 4, 4].as_slice(), &[2, 2, 4, 3, 1], &[1, 3, 2, 2, 4, 1, 1, 1, 1], &[4]] {
        let spec = |tasks: &u32| JobSpec {
            arrival_ns: 0,
            tasks: *tasks,
            exec_ns: 60_000 * MS,
            kind: JobType::J5,
            class: cosched_sim::Class::Batch,
            footprint: cosched_sim::Footprint::default(),
        };
        let jobs: Vec<JobSpec> = widths.iter().map(spec).collect();
        let gs = Params::paper("GS".parse().unwrap(), 4);
        let slots = 40;
        let params = Params { mpl: 10, quantum_ns: SLOT_NS - gs.switch_ns, end_ns: Some(slots * SLOT_NS), ..gs };
        let mut rows = Rows::default();
        general::run(&params, &jobs, &mut rows, &mut |_| true).unwrap();
        let inputs: Vec<(u64, PlannerInput)> = (0..).zip(widths).map(|(i, w)| (0, submit(i, *w))).collect();
        let (_, plan) = plans(&inputs).pop().unwrap();
        let simulated = |slot: u64| {
            let begun = rows.turns.iter().rev().find(|(at_ns, _)| *at_ns <= slot * SLOT_NS + SLOT_NS / 2);
            rows.homes[&begun.unwrap().1].clone()
        };
        let planned = |slot: u64| plan.turn(slot).unwrap().run.iter().map(|job| job.0).collect::<BTreeSet<u64>>();
        let simulated: Vec<BTreeSet<u64>> = (0..slots).map(simulated).collect();
        let planned: Vec<BTreeSet<u64>> = (0..slots).map(planned).collect();
        assert_eq!(simulated, planned, "{widths:?}");
    }
}

/// The slot thread's input for a plan, as the daemon compiles it, and the state of every job at a time.
fn compiled(plan: &Plan) -> Prepared<JobId> {
    let here = plan.jobs.keys().map(|id| (*id, *id)).collect();
    let (table, flaw) = Table::compile(plan, here, true, |id| unreachable!("{id:?} is planned"));
    assert_eq!(flaw, None);
    Prepared::new(table, 1)
}

fn states_at(table: &Prepared<JobId>, now_ns: u64) -> BTreeMap<JobId, Disposition> {
    let slot = table.slot_at(now_ns as i64);
    table.jobs.iter().enumerate().map(|(at, job)| (job.switch, table.state(at, slot))).collect()
}

fn inputs() -> impl Strategy_<Value = Vec<(u64, PlannerInput)>> {
    let input = (0..12_u8, 0..8_u64, 0..5_u32, 1..400_u64);
    prop::collection::vec(input, 1..30).prop_map(|steps| {
        let mut now_ms = 0;
        let step = |(kind, job, value, ms): (u8, u64, u32, u64)| {
            now_ms += ms;
            let id = JobId(job);
            let policy = [Policy::Gang, Policy::Local, Policy::Pb, Policy::Dcs, Policy::Auto][value as usize];
            let input = match kind {
                0..4 => submit(job, 1 + value % 4),
                4 => PlannerInput::End(id),
                5 => PlannerInput::Suspend(id),
                6 => PlannerInput::Resume(id),
                7 => PlannerInput::JobPolicy(id, Some(policy)),
                8 => PlannerInput::Choice(id, policy, Reason::WaitsMuch),
                9 => PlannerInput::Asleep(id),
                10 => PlannerInput::Class(id, Class::ALL[value as usize % 4]),
                _ => {
                    PlannerInput::MachineSharing([Sharing::Strict, Sharing::Paired, Sharing::Soft][value as usize % 3])
                }
            };
            (now_ms * MS, input)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    /// An agent that announces every boundary, as a simulated host needs it, and one whose host has compiled the turns
    /// ahead of time, as the daemon's slot thread has: at any time every job is in the same state.
    #[test]
    fn turns_that_are_announced_and_turns_that_are_compiled_are_the_same(inputs in inputs(), tail in 0..2000_u64) {
        let plans = plans(&inputs);
        let mut announced = Agent::new(AgentConfig { drive_boundaries: true, ..AgentConfig::default() });
        let mut silent = Agent::new(AgentConfig { drive_boundaries: false, ..AgentConfig::default() });
        let mut states: BTreeMap<JobId, Disposition> = BTreeMap::new();
        let end_ns = plans.last().unwrap().0 + tail * MS;
        for (i, (from_ns, plan)) in plans.iter().enumerate() {
            let until_ns = plans.get(i + 1).map_or(end_ns, |(at_ns, _)| *at_ns);
            let table = compiled(plan);
            for agent in [&mut announced, &mut silent] {
                agent.handle(Time(*from_ns), AgentInput::Plan(Arc::clone(plan)));
            }
            states.retain(|job, _| plan.jobs.contains_key(job));
            let mut now_ns = *from_ns;
            loop {
                while let Some(action) = announced.poll_action() {
                    if let AgentAction::Set { job, to, .. } = action {
                        states.insert(job, to);
                    }
                }
                prop_assert_eq!(&states, &states_at(&table, now_ns), "at {} ns", now_ns);
                let wakes = announced.poll_timeout().map(|(at, _)| at.0.max(now_ns + 1));
                let Some(next_ns) = wakes.filter(|at_ns| *at_ns < until_ns) else { break };
                // Nothing changes before the agent wants to be woken.
                prop_assert_eq!(&states, &states_at(&table, next_ns - 1), "before {} ns", next_ns);
                now_ns = next_ns;
                announced.handle_timeout(Time(now_ns));
            }
            let sets = |action: &AgentAction| matches!(action, AgentAction::Set { .. });
            prop_assert!(!std::iter::from_fn(|| silent.poll_action()).any(|action| sets(&action)));
        }
    }
}
