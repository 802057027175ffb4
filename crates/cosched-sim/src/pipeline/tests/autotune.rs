//! Autotune compared with every fixed setting, over a grid of pipelines: issue 6's bar, without a clock.
//!
//! The bar: never worse than the default by more than 1 %, and within 2 % of the best fixed setting. A trial costs time at the
//! beginning, so the gain is compared over a run of some seconds. Two runs of the same pipeline with different random numbers
//! differ by some tenths of a per cent without a hog, and by 1 % with one: no test can be more precise than that.

use super::*;
use cosched_core::stage::Resource::{Communicate, Compute, Io};

fn noisy(name: &str, resource: Resource, cpu_us: f64, wait_us: f64) -> StageSpec {
    StageSpec { cv: 0.1, ..stage(name, resource, cpu_us, wait_us) }
}

/// Columnsort's five stages with these times (I/O, compute), in µs, on an ordinary machine.
fn columnsort(io_us: f64, compute_us: f64, hogs: u32, seconds: u64) -> PipelineSpec {
    let stages = vec![
        noisy("read", Io, 60.0, io_us),
        noisy("sort", Compute, compute_us, 0.0),
        noisy("exchange", Communicate, 60.0, 100.0),
        noisy("permute", Compute, compute_us * 0.85, 0.0),
        noisy("write", Io, 60.0, io_us * 0.9),
    ];
    on_a_machine(stages, hogs, seconds)
}

fn on_a_machine(stages: Vec<StageSpec>, hogs: u32, seconds: u64) -> PipelineSpec {
    let mut spec = free_of_cost(2, 300, 8, stages);
    spec.machine = MachineSpec::default();
    let hog = HogSpec { count: hogs, nice: 0, busy_us: 1e3, sleep_us: 0.0, from_s: 0.0, until_s: None };
    spec.hogs.extend((hogs > 0).then_some(hog));
    spec.rounds = (default_of(&spec).rate() * seconds as f64) as u64;
    spec
}

/// One stage takes five times as long as each of the others.
fn imbalanced(hogs: u32, replicable_to: u32) -> PipelineSpec {
    let light = |name: &str| noisy(name, Compute, 150.0, 0.0);
    let heavy = StageSpec { replicable_to, ..noisy("heavy", Compute, 800.0, 0.0) };
    let stages = vec![noisy("read", Io, 30.0, 150.0), light("a"), heavy, light("b"), noisy("write", Io, 30.0, 150.0)];
    on_a_machine(stages, hogs, 6)
}

fn run(spec: &PipelineSpec, priorities: &str) -> PipelineOutcome {
    simulate(spec, priorities.parse().unwrap()).unwrap()
}

/// The time under autotune relative to that of the default, and relative to that of the best of these settings.
fn compare(spec: &PipelineSpec, settings: &[&str]) -> (f64, f64, String) {
    let default_ns = default_of(spec).elapsed_ns as f64;
    let auto = run(spec, "auto");
    let auto_ns = auto.elapsed_ns as f64;
    let best_ns = settings.iter().map(|one| run(spec, one).elapsed_ns as f64).fold(default_ns, f64::min);
    let asked = |told: &Told| {
        format!("{:.2} {} {:?} {}; ", told.time_ns as f64 / 1e9, told.stage, told.change, told.why.unwrap())
    };
    let told: String =
        auto.told.iter().filter(|told| !told.why.unwrap().name().starts_with("comparing")).map(asked).collect();
    (auto_ns / default_ns, auto_ns / best_ns, told)
}

#[test]
fn it_rests_where_nothing_can_be_gained() {
    let disk_bound = columnsort(900.0, 300.0, 0, 5);
    let stage_bound = imbalanced(0, 1);
    let nearly_idle = on_a_machine(vec![noisy("read", Io, 20.0, 800.0), noisy("sort", Compute, 100.0, 0.0)], 0, 5);
    for spec in [disk_bound, stage_bound, nearly_idle] {
        let auto = run(&spec, "auto");
        assert_eq!((auto.changes, &auto.told[..]), (0, &[][..]));
        assert_eq!(auto.elapsed_ns, default_of(&spec).elapsed_ns, "not a nanosecond");
    }
}

