//! `cosched run`: a job behaves as its command does without cosched, and leaves nothing behind.

use cosched_tests::{Daemon, bin_dir, needs_root, procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

#[test]
fn passes_the_exit_code_the_output_and_the_input_through() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let out = d.cosched(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(out.status.code(), Some(7));
    assert_eq!((stdout(&out).as_str(), stderr(&out).as_str()), ("out\n", "err\n"));

    let mut cat =
        d.command("cosched").args(["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    cat.stdin.take().unwrap().write_all(b"through the job\n").unwrap();
    assert_eq!(stdout(&cat.wait_with_output().unwrap()), "through the job\n");
}

#[test]
fn a_shell_pipeline_runs_unchanged() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let out = d.cosched(&["run", "--", "sh", "-c", "seq 1 100000 | grep 7 | wc -l; exit ${PIPESTATUS:-0}"]);
    assert_eq!(stdout(&out).trim(), "40951");
}

#[test]
fn a_command_that_does_not_exist_is_127_and_registers_nothing() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let out = d.cosched(&["run", "--", "no-such-command-here"]);
    assert_eq!(out.status.code(), Some(127));
    assert!(stderr(&out).contains("no-such-command-here"), "{}", stderr(&out));
    let plain_file = d.dir.path().join("plain");
    std::fs::write(&plain_file, "not a program").unwrap();
    assert_eq!(d.cosched(&["run", "--", plain_file.to_str().unwrap()]).status.code(), Some(126));
    assert!(d.client().jobs(true).unwrap().jobs.is_empty());
}

#[test]
fn a_signal_that_ends_the_command_is_128_and_its_number() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    assert_eq!(d.cosched(&["run", "--", "sh", "-c", "kill -USR1 $$"]).status.code(), Some(128 + 10));
}

#[test]
fn signals_to_cosched_run_reach_the_command() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    for (signal, code) in [(Signal::TERM, 41), (Signal::HUP, 42), (Signal::USR1, 43), (Signal::INT, 44)] {
        let script = "trap 'exit 41' TERM; trap 'exit 42' HUP; trap 'exit 43' USR1; trap 'exit 44' INT; echo ready; \
                      while :; do sleep 0.05; done";
        let mut run = d.spawn_run(&["--", "sh", "-c", script]);
        let mut ready = [0; 6];
        std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut ready).unwrap();
        procs::signal(run.id() as i32, signal);
        assert_eq!(run.wait().unwrap().code(), Some(code), "{signal:?}");
    }
}

#[test]
fn every_descendant_is_in_the_jobs_cgroup_from_its_first_instruction() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let script = "cat /proc/self/cgroup; (setsid sh -c 'cat /proc/self/cgroup'); sh -c 'cat /proc/self/cgroup' & wait";
    let out = d.cosched(&["run", "--", "sh", "-c", script]);
    let unified: Vec<String> = stdout(&out).lines().filter(|l| l.starts_with("0::")).map(str::to_owned).collect();
    assert_eq!(unified.len(), 3, "{}", stdout(&out));
    assert!(unified.iter().all(|l| *l == format!("0::/{}/job-1/gang", d.cgroup)), "{unified:?}");
}

#[test]
fn the_job_lasts_until_its_last_process_has_ended() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let marker = d.dir.path().join("late");
    let script = format!("(sleep 1; touch {}) & exit 3", marker.display());
    let out = d.cosched(&["run", "--", "sh", "-c", &script]);
    assert_eq!(out.status.code(), Some(3));
    assert!(marker.exists(), "cosched run came back before the job's last process had ended");
    assert!(d.job_cgroups().is_empty());

    let out = d.cosched(&["run", "--leftovers", "kill", "--", "sh", "-c", "sleep 600 & exit 4"]);
    assert_eq!(out.status.code(), Some(4));
    assert!(d.job_cgroups().is_empty());
}

#[test]
fn a_detached_job_is_waited_for_and_its_output_is_kept() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let id = d.detach(&["--name", "quiet", "--", "sh", "-c", "echo kept; exit 9"]).to_string();
    assert_eq!(d.cosched(&["wait", &id]).status.code(), Some(9));
    assert_eq!(stdout(&d.cosched(&["log", &id])), "kept\n");
    let job = d.client().job(id.parse().unwrap()).unwrap();
    assert_eq!((job.name.as_str(), job.exit.unwrap().code), ("quiet", Some(9)));
    assert_eq!(job.class, cosched_api::Class::Batch);
}

#[test]
fn an_attached_command_shows_the_output_passes_signals_on_and_ends_like_the_job() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    let script = "trap 'echo caught; exit 5' INT; echo begun; while :; do sleep 0.05; done";
    let id = d.detach(&["--", "sh", "-c", script]).to_string();
    let log = std::path::PathBuf::from(d.client().job(1).unwrap().log_path.unwrap());
    assert!(wait_until(|| std::fs::read_to_string(&log).is_ok_and(|text| text == "begun\n")));
    let attach = || {
        let mut command = d.command("cosched");
        command.args(["attach", &id]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut attached = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(attached.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        attached
    };
    let detaches = attach();
    let other = attach();
    procs::signal(detaches.id() as i32, Signal::QUIT);
    let out = detaches.wait_with_output().unwrap();
    assert_eq!((out.status.code(), stderr(&out).contains("detached; job 1 continues")), (Some(0), true));
    // It follows the job across a restart of the daemon, and signals reach the job through the new one.
    d.kill();
    d.launch();
    procs::signal(other.id() as i32, Signal::INT);
    let out = other.wait_with_output().unwrap();
    // What follows is its launcher's word on why it ended.
    let caught = stdout(&out).starts_with("caught\n");
    assert_eq!((out.status.code(), caught), (Some(5), true), "{}{}", stdout(&out), stderr(&out));

    let mut running = d.spawn_run(&["--name", "here", "--", "sleep", "600"]);
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.iter().any(|job| job.name == "here")));
    let out = d.cosched(&["attach", "here"]);
    assert_eq!((out.status.code(), stderr(&out).contains("its output was not captured")), (Some(6), true));
    assert!(d.cosched(&["kill", "-9", "here"]).status.success());
    running.wait().unwrap();
}

