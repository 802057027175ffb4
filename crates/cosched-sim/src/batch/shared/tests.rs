//! Cases computed by hand, and what must hold for any list.

use super::*;
use crate::batch::intervals::Places;
use crate::batch::{EventOrder, Policy, simulate};
use proptest::prelude::*;

const S: u64 = 1_000_000;

fn job(submit_s: u64, size: u32, run_s: u64) -> BatchJob {
    BatchJob { number: 1, user: 0, submit_us: submit_s * S, size, run_us: run_s * S, estimate_us: run_s * S }
}

fn gang(rows: u32, slot_us: u64, switch_us: u64) -> Sharing {
    Sharing::SoftGang(SoftGang { rows, slot_us, switch_us })
}

fn malleable(least: f64, most: f64) -> Malleable {
    Malleable { part: 1.0, least, most, serial: 0.0, resize_us: 0, seed: 1 }
}

fn ends_s(jobs: &[BatchJob], procs: u32, sharing: &Sharing) -> Vec<f64> {
    simulate_shared(jobs, procs, sharing).end_us.iter().map(|us| *us as f64 / S as f64).collect()
}

#[test]
fn gangs_take_turns_and_lend_what_they_leave_idle() {
    // Two jobs of the whole machine: slots of 1 s, and 0.1 s of each is lost.
    let jobs = [job(0, 4, 3), job(0, 4, 1)];
    assert_eq!(ends_s(&jobs, 4, &gang(2, S, 0)), [4.0, 2.0]);
    assert_eq!(ends_s(&jobs, 4, &gang(2, S, S / 10)), [4.4, 3.2]);
    // The third runs beside the first one, and the second has every other slot.
    let jobs = [job(0, 2, 10), job(0, 4, 2), job(0, 2, 10)];
    assert_eq!(ends_s(&jobs, 4, &gang(3, S, 0)), [12.0, 4.0, 12.0]);
    // Two rows are full with two jobs; the third waits for the end of the first.
    let jobs = [job(0, 4, 2), job(0, 4, 4), job(0, 4, 1)];
    assert_eq!(ends_s(&jobs, 4, &gang(2, S, 0)), [3.0, 7.0, 5.0]);
}

#[test]
fn sharers_advance_as_their_most_loaded_processor_lets_them() {
    let over = |speed| Sharing::Oversubscribe(Oversubscribe { rows: 2, speed });
    // The second has two of its four processors for itself, and waits there for the others.
    let jobs = [job(0, 2, 3), job(0, 4, 3)];
    assert_eq!(ends_s(&jobs, 4, &over(1.0)), [6.0, 6.0]);
    assert_eq!(ends_s(&jobs, 4, &over(0.5)), [12.0, 12.0]);
    // The second takes the processors that the first leaves free.
    assert_eq!(ends_s(&[job(0, 2, 3), job(0, 2, 5)], 4, &over(0.5)), [3.0, 5.0]);
}

#[test]
fn slices_go_to_those_that_have_waited_longest() {
    let robin = |switch_us| Sharing::RoundRobin(RoundRobin { rows: 2, slot_us: 60 * S, switch_us });
    let jobs = [job(0, 4, 90), job(0, 2, 90), job(0, 2, 60)];
    // 0 to 60 the first, to 120 the others, then the first again until 150, then the second.
    assert_eq!(ends_s(&jobs, 4, &robin(0)), [150.0, 180.0, 120.0]);
    assert_eq!(ends_s(&jobs, 4, &robin(S)), [151.0, 182.0, 120.0]);
    // One that comes within the second slice waits for the third.
    assert_eq!(ends_s(&[job(0, 4, 200), job(90, 4, 30)], 4, &robin(S)), [231.0, 150.0]);
}

#[test]
fn malleable_jobs_make_room_and_use_what_is_left() {
    // The first grows to the machine until the second comes; then both have their own sizes; then the second grows.
    let jobs = [job(0, 2, 10), job(2, 2, 10)];
    assert_eq!(ends_s(&jobs, 4, &Sharing::Malleable(malleable(0.5, 2.0))), [8.0, 10.0]);
    // The second needs at least 2 of 4: the first shrinks to 2 and returns to 4.
    let jobs = [job(0, 4, 10), job(0, 4, 1)];
    assert_eq!(ends_s(&jobs, 4, &Sharing::Malleable(malleable(0.5, 1.0))), [11.0, 2.0]);
    let costly = Malleable { resize_us: S, ..malleable(0.5, 1.0) };
    assert_eq!(ends_s(&jobs, 4, &Sharing::Malleable(costly)), [12.0, 2.0]);
    // A job that is half serial gains a third from twice the processors.
    let half = Malleable { serial: 0.5, ..malleable(1.0, 2.0) };
    assert_eq!(ends_s(&[job(0, 1, 3)], 2, &Sharing::Malleable(half)), [2.25]);
}

