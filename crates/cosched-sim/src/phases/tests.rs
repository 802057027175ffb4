//! Numbers found by hand, and what must hold for any jobs.

use super::group::Group;
use super::placement::cycle_us;
use super::*;
use proptest::prelude::*;

const S: u64 = 1_000_000;

/// Node-hours for 1 and 3, nodes of 1000 GB, changes for nothing.
fn settings() -> PhaseSettings {
    PhaseSettings {
        prices: [1.0, 3.0],
        memory_gb: 1000,
        switch_us: 0,
        cold_us: 0,
        slot_us: 10 * S,
        lengths: Lengths { seed: 1, cv: 0.0, longest: 2.0 },
    }
}

/// A job of one node in each pool and 100 GB; times in s.
fn job(arrival: u64, iterations: u32, first: u64, second: u64, slowdown_max: f64) -> PhaseJob {
    let (arrival_us, phase_us) = (arrival * S, [first * S, second * S]);
    PhaseJob { name: String::new(), arrival_us, iterations, nodes: [1; 2], phase_us, memory_gb: 100, slowdown_max }
}

/// The ends and the times for which nodes were held, in s.
fn run(jobs: &[PhaseJob], policy: PhasePolicy, settings: &PhaseSettings) -> (Vec<u64>, [u64; 2]) {
    let run = simulate_phases(jobs, policy, settings);
    (run.end_us.iter().map(|us| us / S).collect(), run.held.map(|held| (held / u128::from(S)) as u64))
}

#[test]
fn dedicated_is_the_closed_form() {
    let wide = PhaseJob { nodes: [4, 2], ..job(50, 3, 60, 40, 1.0) };
    let settings = PhaseSettings { cold_us: 7 * S, switch_us: 5 * S, ..settings() };
    // 7 + 10 · 50 s from 0 on; 7 + 3 · 100 s from 50 s on.
    let jobs = [job(0, 10, 30, 20, 1.0), wide];
    let found = run(&jobs, PhasePolicy::Dedicated, &settings);
    assert_eq!(found, (vec![507, 357], [507 + 4 * 307, 507 + 2 * 307]));
    let summary = summarise_phases(
        &jobs,
        &settings,
        PhasePolicy::Dedicated,
        &simulate_phases(&jobs, PhasePolicy::Dedicated, &settings),
    );
    let summary = summary.unwrap();
    assert_eq!((summary.relative_cost, summary.max_slowdown, summary.within_limit), (1.0, 1.0, 1.0));
    assert!((summary.cost * 3600.0 - f64::from(507 + 4 * 307 + 3 * (507 + 2 * 307))).abs() < 1e-6);
    assert!((summary.first_utilisation - (300.0 + 4.0 * 180.0) / (507.0 + 4.0 * 307.0)).abs() < 1e-12);
}

#[test]
fn complementary_jobs_lose_nothing_and_cost_half() {
    // Each one's first phase beside the other's second: a cycle is an iteration alone. The second job begins 100 s late.
    let jobs = [job(0, 10, 100, 100, 1.0), job(0, 10, 100, 100, 1.2)];
    let (ends, held) = run(&jobs, PhasePolicy::Phases, &settings());
    assert_eq!((ends, held), (vec![2000, 2100], [2100, 2100]));
    let all = simulate_phases(&jobs, PhasePolicy::Phases, &settings());
    let summary = summarise_phases(&jobs, &settings(), PhasePolicy::Phases, &all).unwrap();
    assert_eq!((summary.relative_cost, summary.max_slowdown, summary.within_limit), (0.525, 1.05, 1.0));
    // Switches: 2 · (100 + 1) s in a cycle, but none before the first phases.
    let switched = PhaseSettings { switch_us: S, ..settings() };
    let jobs = [job(0, 10, 100, 100, 1.1), job(0, 10, 100, 100, 1.2)];
    assert_eq!(run(&jobs, PhasePolicy::Phases, &switched).0, [403 + 8 * 202, 504 + 8 * 202]);
}

