//! What `cosched ps` shows, and which jobs `cosched kill` and its relatives select.

use cosched_api::JobState;
use cosched_tests::{Daemon, needs_root, procs, stderr, stdout, users, wait_until};
use rustix::process::Signal;

const SLEEP: &[&str] = &["--", "sleep", "300"];

fn detach(d: &Daemon, args: &[&str]) -> u64 {
    d.detach(&[args, SLEEP].concat())
}

fn state(d: &Daemon, id: u64) -> JobState {
    d.client().job(id).expect("the job is known").state
}

#[test]
fn what_waits_says_why_and_until_when() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("memory = \"1G\"\n[[queue]]\nname = \"day\"\ntime_max = \"10min\"\n");
    let first = detach(&d, &["--mem", "700M", "--name", "first"]);
    assert!(wait_until(|| state(&d, first) == JobState::Running));
    let second = detach(&d, &["--mem", "700M", "--name", "second"]);
    let job = d.client().job(second).unwrap();
    assert_eq!((job.state, job.started_unix_ms), (JobState::Waiting, None));
    let first_start = d.client().job(first).unwrap().started_unix_ms.expect("it has started");
    let expected = job.expected_start_unix_ms.expect("the first one ends by its queue's limit");
    assert!(expected.abs_diff(first_start + 600_000) < 60_000, "{expected} {first_start}");

    let list = stdout(&d.cosched(&["ps"]));
    assert!(list.contains("COMMAND (REASON)") && list.contains("memory") && list.contains("starts by "), "{list}");
    let columns =
        ["ps", "--format", "id,name,state,elapsed,cpu,reason,start", "--sort", "-id", "--state", "running,waiting"];
    let list = stdout(&d.cosched(&columns));
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].split_whitespace().eq(["ID", "NAME", "STATE", "ELAPSED", "TIME", "REASON", "START"]), "{list}");
    assert!(lines[1].contains("second") && lines[1].contains(" by 20") && lines[2].contains("first"), "{list}");
    assert_eq!(stdout(&d.cosched(&["ps", "-u", "nobody"])).lines().count(), 1);

    // The first job's end gives its place to the second one; there is no expected start any more.
    assert!(d.cosched(&["kill", "-9", "first"]).status.success());
    assert!(wait_until(|| state(&d, second) == JobState::Running));
    let job = d.client().job(second).unwrap();
    assert!(job.expected_start_unix_ms.is_none() && job.started_unix_ms.is_some());
    assert!(wait_until(|| state(&d, first) == JobState::Ended));
    let list = stdout(&d.cosched(&["ps", "--state", "ended"]));
    assert!(list.contains("ended SIGKILL") && !list.contains("second"), "{list}");

    // A drained node takes no jobs, and that is the reason shown.
    let node = d.client().status().unwrap().node;
    assert!(d.cosched(&["nodes", "--drain", &node]).status.success());
    let third = detach(&d, &[]);
    let why = d.client().job(third).unwrap().waits_for.unwrap_or_default();
    assert!(why.contains("drained"), "{why}");

    // Ctrl-Z stops a job without cosched being involved.
    assert!(wait_until(|| !d.job_pids(second).is_empty()));
    let pid = d.client().job(second).unwrap().pid;
    procs::signal(pid, Signal::STOP);
    assert!(wait_until(|| d.client().job(second).unwrap().stopped));
    let list = stdout(&d.cosched(&["ps", "--format", "id,state,reason"]));
    assert!(list.contains("stopped") && list.contains("Ctrl-Z"), "{list}");
    procs::signal(pid, Signal::CONT);
    assert!(wait_until(|| !d.client().job(second).unwrap().stopped));
    assert!(d.cosched(&["kill", "-9", "--all"]).status.success());
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.is_empty()));
}

