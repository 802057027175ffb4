//! A process enters an existing job: by `cosched join`, and by the wait library where `COSCHED_JOB` names a job.

use cosched_api::{JobRequest, Waiting};
use cosched_tests::{Daemon, needs_root, procs, stderr, stdout, wait_until};
use std::process::{Command, Output, Stdio};

/// Whether a list of cgroups, as the kernel prints it, is that of a process of the job.
fn in_job(cgroups: &str, d: &Daemon, id: u64) -> bool {
    cgroups.lines().any(|line| line == format!("0::/{}/job-{id}/gang", d.cgroup))
}

/// A job that lasts until the test ends.
fn sleeper(d: &Daemon) -> u64 {
    d.detach(&["--cpus", "1", "--", "sleep", "600"])
}

/// `program` as a process that has a job's environment, and nothing else of the job.
fn outside(d: &Daemon, id: &str, program: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "20", "env"]).arg(format!("COSCHED_JOB={id}"));
    let library = cosched_tests::bin_dir().join("libcosched_preload.so");
    command.arg(format!("LD_PRELOAD={}", library.display())).args(program);
    command.env("COSCHED_SOCKET", d.socket()).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), stdout(output), stderr(output))
}

#[test]
fn the_command_knows_its_job_and_open_mpi_is_told_to_carry_it() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let out = d.cosched(&["run", "--wait", "spin-block:50us", "--", "env"]);
    let job = d.client().job(1).unwrap();
    let text = stdout(&out);
    let get = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {name} in\n{text}")).to_owned()
    };
    assert_eq!(get("COSCHED_JOB"), "1");
    assert_eq!(get("COSCHED_JOB_SUBMITTED"), job.submitted_unix_ms.to_string());
    let library = get("LD_PRELOAD");
    assert_eq!(
        get("OMPI_MCA_orte_launch_agent"),
        format!(
            "env COSCHED_JOB=1 COSCHED_JOB_SUBMITTED={} LD_PRELOAD={library} COSCHED_WAIT=spin-block:50us orted",
            job.submitted_unix_ms
        ),
        "neither the socket nor the page, which are of one node"
    );
    assert!(get("PRTE_MCA_prte_launch_agent").ends_with(" prted"));
}

#[test]
fn a_command_joins_in_place_and_its_children_are_in_the_job() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let id = sleeper(&d);
    let join = d
        .command("cosched")
        .args([
            "join",
            "--job",
            &id.to_string(),
            "--",
            "sh",
            "-c",
            "echo $$ $COSCHED_JOB; cat /proc/self/cgroup; exit 9",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = join.id();
    let out = join.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(9));
    assert_eq!(stdout(&out).lines().next(), Some(format!("{pid} {id}").as_str()));
    assert!(in_job(&stdout(&out), &d, id), "{}", stdout(&out));

    let by_environment =
        d.command("cosched").args(["join", "cat", "/proc/self/cgroup"]).env("COSCHED_JOB", id.to_string()).output();
    assert!(in_job(&stdout(&by_environment.unwrap()), &d, id));

    let mut later = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = later.id().to_string();
    assert_eq!(
        text(&d.cosched(&["join", "--job", &id.to_string(), "--pid", &pid])),
        (Some(0), String::new(), String::new())
    );
    assert!(d.job_pids(id).contains(&(later.id() as i32)));
    later.kill().unwrap();
    later.wait().unwrap();
}

#[test]
fn what_cannot_join_is_told_why_and_runs_all_the_same_where_that_was_asked_for() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let ended = d.cosched(&["run", "true"]);
    assert!(ended.status.success());
    let id = sleeper(&d).to_string();
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let out = d.command("cosched").arg("join").args(arguments).env_remove("COSCHED_JOB").output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(why), "{arguments:?}: {}", stderr(&out));
        assert_eq!(stdout(&out), "", "{arguments:?}: the command must not run");
    };
    refused(&["echo", "ran"], 2, "neither --job nor COSCHED_JOB");
    refused(&["--job", "99", "echo", "ran"], 4, "no job 99");
    refused(&["--job", "1", "echo", "ran"], 6, "job 1 has ended");
    refused(&["--job", &id, "no-such-command-here"], 127, "not found");
    refused(&["--job", &id, "--pid", "4194304"], 4, "there is no process 4194304");
    refused(&["--job", &id, "--pid", "1", "echo"], 2, "cannot be used with");
    refused(&["--socket", "/nonexistent/s", "--job", &id, "echo", "ran"], 3, "no cosched daemon answers");

    let anyway = d.cosched(&["join", "--optional", "--job", "99", "--", "sh", "-c", "echo ran; exit 5"]);
    assert_eq!((anyway.status.code(), stdout(&anyway).as_str()), (Some(5), "ran\n"));
    assert!(
        stderr(&anyway).contains("no job 99") && stderr(&anyway).contains("outside the job"),
        "{}",
        stderr(&anyway)
    );

    // Another daemon's job of the same id.
    let mut other = d.command("cosched");
    other.args(["join", "echo", "ran"]).env("COSCHED_JOB", &id).env("COSCHED_JOB_SUBMITTED", "1");
    let out = other.output().unwrap();
    assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(4), ""));
    assert!(stderr(&out).contains("is not the one of COSCHED_JOB"), "{}", stderr(&out));
}

