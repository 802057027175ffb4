//! The policies on real processes: which jobs run when, and how much of the CPU time each gets.
//!
//! All comparisons are ratios within one run; nothing here measures speed.

use cosched_api::JobState;
use cosched_tests::{Daemon, clean_look, needs_root, procs, stderr, wait_until};
use std::time::Duration;

const SPIN_2: &str = "while :; do :; done & while :; do :; done";
const SPIN_1: &str = "while :; do :; done";

/// The CPU time that each of these jobs uses in the next `ms` milliseconds, in microseconds.
fn used_in(d: &Daemon, jobs: &[u64], ms: u64) -> Vec<u64> {
    let read = || jobs.iter().map(|id| procs::cpu_usec(&d.v2_job(*id))).collect::<Vec<_>>();
    let before = read();
    std::thread::sleep(Duration::from_millis(ms));
    read().iter().zip(before).map(|(now, then)| now - then).collect()
}

/// A measurement that is clean if `holds`.
fn expect(holds: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(seen()) }
}

fn two_cpus() -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    if cpus != 2 {
        println!("SKIPPED: this test counts on a machine with 2 CPUs, here are {cpus}");
    }
    cpus == 2
}

fn kill(d: &Daemon, jobs: &[u64]) {
    for id in jobs {
        d.cosched(&["kill", "-s", "KILL", &id.to_string()]);
    }
}

#[test]
fn gangs_of_one_class_share_the_time_alike() {
    if !needs_root() {
        return;
    }
    for sharing in ["strict", "soft"] {
        let d = Daemon::start(&format!("slot_length = \"20ms\"\nsharing = \"{sharing}\"\n"));
        let jobs: Vec<u64> = (0..3).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
        clean_look(|| {
            let used = used_in(&d, &jobs, 3000);
            let mean = used.iter().sum::<u64>() / 3;
            expect(used.iter().all(|u| *u * 2 > mean && *u < mean * 2), || format!("{sharing}: {used:?}"))
        });
        let status = d.client().status().unwrap();
        assert_eq!(status.matrix.rows.len(), 3, "{}", status.matrix.text);
        assert!(status.switches.count > 50, "{:?}", status.switches);
        assert_eq!(status.switches.errors, 0);
        kill(&d, &jobs);
    }
}

#[test]
fn only_the_current_gang_runs_when_gangs_are_strict() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"2s\"\nsharing = \"strict\"\n");
    let jobs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    let (mut pure, mut seen) = (0, Vec::new());
    for _ in 0..12 {
        let before = d.client().status().unwrap().matrix;
        let used = used_in(&d, &jobs, 250);
        let frozen = [d.frozen(jobs[0]), d.frozen(jobs[1])];
        let after = d.client().status().unwrap().matrix;
        if before.slot != after.slot || before.current.len() != 1 {
            continue;
        }
        let current = jobs.iter().position(|id| before.current == [*id]).unwrap();
        assert!(frozen[1 - current] && !frozen[current], "current {current}: {frozen:?}");
        // The two counters are not read at the same time: a reader that loses its CPU in between sees a part of another
        // slot.
        pure += u32::from(used[1 - current] * 50 < used[current]);
        seen.push(used);
    }
    assert!(pure >= 4, "only {pure} looks were whole and pure: {seen:?}");
    kill(&d, &jobs);
}

#[test]
fn what_the_current_gang_leaves_idle_goes_to_the_others_when_gangs_are_soft() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"1s\"\nsharing = \"soft\"\nidle_after = \"1h\"\n");
    let sleeper = d.detach(&["--", "sleep", "1000"]);
    let busy = d.detach(&["--", "sh", "-c", SPIN_2]);
    assert!(wait_until(|| d.client().status().unwrap().matrix.rows.len() == 2));
    // Fractions of the CPU time that the hypervisor gave, and idle time in place of the job's: other load cannot break the
    // test.
    let look = || {
        let before = procs::cpu_time();
        let used_us = used_in(&d, &[busy], 4000)[0];
        let time = procs::cpu_time().since(before);
        let all_us = (time.busy_us + time.idle_us) as f64;
        (used_us as f64 / all_us, time.idle_us as f64 / all_us)
    };
    // The sleeper has every second slot; on a quiet machine the two are 0.0 and 0.5.
    clean_look(|| {
        let soft = look();
        expect(soft.1 < 0.25, || format!("job and idle {soft:.2?}: idle slots were not used"))
    });
    assert!(d.cosched(&["policy", "gang", "--sharing", "strict"]).status.success());
    clean_look(|| {
        let strict = look();
        expect(strict.0 < 0.7, || format!("job and idle {strict:.2?}: strict slots were used"))
    });
    kill(&d, &[sleeper, busy]);
}

