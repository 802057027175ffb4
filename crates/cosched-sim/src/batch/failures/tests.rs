//! Schedules by hand, and the machine without failures.

use super::*;
use crate::batch::{BatchJob, EventOrder, Policy, simulate};
use crate::workload::outages::Outage;
use proptest::prelude::*;

const S: u64 = 1_000_000;

fn job(submit_s: u64, size: u32, run_s: u64, estimate_s: u64) -> BatchJob {
    BatchJob { number: 0, user: 0, submit_us: submit_s * S, size, run_us: run_s * S, estimate_us: estimate_s * S }
}

fn failures(outages: &[(u32, u64, u64)], checkpoint: Option<(u64, u64)>, restarts_max: u32) -> Failures {
    let outage = |(node, down_s, up_s): &(u32, u64, u64)| Outage { node: *node, down_us: down_s * S, up_us: up_s * S };
    Failures {
        node_procs: 2,
        source: Source::Listed(outages.iter().map(outage).collect()),
        checkpoint: checkpoint.map(|(every_us, cost_us)| Checkpoint { every_us, cost_us }),
        restarts_max,
    }
}

/// Start and end of each job, s.
fn times(schedule: &crate::batch::Schedule) -> Vec<(u64, u64)> {
    schedule.start_us.iter().zip(&schedule.end_us).map(|(start, end)| (start / S, end / S)).collect()
}

/// Two nodes of two processors. The first job has three of them, and the second node fails after 5 of its 10 s, for 3 s.
#[test]
fn an_interrupted_job_starts_again_where_its_checkpoint_was() {
    let jobs = [job(0, 3, 10, 20), job(0, 1, 4, 4)];
    // Checkpoint, restarts; end of the first job, processor seconds lost.
    let cases = [
        (None, 9, 18, 15.0),
        (Some((2 * S, 0)), 9, 14, 3.0),
        // 10 s of work take 12. After 5 s 4 s of work are stored; 6 s of work take 7.
        (Some((2 * S, S / 2)), 9, 15, 3.0),
        (Some((2 * S, 0)), 0, 5, 15.0),
    ];
    for (checkpoint, restarts_max, end_s, lost_processor_s) in cases {
        let (schedule, report) =
            simulate_failing(&jobs, 4, Policy::Easy, &failures(&[(1, 5, 8)], checkpoint, restarts_max)).unwrap();
        assert_eq!(times(&schedule), [(0, end_s), (0, 4)], "{checkpoint:?}");
        assert_eq!(schedule.places, Some(vec![vec![(0, 2)], vec![(3, 3)]]));
        let given_up = restarts_max == 0;
        let down_s = if given_up { 0.0 } else { 3.0 };
        let expected = FailureReport {
            outages: 1,
            restarts: u64::from(!given_up),
            given_up: vec![given_up, false],
            lost_processor_s,
            availability: 1.0 - 2.0 * down_s / (4.0 * end_s as f64),
        };
        assert_eq!(report, expected, "{checkpoint:?}");
    }
}

#[test]
fn a_job_keeps_its_place_in_the_queue_and_its_first_start() {
    // All processors are needed by each; the first is interrupted at 5 and waits for the repair at 7, before the second.
    let jobs = [job(0, 4, 10, 10), job(1, 4, 10, 10)];
    for policy in [Policy::Fcfs, Policy::Easy, Policy::EasySjbf] {
        let (schedule, report) =
            simulate_failing(&jobs, 4, policy, &failures(&[(0, 5, 7), (0, 30, 31)], None, 9)).unwrap();
        assert_eq!(times(&schedule), [(0, 17), (17, 27)], "{policy}");
        assert_eq!((report.outages, report.restarts), (1, 1), "the second outage comes after the end");
    }
}

