//! Small pipelines whose times can be computed by hand. CPU times are split into halves around the device.

use super::*;
use cosched_core::stage::Resource::{Compute, Io};

const US: u64 = 1_000;

#[test]
fn stages_overlap_and_the_slowest_one_counts() {
    // 3 rounds: read 10 us, compute 20 us, write 10 us: fill 10, then 3 times 20, then drain 10.
    let stages = vec![stage("read", Io, 0.0, 10.0), stage("sort", Compute, 20.0, 0.0), stage("write", Io, 0.0, 10.0)];
    let out = default_of(&free_of_cost(2, 3, 3, stages));
    assert_eq!(out.elapsed_ns, 80 * US);
    assert_eq!(out.stages[1].cpu_ns, 60 * US);
    assert_eq!((out.stages[1].busy_ns, out.stages[1].wait_in_ns), (60 * US, 20 * US));
    assert_eq!(out.stages[0].rounds, 3);
}

#[test]
fn with_one_buffer_nothing_overlaps() {
    let stages = vec![stage("read", Io, 0.0, 10.0), stage("sort", Compute, 20.0, 0.0), stage("write", Io, 0.0, 10.0)];
    assert_eq!(default_of(&free_of_cost(2, 3, 1, stages)).elapsed_ns, 3 * 40 * US);
}

#[test]
fn two_stages_that_compute_share_one_cpu() {
    let stages = vec![stage("a", Compute, 30.0, 0.0), stage("b", Compute, 20.0, 0.0)];
    let out = default_of(&free_of_cost(1, 10, 4, stages.clone()));
    assert_eq!(out.elapsed_ns, 10 * 50 * US);
    assert_eq!(default_of(&free_of_cost(2, 10, 4, stages)).elapsed_ns, 10 * 30 * US + 20 * US);
}

#[test]
fn a_disk_that_serves_one_request_serves_the_readers_in_turn() {
    let on_disk = |name: &str| StageSpec { disk: Some("sda".into()), ..stage(name, Io, 0.0, 10.0) };
    let mut spec = free_of_cost(2, 10, 4, vec![on_disk("read"), on_disk("write")]);
    spec.disks.push(DiskSpec { name: "sda".into(), mb_per_s: 0.0, parallel: 1 });
    assert_eq!(default_of(&spec).elapsed_ns, 2 * 10 * 10 * US);
    spec.disks[0].parallel = 2;
    assert_eq!(default_of(&spec).elapsed_ns, 11 * 10 * US);
    spec.stages.iter_mut().for_each(|stage| (stage.wait_us, stage.mb) = (0.0, 0.5));
    spec.disks[0].mb_per_s = 1000.0;
    assert_eq!(default_of(&spec).elapsed_ns, 11 * 500 * US);
}

#[test]
fn a_hog_takes_its_half() {
    let mut spec = free_of_cost(1, 1000, 2, vec![stage("a", Compute, 1000.0, 0.0)]);
    spec.hogs.push(HogSpec { count: 1, nice: 0, busy_us: 1e3, sleep_us: 0.0, from_s: 0.0, until_s: None });
    let out = default_of(&spec);
    let stretch = out.elapsed_ns as f64 / 1e9;
    assert!((1.98..2.02).contains(&stretch), "{stretch}");
    (spec.hogs[0].nice, spec.rounds) = (10, 5000);
    let stretch = default_of(&spec).elapsed_ns as f64 / 5e9;
    assert!((1.10..1.115).contains(&stretch), "1 + 110 / 1024, not {stretch}");
    spec.hogs[0].until_s = Some(1.0);
    let stretch = default_of(&spec).elapsed_ns as f64 / 5e9;
    assert!((1.018..1.022).contains(&stretch), "{stretch}");
}

#[test]
fn a_cpu_that_is_idle_takes_who_waits_elsewhere() {
    let out =
        default_of(&free_of_cost(2, 1000, 8, (0..4).map(|k| stage(&k.to_string(), Compute, 100.0, 0.0)).collect()));
    let bound_ns = 1000 * 400 * US / 2;
    assert!(out.elapsed_ns < bound_ns * 103 / 100, "{} of {bound_ns}", out.elapsed_ns);
}

