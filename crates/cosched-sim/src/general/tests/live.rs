//! The production planner in the simulator. Times are in µs.

use super::*;
use crate::general::Live;
use cosched_core::{Class, Policy, Sharing, Wait};

/// Nodes with `cpus` CPUs each, slots of 100 ms, and switches that cost nothing.
fn live(nodes: u32, cpus: u32, sharing: Sharing) -> Config {
    let mut config = machine("live", nodes);
    (config.params.quantum_ns, config.params.switch_ns, config.cpus_per_node) = (100 * MS, 0, cpus);
    Config { live: Live { sharing, ..Live::default() }, ..config }
}

fn of_class(mut works: Vec<Work>, classes: &[Class]) -> Vec<Work> {
    for (work, class) in works.iter_mut().zip(classes) {
        if let Work::Program(job) = work {
            job.class = *class;
        }
    }
    works
}

/// The CPU time of each job up to a given time, in ms.
fn cpu_ms(record: &Record, jobs: usize, until_ns: u64) -> Vec<u64> {
    let mut ns = vec![0; jobs];
    for slice in record.slices.iter().filter(|s| !matches!(s.activity, Activity::Io | Activity::Blocked)) {
        if let Some((job, _)) = slice.process {
            ns[job as usize] += slice.end_ns.min(until_ns).saturating_sub(slice.start_ns);
        }
    }
    ns.into_iter().map(|ns| ns / MS).collect()
}

#[test]
fn gangs_of_one_node_take_turns_of_a_slot() {
    let jobs = programs(&[(0, 2, "compute 300ms"), (0, 2, "compute 300ms")]);
    let (ends, _, _) = outcome_of(&live(1, 2, Sharing::Strict), &jobs);
    assert_eq!(ends.iter().max(), Some(&600_000));
    assert_eq!(ends.iter().min(), Some(&500_000));
}

#[test]
fn gangs_that_span_nodes_have_the_same_slots_on_all_of_them() {
    let barriers = "repeat 200 { compute 1ms; barrier }";
    let jobs = programs(&[(0, 4, barriers), (0, 4, barriers)]);
    let (ends, out, record) = outcome_of(&live(2, 2, Sharing::Strict), &jobs);
    let alone = outcome_of(&live(2, 2, Sharing::Strict), &jobs[..1]).0[0];
    let last = *ends.iter().max().unwrap();
    assert!((2 * alone..2 * alone + 200_000).contains(&last), "{last} of {alone}");
    let spun = outcome_of(&live(2, 2, Sharing::Strict), &jobs[..1]).1.cpu.spin_ns;
    assert!(
        out.cpu.spin_ns < spun * 2 + 400 * MS,
        "no more than alone, but for the slots' ends: {} {spun}",
        out.cpu.spin_ns
    );
    // At most one gang has a node's CPUs at a time.
    let at = |node: u32, time: u64| {
        let runs = |s: &&Slice| s.node == node && s.start_ns <= time && time < s.end_ns;
        record.slices.iter().filter(runs).filter_map(|s| s.process).map(|(job, _)| job).collect::<Vec<u32>>()
    };
    for time in (1..9).map(|k| k * 93 * MS) {
        let mut jobs = [at(0, time), at(1, time)].concat();
        jobs.dedup();
        assert!(jobs.len() <= 1, "{jobs:?} at {time}");
    }
}

#[test]
fn classes_have_slots_by_their_shares() {
    let long = "compute 10s";
    let jobs = of_class(programs(&[(0, 2, long), (0, 2, long)]), &[Class::Interactive, Class::Batch]);
    let record = outcome_of(&live(1, 2, Sharing::Strict), &jobs).2;
    let cpu = cpu_ms(&record, 2, 6_000 * MS);
    assert!((7_600..8_400).contains(&cpu[0]) && (3_600..4_400).contains(&cpu[1]), "4 to 2 of 12 s: {cpu:?}");
}

#[test]
fn what_a_gang_leaves_idle_is_lent_unless_sharing_is_strict() {
    let jobs = programs(&[(0, 2, "repeat 10 { compute 10ms; io 40ms }"), (0, 2, "compute 400ms")]);
    let ends = |sharing| outcome_of(&live(1, 2, sharing), &jobs).0;
    let [strict, soft] = [Sharing::Strict, Sharing::Soft].map(ends);
    assert!(soft[1] < strict[1] - 80_000, "{soft:?} {strict:?}");
    assert!(soft[0] <= strict[0], "the guests leave at once: {soft:?} {strict:?}");
}

/// The CPU time in ms of the second of two jobs until then.
fn of_second(config: &Config, jobs: &[(u64, u32, &str)], until_ms: u64) -> u64 {
    cpu_ms(&outcome_of(config, &programs(jobs)).2, 2, until_ms * MS)[1]
}

#[test]
fn one_idle_cpu_of_two_is_given_away_at_the_first_look() {
    // The probe looks after 5 ms in a slot of 100 ms; a second has five slots of each.
    let jobs = |tasks| [(0, 2, "on 0 { compute 2s } on 1 { io 2s }"), (0, tasks, "compute 10s")];
    let config = live(1, 2, Sharing::Soft);
    assert_eq!(of_second(&config, &jobs(2), 1_000), 5 * (200 + 95), "a process of a gang comes in without its partner");
    assert_eq!(of_second(&config, &jobs(1), 1_000), 5 * (100 + 95));
}

