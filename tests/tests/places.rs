//! Places: the CPUs that a gang has for itself, as its programs and its users see them.
//!
//! All comparisons are ratios within one run.

use cosched_api::ResourcesRequest;
use cosched_tests::{Daemon, clean_look, needs_root, program, stderr, stdout, target, wait_until};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Prints the CPUs that a process may use, according to the kernel.
const ALLOWED: &str = "grep Cpus_allowed_list /proc/self/status | cut -f2";

/// Uses some CPU time, then prints where it was spent, and the number of CPUs.
const WORK: &str = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; \
    echo $(grep Cpus_allowed_list /proc/self/status | cut -f2) $(nproc)";

/// The number of CPUs for which the runtimes of OpenMP and Go start threads, as these print it themselves. Go does so once a
/// millisecond, which a program that is over sooner does not reach.
const OMP: &str = "OMP_DISPLAY_ENV=true \"$0\" --help 2>&1 | sed -n \"s/.*OMP_NUM_THREADS = '\\(.*\\)'/\\1/p\"";
const GO: &str = "for i in $(seq 50); do said=$(GODEBUG=schedtrace=1 \"$0\" --version 2>&1 | \
    sed -n 's/.*gomaxprocs=\\([0-9]*\\).*/\\1/p' | sort -u); [ -z \"$said\" ] || break; done; echo $said";

/// A static program that loads none of our libraries and prints how many CPUs it may use.
const STATIC_C: &str = "#define _GNU_SOURCE\n#include <sched.h>\n#include <stdio.h>\n\
    int main(void) { cpu_set_t s; sched_getaffinity(0, sizeof s, &s); printf(\"%d\\n\", CPU_COUNT(&s)); return 0; }\n";

fn two_cpus() -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    if cpus != 2 {
        println!("SKIPPED: this test counts on a machine with 2 CPUs, here are {cpus}");
    }
    cpus == 2
}

fn spin(d: &Daemon, cpus: &str) -> u64 {
    d.detach(&["--cpus", cpus, "--", "sh", "-c", "while :; do sleep 0.01; done"])
}

fn kill(d: &Daemon, id: u64) {
    assert!(d.cosched(&["kill", "-s", "KILL", &id.to_string()]).status.success());
}

/// The CPUs that each process of a job may use, according to the kernel.
fn allowed(d: &Daemon, id: u64) -> Vec<String> {
    let of = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let lists = d.job_pids(id).iter().filter_map(of).collect::<Vec<_>>();
    let list =
        |text: &String| Some(text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned());
    lists.iter().filter_map(list).collect()
}

fn place(d: &Daemon, id: u64) -> Option<String> {
    d.client().job(id).unwrap().places
}

fn is_at(d: &Daemon, id: u64, list: &str) -> bool {
    let all = allowed(d, id);
    !all.is_empty() && all.iter().all(|one| one == list)
}

/// The launchers that are installed: Open MPI 4 and 5, MPICH.
fn launchers() -> Vec<String> {
    let of_debian = ["mpirun.openmpi", "mpirun.mpich"].map(|name| format!("/usr/bin/{name}"));
    let is_there = |path: &String| {
        let is_there = Path::new(path).exists();
        if !is_there {
            println!("SKIPPED: there is no {path}");
        }
        is_there
    };
    of_debian.into_iter().filter(is_there).chain(target("openmpi5/bin/mpirun")).collect()
}

#[test]
fn two_mpiruns_of_one_cpu_each_are_on_different_cpus_and_as_fast_as_one() {
    if !needs_root() || !two_cpus() {
        return;
    }
    let d = Daemon::start("");
    for mpirun in launchers() {
        let run = || d.spawn_run(&["--cpus", "1", "--", &mpirun, "-n", "1", "sh", "-c", WORK]);
        let time = |count: usize| {
            let start = Instant::now();
            let runs: Vec<_> = (0..count).map(|_| run()).collect();
            let said: Vec<String> = runs
                .into_iter()
                .map(|run| {
                    let output = run.wait_with_output().unwrap();
                    assert!(output.status.success(), "{}", stderr(&output));
                    stdout(&output).trim().to_owned()
                })
                .collect();
            (start.elapsed().as_secs_f64(), said)
        };
        clean_look(|| {
            let ((one, _), (two, mut cpus)) = (time(1), time(2));
            cpus.sort();
            assert_eq!(cpus, ["0 1", "1 1"], "{mpirun}: the CPU and the number of CPUs of each");
            // On one CPU it would be 2.
            if two < one * 1.5 { Ok(()) } else { Err(format!("{mpirun}: one {one:.2} s, two {two:.2} s")) }
        });
    }
}