#[test]
fn a_hundred_launches_leave_nothing_behind() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    for i in 0..100 {
        let out = d.cosched(&["run", "--", "true"]);
        assert_eq!(out.status.code(), Some(0), "launch {i}: {}", stderr(&out));
        assert!(d.job_cgroups().is_empty(), "launch {i} left a cgroup when `cosched run` had returned");
    }
    assert_eq!(d.client().status().unwrap().switches.errors, 0);
    let open = std::fs::read_dir(format!("/proc/{}/fd", d.pid())).unwrap().count();
    assert!(open < 60, "{open} descriptors are open in the daemon");
}

#[test]
fn a_job_may_make_cgroups_of_its_own() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let nested = d.v2_job(1).join("inner/most");
    let script = format!("mkdir -p {0} && echo $$ > {0}/cgroup.procs && exit 5", nested.display());
    assert_eq!(d.cosched(&["run", "--", "sh", "-c", &script]).status.code(), Some(5));
    assert!(wait_until(|| d.job_cgroups().is_empty()), "{:?}", d.job_cgroups());
}

#[test]
fn a_short_job_does_not_wait_for_a_boundary_when_a_cpu_is_free() {
    if !needs_root() {
        return;
    }
    // Slots of 30 s: a process that waits for a slot boundary waits longer than this test's time limit.
    let d = Daemon::start("slot_length = \"30s\"\n");
    let busy = d.detach(&["--cpus", "1", "--", "sh", "-c", "while :; do :; done"]);
    let mut short = d.spawn_run(&["--cpus", "1", "--", "true"]);
    assert!(wait_until(|| short.try_wait().unwrap().is_some()), "a short job waits for a slot boundary");
    assert!(d.cosched(&["kill", "-s", "KILL", &busy.to_string()]).status.success());
}

/// Runs `cosched run` from the root of the v1 memory cgroups, if they exist: a process in any other one stays there.
fn run_from_the_root_of_memory(d: &Daemon, script: &str) -> Child {
    let root = procs::cgroup_mounts().into_iter().find(|mount| mount.join("memory.limit_in_bytes").exists());
    let enter = root.map_or_else(String::new, |root| format!("echo $$ >{}/cgroup.procs;", root.display()));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{enter} exec \"$@\""), "sh"]).arg(bin_dir().join("cosched"));
    command.args(["run", "--", "sh", "-c", script]).env("COSCHED_SOCKET", d.socket());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh runs")
}

/// On a single machine, and as a cluster of one node, whose records differ.
#[test]
fn a_job_that_is_killed_for_lack_of_memory_is_told_so() {
    if !needs_root() {
        return;
    }
    for config in ["", "memory = \"400M\"\n"] {
        let d = Daemon::start(config);
        let go = d.dir.path().join("go");
        // If the limit does not work, it ends by itself before the machine runs out of memory.
        let wait = format!("until test -e {}; do sleep 0.05; done", go.display());
        let run = run_from_the_root_of_memory(&d, &format!("{wait}; ulimit -v 1000000; exec tail /dev/zero"));
        assert!(wait_until(|| d.client().jobs(true).unwrap().jobs.iter().any(|job| !job.cgroup.is_empty())));
        let files = ["memory.max", "memory.limit_in_bytes"];
        let mut limits = d.job_cgroups().into_iter().flat_map(|dir| files.map(|file| dir.join(file)));
        let Some(limit) = limits.find(|file| file.exists()) else {
            println!("SKIPPED: this machine has no memory controller for jobs");
            d.cosched(&["kill", "-9", "1"]);
            drop(run.wait_with_output());
            return;
        };
        std::fs::write(limit, "33554432").unwrap();
        std::fs::write(go, "").unwrap();
        let out = run.wait_with_output().unwrap();
        let told = "out of memory: the kernel killed 1 process, limit 32 MiB";
        assert_eq!(out.status.code(), Some(137), "{}", stderr(&out));
        assert!(stderr(&out).contains(told) && stderr(&out).contains("job 1"), "{}", stderr(&out));
        for words in [&["show", "1"][..], &["log", "--events", "1"]] {
            let shown = d.cosched(words);
            assert!(stdout(&shown).contains(told), "{}{}", stdout(&shown), stderr(&shown));
        }
        assert!(stdout(&d.cosched(&["ps", "-a"])).contains("ended SIGKILL OOM"));
        let job = d.client().job(1).unwrap();
        assert_eq!(job.out_of_memory.map(|killed| (killed.killed, killed.limit_bytes)), Some((1, Some(32 << 20))));
    }
}
