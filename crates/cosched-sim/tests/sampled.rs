//! Sampled runs compared with exact ones (docs/simulator.md, chapter 6): long enough to jump, short enough to test.

use cosched_sim::paper::{Sampling, run, run_sampled};
use cosched_sim::{JobSpec, JobType, Outcome, Params, Silent, SimError, Strategy};

fn jobs() -> Vec<JobSpec> {
    let job = |i: u64| JobSpec {
        arrival_ns: i * 14_000_000_000,
        tasks: [4, 2, 1, 3][i as usize % 4],
        exec_ns: (20 + i * 7 % 12) * 1_000_000_000,
        kind: [JobType::J3, JobType::J1, JobType::J6, JobType::J2][i as usize % 4],
        class: cosched_sim::Class::Batch,
        footprint: cosched_sim::Footprint::default(),
    };
    (0..6).map(job).collect()
}

fn mean_response_s(outcome: &Outcome, jobs: &[JobSpec]) -> f64 {
    let each = outcome.jobs.iter().zip(jobs).map(|(times, job)| times.finish_ns.unwrap() - job.arrival_ns);
    each.sum::<u64>() as f64 / jobs.len() as f64 / 1e9
}

#[test]
fn sampled_runs_come_near_exact_ones() {
    let sampling = Sampling { first: 3, windows: (3, 8), copies: 2, ..Sampling::default() };
    for strategy in ["GS", "SB"] {
        let params = Params { mpl: 3, ..Params::paper(strategy.parse::<Strategy>().unwrap(), 4) };
        let jobs = jobs();
        let exact = run(&params, &jobs, &mut Silent, &mut |_| true).unwrap();
        let (outcome, report) = run_sampled(&params, &jobs, &sampling, 1, &mut |_| true).unwrap();
        assert!(report.skipped.jumps > 3 && report.skipped.skipped_ns > exact.sim_end_ns / 8, "{strategy}: {report:?}");
        assert!(outcome.events < exact.events, "{strategy}");
        let (a, b) = (mean_response_s(&exact, &jobs), mean_response_s(&outcome, &jobs));
        assert!((a - b).abs() < 0.02 * a, "{strategy}: {a} s exact, {b} s sampled");
        // What was skipped is in the accounts nevertheless.
        assert_eq!(outcome.task_iterations, exact.task_iterations, "{strategy}");
        let part = |of: &Outcome| of.cpu.compute_ns as f64 / of.sim_end_ns as f64;
        assert!((part(&exact) - part(&outcome)).abs() < 0.02 * part(&exact), "{strategy}: CPU time");
    }
}

#[test]
fn sampling_is_repeatable_and_refuses_an_end() {
    let params = Params { mpl: 3, ..Params::paper("SB".parse().unwrap(), 4) };
    let run = |params: &Params| {
        run_sampled(params, &jobs()[..3], &Sampling { copies: 2, ..Sampling::default() }, 1, &mut |_| true)
    };
    assert_eq!(run(&params).unwrap(), run(&params).unwrap());
    assert!(run(&Params { end_ns: Some(1), ..params }).is_err());
}

#[test]
fn any_number_of_threads_gives_the_same_result() {
    let sampling = Sampling { copies: 3, ..Sampling::default() };
    for strategy in ["GS", "PB"] {
        let params = Params { mpl: 3, ..Params::paper(strategy.parse().unwrap(), 4) };
        let run = |threads| {
            let (mut last, mut whole) = (0, 0);
            let run = run_sampled(&params, &jobs(), &sampling, threads, &mut |now| {
                assert!(now.task_iterations.0 >= last, "{strategy}, {threads} threads");
                (last, whole) = now.task_iterations;
                true
            });
            assert!(
                last <= whole && (last > 0 || strategy == "GS"),
                "{strategy}, {threads} threads: {last} of {whole}"
            );
            run.unwrap()
        };
        let alone = run(1);
        for threads in [2, 3, 64] {
            assert!(run(threads) == alone, "{strategy}, {threads} threads");
        }
    }
}

#[test]
fn all_copies_stop_at_once() {
    let params = Params { mpl: 3, ..Params::paper("PB".parse().unwrap(), 4) };
    for threads in [1, 3] {
        let mut asked = 0;
        let run = run_sampled(&params, &jobs(), &Sampling::default(), threads, &mut |_| {
            asked += 1;
            asked < 2
        });
        assert!(matches!(run, Err(SimError::Stopped)) && asked == 2, "{threads} threads: {asked}");
    }
}
