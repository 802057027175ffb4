//! Shares of the slots on real processes: the maximum that a job gets, and that nothing stays stopped because of it.
//!
//! All comparisons are ratios within one run.

use cosched_api::{JobState, ShareRequest};
use cosched_tests::users::{ANN, BOB, as_user, code, empty_job, start};
use cosched_tests::{Daemon, clean_look, needs_root, procs, program, stderr, stdout, wait_until};
use std::time::Duration;

const SPIN_2: &str = "while :; do :; done & while :; do :; done";
const CONFIG: &str = "slot_length = \"20ms\"\n";

/// Whether these jobs get these fractions of the machine's time in the next two seconds.
fn have(d: &Daemon, jobs: &[u64], wanted: &[f64]) -> Result<(), String> {
    have_for(d, Duration::from_secs(2), jobs, wanted, 0.05)
}

/// Whether these jobs get these fractions of the machine's time for this long. Time used by other programs may be missing from the jobs'.
fn have_for(d: &Daemon, window: Duration, jobs: &[u64], wanted: &[f64], tolerance: f64) -> Result<(), String> {
    let read = || jobs.iter().map(|id| procs::cpu_usec(&d.v2_job(*id))).collect::<Vec<_>>();
    let (before, machine) = (read(), procs::cpu_time());
    std::thread::sleep(window);
    let time = procs::cpu_time().since(machine);
    let all = (time.busy_us + time.idle_us) as f64;
    let parts: Vec<f64> = read().iter().zip(before).map(|(now, then)| (now - then) as f64 / all).collect();
    let others = time.busy_us as f64 / all - parts.iter().sum::<f64>();
    let holds =
        |(part, wanted): (&f64, &f64)| *part < wanted + tolerance && *part > wanted - tolerance - others.max(0.0);
    match parts.iter().zip(wanted).all(holds) {
        true => Ok(()),
        false => Err(format!("{parts:.3?} instead of {wanted:?}, and {others:.3} for others")),
    }
}

/// A job that spins on two CPUs, with the maximum share of them.
fn spinner(d: &Daemon, share: &str) -> u64 {
    d.detach(&["--cpus", "2", "--share", share, "--", "sh", "-c", SPIN_2])
}

fn kill(d: &Daemon, id: u64) {
    assert!(d.cosched(&["kill", "-s", "KILL", &id.to_string()]).status.success());
}

fn share_of(d: &Daemon, id: u64) -> Option<f64> {
    d.client().job(id).unwrap().share_max
}

fn two_cpus() -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    if cpus != 2 {
        println!("SKIPPED: this test counts on a machine with 2 CPUs, here are {cpus}");
    }
    cpus == 2
}

#[test]
fn a_job_has_its_share_alone_and_beside_others_and_under_any_policy() {
    if !needs_root() || !two_cpus() {
        return;
    }
    for sharing in ["strict", "soft"] {
        let d = Daemon::start(&format!("{CONFIG}sharing = \"{sharing}\"\n"));
        let own = spinner(&d, "50%");
        clean_look(|| have(&d, &[own], &[0.5]));
        assert!(d.cosched(&["share", &own.to_string(), "30%"]).status.success());
        clean_look(|| have(&d, &[own], &[0.3]));
        assert!(d.cosched(&["policy", "local", "--job", &own.to_string()]).status.success());
        clean_look(|| have(&d, &[own], &[0.3]));
        let other = d.detach(&["--policy", "gang", "--", "sh", "-c", SPIN_2]);
        clean_look(|| have(&d, &[own, other], &[0.3, 0.7]));
        kill(&d, other);
        assert!(d.cosched(&["share", &own.to_string(), "none"]).status.success());
        clean_look(|| have(&d, &[own], &[1.0]));
        kill(&d, own);
    }
}

/// In five seconds these shares are whole numbers of slots, wherever the window begins.
#[test]
fn a_share_is_exact_over_some_seconds_and_after_each_change() {
    if !needs_root() || !two_cpus() {
        return;
    }
    let d = Daemon::start("slot_length = \"50ms\"\n");
    let own = spinner(&d, "10%");
    for (word, part) in [("10%", 0.1), ("40%", 0.4)] {
        assert!(d.cosched(&["share", &own.to_string(), word]).status.success());
        clean_look(|| have_for(&d, Duration::from_secs(5), &[own], &[part], 0.015));
    }
    kill(&d, own);
}