#[test]
fn backfilling_knows_when_a_repair_ends() {
    // The second node is down from before the first submission until 10. The head needs all four; only one job ends until then.
    let jobs = [job(1, 4, 5, 5), job(1, 1, 9, 9), job(1, 1, 9, 10)];
    let down = failures(&[(1, 0, 10)], None, 9);
    let starts = |policy| times(&simulate_failing(&jobs, 4, policy, &down).unwrap().0);
    assert_eq!(starts(Policy::Easy), [(10, 15), (1, 10), (15, 24)]);
    assert_eq!(starts(Policy::Fcfs), [(10, 15), (15, 24), (15, 24)]);
    let availability = simulate_failing(&jobs, 4, Policy::Fcfs, &down).unwrap().1.availability;
    assert_eq!(availability, 1.0 - 2.0 * 9.0 / (4.0 * 23.0), "from the first submission on");
}

#[test]
fn endless_failures_end() {
    let drawn = Drawn { mtbf_us: 2e6, mttr_us: 1e6, shape: 1.0, seed: 3 };
    let many = Failures { node_procs: 1, source: Source::Drawn(drawn), checkpoint: None, restarts_max: 50 };
    let (schedule, report) = simulate_failing(&[job(0, 8, 100, 100)], 8, Policy::Easy, &many).unwrap();
    assert_eq!((report.given_up, report.restarts), (vec![true], 50));
    assert!(report.lost_processor_s > 0.0 && report.availability < 1.0 && schedule.end_us[0] > schedule.start_us[0]);
}

proptest! {
    #[test]
    fn without_outages_nothing_changes(
        jobs in prop::collection::vec((0..40_u64, 1..=6_u32, 1..20_u64, 0..15_u64), 1..40),
        policy in 0..3_usize,
    ) {
        let mut jobs: Vec<BatchJob> = jobs.into_iter().map(|(at, size, run, slack)| job(at, size, run, run + slack)).collect();
        jobs.sort_by_key(|job| job.submit_us);
        let own = simulate(&jobs, 6, Policy::ALL[policy], EventOrder::All);
        let (failing, report) = simulate_failing(&jobs, 6, Policy::ALL[policy], &failures(&[], None, 1)).unwrap();
        prop_assert_eq!((failing.start_us, failing.end_us), (own.start_us, own.end_us));
        prop_assert_eq!((report.outages, report.lost_processor_s, report.availability), (0, 0.0, 1.0));
    }

    /// What is done, lost and idle is what there is; each job is done in the end.
    #[test]
    fn with_outages_all_is_done(
        jobs in prop::collection::vec((0..40_u64, 1..=6_u32, 1..20_u64, 0..15_u64), 1..20),
        (policy, seed, checkpoint) in (0..3_usize, any::<u64>(), prop::option::of(Just((3 * S, S / 4)))),
    ) {
        let mut jobs: Vec<BatchJob> = jobs.into_iter().map(|(at, size, run, slack)| job(at, size, run, run + slack)).collect();
        jobs.sort_by_key(|job| job.submit_us);
        let drawn = Drawn { mtbf_us: 60e6, mttr_us: 5e6, shape: 0.8, seed };
        let failures = Failures { source: Source::Drawn(drawn), ..failures(&[], checkpoint, u32::MAX) };
        let (schedule, report) = simulate_failing(&jobs, 6, Policy::ALL[policy], &failures).unwrap();
        let work: u64 = jobs.iter().map(|job| u64::from(job.size) * job.run_us).sum();
        let span_us = schedule.end_us.iter().max().unwrap() - jobs[0].submit_us;
        prop_assert!(report.availability * 6.0 * span_us as f64 + 1.0 >= work as f64 + report.lost_processor_s * 1e6);
        for (job, (start, end)) in jobs.iter().zip(schedule.start_us.iter().zip(&schedule.end_us)) {
            prop_assert!(job.submit_us <= *start && start + job.run_us <= *end);
        }
        prop_assert!(report.given_up.iter().all(|given_up| !given_up));
    }
}