#[test]
fn cores_of_its_own_are_said_kept_over_a_restart_and_refused_where_they_cannot_be_had() {
    if !needs_root() || !two_cpus() {
        return;
    }
    let mut d = Daemon::start("");
    let refused = |d: &Daemon, args: &[&str], why: &str| {
        let said = d.cosched(&[&["run", "--exclusive-cores"], args, &["--", "true"]].concat());
        assert!(!said.status.success() && stderr(&said).contains(why), "{}", stderr(&said));
    };
    refused(&d, &["--cpus", "1", "--policy", "local"], "only a gang");
    let script = d.dir.path().join("job.sh");
    std::fs::write(&script, "#!/bin/sh\n#COSCHED --exclusive-cores --cpus 1\nwhile :; do sleep 0.01; done\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let id = d.detach(&["--", script.to_str().unwrap()]);
    let show = |d: &Daemon| stdout(&d.cosched(&["show", &id.to_string()]));
    assert!(show(&d).contains("cores to itself"), "{}", show(&d));
    d.stop();
    d.launch();
    assert!(d.client().job(id).unwrap().exclusive_cores, "{}", show(&d));
    kill(&d, id);
    drop(d);
    let d = Daemon::start("places = false");
    refused(&d, &["--cpus", "1"], "places = false");
}

#[test]
fn programs_see_their_place_and_no_more() {
    if !needs_root() || !two_cpus() {
        return;
    }
    let d = Daemon::start("");
    let beside = spin(&d, "1");
    assert!(wait_until(|| is_at(&d, beside, "0")), "{:?}", allowed(&d, beside));
    let said = |args: &[&str]| stdout(&d.cosched(&[&["run", "--cpus", "1", "--"], args].concat())).trim().to_owned();
    assert_eq!(said(&["sh", "-c", ALLOWED]), "1");
    assert_eq!(said(&["nproc"]), "1");
    assert_eq!(said(&["python3", "-c", "import os; print(len(os.sched_getaffinity(0)))"]), "1");
    assert_eq!(said(&["taskset", "-c", "0,1", "sh", "-c", ALLOWED]), "1", "a binding from outside ends at the place");
    let (source, built) = (d.dir.path().join("n.c"), d.dir.path().join("n"));
    std::fs::write(&source, STATIC_C).unwrap();
    let cc = Command::new("cc").arg("-static").arg(&source).arg("-o").arg(&built).stderr(Stdio::null()).status();
    match cc.is_ok_and(|status| status.success()) {
        true => assert_eq!(said(&[built.to_str().unwrap()]), "1"),
        false => println!("SKIPPED: no static program can be linked here"),
    }
    if let Some(barrier) = program("barrier-omp") {
        assert_eq!(said(&["sh", "-c", OMP, &barrier]), "1", "OpenMP");
    }
    match ["/usr/sbin/runc", "/usr/bin/podman", "/usr/local/go/bin/go"].iter().find(|path| Path::new(path).exists()) {
        Some(of_go) => assert_eq!(said(&["sh", "-c", GO, of_go]), "1", "{of_go}"),
        None => println!("SKIPPED: no program made with Go is here"),
    }
    let all = stdout(&d.cosched(&["run", "--", "nproc"]));
    assert_eq!(all.trim(), "2", "without --cpus all are left to it");
    let shown = stdout(&d.cosched(&["show", &beside.to_string()]));
    assert!(shown.contains("1 (CPUs 0)"), "{shown}");
    kill(&d, beside);
}

#[test]
fn a_place_follows_what_is_asked_for_and_outlives_the_daemon() {
    if !needs_root() || !two_cpus() {
        return;
    }
    let mut d = Daemon::start("");
    let (first, second) = (spin(&d, "1"), spin(&d, "1"));
    assert_eq!([first, second].map(|id| place(&d, id).unwrap()), ["0", "1"]);
    kill(&d, first);
    assert!(wait_until(|| d.job_pids(first).is_empty()));
    d.kill();
    assert!(wait_until(|| is_at(&d, second, "0-1")), "it is confined without a daemon: {:?}", allowed(&d, second));
    d.launch();
    assert!(wait_until(|| is_at(&d, second, "1")), "another place: {:?}", allowed(&d, second));
    assert_eq!(place(&d, second).unwrap(), "1");
    let wider = ResourcesRequest { cpus: Some(2), ..ResourcesRequest::default() };
    d.client().set_resources(second, &wider).unwrap();
    assert!(wait_until(|| is_at(&d, second, "0-1")), "{:?}", allowed(&d, second));
    assert_eq!(place(&d, second), None);
    let narrower = ResourcesRequest { cpus: Some(1), ..ResourcesRequest::default() };
    d.client().set_resources(second, &narrower).unwrap();
    assert!(wait_until(|| is_at(&d, second, "0")), "{:?}", allowed(&d, second));
    d.stop();
    assert!(is_at(&d, second, "0-1"), "it is confined after the daemon's end: {:?}", allowed(&d, second));
    d.configure("places = false\n");
    d.launch();
    assert!(place(&d, second).is_none() && is_at(&d, second, "0-1"), "places are switched off");
    kill(&d, second);
}