fn any_sharing() -> impl Strategy<Value = Sharing> {
    (0..4_usize, 1..4_u32, 1..9_u64, 0..10_u64, 0..=4_u32, 0..3_u64).prop_map(
        |(which, rows, slot_us, switch, part, resize_us)| {
            let (switch_us, part) = (switch % slot_us, f64::from(part) / 4.0);
            match which {
                0 => gang(rows, slot_us, switch_us),
                1 => Sharing::Oversubscribe(Oversubscribe { rows, speed: (part + 0.1).min(1.0) }),
                2 => Sharing::RoundRobin(RoundRobin { rows, slot_us: S + slot_us, switch_us: switch * 3 }),
                _ => Sharing::Malleable(Malleable {
                    part,
                    least: part,
                    most: 1.0 + part,
                    serial: part,
                    resize_us,
                    seed: 3,
                }),
            }
        },
    )
}

fn any_jobs() -> impl Strategy<Value = Vec<BatchJob>> {
    let job = (0..40_u64, 1..=8_u32, 1..20_u64, 0..15_u64).prop_map(|(submit_us, size, run_us, slack)| BatchJob {
        submit_us,
        estimate_us: run_us + slack,
        run_us,
        ..job(0, size, 1)
    });
    prop::collection::vec(job, 1..30).prop_map(|mut jobs| {
        jobs.sort_by_key(|job| job.submit_us);
        jobs
    })
}

proptest! {
    #[test]
    fn every_job_ends_and_work_is_conserved(jobs in any_jobs(), sharing in any_sharing()) {
        prop_assert_eq!(sharing.check(), Ok(()));
        let schedule = simulate_shared(&jobs, 8, &sharing);
        for (job, (start, end)) in jobs.iter().zip(schedule.start_us.iter().zip(&schedule.end_us)) {
            prop_assert!(*start >= job.submit_us && end > start);
            let faster = matches!(sharing, Sharing::Malleable(_));
            prop_assert!(faster || end - start >= job.run_us, "{:?} in {} µs", job, end - start);
        }
        let count = |places: &Places| places.iter().map(|(low, high)| high - low + 1).sum::<u32>();
        let keeps = matches!(sharing, Sharing::SoftGang(_) | Sharing::Oversubscribe(_));
        for (job, places) in jobs.iter().zip(schedule.places.as_ref().unwrap()) {
            prop_assert_eq!(count(places), if keeps { job.size } else { 0 });
        }
        // Before a time no more work is done than the machine could do: of the jobs that have ended by then.
        let mut last: Vec<(u64, u64)> = schedule.end_us.iter().copied().zip(jobs.iter().map(|job| u64::from(job.size) * job.run_us)).collect();
        last.sort_unstable();
        let first = jobs[0].submit_us;
        let mut work = 0;
        for (end, of_job) in last {
            work += of_job;
            // A malleable job of several processors may be less parallel than its size: it may do its work with less.
            let serial = matches!(sharing, Sharing::Malleable(malleable) if malleable.serial > 0.0);
            prop_assert!(serial || work <= 8 * (end - first), "{} of {}", work, 8 * (end - first));
        }
    }

    /// One row, processors to spare or not: no job shares or pays, so it is EASY.
    #[test]
    fn a_single_row_is_easy(jobs in any_jobs(), slot_us in 2..9_u64) {
        let easy = simulate(&jobs, 8, Policy::Easy, EventOrder::All);
        for sharing in [gang(1, slot_us, slot_us / 2), Sharing::Oversubscribe(Oversubscribe { rows: 1, speed: 0.5 })] {
            let found = simulate_shared(&jobs, 8, &sharing);
            prop_assert_eq!(&found.start_us, &easy.start_us);
            prop_assert_eq!(found.idle_while_waiting, easy.idle_while_waiting);
            prop_assert!(found.end_us.iter().zip(&found.start_us).zip(&jobs).all(|((end, start), job)| end - start == job.run_us));
        }
    }

    #[test]
    fn jobs_that_are_not_malleable_are_scheduled_by_easy(jobs in any_jobs()) {
        let rigid = Sharing::Malleable(Malleable { part: 0.0, ..malleable(0.5, 2.0) });
        let (found, easy) = (simulate_shared(&jobs, 8, &rigid), simulate(&jobs, 8, Policy::Easy, EventOrder::All));
        prop_assert_eq!(found.start_us, easy.start_us);
        prop_assert_eq!(found.end_us, easy.end_us);
    }
}

#[test]
fn impossible_values_are_named() {
    let wrong = [
        gang(0, S, 0),
        gang(17, S, 0),
        gang(2, 0, 0),
        gang(2, S, S),
        Sharing::Oversubscribe(Oversubscribe { rows: 2, speed: f64::NAN }),
        Sharing::Oversubscribe(Oversubscribe { rows: 2, speed: 0.0 }),
        Sharing::RoundRobin(RoundRobin { rows: 2, slot_us: u64::MAX, switch_us: 0 }),
        Sharing::RoundRobin(RoundRobin { rows: 2, slot_us: S - 1, switch_us: 0 }),
        Sharing::Malleable(Malleable { part: 1.1, ..malleable(0.5, 2.0) }),
        Sharing::Malleable(malleable(f64::NAN, 2.0)),
        Sharing::Malleable(malleable(0.5, 0.9)),
        Sharing::Malleable(Malleable { resize_us: u64::MAX, ..malleable(0.5, 2.0) }),
    ];
    assert!(wrong.iter().all(|sharing| sharing.check().is_err()));
}