#[test]
fn switches_and_cold_caches_cost() {
    let stages = vec![stage("a", Compute, 1000.0, 0.0)];
    let mut spec = free_of_cost(1, 100, 1, stages);
    spec.hogs.push(HogSpec { count: 1, nice: 0, busy_us: 1e3, sleep_us: 0.0, from_s: 0.0, until_s: None });
    (spec.machine.switch_us, spec.machine.cold_us) = (5.0, 100.0);
    let out = default_of(&spec);
    let extra_us = (out.stages[0].cpu_ns - 100 * 1000 * US) / US;
    let interrupted = out.switches / 2;
    assert!(interrupted > 10);
    assert!(extra_us.abs_diff(interrupted * 105) <= 105, "{extra_us} us, {interrupted} times interrupted");
}

#[test]
fn incarnations_work_at_the_same_time() {
    let heavy = |incarnations| StageSpec { incarnations, ..stage("b", Compute, 40.0, 0.0) };
    let spec =
        |n| free_of_cost(4, 100, 8, vec![stage("a", Compute, 10.0, 0.0), heavy(n), stage("c", Compute, 10.0, 0.0)]);
    assert_eq!(default_of(&spec(1)).elapsed_ns, (100 * 40 + 20) * US);
    assert_eq!(default_of(&spec(2)).elapsed_ns, (20 + 50 * 40 + 10) * US, "the second of two begins at 20");
}

#[test]
fn workers_carry_buffers_to_the_end() {
    let worker = |name: &str, cpu_us: f64| StageSpec { kind: StageKind::Worker, ..stage(name, Compute, cpu_us, 0.0) };
    let spec = free_of_cost(2, 1000, 8, vec![worker("a", 10.0), worker("b", 40.0), worker("c", 10.0)]);
    let out = default_of(&spec);
    // Stages are serial: the middle one limits, although two workers could do 30 us per round.
    assert!((1000 * 40 * US..1000 * 41 * US).contains(&out.elapsed_ns), "{}", out.elapsed_ns);
    let mut spread = spec.clone();
    spread.stages[1].incarnations = 2;
    let out = default_of(&spread);
    assert!((1000 * 30 * US..1000 * 31 * US).contains(&out.elapsed_ns), "{}", out.elapsed_ns);
}

#[test]
fn impossible_descriptions_are_refused() {
    let good = free_of_cost(2, 10, 2, vec![stage("a", Compute, 1.0, 0.0)]);
    let wrong: [fn(&mut PipelineSpec); 8] = [
        |spec| spec.stages.clear(),
        |spec| spec.buffers = 0,
        |spec| spec.rounds = 0,
        |spec| spec.stages[0].cpu_us = 0.0,
        |spec| spec.stages[0].cpu_us = f64::NAN,
        |spec| spec.stages[0].disk = Some("none".into()),
        |spec| spec.machine.cpus = 0,
        |spec| spec.stages[0].incarnations = 0,
    ];
    for (k, change) in wrong.into_iter().enumerate() {
        let mut spec = good.clone();
        change(&mut spec);
        assert!(matches!(simulate(&spec, Priorities::Auto), Err(PipelineError::Spec { .. })), "{k}");
    }
}

#[test]
fn the_same_description_gives_the_same_outcome() {
    let noisy = |name: &str, resource, cpu_us, wait_us| StageSpec { cv: 0.5, ..stage(name, resource, cpu_us, wait_us) };
    let mut spec = free_of_cost(2, 500, 4, vec![noisy("a", Io, 50.0, 300.0), noisy("b", Compute, 200.0, 0.0)]);
    spec.hogs.push(HogSpec { count: 1, nice: 0, busy_us: 1e3, sleep_us: 0.0, from_s: 0.0, until_s: None });
    for priorities in ["default", "auto", "adjust-up-down", "fifo-io"] {
        let run = |spec: &PipelineSpec| simulate(spec, priorities.parse().unwrap()).unwrap();
        assert_eq!(run(&spec), run(&spec));
        let other = PipelineSpec { seed: 2, ..spec.clone() };
        assert_ne!(run(&spec).elapsed_ns, run(&other).elapsed_ns);
    }
}
