//! The wall clock: what a daemon does when it is not synchronised, and when it is set.
//!
//! The kernel has one wall clock, without namespaces. So the test that sets it runs only where the machine belongs to
//! the test: with COSCHED_TEST_STEP_CLOCK=1. The emulated machine of tests/v2 does the same on every `make test`.

use cosched_api::JobState;
use cosched_tests::{Daemon, needs_root, procs, stdout, wait_until};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use std::time::Duration;

const SPIN_2: &str = "while :; do :; done & while :; do :; done";
const STEP_S: i64 = 5;

fn used_in(d: &Daemon, jobs: &[u64], ms: u64) -> Vec<u64> {
    let read = || jobs.iter().map(|id| procs::cpu_usec(&d.v2_job(*id))).collect::<Vec<_>>();
    let before = read();
    std::thread::sleep(Duration::from_millis(ms));
    read().iter().zip(before).map(|(now, then)| now - then).collect()
}

#[test]
fn without_a_synchronised_clock_gangs_have_no_slots_where_it_is_required() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nsharing = \"strict\"\nrequire_synchronised_clock = true\n");
    let jobs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    let status = d.client().status().unwrap();
    let clock = status.clock.clone().unwrap();
    let warned = status.warnings.iter().any(|w| w.what == "gangs have no slots");
    if clock.holds_slots.is_none() {
        assert_eq!((clock.synchronised, warned), (Some(true), false));
        println!("SKIPPED: this machine's clock is synchronised, so nothing is held back");
    } else {
        assert!(warned && stdout(&d.cosched(&["status"])).contains("gangs have no slots"));
        assert!(status.matrix.current.is_empty() && status.matrix.turns.is_empty(), "{:?}", status.matrix);
        let before = d.client().status().unwrap().switches.count;
        let used = used_in(&d, &jobs, 1500);
        assert!(used.iter().all(|us| *us > 100_000), "Linux schedules both: {used:?}");
        assert!(!d.frozen(jobs[0]) && !d.frozen(jobs[1]));
        assert_eq!(d.client().status().unwrap().switches.count, before);
        // A suspended job stays suspended nevertheless.
        d.client().suspend(jobs[0]).unwrap();
        assert!(wait_until(|| d.frozen(jobs[0])));
        assert!(stdout(&d.cosched(&["metrics"])).contains("cosched_clock_holds_slots 1.0"));
    }
    for id in jobs {
        d.cosched(&["kill", "-9", &id.to_string()]);
    }
}

/// Sets the clock, and in any case sets it back, by its distance to the clock that cannot be set.
struct Step {
    distance_ns: i64,
}

fn ns(id: ClockId) -> i64 {
    let time = clock_gettime(id);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn set_distance(distance_ns: i64) {
    let at = ns(ClockId::Boottime) + distance_ns;
    let time = Timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    clock_settime(ClockId::Realtime, time).expect("root may set the clock");
}

impl Step {
    fn by(seconds: i64) -> Step {
        let distance_ns = ns(ClockId::Realtime) - ns(ClockId::Boottime);
        set_distance(distance_ns + seconds * 1_000_000_000);
        Step { distance_ns }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        set_distance(self.distance_ns);
    }
}

#[test]
fn a_clock_that_is_set_stops_no_job_and_starves_none() {
    if !needs_root() {
        return;
    }
    if std::env::var_os("COSCHED_TEST_STEP_CLOCK").is_none_or(|v| v != "1") {
        println!("SKIPPED: setting the machine's clock has to be asked for: COSCHED_TEST_STEP_CLOCK=1");
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nsharing = \"strict\"\nidle_after = \"1s\"\n");
    let jobs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    let sleeper = d.detach(&["--", "sh", "-c", "read x < /dev/ptmx"]);
    let mut steps = 0;
    for seconds in [STEP_S, -STEP_S] {
        let fair = |when: &str| {
            let used = used_in(&d, &jobs, 1500);
            let mean = used.iter().sum::<u64>() / 2;
            assert!(mean > 100_000, "{when}, by {seconds} s: a job stands still: {used:?}");
            assert!(used.iter().all(|us| *us * 3 > mean), "{when}, by {seconds} s: a job starves: {used:?}");
        };
        fair("before");
        let step = Step::by(seconds);
        fair("while it is wrong");
        drop(step);
        fair("set back");
        steps += 2;
        let clock = d.client().status().unwrap().clock.unwrap();
        assert_eq!(clock.steps, steps, "{clock:?}");
        let by_ms = clock.last_step_ms.unwrap();
        assert!((by_ms + seconds * 1000).abs() < 100, "set back by {by_ms} ms");
    }
    assert!(wait_until(|| d.client().job(sleeper).unwrap().state == JobState::Asleep), "idleness is still noticed");
    assert!(jobs.iter().all(|id| d.client().job(*id).unwrap().state == JobState::Running));
    assert!(stdout(&d.cosched(&["metrics"])).contains("cosched_clock_steps_total 4.0"));
    assert!(stdout(&d.cosched(&["status"])).contains("set 4 times since the daemon started"));
    assert!(d.log().contains("the wall clock was set"), "{}", d.log());
    for id in jobs.into_iter().chain([sleeper]) {
        d.cosched(&["kill", "-9", &id.to_string()]);
    }
}
