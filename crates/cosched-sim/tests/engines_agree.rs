//! The two engines were written independently of each other, from the same text (D1 to D26). They must agree on
//! everything except the number of events: job by job, to the nanosecond.

use cosched_sim::{Heuristic, JobSpec, JobType, Outcome, Params, Silent, Strategy, general, paper};
use proptest::prelude::*;

/// What must be equal: everything except the number of the engine's own events.
fn same(mut a: Outcome, mut b: Outcome) -> Result<(), TestCaseError> {
    (a.events, b.events) = (0, 0);
    prop_assert_eq!(a, b);
    Ok(())
}

fn compare(params: &Params, jobs: &[JobSpec]) -> Result<(), TestCaseError> {
    let fast = paper::run(params, jobs, &mut Silent, &mut |_| true);
    let slow = general::run(params, jobs, &mut Silent, &mut |_| true);
    same(fast.map_err(|e| TestCaseError::fail(e.to_string()))?, slow.map_err(|e| TestCaseError::fail(e.to_string()))?)
}

fn job(nodes: u32) -> impl Strategy_<Value = JobSpec> {
    // Round arrivals, so that many things happen at the same instant.
    let arrival = prop_oneof![Just(0_u64), 0..50_u64, Just(7)].prop_map(|ms| ms * 1_000_000);
    (arrival, 1..=nodes, 1..60_u64, 0..6_usize).prop_map(|(arrival_ns, tasks, ms, kind)| JobSpec {
        arrival_ns,
        tasks,
        exec_ns: ms * 1_000_000,
        kind: JobType::ALL[kind],
        class: cosched_sim::Class::Batch,
        footprint: cosched_sim::Footprint::default(),
    })
}

use proptest::strategy::Strategy as Strategy_;

fn params(strategy: Strategy) -> impl Strategy_<Value = Params> {
    let skew = prop_oneof![Just(0.0), Just(0.2), Just(1.5), Just(2.0)];
    let switch = prop_oneof![Just(200_u64), 1..3000_u64].prop_map(|us| us * 1000);
    let interrupt = prop_oneof![Just(50_u64), Just(0), 1..1500_u64].prop_map(|us| us * 1000);
    let spin = prop_oneof![Just(200_u64), 1..400_u64].prop_map(|us| us * 1000);
    let check = prop_oneof![Just(2_u64), Just(0), 1..60_u64].prop_map(|us| us * 1000);
    let heuristic = prop_oneof![
        4 => Just(Heuristic::Paper),
        1 => Just(Heuristic::OthersFirst),
        1 => Just(Heuristic::ServedOnly),
        1 => Just(Heuristic::ComputingFirst)
    ];
    // Always an end time: with a switch of whole milliseconds PB may preempt for ever, which is the correct behaviour.
    let end = prop_oneof![4 => Just(Some(3_000_000_000)), 1 => (1..100_000_000_u64).prop_map(Some)];
    let quantum = prop_oneof![Just(200_u64), 1..30_u64].prop_map(|ms| ms * 1_000_000);
    let costs = (switch, interrupt, spin, check, quantum);
    (1..7_u32, 1..6_u32, any::<u64>(), skew, costs, heuristic, end).prop_map(
        move |(nodes, mpl, seed, skew, (switch_ns, interrupt_ns, spin_ns, check_ns, quantum_ns), heuristic, end_ns)| {
            let costs =
                Params { switch_ns, interrupt_ns, spin_ns, check_ns, quantum_ns, ..Params::paper(strategy, nodes) };
            Params { mpl, seed, skew, heuristic, end_ns, check_invariants: true, ..costs }
        },
    )
}

fn case() -> impl Strategy_<Value = (Params, Vec<JobSpec>)> {
    let strategies: Vec<Strategy> = Strategy::paper().collect();
    prop::sample::select(strategies)
        .prop_flat_map(params)
        .prop_flat_map(|params| (Just(params), prop::collection::vec(job(params.nodes), 1..9)))
}

proptest! {
    #[test]
    fn on_small_lists_of_all_kinds((params, jobs) in case()) {
        compare(&params, &jobs)?;
    }
}

/// Saturated, like the paper's runs: long enough for seconds to pass and levels to spread.
#[test]
fn on_saturated_clusters() {
    for strategy in Strategy::paper() {
        let jobs: Vec<JobSpec> = (0..24_u64)
            .map(|i| JobSpec {
                arrival_ns: i * 40_000_000,
                tasks: [1, 2, 4, 8, 3, 7, 8, 5][i as usize % 8],
                exec_ns: 200_000_000 + i * 37_000_000,
                kind: JobType::ALL[(i * 5 % 6) as usize],
                class: cosched_sim::Class::Batch,
                footprint: cosched_sim::Footprint::default(),
            })
            .collect();
        let params = Params { mpl: 4, seed: 9, ..Params::paper(strategy, 8) };
        compare(&params, &jobs).unwrap_or_else(|e| panic!("{strategy}: {e}"));
    }
}