#[test]
fn it_is_never_much_worse_and_near_the_best_alone() {
    let balanced = columnsort(800.0, 700.0, 0, 6);
    let few_buffers = PipelineSpec { buffers: 4, ..balanced.clone() };
    for (name, spec) in
        [("compute", columnsort(300.0, 900.0, 0, 6)), ("balanced", balanced), ("few buffers", few_buffers)]
    {
        let (to_default, to_best, told) = compare(&spec, &["nice-up-io", "raise-compute", "short-slices", "batch-all"]);
        assert!(to_default < 1.01, "{name}: {to_default} of the default; {told}");
        assert!(to_best < 1.02, "{name}: {to_best} of the best; {told}");
    }
}

#[test]
fn it_is_near_the_best_beside_a_hog() {
    // A setting that is found late in 6 s is not within 2 % of one that is used from the beginning: 20 s.
    let spec = columnsort(900.0, 400.0, 2, 20);
    let (to_default, to_best, told) = compare(&spec, &["nice-down-io", "short-slices"]);
    assert!(to_default < 0.95, "{to_default}; {told}");
    assert!(to_best < 1.02, "{to_best}; {told}");
}

#[test]
fn it_is_never_much_worse_without_rights_beside_a_hog() {
    for (name, mut spec) in [("compute", columnsort(300.0, 900.0, 1, 6)), ("io", columnsort(900.0, 400.0, 1, 6))] {
        spec.machine.may_raise = false;
        let (to_default, _, told) = compare(&spec, &[]);
        assert!(to_default < 1.01, "{name}: {to_default}; {told}");
    }
}

#[test]
fn structure_is_worth_more_than_priorities() {
    let (to_default, ..) = compare(&imbalanced(0, 2), &[]);
    assert!(to_default < 0.83, "two threads for the stage that limits: {to_default}");
    let outcome = run(&imbalanced(0, 2), "auto");
    assert_eq!(outcome.stages[2].incarnations, 2);
    let mut two = imbalanced(0, 2);
    two.stages[2].incarnations = 2;
    let to_two = outcome.elapsed_ns as f64 / default_of(&two).elapsed_ns as f64;
    assert!(to_two < 1.01, "nothing is lost to find that out: {to_two}");
    let (_, to_best, told) = compare(&imbalanced(1, 1), &["raise-compute"]);
    assert!(to_best < 1.10, "6 s are short beside a hog: {to_best}; {told}");
}

#[test]
fn it_gives_up_what_gives_way_when_a_hog_comes() {
    let mut spec = columnsort(300.0, 900.0, 0, 6);
    spec.machine.may_raise = false;
    let hog = HogSpec { count: 1, nice: 0, busy_us: 1e3, sleep_us: 0.0, from_s: 3.0, until_s: None };
    spec.hogs.push(hog);
    let auto = run(&spec, "auto");
    let first = |name: &str| {
        let told = auto.told.iter().find(|told| told.why.unwrap().name() == name);
        told.map(|told| told.time_ns / 1_000_000)
    };
    let (kept, given_up) = (first("helped"), first("others-came"));
    assert!(kept.is_some_and(|ms| ms < 3_000), "{:?}", auto.told);
    assert!(given_up.is_some_and(|ms| (3_000..3_600).contains(&ms)), "{:?}", auto.told);
    let to_default = auto.elapsed_ns as f64 / default_of(&spec).elapsed_ns as f64;
    assert!(to_default < 1.01, "{to_default}");
}

#[test]
fn the_papers_setting_hurts_beside_a_hog_and_helps_alone() {
    // Roysden 2004, Table 3: nice up for I/O, 5 % faster where computing limits; reference/pipelines.md, section 4: up to 1.34
    // times as long beside a hog.
    let alone = columnsort(300.0, 900.0, 0, 3);
    let ratio =
        |spec: &PipelineSpec, setting| run(spec, setting).elapsed_ns as f64 / default_of(spec).elapsed_ns as f64;
    assert!(ratio(&alone, "nice-up-io") < 0.99);
    let beside = columnsort(900.0, 400.0, 2, 3);
    assert!(ratio(&beside, "nice-up-io") > 1.2);
    assert!(ratio(&beside, "nice-down-io") < 0.95);
    assert!(ratio(&beside, "fifo-io") < 0.90);
}

#[test]
fn section_4_adjusting_gains_little() {
    let compute = columnsort(300.0, 900.0, 0, 3);
    let disk = columnsort(900.0, 300.0, 0, 3);
    for spec in [compute, disk] {
        for rule in ["adjust-once", "adjust-up-down"] {
            let ratio = run(&spec, rule).elapsed_ns as f64 / default_of(&spec).elapsed_ns as f64;
            assert!((0.98..1.02).contains(&ratio), "{rule}: {ratio}");
        }
    }
}
