//! The reserve on the real kernel: a session outside jobs gets its part of every CPU.

use std::process::Child;
use std::time::Duration;

use cosched_linux::JobCgroup;

use crate::support::{Scene, alone, helper, spawn, within};

/// Ended also when the test fails.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Session {
    /// Its CPU time so far in clock ticks: user and system, fields 14 and 15 of /proc/PID/stat.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it runs");
        let fields = stat[stat.rfind(')').expect("a name") + 1..].split_whitespace().skip(11);
        fields.take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
    }

    /// Its part of the CPU time that it and the job use in the next seconds.
    fn part(&self, job: &JobCgroup) -> f64 {
        let read =
            || (self.ticks() as f64 / rustix::param::clock_ticks_per_second() as f64, job.cpu_time_ns().unwrap());
        let before = read();
        std::thread::sleep(Duration::from_secs(3));
        let after = read();
        let theirs = after.0 - before.0;
        theirs / (theirs + (after.1 - before.1) as f64 / 1e9)
    }
}

#[test]
fn one_session_on_all_cpus_gets_the_reserve() {
    let Some(mut scene) = Scene::new() else { return };
    if !in_cpu_root(&scene) {
        println!("SKIPPED: this test runs in a cpu cgroup, whose weight against ours is not ours to know");
        return;
    }
    let _alone = alone();
    // Both have one pinned thread on each CPU, so that a busy machine's load balancer cannot separate them.
    let job = scene.job(1, &[helper(), "session"], 1);
    let session = Session(spawn(&[helper(), "session"]));
    assert!(within(|| session.ticks() > 0 && job.cpu_time_ns().unwrap() > 0));
    for reserve in [0.5, 0.2] {
        assert!(scene.tree.set_reserve(reserve).unwrap());
        // If it were counted as the wrong kind of opponent, it would have half of these odds, or twice as much (on 2 CPUs; more on more). CPU time of
        // other processes also changes them, so one clean sample of several is enough.
        let mut parts = Vec::new();
        let clean = (0..3).any(|_| {
            let part = session.part(&job);
            parts.push(part);
            let odds = (part / (1.0 - part)) / (reserve / (1.0 - reserve));
            (std::f64::consts::FRAC_1_SQRT_2..std::f64::consts::SQRT_2).contains(&odds)
        });
        println!("reserve {reserve}: {parts:.3?}");
        assert!(clean, "{reserve}: {parts:?}");
    }
}

/// Whether processes started by this test are in the root of the cpu hierarchy.
fn in_cpu_root(scene: &Scene) -> bool {
    let content = std::fs::read_to_string("/proc/self/cgroup").expect("/proc");
    let controller = if scene.tree.thaw_paths().cpu_tree.is_some() { "cpu" } else { "" };
    content.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next().is_some_and(|names| names.split(',').any(|name| name == controller)) && fields.next() == Some("/")
    })
}