#[test]
fn a_higher_class_gets_more_slots() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"10ms\"\nsharing = \"strict\"\n");
    let express = d.detach(&["--class", "express", "--", "sh", "-c", SPIN_2]);
    let interactive = d.detach(&["--class", "interactive", "--", "sh", "-c", SPIN_2]);
    // Shares are 16 and 4.
    clean_look(|| {
        let used = used_in(&d, &[express, interactive], 3000);
        expect(used[0] > used[1] * 2 && used[0] < used[1] * 8, || format!("{used:?}"))
    });
    let job = d.client().job(express).unwrap();
    assert_eq!(job.share, Some(0.8));
    kill(&d, &[express, interactive]);
}

#[test]
fn single_cpu_jobs_share_a_row_and_fill_what_is_free() {
    if !needs_root() || !two_cpus() {
        return;
    }
    // Each has its place: one of the two CPUs has two jobs in turns, the other CPU has one (decision 0051).
    let d = Daemon::start("slot_length = \"200ms\"\nsharing = \"strict\"\n");
    let jobs: Vec<u64> = (0..3).map(|_| d.detach(&["--cpus", "1", "--", "sh", "-c", SPIN_1])).collect();
    let matrix = d.client().status().unwrap().matrix;
    assert_eq!(matrix.rows.len(), 2, "{}", matrix.text);
    clean_look(|| {
        let before = procs::cpu_time();
        let used = used_in(&d, &jobs, 3000);
        let time = procs::cpu_time().since(before);
        let total: u64 = used.iter().sum();
        expect(time.idle_us * 4 < time.busy_us, || format!("free cells stayed empty: {time:?}; {used:?}"))?;
        expect(used.iter().all(|u| u * 6 > total), || format!("{used:?}"))
    });
    kill(&d, &jobs);
}

#[test]
fn a_gang_that_uses_no_cpu_gives_its_slots_up_and_gets_them_back() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nsharing = \"strict\"\nidle_after = \"1s\"\n");
    let fifo = d.dir.path().join("wake");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let script = format!("cat {} > /dev/null; {SPIN_2}", fifo.display());
    let sleeper = d.detach(&["--", "sh", "-c", &script]);
    let busy = d.detach(&["--", "sh", "-c", SPIN_2]);
    assert!(wait_until(|| d.client().job(sleeper).unwrap().state == JobState::Asleep), "it does not fall asleep");
    let matrix = d.client().status().unwrap().matrix;
    assert_eq!(matrix.rows.len(), 1, "{}", matrix.text);
    assert!(!d.frozen(sleeper), "a gang without slots must be free to wake");
    std::fs::write(&fifo, "go").unwrap();
    assert!(wait_until(|| d.client().job(sleeper).unwrap().state == JobState::Running), "it does not wake");
    assert_eq!(d.client().status().unwrap().matrix.rows.len(), 2);
    let what: Vec<String> = d.client().events(sleeper).unwrap().events.into_iter().map(|e| e.what).collect();
    assert_eq!(what, ["registered", "asleep", "awake"]);
    kill(&d, &[sleeper, busy]);
}

#[test]
fn policies_change_while_jobs_run() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nsharing = \"strict\"\n");
    let jobs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    assert_eq!(d.client().status().unwrap().matrix.rows.len(), 2);
    assert!(d.cosched(&["policy", "local"]).status.success());
    assert!(d.client().status().unwrap().matrix.rows.is_empty());
    let count = || d.client().status().unwrap().switches.count;
    assert!(wait_until(|| !d.frozen(jobs[0]) && !d.frozen(jobs[1])));
    let before = count();
    clean_look(|| {
        let used = used_in(&d, &jobs, 2000);
        expect(used[0] < used[1] * 2 && used[1] < used[0] * 2, || format!("{used:?}"))
    });
    assert!(count() <= before + 1, "local jobs are switched");

    let own = jobs[0].to_string();
    assert!(d.cosched(&["policy", "--job", &own, "gang"]).status.success());
    assert_eq!(d.client().status().unwrap().matrix.rows.len(), 1);
    assert!(d.cosched(&["policy", "--job", &own, "default"]).status.success());
    assert!(d.cosched(&["policy", "gang", "--slot", "50ms"]).status.success());
    let status = d.client().status().unwrap();
    assert_eq!((status.matrix.rows.len(), status.slot_length_ms), (2, 50));
    kill(&d, &jobs);
}

