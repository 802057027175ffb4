//! `cosched demo` with a fake program and a fake daemon.

use crate::fake::{Fake, Place, ended, text, until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

/// A fake parallel program that records its process and its options, sleeps, and reports its work.
fn program(place: &Place, seconds: &str) -> PathBuf {
    let path = place.path("barrier-omp");
    let script = format!(
        r#"#!/bin/sh
echo "$$ $*" >>{noted}
iterations=500 loops=70
while [ $# -gt 0 ]; do
    case $1 in
    --iterations) iterations=$2 ;;
    --grain-loops) loops=$2 ;;
    esac
    shift
done
sleep {seconds}
echo "{{\"iterations\":$iterations,\"grain_loops\":$loops}}"
"#,
        noted = place.path("noted").display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn noted(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("noted")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_arm_gets_the_same_work_and_the_policy_is_restored() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let program = program(&place, "0.05");
    let output = place.output(&["demo", "--json", "--jobs", "2", "--program", program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["work"]["iterations"], 500);
    let lines = report["results"].as_array().unwrap();
    let of: Vec<(u64, &str)> =
        lines.iter().map(|line| (line["jobs"].as_u64().unwrap(), line["policy"].as_str().unwrap())).collect();
    assert_eq!(of, [(1, "linux"), (1, "local"), (1, "gang"), (2, "linux"), (2, "local"), (2, "gang")]);
    assert!(report["sentence"].as_str().unwrap().ends_with('.'));
    // One run to determine the work, then 1 + 1 + 1 + 2 + 2 + 2 with exactly that work.
    let noted = noted(&place);
    assert_eq!(noted.len(), 10);
    assert!(noted[1..].iter().all(|line| line.contains("--grain-loops 70 --iterations 500")), "{noted:?}");
    let state = fake.state();
    assert_eq!(state.jobs.len(), 6);
    assert_eq!(state.policy, Some(cosched_api::Policy::Gang));
}

#[test]
fn the_table_comes_after_lines_for_each_run() {
    let place = Place::new();
    let _fake = Fake::start(&place.socket);
    let program = program(&place, "0.05");
    let words = ["demo", "--jobs", "2", "--policies", "linux,gang", "--program", program.to_str().unwrap()];
    let output = place.output(&words);
    let shown = text(&output.stdout);
    for part in ["the work of a job: 500 iterations", "1 job, plain Linux", "2 jobs, cosched gang", "TIME/LINUX"] {
        assert!(shown.contains(part), "{part} in {shown}{}", text(&output.stderr));
    }
    assert!(!shown.contains('\x1b'), "{shown}");
}

#[test]
fn an_interruption_ends_the_jobs_and_restores_the_policy() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    fake.state().policy = Some(cosched_api::Policy::Gang);
    // The first run determines the work, the second is plain Linux; the third, a job of cosched, is interrupted.
    let program = program(&place, "$(if [ $(wc -l <\"${0%/*}/noted\") -gt 2 ]; then echo 60; else echo 0; fi)");
    let words = ["demo", "--policies", "local", "--jobs", "2", "--program", program.to_str().unwrap()];
    let mut child = place.cosched(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the third run", || noted(&place).len() == 3);
    assert_eq!(fake.state().policy, Some(cosched_api::Policy::Local));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(ended(&mut child).code(), Some(128 + 2));
    let pid: i32 = noted(&place)[2].split(' ').next().unwrap().parse().unwrap();
    until("the end of the program", || test_kill_process(Pid::from_raw(pid).unwrap()).is_err());
    assert_eq!(fake.state().policy, Some(cosched_api::Policy::Gang));
}

#[test]
fn a_program_that_fails_is_quoted() {
    let place = Place::new();
    let _fake = Fake::start(&place.socket);
    let program = program(&place, "nonsense; exit 3");
    let output = place.output(&["demo", "--program", program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("a job of the demo failed (exit code 3)") && message.contains("nonsense"), "{message}");
    let missing = place.output(&["demo", "--program", "/nowhere/barrier-omp"]);
    assert!(text(&missing.stderr).contains("hint: `make programs` builds them"));
}
