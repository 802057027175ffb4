//! Flexible coscheduling, and switching only when a process blocks.

use super::*;
use crate::general::NodeModel;

/// Even and fine-grained; uneven, so that the second task waits for the first most of the time; on its own.
const FINE: &str = "repeat 600 { compute 300us; exchange 1d }";
const UNEVEN: &str = "repeat 60 { on 0 { compute 8ms }; on 1 { compute 1ms }; exchange 1d }";
const COARSE: &str = "compute 600ms";

fn flexible() -> Config {
    let mut config = machine("FCS", 2);
    (config.params.quantum_ns, config.params.mpl) = (20 * MS, 3);
    config
}

/// (job, from, to) of a node's CPU by activity, in ns.
fn runs(record: &Record, node: u32) -> Vec<(u32, u64, u64)> {
    let busy = |(what, from, to, job): (Activity, u64, u64, Option<u32>)| {
        let runs = matches!(what, Activity::Compute | Activity::Spin);
        job.filter(|_| runs).map(|job| (job, from, to))
    };
    record.of_cpu(node).into_iter().filter_map(busy).collect()
}

#[test]
fn a_fine_grained_gang_keeps_its_turns_and_an_uneven_one_lends_its_own() {
    let jobs = programs(&[(0, 2, FINE), (0, 2, UNEVEN), (0, 2, COARSE)]);
    let (ends, _, record) = outcome_of(&flexible(), &jobs);
    // Once all have been judged, in the turns of each row until the first job ends: what the second node runs.
    let (from, until) = (400 * MS, ends.iter().min().unwrap() * US);
    let mut shares = [[0_u64; 3]; 3];
    for pair in record.rows.windows(2) {
        let ((began, row), (over, _)) = (pair[0], pair[1]);
        for (job, start, end) in runs(&record, 1).iter().filter(|_| began >= from && over <= until) {
            shares[row as usize][*job as usize] += end.min(&over).saturating_sub(*start.max(&began));
        }
    }
    let [fine, uneven, _] = shares;
    assert!(fine[0] > 0 && fine[1] + fine[2] == 0, "nobody else runs in the turns of the first: {shares:?}");
    // Of 8 ms the second task of the uneven one computes 1 and spins for 0.2; the rest is the third's.
    assert!(uneven[2] > 3 * uneven[1], "the second one lends what it waits: {shares:?}");
}

#[test]
fn flexible_is_faster_than_a_gang_where_work_is_uneven_and_like_it_where_it_is_even() {
    let end = |strategy: &str, jobs: &[(u64, u32, &str)]| {
        let mut config = flexible();
        config.params.strategy = strategy.parse().unwrap();
        outcome_of(&config, &programs(jobs)).0[jobs.len() - 1] as f64
    };
    // The last job is beside the task that waits.
    let uneven = [(0, 2, UNEVEN), (0, 1, COARSE), (0, 1, COARSE)];
    assert!(end("FCS", &uneven) < 0.85 * end("GS", &uneven), "{} {}", end("FCS", &uneven), end("GS", &uneven));
    let fine = [(0, 2, FINE), (0, 2, FINE)];
    assert_eq!(end("FCS", &fine), end("GS", &fine));
}

#[test]
fn turns_without_gangs_need_no_switch_of_all_cpus() {
    let jobs = programs(&[(0, 2, "compute 200ms"), (0, 2, "compute 200ms")]);
    let (ends, out, _) = outcome_of(&flexible(), &jobs);
    let (of_gang, gang, _) = outcome_of(
        &Config { params: Params { strategy: "GS".parse().unwrap(), ..flexible().params }, ..flexible() },
        &jobs,
    );
    assert!(out.cpu.switch_ns < gang.cpu.switch_ns / 2 && ends.iter().max() < of_gang.iter().max(), "{out:?} {gang:?}");
}

#[test]
fn a_running_task_is_never_preempted() {
    // The first computes longer than any quantum; the second waits until it blocks, the third until both have.
    let jobs = programs(&[
        (0, 1, "compute 300ms; io 1ms; compute 50ms"),
        (0, 1, "compute 100ms"),
        (0, 1, "compute 1ms; io 5ms; compute 1ms"),
    ]);
    for model in [NodeModel::Paper, NodeModel::Linux] {
        let (ends, _, record) = outcome_of(&Config { model, ..machine("COOP", 1) }, &jobs);
        // The first is ready again at 301 ms, behind the third, and does not preempt the second.
        assert_eq!(record.switches(0), [(300_000, 1), (400_200, 2), (401_400, 0), (451_600, 2)], "{model:?}");
        assert_eq!(ends, [451_600, 400_200, 452_800]);
    }
    let local = outcome_of(&machine("Local", 1), &jobs).2;
    assert!(local.switches(0)[0] < (300_000, 0), "a feedback queue does preempt: {:?}", local.switches(0));
}

#[test]
fn cooperation_gains_where_processes_block_and_pays_where_they_compute_long() {
    let last = |strategy: &str, jobs: &[(u64, u32, &str)]| {
        outcome_of(&machine(strategy, 2), &programs(jobs)).0.into_iter().max().unwrap()
    };
    // The third keeps the nodes out of step.
    let fine = [(0, 2, FINE), (0, 2, FINE), (0, 1, "repeat 200 { compute 1ms; io 1ms }")];
    assert!(2 * last("COOP", &fine) < last("Local", &fine), "{} {}", last("COOP", &fine), last("Local", &fine));
    // The sender waits for the end of the computation before it.
    let long = programs(&[(0, 1, "compute 40ms"), (0, 2, "on 0 { compute 20ms; send 1 }; on 1 { recv 0 }")]);
    let [coop, local] = ["COOP", "Local"].map(|strategy| outcome_of(&machine(strategy, 2), &long).0[1]);
    assert!(coop > 60_000 && local < 60_000, "{coop} {local}");
}
