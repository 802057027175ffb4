//! Auto: which policy is chosen for each job, and that it is never much worse than the better of gang and local.

use super::laws::crowd;
use super::*;
use crate::general::{NodeModel, Spin};
use cosched_core::{Choice, Policy, Reason, Wait};

/// Records the choices: time, job, choice.
#[derive(Default)]
struct Choices(Vec<(u64, u32, Choice)>);

impl Observer for Choices {
    fn slice(&mut self, _: Slice) {}
    fn message(&mut self, _: Message) {}
    fn job(&mut self, _: u64, _: u32, _: JobChange, _: &[u32], _: Option<u32>) {}
    fn row(&mut self, _: u64, _: u32) {}

    fn choice(&mut self, time_ns: u64, job: u32, choice: Choice) {
        self.0.push((time_ns, job, choice));
    }
}

/// With slots of 20 ms, as live.
fn auto(nodes: u32, model: NodeModel) -> Config {
    let config = machine("auto", nodes);
    Config { model, params: Params { quantum_ns: 20 * MS, mpl: 8, ..config.params }, ..config }
}

fn chosen(config: &Config, works: &[Work]) -> (Outcome, Vec<(u64, u32, Choice)>) {
    let mut choices = Choices::default();
    let outcome = simulate_all(config, works, &mut choices, &mut |_| true).unwrap();
    (outcome, choices.0)
}

/// The policies that a job had, in order.
fn policies(choices: &[(u64, u32, Choice)], job: u32) -> Vec<Policy> {
    let mut found = vec![Policy::Gang];
    found.extend(choices.iter().filter(|(_, other, _)| *other == job).map(|(.., choice)| choice.policy));
    found.dedup();
    found
}

const FINE: &str = "repeat 5000 { compute 500us; exchange 1d }";
const SHORT: &str = "repeat 1500 { compute 500us skew; exchange 1d }";
const WAITS: &str = "repeat 400 { compute 2ms; io 8ms; exchange 1d }";

#[test]
fn jobs_that_wait_become_local_and_the_others_stay_gangs() {
    for model in [NodeModel::Paper, NodeModel::Linux] {
        let works = programs(&[(0, 2, FINE), (0, 2, WAITS), (0, 2, FINE), (0, 2, WAITS)]);
        let (_, choices) = chosen(&auto(2, model), &works);
        for job in 0..4 {
            let expected = if job % 2 == 0 { vec![Policy::Gang] } else { vec![Policy::Gang, Policy::Local] };
            assert_eq!(policies(&choices, job), expected, "{model:?}: job {job} of {choices:?}");
        }
        let first = choices.iter().find(|(_, job, choice)| *job == 1 && choice.policy == Policy::Local).unwrap();
        assert!(first.0 < 2_000 * MS, "within three windows: {first:?}");
        assert_eq!((first.2.wait, first.2.reason), (Wait::SpinBlock, Reason::WaitsMuch));
    }
}

#[test]
fn a_program_that_changes_its_phase_is_changed_too() {
    let phases = "repeat 300 { compute 2ms; io 8ms; exchange 1d }; repeat 8000 { compute 480us; exchange 1d 1kB }";
    let works = programs(&[(0, 2, phases), (0, 2, "repeat 16000 { compute 500us; exchange 1d }")]);
    let (_, choices) = chosen(&auto(2, NodeModel::Linux), &works);
    // Beside a computing local job, a gang gains little: it may change for that time, but not more often.
    let of_second = policies(&choices, 1);
    assert!(of_second.len() <= 3 && of_second.last() == Some(&Policy::Gang), "{choices:?}");
    let of_first = policies(&choices, 0);
    assert_eq!(of_first[..2], [Policy::Gang, Policy::Local], "{choices:?}");
    assert!(of_first.len() <= 3, "no flapping: {choices:?}");
}

