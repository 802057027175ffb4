//! Where there are no cgroups, gangs are switched by signals, and nothing stays stopped.

use cosched_tests::uncontrolled::{Uncontrolled, descendants};
use cosched_tests::{needs_root, procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SAYS: &str = "is switched by signals: there are no cgroups here";
/// Two processes that spin, and their parent.
const SPIN: &str = "while :; do :; done & while :; do :; done & wait";

/// One test at a time: their processes spin on all CPUs.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    needs_root().then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A command of `cosched run`, and its keeper.
struct Job {
    launcher: Child,
    keeper: i32,
    pids: Vec<i32>,
}

impl Job {
    fn start(place: &Uncontrolled, script: &str, processes: usize) -> Job {
        let before = place.of_ours("cosched-guard", "keep");
        let launcher = place.spawn(&["run", "--", "sh", "-c", script]);
        let (mut keeper, mut pids) = (0, Vec::new());
        let began = wait_until(|| {
            let new = place.of_ours("cosched-guard", "keep").into_iter().find(|pid| !before.contains(pid));
            keeper = new.unwrap_or(0);
            pids = descendants(keeper);
            keeper != 0 && pids.len() == processes
        });
        assert!(began, "the job has {pids:?}");
        Job { launcher, keeper, pids }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.pids.iter().for_each(|pid| procs::signal(*pid, Signal::KILL));
        procs::signal(self.keeper, Signal::KILL);
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

fn are_stopped(pids: &[i32]) -> bool {
    pids.iter().all(|pid| procs::state(*pid) == Some('T'))
}

fn run(pids: &[i32]) -> bool {
    pids.iter().all(|pid| procs::state(*pid) != Some('T'))
}

/// Whether they run for half a second, which is longer than a slot.
fn keep_running(pids: &[i32]) -> bool {
    let until = Instant::now() + Duration::from_millis(500);
    while run(pids) && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    run(pids)
}

/// What there is, for the log of a test that fails.
fn found(place: &Uncontrolled, jobs: &[Job; 2]) -> String {
    let said = [&["ps", "-a"][..], &["status"], &["log", "--events", "1"], &["log", "--events", "2"]];
    let said = said.map(|words| stdout(&place.cosched(words)) + &stderr(&place.cosched(words)));
    let states = jobs.each_ref().map(|job| {
        let state = |pid: &i32| (*pid, procs::state(*pid), procs::comm(*pid));
        let now = descendants(job.keeper);
        (state(&job.keeper), job.pids.iter().map(state).collect::<Vec<_>>(), now)
    });
    format!("{states:?}\n{}", said.join("\n"))
}

/// Two jobs on a machine have slots in turn: each is stopped as a whole while the other runs.
fn two_jobs_take_turns(place: &Uncontrolled) {
    let jobs = [(); 2].map(|()| Job::start(place, SPIN, 3));
    let pids = jobs.each_ref().map(|job| job.pids.clone());
    for (one, other) in [(0, 1), (1, 0)] {
        let stopped = wait_until(|| are_stopped(&pids[one]) && run(&pids[other]));
        assert!(stopped, "job {other} never had the machine for itself; {}", found(place, &jobs));
    }
    // Alone it has all slots.
    let [first, second] = jobs;
    drop(first);
    assert!(wait_until(|| keep_running(&pids[1])), "the job that is left is stopped");
    drop(second);
}

#[test]
fn two_jobs_of_a_user_without_a_cgroup_have_slots() {
    let Some(_alone) = alone() else { return };
    let place = Uncontrolled::user(&[]);
    let out = place.cosched(&["run", "--", "sh", "-c", "exit 7"]);
    assert_eq!((out.status.code(), stderr(&out).contains(SAYS)), (Some(7), true), "{}", stderr(&out));
    let out = place.cosched(&["run", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(out.status.code(), Some(137), "{}", stderr(&out));
    assert_eq!(place.cosched(&["run", "--", "./missing"]).status.code(), Some(127));
    two_jobs_take_turns(&place);
    let status = place.cosched(&["status"]);
    assert!(stdout(&status).contains("mechanism  signals"), "{}", stdout(&status));
}

#[test]
fn two_jobs_have_slots_where_cgroups_are_read_only() {
    let Some(_alone) = alone() else { return };
    let place = Uncontrolled::container(&[]);
    let out = place.cosched(&["run", "--", "sh", "-c", "exit 7"]);
    assert_eq!((out.status.code(), stderr(&out).contains(SAYS)), (Some(7), true), "{}", stderr(&out));
    two_jobs_take_turns(&place);
}

#[test]
fn whatever_is_killed_nothing_stays_stopped() {
    let Some(_alone) = alone() else { return };
    const WHO: [&str; 3] = ["daemon", "guard", "keeper"];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (order, pause_ms) in orders.iter().flat_map(|order| [0, 40].map(|pause| (order, pause))) {
        let place = Uncontrolled::user(&[]);
        let jobs = [(); 2].map(|()| Job::start(&place, SPIN, 3));
        let pids = jobs.each_ref().map(|job| job.pids.clone());
        let mut at = None;
        wait_until(|| {
            at = (0..2).find(|job| are_stopped(&pids[*job]));
            at.is_some()
        });
        let stopped = &jobs[at.expect("a job is stopped")];
        let daemon = place.of_ours("coschedd", "")[0];
        let targets = [daemon, place.of_ours("cosched-guard", "watch")[0], stopped.keeper];
        for who in order {
            procs::signal(targets[*who], Signal::KILL);
            sleep(Duration::from_millis(pause_ms));
        }
        let all = pids.concat();
        // The launcher whose keeper was killed may start a daemon to report it, and that ends the job: the other one is alone then.
        let goes = wait_until(|| keep_running(&all));
        let killed = order.map(|who| WHO[who]);
        assert!(goes, "killed in the order {killed:?}, {pause_ms} ms apart; {}", found(&place, &jobs));
    }
}

#[test]
fn a_daemon_and_a_keeper_that_hang_keep_nothing_stopped() {
    let Some(_alone) = alone() else { return };
    let place = Uncontrolled::user(&[]);
    let jobs = [(); 2].map(|()| Job::start(&place, SPIN, 3));
    let pids = jobs.each_ref().map(|job| job.pids.clone()).concat();
    let daemon = place.of_ours("coschedd", "")[0];
    assert!(wait_until(|| pids.iter().any(|pid| are_stopped(&[*pid]))));
    procs::signal(daemon, Signal::STOP);
    assert!(wait_until(|| run(&pids)), "the guard takes orders back after the lease");
    procs::signal(daemon, Signal::CONT);
    assert!(wait_until(|| pids.iter().any(|pid| are_stopped(&[*pid]))), "slots again");
    // A keeper is continued by the daemon.
    procs::signal(jobs[0].keeper, Signal::STOP);
    assert!(wait_until(|| procs::state(jobs[0].keeper) != Some('T')));
}

#[test]
fn what_a_user_stops_stays_stopped_and_nothing_else_does() {
    let Some(_alone) = alone() else { return };
    let place = Uncontrolled::user(&[]);
    let jobs = [(); 2].map(|()| Job::start(&place, SPIN, 3));
    let pids = jobs[0].pids.clone();
    for in_its_slot in [true, false] {
        let its = *pids.last().unwrap();
        let found = wait_until(|| if in_its_slot { run(&pids) } else { are_stopped(&pids) });
        assert!(found);
        procs::signal(its, Signal::STOP);
        let mut seen = 0;
        let until = Instant::now() + Duration::from_millis(1500);
        sleep(Duration::from_millis(300));
        while Instant::now() < until {
            assert_eq!(procs::state(its), Some('T'), "in its slot: {in_its_slot}");
            seen += u32::from(run(&pids[..2]));
            sleep(Duration::from_millis(1));
        }
        assert!(seen > 10, "the others of its job have their slots");
        procs::signal(its, Signal::CONT);
        assert!(wait_until(|| run(&pids)));
    }
}

#[test]
fn what_becomes_a_daemon_stays_in_its_job_and_is_killed_with_it() {
    let Some(_alone) = alone() else { return };
    let place = Uncontrolled::user(&[]);
    let other = Job::start(&place, SPIN, 3);
    let mut job = Job::start(&place, "setsid sh -c '(while :; do :; done &)'; sleep 1000", 3);
    let pids = job.pids.clone();
    assert!(wait_until(|| are_stopped(&pids)) && wait_until(|| run(&pids)));
    let listed = stdout(&place.cosched(&["ps"]));
    let line = listed.lines().find(|line| line.contains("setsid")).expect(&listed);
    let id = line.split_whitespace().next().unwrap().to_owned();
    let out = place.cosched(&["suspend", &id]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(wait_until(|| are_stopped(&pids)));
    let out = place.cosched(&["kill", &id, "--signal", "KILL"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(job.launcher.wait().unwrap().code(), Some(137));
    assert!(pids.iter().all(|pid| procs::state(*pid).is_none_or(|state| state == 'Z')));
    drop(other);
}

#[test]
fn what_needs_cgroups_is_refused_in_clear_words() {
    let Some(_alone) = alone() else { return };
    let place = Uncontrolled::user(&[]);
    for (words, says) in [
        (&["run", "--policy", "pb", "--", "true"][..], "policy pb or dcs needs cgroups"),
        (&["run", "--mem-limit", "100M", "--", "true"], "a memory limit needs cgroups"),
        (&["adopt", "--pid", &std::process::id().to_string()], "needs cgroups"),
    ] {
        // Its daemon.
        let mut job = place.spawn(&["run", "--", "sleep", "1"]);
        assert!(wait_until(|| !place.of_ours("cosched-guard", "keep").is_empty()));
        let out = place.cosched(words);
        assert!(!out.status.success() && stderr(&out).contains(says), "{words:?}: {}", stderr(&out));
        job.wait().unwrap();
    }
}