#[test]
fn jobs_are_selected_by_name_state_and_user() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let sweep: Vec<u64> = ["sweep-1", "sweep-2"].iter().map(|name| detach(&d, &["--name", name])).collect();
    let other = detach(&d, &["--name", "other"]);
    let out = d.cosched(&["kill", "--name", "sweep-*", "--dry-run"]);
    assert!(out.status.success() && stderr(&out).contains("would send SIGTERM to 2 jobs"), "{}", stderr(&out));
    assert!(sweep.iter().all(|id| state(&d, *id) != JobState::Ended));
    let out = d.cosched(&["suspend", "--name", "sweep-*"]);
    assert!(out.status.success() && stderr(&out).contains("suspend 2 jobs: "), "{}", stderr(&out));
    assert!(sweep.iter().all(|id| state(&d, *id) == JobState::Suspended));
    let out = d.cosched(&["resume", "--all"]);
    assert!(stderr(&out).contains("resume 2 jobs: "), "only what is suspended: {}", stderr(&out));
    let out = d.cosched(&["kill", "--state", "suspended", "--user", "root"]);
    assert_eq!(out.status.code(), Some(4), "{}", stderr(&out));
    assert!(stderr(&out).contains("nothing is selected"), "{}", stderr(&out));
    for wrong in [&["kill"][..], &["kill", "--dry-run"], &["kill", "7", "--all"], &["suspend", "--state", "stopped"]] {
        assert_eq!(d.cosched(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let out = d.cosched(&["kill", "--user", "0", "-9", "--name", "sweep-*", "--name", "nothing"]);
    assert!(out.status.success() && stderr(&out).contains("send SIGKILL to 2 jobs"), "{}", stderr(&out));
    assert!(wait_until(|| sweep.iter().all(|id| state(&d, *id) == JobState::Ended)));
    assert_ne!(state(&d, other), JobState::Ended);
    assert!(d.cosched(&["kill", "-9", "--all"]).status.success());
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.is_empty()));
}

#[test]
fn ended_jobs_are_accounted_for_longer_than_the_journal_keeps_them() {
    if !needs_root() {
        return;
    }
    let mut d = users::start("keep_ended = 1\nprivate_data = [\"jobs\"]\n");
    for (name, command) in [("one", "exit 0"), ("two", "exit 3"), ("three", "kill -HUP $$")] {
        d.cosched(&["run", "--name", name, "--", "sh", "-c", command]);
    }
    let report = |d: &Daemon, words: &[&str]| -> serde_json::Value {
        let out = d.cosched(&[&["--json", "history"], words].concat());
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&out)))
    };
    let count = |d: &Daemon, words: &[&str]| report(d, words)["total"]["jobs"].as_u64();
    // It is written by a thread that nothing waits for.
    assert!(wait_until(|| count(&d, &[]) == Some(3)), "{}", report(&d, &[]));
    assert!(wait_until(|| d.client().jobs(true).unwrap().jobs.len() < 3), "the journal keeps fewer");
    let all = report(&d, &["--since", "1h"]);
    let ends: Vec<_> = all["jobs"].as_array().unwrap().iter().map(|job| (&job["name"], &job["exit"])).collect();
    assert_eq!(
        serde_json::json!(ends),
        serde_json::json!([["one", {"code": 0}], ["two", {"code": 3}], ["three", {"signal": 1}]])
    );
    assert!(
        all["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|job| job["started_unix_ms"].is_u64() && job["ended_unix_ms"].is_u64())
    );
    assert_eq!(
        (count(&d, &["--name", "t*"]), count(&d, &["-u", "nobody"]), count(&d, &["--until", "1h"])),
        (Some(2), Some(0), Some(0))
    );
    let text = stdout(&d.cosched(&["history"]));
    assert!(text.contains("ended SIGHUP") && text.contains("CPUS x ELAPSED"), "{text}");
    let seen = users::as_user(&d, 1000, |client| client.ended(0, u64::MAX).unwrap().jobs.len());
    assert_eq!(seen, 0, "jobs are private here");
    d.kill();
    d.launch();
    assert_eq!(count(&d, &[]), Some(3));
}