#[test]
fn the_wait_library_joins_before_main_and_leaves_no_trace() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let request =
        JobRequest { command: vec!["empty".into()], waiting: Some(Waiting::default()), ..JobRequest::default() };
    let job = d.client().register(&request).unwrap();
    let mut holder = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = holder.id() as i32;
    d.client().add_process(job.id, &cosched_api::ProcessRequest { pid, start_ticks: None }).unwrap();
    let id = job.id.to_string();

    let script = "cat /proc/self/cgroup; echo fds; ls /proc/self/fd; echo page=$COSCHED_WAIT_PAGE";
    let out = outside(&d, &id, &["sh", "-c", script]).env("COSCHED_WAIT_PAGE", "/another/nodes").output().unwrap();
    assert_eq!((out.status.code(), stderr(&out).as_str()), (Some(0), ""));
    assert!(in_job(&stdout(&out), &d, job.id), "{}", stdout(&out));
    let page = job.waiting.unwrap().page.unwrap();
    let plain = Command::new("sh").args(["-c", "echo fds; ls /proc/self/fd"]).stdin(Stdio::null()).output().unwrap();
    let expected = format!("{}page={page}\n", stdout(&plain));
    assert!(stdout(&out).ends_with(&expected), "{}\nnot {expected}", stdout(&out));

    // Another job of the same id is not joined.
    let other = outside(&d, &id, &["cat", "/proc/self/cgroup"]).env("COSCHED_JOB_SUBMITTED", "1").output().unwrap();
    assert!(!in_job(&stdout(&other), &d, job.id) && other.status.success());
    let same = job.submitted_unix_ms.to_string();
    let same = outside(&d, &id, &["cat", "/proc/self/cgroup"]).env("COSCHED_JOB_SUBMITTED", same).output().unwrap();
    assert!(in_job(&stdout(&same), &d, job.id), "{}", stdout(&same));
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn a_program_whose_job_cannot_be_joined_runs_as_ever() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    assert!(d.cosched(&["run", "true"]).status.success());
    let script = ["sh", "-c", "echo well; ls /proc/self/fd; exit 3"];
    let plain = Command::new(script[0]).args(&script[1..]).stdin(Stdio::null()).output().unwrap();
    for id in ["1", "99", "seven", "-1", "99999999999999999999999", " "] {
        assert_eq!(text(&outside(&d, id, &script).output().unwrap()), text(&plain), "COSCHED_JOB={id}");
        let debugged = outside(&d, id, &["true"]).env("COSCHED_WAIT_DEBUG", "1").output().unwrap();
        assert!(stderr(&debugged).contains("is not in job"), "COSCHED_JOB={id}: {}", stderr(&debugged));
    }
    // A daemon that hangs, and a missing one.
    procs::signal(d.pid(), rustix::process::Signal::STOP);
    let hanging = outside(&d, "1", &script).output();
    procs::signal(d.pid(), rustix::process::Signal::CONT);
    assert_eq!(text(&hanging.unwrap()), text(&plain));
    let nobody = outside(&d, "1", &script).env("COSCHED_SOCKET", "/nonexistent/s").output().unwrap();
    assert_eq!(text(&nobody), text(&plain));
}

#[test]
fn another_users_job_is_not_entered() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let id = sleeper(&d).to_string();
    // The socket is in a private directory: the daemon itself can only refuse users who can reach it.
    std::fs::set_permissions(d.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(d.socket(), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let cosched = cosched_tests::bin_dir().join("cosched");
    let copy = d.dir.path().join("cosched");
    std::fs::copy(cosched, &copy).unwrap();
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid", "12345", "--regid", "12345", "--clear-groups"]).arg(copy);
    stranger.args(["join", "--job", &id, "echo", "ran"]).env("COSCHED_SOCKET", d.socket());
    let out = stranger.output().unwrap();
    assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(5), ""), "{}", stderr(&out));
    assert!(wait_until(|| d.job_pids(id.parse().unwrap()).len() == 1));
}

#[test]
fn a_job_that_was_registered_empty_gets_its_first_process_by_joining() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let id = d.client().register(&JobRequest { command: vec!["empty".into()], ..JobRequest::default() }).unwrap().id;
    let out = d.cosched(&["join", "--job", &id.to_string(), "--", "cat", "/proc/self/cgroup"]);
    assert!(in_job(&stdout(&out), &d, id), "{}{}", stdout(&out), stderr(&out));
}