#[test]
fn a_program_that_spins_at_barriers_loses_its_time_and_no_more() {
    let Some(barrier) = program("barrier-omp").filter(|_| needs_root() && two_cpus()) else { return };
    let d = Daemon::start(CONFIG);
    let rate = |share: &str| {
        let program =
            [&barrier[..], "--threads", "2", "--wait", "spin", "--grain-us", "100", "--seconds", "2", "--json"];
        let run = d.cosched(&[&["run", "--wait", "off", "--share", share, "--"][..], &program].concat());
        let result: serde_json::Value = serde_json::from_str(stdout(&run).trim()).unwrap();
        result["iterations_per_s"].as_f64().unwrap()
    };
    clean_look(|| {
        let (alone, half) = (rate("100%"), rate("50%"));
        if half >= 0.9 * alone / 2.0 { Ok(()) } else { Err(format!("{half:.0} of {alone:.0} meetings a second")) }
    });
}

#[test]
fn a_job_is_suspended_resumed_and_killed_while_its_share_stops_it() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"500ms\"\n");
    for _ in 0..3 {
        let id = spinner(&d, "50%");
        let word = id.to_string();
        assert!(wait_until(|| d.frozen(id)), "it is not stopped");
        assert!(d.cosched(&["suspend", &word]).status.success());
        assert_eq!(d.client().job(id).unwrap().state, JobState::Suspended);
        assert!(d.cosched(&["resume", &word]).status.success());
        assert!(wait_until(|| !d.frozen(id)) && wait_until(|| d.frozen(id)), "it is not run and stopped again");
        kill(&d, id);
        assert!(wait_until(|| d.job_cgroups().is_empty()), "what is stopped does not end");
    }
}

#[test]
fn nothing_stays_stopped_when_the_daemon_dies_and_the_next_one_keeps_the_share() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("slot_length = \"500ms\"\n");
    let id = spinner(&d, "50%");
    assert!(d.cosched(&["share", &id.to_string(), "60%"]).status.success());
    for _ in 0..2 {
        assert!(wait_until(|| d.frozen(id)), "it is not stopped");
        d.kill();
        assert!(wait_until(|| !d.frozen(id)), "it stays stopped");
        std::thread::sleep(Duration::from_millis(700));
        assert!(!d.frozen(id), "somebody stops it without a daemon");
        d.launch();
        assert_eq!(share_of(&d, id), Some(0.6));
    }
    d.stop();
    assert!(wait_until(|| !d.frozen(id)), "it stays stopped when the daemon ends");
    d.launch();
    assert_eq!(share_of(&d, id), Some(0.6));
    assert!(wait_until(|| d.frozen(id)) && wait_until(|| !d.frozen(id)), "its slots are not counted");
    kill(&d, id);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"100ms\"\n");
    let run = |share: &str| d.cosched(&["run", "--share", share, "--", "true"]);
    for (share, why) in [("0%", "more than 0%"), ("101%", "at most 100%"), ("5%", "10% is the least"), ("50", "as 50%")]
    {
        let refused = run(share);
        assert!(refused.status.code() == Some(125) && stderr(&refused).contains(why), "{share}: {}", stderr(&refused));
    }
    assert!(run("10%").status.success());
    let id = d.detach(&["--share", "50%", "--", "sleep", "100"]);
    let shown = stdout(&d.cosched(&["show", &id.to_string()]));
    assert!(shown.contains("50% of the time, in whole slots"), "{shown}");
    assert!(stdout(&d.cosched(&["ps"])).contains("/50%"));
    let refused = d.cosched(&["share", &id.to_string(), "2%"]);
    assert!(stderr(&refused).contains("less than one slot a second"), "{}", stderr(&refused));
    assert_eq!(share_of(&d, id), Some(0.5));
    kill(&d, id);
}

#[test]
fn a_share_is_its_owners_and_an_administrators_to_change() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let id = as_user(&d, ANN, |c| c.register(&empty_job(None)).unwrap().id);
    let of = |uid: u32, share_max| as_user(&d, uid, |c| c.set_share(id, &ShareRequest { share_max }));
    assert_eq!(of(ANN, Some(0.5)).unwrap().share_max, Some(0.5));
    assert_eq!(code(of(BOB, None)), cosched_api::ErrorCode::Forbidden);
    assert_eq!(d.client().set_share(id, &ShareRequest { share_max: Some(0.2) }).unwrap().share_max, Some(0.2));
    assert_eq!(code(of(ANN, None)), cosched_api::ErrorCode::Forbidden);
    assert_eq!(share_of(&d, id), Some(0.2));
}
