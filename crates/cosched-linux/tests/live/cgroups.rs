//! Trees and jobs.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use cosched_core::Disposition;
use cosched_linux::confine::Move;
use cosched_linux::cpulist;
use cosched_linux::endwatch::EndWatch;
use cosched_linux::family::family;
use cosched_linux::mechanism::Phase;
use cosched_linux::process::Held;
use cosched_linux::thaw::ThawPaths;
use cosched_linux::{Layout, Origin, TreeError, mechanism};

use rustix::fs::{Mode, OFlags};

use crate::support::{Scene, within};

const SLEEP: [&str; 2] = ["sleep", "1000"];

#[test]
fn a_job_lives_and_ends() {
    let Some(mut scene) = Scene::new() else { return };
    let job = scene.job(7, &SLEEP, 3);
    assert!(job.populated().unwrap());
    assert_eq!(job.count().unwrap(), 3);
    assert_eq!(scene.tree.jobs().unwrap(), [7]);
    let pid = job.procs().unwrap()[0];
    assert_eq!(scene.tree.job_of(pid), Some(7));
    assert_eq!(scene.tree.job_of(std::process::id() as i32), None);
    assert!(job.memory_current().unwrap() > 0);
    assert!(matches!(job.remove(), Err(TreeError::Io { .. })), "a job with processes is not removed");
    assert!(job.populated().unwrap(), "and not harmed by the attempt");

    let again = scene.tree.open_job(7).unwrap();
    assert_eq!(again.procs().unwrap(), job.procs().unwrap());
    again.kill().unwrap();
    assert!(within(|| !job.populated().unwrap()));
    job.remove().unwrap();
    assert!(!job.populated().unwrap());
    assert_eq!(scene.tree.jobs().unwrap(), []);
    assert!(within(|| scene.living() == 0));
}

#[test]
fn without_a_cpuset_threads_are_bound_and_keep_their_own_part() {
    let no_cpuset = |layout| Layout { cpuset_mount: None, ..layout };
    let Some(mut scene) = Scene::on(no_cpuset) else { return };
    let all = cosched_linux::observe::cpus_allowed();
    let (first, rest) = (vec![all[0]], all[1..].to_vec());
    let job = scene.job(1, &SLEEP, 1);
    if rest.is_empty() || job.v2_dir().join("gang/cpuset.cpus").exists() {
        return println!("SKIPPED: needs two CPUs, and no cpuset controller in v2");
    }
    let pid = job.procs().unwrap()[0];
    let bound = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        cpulist::parse(list).unwrap()
    };
    let to = |from: &[u32], to: &[u32]| Move { from: from.to_vec(), to: to.to_vec(), all: to.len() == all.len() };
    job.confine(&to(&all, &first)).unwrap();
    assert_eq!(bound(), first);
    job.confine(&to(&first, &rest)).unwrap();
    assert_eq!(bound(), rest);
    job.confine(&to(&rest, &all)).unwrap();
    assert_eq!(bound(), all);
    job.confine_process(pid, &to(&all, &first));
    assert_eq!(bound(), first);
}

#[test]
fn cgroups_that_a_job_made_itself_are_seen_and_removed() {
    let Some(mut scene) = Scene::new() else { return };
    let job = scene.job(1, &SLEEP, 2);
    let deep = job.v2_dir().join("gang/own/deep");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("cgroup.procs"), job.procs().unwrap()[0].to_string()).unwrap();
    assert_eq!(job.count().unwrap(), 2);
    assert!(job.populated().unwrap());
    job.kill().unwrap();
    assert!(within(|| !job.populated().unwrap()));
    job.remove().unwrap();
    assert!(!job.v2_dir().exists());
}

#[test]
fn a_frozen_job_can_be_killed() {
    let Some(mut scene) = Scene::new() else { return };
    let job = scene.job(1, &SLEEP, 2);
    job.switch_handle().set_frozen(true).unwrap();
    assert!(job.frozen());
    job.kill().unwrap();
    assert!(within(|| !job.populated().unwrap()));
}