#[test]
fn alone_a_job_is_a_gang_that_waits_busy() {
    let (outcome, choices) = chosen(&auto(2, NodeModel::Linux), &programs(&[(0, 2, WAITS)]));
    assert_eq!(policies(&choices, 0), [Policy::Gang]);
    assert!(choices.iter().all(|(.., choice)| choice.wait == Wait::Busy && choice.reason == Reason::Alone));
    let alone = simulate_all(&machine("SB", 2), &programs(&[(0, 2, WAITS)]), &mut Silent, &mut |_| true).unwrap();
    let ratio = outcome.sim_end_ns as f64 / alone.sim_end_ns as f64;
    assert!((0.95..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn auto_is_about_as_good_as_the_better_of_gang_and_local() {
    let mixes = [[FINE, FINE, FINE, FINE], [WAITS, WAITS, WAITS, WAITS], [FINE, WAITS, FINE, WAITS]];
    for (mix, texts) in mixes.iter().enumerate() {
        let works = programs(&texts.map(|text| (0, 2, text)));
        let mean_ms = |strategy: &str| {
            let mut config = auto(2, NodeModel::Linux);
            config.params.check_invariants = false;
            config.params.strategy = strategy.parse().unwrap();
            config.gang_wait = Wait::SpinBlock;
            let outcome = simulate_all(&config, &works, &mut Silent, &mut |_| true).unwrap();
            outcome.jobs.iter().map(|job| job.finish_ns.unwrap() / MS).sum::<u64>() / 4
        };
        let [soft, local, auto] = ["soft-gang", "SB", "auto"].map(mean_ms);
        eprintln!("mix {mix}: soft gang {soft} ms, SB {local} ms, auto {auto} ms");
        assert!(auto * 100 <= soft.min(local) * 110, "mix {mix}: soft {soft}, local {local}, auto {auto} ms");
    }
}

#[test]
fn laws_hold_under_auto() {
    for model in [NodeModel::Paper, NodeModel::Linux] {
        for cpus_per_node in [1, 2] {
            for seed in 1..3 {
                let params = Params { mpl: 4, skew: 0.5, quantum_ns: 7 * MS, seed, ..machine("auto", 6).params };
                let config = Config { model, cpus_per_node, ..Config::paper(params) };
                let works: Vec<Work> = crowd().into_iter().map(Work::Paper).collect();
                let mut record = Record::default();
                let outcome = simulate_all(&config, &works, &mut record, &mut |_| true).unwrap();
                assert!(outcome.jobs.iter().all(|job| job.finish_ns > job.start_ns));
                let again = simulate_all(&config, &works, &mut Silent, &mut |_| true).unwrap();
                assert_eq!(again, outcome, "the same again, unwatched");
            }
        }
    }
}

#[test]
fn a_spin_time_that_is_found_is_about_as_good_as_the_best_fixed_one() {
    // Messages arrive after 0.3 to 1 ms when the partner runs, and much later when it does not.
    let works = programs(&[(0, 2, SHORT), (0, 2, SHORT), (0, 2, SHORT)]);
    for model in [NodeModel::Paper, NodeModel::Linux] {
        let end_ms = |spin_ns: u64, spin: Spin| {
            let base = machine("SB", 2);
            let params = Params { spin_ns, skew: 0.2, check_invariants: false, ..base.params };
            let config = Config { model, spin, params, ..base };
            simulate_all(&config, &works, &mut Silent, &mut |_| true).unwrap().sim_end_ns / MS
        };
        let fixed: Vec<u64> = [1, 50, 200, 1_000].map(|us| end_ms(us * US, Spin::Fixed)).to_vec();
        let best = *fixed.iter().min().unwrap();
        for start_us in [1, 5_000] {
            let found = end_ms(start_us * US, Spin::Adaptive);
            eprintln!("{model:?} from {start_us} us: {found} ms; fixed {fixed:?}");
            assert!(found * 100 <= best * 115, "{model:?} from {start_us} us: {found} ms, fixed {fixed:?}");
        }
    }
}