#[test]
fn a_gang_and_a_local_job_share_by_their_weights() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nsharing = \"strict\"\n");
    let gangs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    let local = d.detach(&["--policy", "local", "--", "sh", "-c", SPIN_2]);
    clean_look(|| {
        let used = used_in(&d, &[gangs[0], gangs[1], local], 4000);
        let total: u64 = used.iter().sum();
        expect(used.iter().all(|u| u * 6 > total), || format!("about a third each: {used:?}"))
    });
    kill(&d, &gangs);
    kill(&d, &[local]);
}

#[test]
fn a_suspended_job_stands_still_and_goes_on() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\n");
    let id = d.detach(&["--", "sh", "-c", SPIN_2]);
    let name = id.to_string();
    assert!(d.cosched(&["suspend", &name]).status.success());
    assert_eq!(d.client().job(id).unwrap().state, JobState::Suspended);
    assert!(wait_until(|| d.frozen(id)));
    std::thread::sleep(Duration::from_millis(100));
    assert!(used_in(&d, &[id], 500)[0] < 20_000);
    assert!(d.cosched(&["resume", &name]).status.success());
    assert!(wait_until(|| used_in(&d, &[id], 100)[0] > 20_000));
    // A polite signal reaches a suspended job, too.
    assert!(d.cosched(&["suspend", &name]).status.success());
    assert!(d.cosched(&["kill", &name]).status.success());
    assert!(wait_until(|| d.client().job(id).unwrap().state == JobState::Ended));
    assert!(d.job_cgroups().is_empty());
}

#[test]
fn kill_ends_what_ignores_a_polite_signal() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let deaf = d.dir.path().join("deaf");
    let stubborn = format!("trap '' TERM; : > {}; while :; do sleep 0.1; done", deaf.display());
    let id = d.detach(&["--", "sh", "-c", &stubborn]);
    assert!(wait_until(|| deaf.exists()));
    let out = d.cosched(&["kill", "--grace", "300ms", &id.to_string()]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(wait_until(|| d.client().job(id).unwrap().state == JobState::Ended));
    assert_eq!(d.client().job(id).unwrap().exit.unwrap().signal, Some(9));
}

/// A shell and its children, which end with the test in any case.
struct Session(std::process::Child);

impl Session {
    fn pids(&self) -> Vec<i32> {
        let leader = self.0.id() as i32;
        [procs::children_named(leader, "sh"), vec![leader]].concat()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for pid in self.pids() {
            procs::signal(pid, rustix::process::Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

#[test]
fn unregistered_processes_keep_their_part() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nreserve = 0.3\n");
    let jobs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    // A session of their own, as a login or a service has: below the machine's first process, where a test runner may be,
    // are bare tasks, whose weight is not divided over the CPUs (docs/decisions/0004).
    let spinners = format!("{SPIN_1} & {SPIN_1}");
    let leader = std::process::Command::new("setsid").args(["sh", "-c", &spinners]).spawn().unwrap();
    let session = Session(leader);
    assert!(wait_until(|| session.pids().len() == 2));
    let session_us = || session.pids().iter().map(|pid| procs::cpu_ticks(*pid).unwrap() * 10_000).sum::<u64>();
    // For the lower bound, everything that is not a job counts. Each further session that computes has a share of its own,
    // so the upper bound is for a machine without any.
    clean_look(|| {
        let (before, ours_before_us) = (procs::cpu_time(), session_us());
        let used_us: u64 = used_in(&d, &jobs, 4000).iter().sum();
        let (busy_us, ours_us) = (procs::cpu_time().since(before).busy_us, session_us() - ours_before_us);
        let part = 1.0 - used_us as f64 / busy_us as f64;
        let strangers = 1.0 - (used_us + ours_us) as f64 / busy_us as f64;
        let seen = || {
            format!("30 % was reserved, they had {:.1} %, of that strangers {:.1} %", part * 100.0, strangers * 100.0)
        };
        expect(part > 0.2 && (part < 0.45 || strangers > 0.05), seen)
    });
    kill(&d, &jobs);
}