#[test]
fn a_signal_reaches_every_process_once() {
    let Some(mut scene) = Scene::new() else { return };
    let job = scene.job(1, &SLEEP, 3);
    assert_eq!(job.signal_all(libc::SIGTERM).unwrap(), 3);
    assert!(within(|| scene.living() == 0));
    assert_eq!(job.signal_all(libc::SIGTERM).unwrap(), 0);
}

#[test]
fn a_signal_reaches_who_stands_where_no_path_reaches() {
    let Some(mut scene) = Scene::new() else { return };
    let job = scene.job(1, &SLEEP, 2);
    fs::write(job.v2_dir().join("cgroup.max.depth"), "max").unwrap();
    let open = |at: &OwnedFd, name: &str, flags| rustix::fs::openat(at, name, flags, Mode::empty()).unwrap();
    let mut deep = OwnedFd::from(fs::File::open(job.v2_dir().join("gang")).unwrap());
    for _ in 0..20 {
        let name = "d".repeat(250);
        rustix::fs::mkdirat(&deep, &name, Mode::RWXU).unwrap();
        deep = open(&deep, &name, OFlags::RDONLY);
    }
    let moved = job.procs().unwrap()[0].to_string();
    rustix::io::write(open(&deep, "cgroup.procs", OFlags::WRONLY), moved.as_bytes()).unwrap();
    drop(deep);
    assert_eq!(job.count().unwrap(), 2);
    assert_eq!(job.signal_all(libc::SIGTERM).unwrap(), 2);
    assert!(within(|| !job.populated().unwrap()), "both have ended of the signal");
    job.remove().unwrap();
}

#[test]
fn a_process_that_has_gone_cannot_be_attached() {
    let Some(scene) = Scene::new() else { return };
    let job = scene.tree.create_job(1).unwrap();
    let mut child = crate::support::spawn(&["true"]);
    child.wait().unwrap();
    let error = job.attach(child.id() as i32).unwrap_err().to_string();
    assert!(error.contains("ended already"), "{error}");
}

#[test]
fn a_child_born_while_its_parent_was_moved_comes_along() {
    let Some(scene) = Scene::new() else { return };
    let job = scene.tree.create_job(1).unwrap();
    let mut parent = crate::support::spawn(&["sh", "-c", "sleep 1000 & wait"]);
    let held = Held::open(parent.id() as i32).unwrap();
    assert!(within(|| family(held.pid()).is_some_and(|family| family.len() == 2)));
    let child = family(held.pid()).unwrap()[1];
    // As it is born then: in the job, but for the v2 hierarchy, which comes last.
    let origin = Origin::of(child).unwrap();
    job.attach(child).unwrap();
    let v2 = Layout::detect().unwrap().v2_mount.join(origin.v2.strip_prefix("/").unwrap());
    fs::write(v2.join("cgroup.procs"), child.to_string()).unwrap();
    let moved = scene.tree.attach_family(&job, &held, Duration::from_secs(20), |_| Ok(()));
    let count = job.count();
    for pid in [child, held.pid()] {
        cosched_linux::process::send_signal(pid, libc::SIGKILL);
    }
    parent.wait().unwrap();
    moved.unwrap();
    assert_eq!(count.unwrap(), 2);
}

#[test]
fn the_end_of_a_job_is_reported_and_its_freezing_is_not() {
    let Some(mut scene) = Scene::new() else { return };
    let job = scene.job(5, &SLEEP, 1);
    let mut watch = EndWatch::new().unwrap();
    watch.add(5, &job.events_path()).unwrap();
    // The notice of the process's arrival may still be pending in the kernel.
    while is_readable(&watch) {
        assert_eq!(watch.drain(), Vec::<u64>::new());
    }
    let switch = job.switch_handle();
    switch.set_frozen(true).unwrap();
    let gang_events = job.v2_dir().join("gang/cgroup.events");
    assert!(within(|| fs::read_to_string(&gang_events).unwrap().contains("frozen 1")));
    switch.set_frozen(false).unwrap();
    assert!(!is_readable(&watch), "freezing wakes nobody");
    job.kill().unwrap();
    assert!(within(|| watch.drain() == [5]));
}