#[test]
fn a_job_joins_where_it_delays_no_one_beyond_a_limit() {
    // Loaded at 80 s; its phases fill what the first job, whose limit is 1, leaves idle in each cycle of 200 s.
    let cold = PhaseSettings { cold_us: 30 * S, ..settings() };
    let jobs = [job(0, 10, 100, 100, 1.0), job(50, 5, 50, 50, 2.0)];
    assert_eq!(run(&jobs, PhasePolicy::Phases, &cold), (vec![2030, 1080], [2030, 2030]));
    // A cycle would be 201 s: the limits separate them, and so does a limit of 1 for the other one.
    for (other, limits) in [(101, [1.0, 2.0]), (50, [1.0, 1.5])] {
        let jobs = [job(0, 10, 100, 100, limits[0]), job(50, 5, other, other, limits[1])];
        let alone = run(&jobs, PhasePolicy::Dedicated, &settings());
        assert_eq!(run(&jobs, PhasePolicy::Phases, &settings()), alone);
    }
    // The first job has one iteration left and would end in time, but a cycle of 600 s is above its limit for an iteration.
    let jobs = [job(0, 10, 100, 100, 1.5), job(1800, 10, 300, 300, 2.0)];
    assert_eq!(run(&jobs, PhasePolicy::Phases, &settings()).1, [8000, 8000]);
}

#[test]
fn memory_separates_jobs_and_size_does() {
    let pair =
        |memory_gb, nodes| [job(0, 10, 100, 100, 2.0), PhaseJob { memory_gb, nodes, ..job(0, 10, 100, 100, 2.0) }];
    for policy in [PhasePolicy::Phases, PhasePolicy::RoundRobin] {
        let held = |jobs: [PhaseJob; 2]| run(&jobs, policy, &settings()).1;
        let shared = if policy == PhasePolicy::Phases { [2100, 2100] } else { [4000, 4000] };
        assert_eq!(held(pair(900, [1, 1])), shared, "{policy:?}");
        assert_eq!(held(pair(901, [1, 1])), [4000, 4000]);
        assert_eq!(held(pair(900, [1, 2])), [4000, 6000]);
    }
}

#[test]
fn first_phases_get_nodes_beside_those_of_the_group() {
    // Three long first phases, each on a node of its own, share the second pool's node: 3 · 50 s in a cycle of 350 s.
    let jobs = [0, 0, 0].map(|arrival| job(arrival, 10, 300, 50, 1.2));
    let (ends, held) = run(&jobs, PhasePolicy::Phases, &settings());
    assert_eq!(ends, [3500, 3550, 3600]);
    assert_eq!(held, [3500 + 3550 + 3600, 3600]);
}

#[test]
fn turns_of_whole_jobs() {
    // 100 s each. The first job's turns do 10, 9, 9 … s until 210 s; the other one, with 10 of its turns, has 10 s left, and a switch.
    let jobs = [job(0, 1, 50, 50, 3.0), job(0, 1, 50, 50, 3.0)];
    let switched = PhaseSettings { switch_us: S, ..settings() };
    assert_eq!(run(&jobs, PhasePolicy::RoundRobin, &switched), (vec![210, 221], [221, 221]));
    // Loaded at 25 s, in the other one's turn from 20 to 30 s: 9 s of its 30 at 30, 50 and 70 s, the last 3 s at 90 s.
    let jobs = [job(0, 1, 50, 50, 3.0), job(5, 1, 20, 10, 9.0)];
    let cold = PhaseSettings { cold_us: 20 * S, switch_us: S, ..settings() };
    assert_eq!(run(&jobs, PhasePolicy::RoundRobin, &cold).0, [158, 94]);
    // The third one comes in the second one's second turn and has its only one from 50 to 60 s.
    let jobs = [job(0, 1, 50, 50, 9.0), job(0, 1, 50, 50, 9.0), job(35, 1, 5, 4, 9.0)];
    assert_eq!(run(&jobs, PhasePolicy::RoundRobin, &switched).0, [220, 231, 60]);
}

#[test]
fn lengths_vary_as_they_should() {
    let lengths = Lengths { seed: 3, cv: 0.3, longest: 2.0 };
    let job = job(0, 20_000, 100, 50, 1.0);
    let all: Vec<[u64; 2]> = lengths.all(7, &job).collect();
    for pool in 0..2 {
        let mean_us = all.iter().map(|phases| phases[pool] as f64).sum::<f64>() / 20_000.0;
        let square = all.iter().map(|phases| (phases[pool] as f64 / mean_us - 1.0).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean_us / job.phase_us[pool] as f64 - 1.0).abs() < 0.01 && (square.sqrt() - 0.3).abs() < 0.01);
        assert!(all.iter().all(|phases| phases[pool] <= 2 * job.phase_us[pool]));
    }
    let jobs = generate_phase_jobs(2000, 5);
    assert!(jobs.is_sorted_by_key(|job| job.arrival_us) && jobs[..9] == generate_phase_jobs(9, 5));
    assert!((jobs[1999].arrival_us as f64 / 1999.0 / 1.2e9 - 1.0).abs() < 0.1);
}

