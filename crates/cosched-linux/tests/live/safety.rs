//! Whatever dies, no job stays stopped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cosched_linux::kernel_agent::KernelAgent;
use cosched_linux::{JobCgroup, process};

use crate::support::{Scene, helper, within};

const SLEEP: [&str; 2] = ["sleep", "1000"];

/// A running replacement for the daemon.
struct Daemon {
    child: Child,
    guard: i32,
    agent: String,
}

impl Daemon {
    fn start(scene: &Scene, lease_ms: u32, mechanism: &str, run_dir: Option<&Path>) -> Daemon {
        Daemon::start_by(Command::new(helper()), scene, lease_ms, mechanism, run_dir)
    }

    fn start_by(mut command: Command, scene: &Scene, lease_ms: u32, mechanism: &str, run_dir: Option<&Path>) -> Daemon {
        command.args(["daemon", &scene.name, &lease_ms.to_string(), mechanism]);
        command.arg(run_dir.unwrap_or(Path::new("-")));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("read");
        let mut words = line.trim().splitn(3, ' ');
        assert_eq!(words.next(), Some("ready"), "{line}");
        let guard = words.next().expect("guard").parse().expect("a number");
        Daemon { child, guard, agent: words.next().unwrap_or("").to_string() }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn end_in_order(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("wait").success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The guard ends by itself after the daemon; a stopped one has to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

fn both_were_frozen(jobs: &[JobCgroup; 2]) -> bool {
    within(|| jobs[0].frozen()) && within(|| jobs[1].frozen())
}

fn none_is_frozen(jobs: &[JobCgroup; 2]) -> bool {
    within(|| jobs.iter().all(|job| !job.frozen()))
}

#[test]
fn a_killed_daemon_leaves_no_job_frozen() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    // The lease is far longer than the test: only the daemon's death can be the reason.
    let mut daemon = Daemon::start(&scene, 3_600_000, "freezer", None);
    assert!(both_were_frozen(&jobs));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    assert!(none_is_frozen(&jobs));
    assert!(
        within(|| process::facts(daemon.guard).is_none() || state_of(daemon.guard) == Some('Z')),
        "the guard ends too"
    );
}

#[test]
fn a_stopped_daemon_leaves_no_job_frozen_and_goes_on_later() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    let daemon = Daemon::start(&scene, 200, "freezer", None);
    assert!(both_were_frozen(&jobs));
    process::send_signal(daemon.pid(), libc::SIGSTOP);
    assert!(none_is_frozen(&jobs));
    process::send_signal(daemon.pid(), libc::SIGCONT);
    assert!(both_were_frozen(&jobs), "it looks anew when it goes on");
    daemon.end_in_order();
    assert!(none_is_frozen(&jobs));
}

#[test]
fn a_daemon_whose_driver_hangs_is_ended_although_it_beats() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    let mut command = Command::new(helper());
    command.env("DRIVER_LIMIT_MS", "500");
    let mut daemon = Daemon::start_by(command, &scene, 100, "freezer", None);
    assert!(within(|| daemon.child.try_wait().unwrap().is_some()));
    assert!(none_is_frozen(&jobs));
}

#[test]
fn the_guard_sends_sigcont_when_signals_stopped_the_jobs() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    let pids = jobs.each_ref().map(|job| job.procs().unwrap()[0]);
    let mut daemon = Daemon::start(&scene, 3_600_000, "signals", None);
    assert!(within(|| pids.iter().any(|&pid| state_of(pid) == Some('T'))));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    assert!(within(|| pids.iter().all(|&pid| state_of(pid) != Some('T'))));
}

#[test]
fn a_polite_end_of_the_group_does_not_end_the_guard() {
    let Some(mut scene) = Scene::new() else { return };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    let daemon = Daemon::start(&scene, 3_600_000, "freezer", None);
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        process::send_signal(daemon.guard, signal);
    }
    assert!(both_were_frozen(&jobs));
    process::send_signal(daemon.pid(), libc::SIGTERM);
    assert!(none_is_frozen(&jobs), "the guard was still there");
}

/// Removes what a killed daemon left behind, also when the test fails.
struct RunDir {
    dir: tempfile::TempDir,
    instance: String,
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(e) = KernelAgent::remove_leftover(self.dir.path(), &self.instance) {
            eprintln!("left over: {e}");
        }
    }
}

#[test]
fn daemon_and_guard_killed_at_once_leave_no_job_frozen() {
    let Some(mut scene) = Scene::new() else { return };
    let run_dir = RunDir { dir: tempfile::tempdir().unwrap(), instance: scene.name.clone() };
    let jobs = [scene.job(1, &SLEEP, 1), scene.job(2, &SLEEP, 1)];
    // The second round finds the mount of the first one's killed daemon.
    for _ in 0..2 {
        let mut daemon = Daemon::start(&scene, 3_600_000, "freezer", Some(run_dir.dir.path()));
        if daemon.agent != "armed" {
            println!("SKIPPED: {}", daemon.agent);
            return;
        }
        assert!(both_were_frozen(&jobs));
        // Stopped first, so that neither can react to the other's death.
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            process::send_signal(daemon.guard, signal);
            process::send_signal(daemon.pid(), signal);
        }
        daemon.child.wait().unwrap();
        assert!(none_is_frozen(&jobs));
    }
    let daemon = Daemon::start(&scene, 3_600_000, "freezer", Some(run_dir.dir.path()));
    daemon.end_in_order();
    assert!(none_is_frozen(&jobs));
    assert_eq!(std::fs::read_dir(run_dir.dir.path()).unwrap().count(), 0, "an orderly end leaves nothing");
    let hierarchies = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(!hierarchies.contains(&format!("name={}:", scene.name)), "{hierarchies}");
}
