//! Processes of one job with several busy threads each take turns, and programs of several ranks.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cosched_linux::{JobCgroup, Subgangs};

use crate::support::{Scene, alone, helper, within};

/// The classes of a process's threads.
fn classes(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).map(|tasks| tasks.flatten().collect()).unwrap_or(vec![]);
    let tids = tasks.iter().filter_map(|task| task.file_name().to_str()?.parse().ok());
    // SAFETY: numbers only.
    tids.map(|tid| unsafe { libc::sched_getscheduler(tid) }).collect()
}

fn all_are(pid: i32, class: i32) -> bool {
    let classes = classes(pid);
    !classes.is_empty() && classes.iter().all(|of| *of == class)
}

fn cpu_ns(pid: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let stat = |path: &Path| std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
    tasks.filter_map(|task| stat(&task.path()).split(' ').next()?.parse::<u64>().ok()).sum()
}

fn scene() -> Option<Scene> {
    if cosched_linux::observe::cpus_online() < 2 {
        println!("SKIPPED: one CPU has no two threads at a time");
        return None;
    }
    Scene::new()
}

fn begin(job: &JobCgroup) -> Option<Subgangs> {
    let mut subgangs = Subgangs::start().expect("a thread").or_else(|| {
        println!("SKIPPED: without CAP_SYS_NICE no process can leave SCHED_IDLE");
        None
    })?;
    subgangs.set(BTreeMap::from([(job.id(), (job.clone(), cosched_linux::observe::cpus_online() as u32))]));
    Some(subgangs)
}

#[test]
fn two_processes_with_a_thread_for_each_cpu_take_turns_until_the_end() {
    let _alone = alone();
    let Some(mut scene) = scene() else { return };
    // Its threads are of their own class; one thread, so that it takes no turns itself.
    let job = scene.job(1, &["chrt", "-i", "0", helper(), "spin"], 1);
    let own = job.procs().expect("readable")[0];
    assert!(within(|| all_are(own, libc::SCHED_IDLE)));
    scene.more(&job, &[helper(), "session"], 2);
    let both: Vec<i32> = job.procs().expect("readable").into_iter().filter(|pid| *pid != own).collect();
    let [a, b] = both[..] else { panic!("{both:?}") };
    let Some(subgangs) = begin(&job) else { return };
    assert!(within(|| job.switch_handle().subgangs() == 2));
    let turn_of = |front: i32, behind: i32| all_are(front, libc::SCHED_OTHER) && all_are(behind, libc::SCHED_IDLE);
    for _ in 0..3 {
        assert!(within(|| turn_of(a, b)) && within(|| turn_of(b, a)));
    }
    let before = [cpu_ns(a), cpu_ns(b)];
    std::thread::sleep(Duration::from_secs(2));
    let [had_a, had_b] = [cpu_ns(a) - before[0], cpu_ns(b) - before[1]];
    println!("{} and {} ms of CPU time", had_a / 1_000_000, had_b / 1_000_000);
    assert!(had_a < 2 * had_b && had_b < 2 * had_a);
    // Whatever the turn at the end.
    // SAFETY: numbers and a live sched_param.
    let moved = unsafe { libc::sched_setscheduler(b, libc::SCHED_IDLE, &libc::sched_param { sched_priority: 0 }) };
    assert_eq!(moved, 0);
    subgangs.end();
    assert!(all_are(a, libc::SCHED_OTHER) && all_are(b, libc::SCHED_OTHER), "nothing is left behind");
    assert!(all_are(own, libc::SCHED_IDLE), "the program's own choice");
    assert_eq!(job.switch_handle().subgangs(), 0);
}

#[test]
fn what_a_waiting_process_starts_is_not_behind_the_others_for_long() {
    let _alone = alone();
    let Some(mut scene) = scene() else { return };
    let job = scene.job(2, &[helper(), "session"], 2);
    let Some(subgangs) = begin(&job) else { return };
    assert!(within(|| job.switch_handle().subgangs() == 2));
    // As if a process had started it in the turn of another one.
    scene.more(&job, &["chrt", "-i", "0", "sleep", "1000"], 1);
    let child = || job.procs().expect("readable").into_iter().find(|pid| name(*pid) == "sleep");
    assert!(within(|| child().is_some_and(|child| all_are(child, libc::SCHED_OTHER))));
    job.procs().expect("readable").into_iter().filter(|pid| name(*pid) != "sleep").skip(1).for_each(|pid| {
        // SAFETY: numbers only, and a process of this test.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    });
    assert!(within(|| job.switch_handle().subgangs() == 0), "one alone takes no turns");
    assert!(job.procs().expect("readable").into_iter().all(|pid| all_are(pid, libc::SCHED_OTHER)));
    subgangs.end();
}

#[test]
fn the_programs_of_two_launchers_take_turns_and_a_third_one_at_once() {
    let _alone = alone();
    let Some(mut scene) = scene() else { return };
    let dir = tempfile::tempdir().unwrap();
    let launcher = dir.path().join("mpiexec");
    let wait_for_job = "until grep -q '/gang$' /proc/self/cgroup; do sleep 0.01; done";
    let ranks = cosched_linux::observe::cpus_online();
    let script = format!("#!/bin/sh\n{wait_for_job}\nfor rank in $(seq {ranks}); do \"$@\" & done\nwait\n");
    std::fs::write(&launcher, script).unwrap();
    std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let command = [launcher.to_str().unwrap(), helper(), "spin"];
    let job = scene.job(3, &command, 1);
    let Some(subgangs) = begin(&job) else { return };
    // One alone takes no turns, however long.
    std::thread::sleep(Duration::from_millis(500));
    assert!(job.switch_handle().subgangs() == 0 && !job.switch_handle().programs_take_turns());
    for (count, more) in [(2, 1), (3, 1)] {
        scene.more(&job, &command, more);
        assert!(within(|| job.switch_handle().subgangs() == count && job.switch_handle().programs_take_turns()));
    }
    let programs = || {
        let mut programs = BTreeMap::<i32, Vec<i32>>::new();
        for pid in job.procs().expect("readable").into_iter().filter(|pid| name(*pid) != "mpiexec") {
            programs.entry(parent(pid)).or_default().push(pid);
        }
        programs
    };
    let [a, b, c] = &programs().into_values().collect::<Vec<_>>()[..] else { panic!("{:?}", programs()) };
    let are = |program: &[i32], class: i32| program.iter().all(|pid| all_are(*pid, class));
    for _ in 0..2 {
        for front in [a, b, c] {
            let class = |of: &Vec<i32>| if of == front { libc::SCHED_OTHER } else { libc::SCHED_IDLE };
            assert!(within(|| [a, b, c].into_iter().all(|of| are(of, class(of)))));
        }
    }
    // Two end: the last one has the CPUs for itself.
    for launcher in programs().into_keys().skip(1) {
        let ranks = programs().remove(&launcher).unwrap();
        // SAFETY: numbers only, and processes of this test.
        ranks.iter().for_each(|pid| assert_eq!(unsafe { libc::kill(*pid, libc::SIGKILL) }, 0));
    }
    assert!(within(|| job.switch_handle().subgangs() == 0));
    assert!(within(|| job.procs().expect("readable").into_iter().all(|pid| all_are(pid, libc::SCHED_OTHER))));
    subgangs.end();
    assert!(!job.switch_handle().programs_take_turns());
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok()).expect("a parent")
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}