fn any_settings() -> impl Strategy<Value = PhaseSettings> {
    (0..20 * S, 0..200 * S, prop_oneof![Just(0.0), 0.05..1.5], 1.0..3.0, any::<u64>()).prop_map(
        |(switch_us, cold_us, cv, longest, seed)| PhaseSettings {
            switch_us,
            cold_us,
            slot_us: 60 * S,
            lengths: Lengths { seed, cv, longest },
            ..settings()
        },
    )
}

fn any_jobs() -> impl Strategy<Value = Vec<PhaseJob>> {
    let one = (0..3000_u64, 1..30_u32, (1..=3_u32, 1..=3_u32), (1..300_u64, 1..300_u64), 1..700_u32, 1.0..4.0);
    let list = prop::collection::vec(one, 1..25).prop_map(|list| {
        let of = |(arrival, iterations, nodes, (first, second), memory_gb, limit): (_, _, (u32, u32), _, _, _)| {
            PhaseJob { nodes: nodes.into(), memory_gb, ..job(arrival, iterations, first, second, limit) }
        };
        list.into_iter().map(of).collect::<Vec<_>>()
    });
    list.prop_map(|mut jobs| {
        jobs.sort_by_key(|job| job.arrival_us);
        jobs
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cycle_takes_the_longest_iteration_or_load(
        members in prop::collection::vec((0..4_usize, 1..300_u64, 1..300_u64), 1..8),
        switch_us in 0..20 * S,
    ) {
        const CYCLES: u32 = 60;
        let settings = PhaseSettings { switch_us, ..settings() };
        let jobs: Vec<PhaseJob> = members.iter().map(|(_, first, second)| job(0, CYCLES, *first, *second, 100.0)).collect();
        let (mut group, mut blocks, mut of) = (Group::new(0), Vec::new(), Vec::new());
        for (number, (block, ..)) in members.iter().enumerate() {
            let place = blocks.iter().position(|other| other == block).unwrap_or(blocks.len());
            if place == blocks.len() {
                blocks.push(*block);
            }
            of.push((number, place));
            group.join(number, place, 0, 0, 0);
        }
        let cycle = cycle_us(&of, |number| jobs[number].phase_us, switch_us);
        let length_us = |number: usize, _| jobs[number].phase_us;
        let steps: Vec<_> = std::iter::from_fn(|| group.step(&jobs, &settings, u64::MAX, length_us)).collect();
        // The first cycle has phases that wait for those before them; no cycle after it loses anything.
        let last = steps.last().unwrap().end_us;
        let first_switches = 2 * members.len() as u64 * switch_us;
        prop_assert!(last + first_switches >= u64::from(CYCLES) * cycle && last <= u64::from(CYCLES + 1) * cycle);
    }

    #[test]
    fn no_job_misses_its_deadline(jobs in any_jobs(), settings in any_settings()) {
        let run = simulate_phases(&jobs, PhasePolicy::Phases, &settings);
        for (job, end_us) in jobs.iter().zip(&run.end_us) {
            prop_assert!(*end_us <= settings.deadline_us(job), "{job:?}: {end_us}");
        }
        let summary = summarise_phases(&jobs, &settings, PhasePolicy::Phases, &run).unwrap();
        prop_assert!(summary.within_limit == 1.0);
        prop_assert!(summary.first_utilisation <= 1.0 && summary.second_utilisation <= 1.0);
    }

    #[test]
    fn a_job_alone_is_dedicated(jobs in any_jobs(), settings in any_settings()) {
        let dedicated = simulate_phases(&jobs[..1], PhasePolicy::Dedicated, &settings);
        for policy in PhasePolicy::ALL {
            prop_assert_eq!(&simulate_phases(&jobs[..1], policy, &settings), &dedicated);
        }
    }

    #[test]
    fn turns_lose_and_invent_no_work(jobs in any_jobs(), settings in any_settings()) {
        let run = simulate_phases(&jobs, PhasePolicy::RoundRobin, &settings);
        let dedicated = simulate_phases(&jobs, PhasePolicy::Dedicated, &settings);
        prop_assert!(run.end_us.iter().zip(&dedicated.end_us).all(|(end, alone)| end >= alone));
        let summary = summarise_phases(&jobs, &settings, PhasePolicy::RoundRobin, &run).unwrap();
        prop_assert!(summary.first_utilisation <= 1.0 && summary.second_utilisation <= 1.0);
    }
}
