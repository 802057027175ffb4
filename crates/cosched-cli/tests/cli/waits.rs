//! Jobs that have to wait, and commands that follow them, against a fake daemon.

use crate::fake::{Fake, Place, State, ended, text};
use cosched_api::{Event, JobState};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// A job that has to wait, and a daemon at which it does.
fn waiting(place: &Place) -> Fake {
    Fake::with(&place.socket, |job| {
        job.state = JobState::Waiting;
        Ok(())
    })
}

/// The number of times that launchers have asked for the first job.
fn asked(state: &State) -> usize {
    state.seen.iter().filter(|line| line.starts_with("GET /v1/jobs/1 ")).count()
}

#[test]
fn a_file_for_output_is_replaced_when_the_job_starts_and_not_while_it_waits() {
    let place = Place::new();
    let fake = waiting(&place);
    let file = place.path("out");
    let kept = || std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "of another job\n").unwrap();
    let words = ["run", "-o", file.to_str().unwrap(), "--", "echo", "new"];
    let mut cancelled = place.cosched(&words).spawn().unwrap();
    fake.until("the wait", |state| asked(state) > 0);
    assert_eq!(kept(), "of another job\n");
    kill_process(Pid::from_child(&cancelled), Signal::TERM).unwrap();
    assert_eq!((ended(&mut cancelled).code(), kept().as_str()), (Some(128 + 15), "of another job\n"));
    drop(fake);

    let fake = waiting(&place);
    let mut child = place.cosched(&words).spawn().unwrap();
    fake.until("the wait", |state| asked(state) > 0);
    fake.state().jobs[0].log_path = Some(file.display().to_string());
    let mut log = place.cosched(&["log", "--follow", "1"]);
    let mut log = log.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(log.stdout.take().unwrap());
    let mut line = String::new();
    shown.read_line(&mut line).unwrap();
    let attached = place.cosched(&["attach", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    // Its first poll comes after it has looked at the job.
    fake.until("the attached command", |state| state.seen.iter().any(|line| line.contains("/v1/jobs/1/wait")));
    fake.place(1);
    assert_eq!((ended(&mut child).code(), kept().as_str()), (Some(0), "new\n"));
    // A command that follows it notices that it is replaced.
    shown.read_to_string(&mut line).unwrap();
    assert_eq!((ended(&mut log).code(), line.as_str()), (Some(0), "of another job\nnew\n"));
    let mut said = String::new();
    log.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("job 1 has not started: what is in "), "{said}");
    assert_eq!(text(&attached.wait_with_output().unwrap().stdout), "new\n");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_job_waits() {
    let place = Place::new();
    let fake = waiting(&place);
    let output = place.output(&["run", "-o", "/nonexistent/out", "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("cannot write to /nonexistent/out"), "{}", text(&output.stderr));
    assert!(fake.state().jobs[0].exit.is_some());
}

/// `nohup`, and the jobs in the background of a script: their launchers are started to ignore some signals.
#[test]
fn a_signal_that_is_ignored_cancels_no_job_that_waits() {
    let place = Place::new();
    let fake = waiting(&place);
    let launcher = place.cosched(&["run", "--", "sh", "-c", "exit 5"]);
    let environment = launcher.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut ignoring = Command::new("env");
    ignoring.arg("--ignore-signal=HUP,INT").arg(launcher.get_program()).args(launcher.get_args()).envs(environment);
    let mut child = ignoring.stdin(Stdio::null()).spawn().unwrap();
    fake.until("the wait", |state| asked(state) > 0);
    for signal in [Signal::HUP, Signal::INT] {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let before = asked(&fake.state());
    fake.until("the launcher's answer to the signals", |state| {
        asked(state) > before + 1 || state.jobs[0].exit.is_some()
    });
    let exit = fake.state().jobs[0].exit;
    assert_eq!(exit, None);
    fake.place(1);
    assert_eq!(ended(&mut child).code(), Some(5));
}

/// A daemon keeps 200 events of a job: for a new one it removes one in the middle.
#[test]
fn events_are_followed_also_when_a_daemon_has_removed_some() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    assert!(place.output(&["run", "true"]).status.success());
    fake.place(1);
    let event = |n: u64| Event { unix_ms: 1, what: "signal".to_owned(), detail: n.to_string() };
    fake.state().events = (0..200).map(event).collect();
    let mut log = place.cosched(&["log", "--events", "--follow", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let looked = |state: &State| state.seen.iter().filter(|line| line.contains("/events")).count();
    let looks_again = || {
        let before = looked(&fake.state());
        fake.until("two more looks", |state| looked(state) > before + 1);
    };
    looks_again();
    let mut state = fake.state();
    state.events.remove(100);
    state.events.push(event(200));
    drop(state);
    looks_again();
    fake.end(1);
    let mut shown = String::new();
    log.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert_eq!(ended(&mut log).code(), Some(0));
    let shown: Vec<u64> = shown.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(shown, (0..=200).collect::<Vec<_>>());
}