fn is_readable(watch: &EndWatch) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&wait)).unwrap() > 0
}

#[test]
fn the_reserve_is_set_on_the_tree() {
    let Some(scene) = Scene::new() else { return };
    let paths = scene.tree.thaw_paths();
    let file = match &paths.cpu_tree {
        Some(dir) => dir.join("cpu.shares"),
        None => paths.v2_tree.join("cpu.weight"),
    };
    assert!(scene.tree.set_reserve(0.5).unwrap());
    let even = number(&file);
    assert!(scene.tree.set_reserve(0.2).unwrap());
    assert_eq!(number(&file), 4 * even, "80 % for us, 20 % for them");
}

#[test]
fn the_mechanisms_are_tried_and_leave_nothing() {
    let Some(scene) = Scene::new() else { return };
    let probes = mechanism::probe(&scene.tree);
    assert!(probes.iter().any(|p| p.name == "freezer" && p.usable), "{probes:?}");
    assert!(probes.iter().any(|p| p.soft && p.usable), "{probes:?}");
    assert_eq!(scene.tree.jobs().unwrap(), []);
    let chosen = mechanism::choose(&scene.tree, true, None).unwrap();
    assert!(probes.iter().any(|p| p.soft && p.usable && p.name == chosen.name()));
}

#[test]
fn the_weight_survives_the_idle_mark() {
    let Some(scene) = Scene::new() else { return };
    let job = scene.tree.create_job(1).unwrap();
    let switch = job.switch_handle();
    let paths = scene.tree.thaw_paths();
    let (file, expected) = match &paths.cpu_tree {
        Some(dir) => (dir.join("job-1/cpu.shares"), 300 * 26),
        None => (job.v2_dir().join("cpu.weight"), 300),
    };
    switch.set_weight(300).unwrap();
    assert_eq!(number(&file), expected);
    switch.set_idle(true).unwrap();
    switch.set_idle(false).unwrap();
    switch.set_weight(300).unwrap();
    assert_eq!(number(&file), expected, "written anew although it was remembered");
}

#[test]
fn a_crowd_stops_with_what_the_others_leave_and_dies_with_its_own_part() {
    let Some(mut scene) = Scene::new() else { return };
    let (few, crowd) = (scene.job(1, &SLEEP, 3), scene.job(2, &SLEEP, 300));
    let idle = |job: u64| match &scene.tree.thaw_paths() {
        ThawPaths { cpu_tree: Some(dir), .. } => dir.join(format!("job-{job}/cpu.idle")),
        ThawPaths { v2_tree, .. } => v2_tree.join(format!("job-{job}/cpu.idle")),
    };
    if !idle(1).exists() {
        println!("SKIPPED: this kernel has no cpu.idle");
        return;
    }
    for job in [&few, &crowd] {
        job.switch_handle().freeze_for_others().unwrap();
        assert!(within(|| job.frozen()));
    }
    assert_eq!([1, 2].map(|job| number(&idle(job))), [0, 1]);
    let soft = mechanism::choose(&scene.tree, true, None).unwrap();
    soft.apply(&crowd.switch_handle(), Disposition::Run, 100, Phase::Switch).unwrap();
    assert_eq!(number(&idle(2)), 0, "in its own slot it is as the others");
    crowd.switch_handle().freeze_for_others().unwrap();
    assert_eq!(number(&idle(2)), 1);
    crowd.kill().unwrap();
    assert_eq!(number(&idle(2)), 0);
    assert!(within(|| !crowd.populated().unwrap()));
}

fn number(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}