#[test]
fn one_idle_cpu_of_four_has_to_be_idle_for_as_long_as_two_ticks_and_the_rest_worth_three() {
    let jobs = [(0, 4, "on 0..2 { compute 2s } on 3 { io 2s }"), (0, 4, "compute 10s")];
    let of_slots = |ms: u64, until_ms| {
        let mut config = live(1, 4, Sharing::Soft);
        config.params.quantum_ns = ms * MS;
        of_second(&config, &jobs, until_ms)
    };
    // Looks, each worth 2.5 ms, after 1.25, 3.8, 6.35 and 8.9 ms: then 8 ms have been seen, but not 12 are left.
    assert_eq!(of_slots(20, 800), 20 * 4 * 20);
    // Each worth 3.75 ms, after 1.875, 5.675 and 9.475 ms; 20.525 are left.
    assert_eq!(of_slots(30, 600), 10 * 4 * 30 + 10 * 20_525 / 1_000);
}

#[test]
fn a_gang_that_was_let_in_has_three_looks_to_show_what_it_leaves() {
    let idle = "repeat 100 { compute 1us; io 10ms }";
    let jobs = [(0, 4, idle), (0, 1, "compute 9s"), (0, 1, "compute 9s"), (0, 1, "compute 9s"), (0, 1, "compute 9s")];
    let record = outcome_of(&live(1, 4, Sharing::Soft), &programs(&jobs)).2;
    // Looks after 5 ms, then every 10.05. After the third fill one CPU is idle, and 4.55 ms of it are not worth three ticks.
    let began = |job| {
        let runs =
            |s: &&Slice| s.activity == Activity::Compute && s.process == Some((job, 0)) && s.start_ns >= 200 * MS;
        record.slices.iter().filter(runs).map(|s| s.start_ns - 200 * MS).min().unwrap() / US
    };
    assert_eq!([1, 2, 3, 4].map(began), [5_000, 35_150, 65_300, 100_000]);
}

#[test]
fn a_gang_that_uses_no_cpu_loses_its_slots_until_it_wakes() {
    let config = live(1, 2, Sharing::Strict);
    let config = Config { live: Live { idle_after_ns: 1_000 * MS, ..config.live }, ..config };
    let jobs = programs(&[(0, 2, "compute 10ms; io 20s; compute 4s"), (0, 2, "compute 40s")]);
    let record = outcome_of(&config, &jobs).2;
    let busy = |from_s: u64, to_s: u64| {
        let [from, to] = [from_s, to_s].map(|s| cpu_ms(&record, 2, s * 1_000 * MS)[1]);
        to - from
    };
    assert!(busy(5, 15) > 19_800, "all slots while the other sleeps: {}", busy(5, 15));
    assert!(busy(22, 24) < 2_600, "half of them when it is awake: {}", busy(22, 24));
}

#[test]
fn the_ceiling_and_the_policy_are_obeyed() {
    let jobs = programs(&[(0, 4, "compute 1s"), (0, 4, "compute 1s")]);
    let config = live(2, 2, Sharing::Strict);
    let last = |live: Live| *outcome_of(&Config { live, ..config }, &jobs).0.iter().max().unwrap();
    let half = last(Live { ceiling_permille: 500, ..config.live });
    assert!((3_500_000..4_600_000).contains(&half), "half of the slots are open: {half}");
    let local = last(Live { policy: Policy::Local, ..config.live });
    assert!((2_000_000..2_010_000).contains(&local), "{local}");
    let bad = Live { policy: Policy::Auto, ..config.live };
    assert!(Config { live: bad, ..config }.check().is_err());
    let mut short = config;
    short.params.quantum_ns = MS;
    assert!(short.check().is_err());
}

#[test]
fn jobs_wait_for_places_and_all_come_to_their_end() {
    let exchange = "repeat 20 { compute 2ms skew; io 1ms; exchange 1d 4096B }";
    let jobs: Vec<(u64, u32, &str)> = (0..30).map(|k| (k * 7_000, 1 + (k as u32 * 5) % 8, exchange)).collect();
    for (sharing, wait) in
        [(Sharing::Strict, Wait::Busy), (Sharing::Paired, Wait::SpinBlock), (Sharing::Soft, Wait::SpinBlock)]
    {
        let mut config = Config { gang_wait: wait, ..live(4, 2, sharing) };
        (config.params.mpl, config.params.switch_ns, config.params.skew) = (2, 50 * US, 0.3);
        let (ends, out, record) = outcome_of(&config, &programs(&jobs));
        assert_eq!(ends.len(), 30);
        assert!(out.free_while_waiting_ns < u128::from(out.sim_end_ns) * 16);
        assert_eq!(record.nodes.len(), 30);
        assert_eq!(outcome_of(&config, &programs(&jobs)).0, ends, "a run is repeatable");
    }
}
