//! Fair to neighbours (docs/decisions/0046): programs that are not jobs get what plain Linux would give them, and whatever dies, no job stays
//! stopped or below the others.
//!
//! All comparisons are ratios within one run.

use cosched_tests::{Daemon, clean_look, needs_root, procs, wait_until};
use rustix::process::Signal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

const SPIN_2: &str = "while :; do :; done & while :; do :; done";
const SPIN_1: &str = "while :; do :; done";

/// A spinning process in a session of its own, ended with the test.
struct Hog(Child);

impl Hog {
    fn start() -> Hog {
        let mut command = Command::new("sh");
        command.args(["-c", SPIN_1]);
        // SAFETY: setsid is async-signal-safe and touches no memory.
        unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
        Hog(command.spawn().unwrap())
    }

    fn used_us(&self) -> u64 {
        procs::cpu_ticks(self.0.id() as i32).unwrap() * 10_000
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The files of the subtree's own weight: the mark and the number.
fn weight_files(d: &Daemon) -> Option<[PathBuf; 2]> {
    let dirs = procs::cgroup_mounts().into_iter().map(|mount| mount.join(&d.cgroup));
    let files = dirs.flat_map(|dir| ["cpu.shares", "cpu.weight"].map(|name| [dir.join("cpu.idle"), dir.join(name)]));
    let found = files.into_iter().find(|files| files.iter().all(|file| file.exists()));
    if found.is_none() {
        println!("SKIPPED: this kernel cannot mark a cgroup as idle");
    }
    found
}

fn number(file: &PathBuf) -> u64 {
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// One hog per CPU beside one gang, once slots are divided between them.
fn scene() -> Option<(Daemon, u64, Vec<Hog>)> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !needs_root() {
        return None;
    }
    if cpus != 2 {
        println!("SKIPPED: this test counts on a machine with 2 CPUs, here are {cpus}");
        return None;
    }
    let d = Daemon::start("reserve = \"fair\"\nlease = \"1s\"\n");
    let job = d.detach(&["--", "sh", "-c", SPIN_2]);
    let hogs = (0..cpus).map(|_| Hog::start()).collect();
    let reserve = || d.client().status().unwrap().reserve;
    assert!(wait_until(|| reserve() > 0.3), "nothing is kept for two busy sessions: {}", reserve());
    Some((d, job, hogs))
}

#[test]
fn busy_sessions_have_what_linux_gives_them_and_the_gang_has_the_rest() {
    let Some((d, job, hogs)) = scene() else { return };
    // On each CPU a session has weight 1024, and the gang, if it were a session, half of that.
    let fair = 2.0 / 3.0;
    clean_look(|| {
        let read = || (hogs.iter().map(Hog::used_us).sum::<u64>(), procs::cpu_usec(&d.v2_job(job)));
        let before = read();
        std::thread::sleep(Duration::from_secs(3));
        let after = read();
        let (theirs, ours) = ((after.0 - before.0) as f64, (after.1 - before.1) as f64);
        let part = theirs / (theirs + ours);
        if part > 0.85 * fair && part < 1.15 * fair { Ok(()) } else { Err(format!("{part:.3} instead of {fair:.3}")) }
    });
    let metrics = String::from_utf8(d.cosched(&["metrics"]).stdout).unwrap();
    let held = metrics.lines().find_map(|line| line.strip_prefix("cosched_held_seconds_total ")?.parse::<f64>().ok());
    assert!(held.is_some_and(|seconds| seconds > 0.0), "{metrics}");
    assert_eq!(d.client().status().unwrap().reserve_fair, Some(true));
}

#[test]
fn a_gang_that_is_held_runs_on_when_its_daemon_dies_or_hangs() {
    let Some((mut d, job, _hogs)) = scene() else { return };
    let Some([mark, weight]) = weight_files(&d) else { return };
    let held = || d.frozen(job) && number(&mark) == 1;
    let free = |d: &Daemon| !d.frozen(job) && number(&mark) == 0 && [100, 1024].contains(&number(&weight));
    assert!(wait_until(held), "the gang is never held");
    procs::signal(d.pid(), Signal::STOP);
    assert!(wait_until(|| free(&d)), "the daemon hangs, and the gang is still held");
    procs::signal(d.pid(), Signal::CONT);
    assert!(wait_until(|| d.frozen(job) && number(&mark) == 1), "the daemon is back and does not hold the gang");
    d.kill();
    assert!(wait_until(|| free(&d)), "the daemon is dead, and the gang is still held");
    d.launch();
    assert!(wait_until(|| d.frozen(job) && number(&mark) == 1), "the next daemon does not hold the gang");
    d.stop();
    assert!(wait_until(|| !d.frozen(job) && number(&mark) == 0), "the daemon has ended, and the gang is still held");
    assert!(number(&weight) < 9_999 || number(&weight) == 1024, "{}", number(&weight));
}
