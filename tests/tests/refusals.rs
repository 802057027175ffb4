//! Bad input gets what happened, why, a hint, a documented exit code, and changes nothing.

use cosched_api::JobState;
use cosched_tests::{Daemon, needs_root, stderr, stdout, wait_until};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// A user who is not root: the user `nobody`.
const NOBODY: u32 = 65534;

fn as_nobody(d: &Daemon, args: &[&str]) -> Output {
    open_to_all(d);
    d.command("cosched").args(args).uid(NOBODY).gid(NOBODY).current_dir("/").output().expect("cosched runs")
}

fn open_to_all(d: &Daemon) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(d.dir.path(), mode).unwrap();
}

/// The user `nobody` must be able to reach the programs; a checkout below a private home is not reachable.
fn nobody_can_execute() -> bool {
    let path = cosched_tests::bin_dir().join("cosched");
    let ok = Command::new(path).arg("--version").uid(NOBODY).gid(NOBODY).output().is_ok_and(|o| o.status.success());
    if !ok {
        println!("SKIPPED: another user cannot execute the programs in this checkout");
    }
    ok
}

fn check(out: &Output, code: i32, words: &[&str]) {
    assert_eq!(out.status.code(), Some(code), "stdout {}\nstderr {}", stdout(out), stderr(out));
    for word in words {
        assert!(stderr(out).contains(word), "`{word}` is missing in: {}", stderr(out));
    }
}

#[test]
fn the_command_line_says_what_is_valid() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let cpus = std::thread::available_parallelism().unwrap().get();
    check(&d.cosched(&["run", "--cpus", "5000", "--", "true"]), 125, &["5000", &cpus.to_string()]);
    check(&d.cosched(&["run", "--cpus", "0", "--", "true"]), 125, &[]);
    check(&d.cosched(&["run", "--mem", "900T", "--", "true"]), 125, &["MiB"]);
    check(&d.cosched(&["run", "--class", "batsh", "--", "true"]), 125, &["batch", "standby"]);
    check(&d.cosched(&["run", "--policy", "gangs", "--", "true"]), 125, &["gang", "local"]);
    check(&d.cosched(&["class", "1", "expres"]), 2, &["express"]);
    check(&d.cosched(&["policy", "lokal"]), 2, &["local"]);
    check(&d.cosched(&["policy", "gang", "--slot", "5ms"]), 6, &["10"]);
    check(&d.cosched(&["policy", "gang", "--slot", "31s"]), 6, &["30000"]);
    check(&d.cosched(&["show", "77"]), 4, &["77"]);
    check(&d.cosched(&["kill", "77"]), 4, &["77"]);
    assert!(d.client().jobs(true).unwrap().jobs.is_empty(), "a refused job was registered");
    assert_eq!(d.client().status().unwrap().slot_length_ms, 100);
}

#[test]
fn an_ended_job_is_not_changed() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    assert!(d.cosched(&["run", "--", "true"]).status.success());
    for command in ["suspend", "resume", "kill"] {
        check(&d.cosched(&[command, "1"]), 6, &["ended"]);
    }
}

#[test]
fn another_users_job_is_seen_and_not_touched() {
    if !needs_root() || !nobody_can_execute() {
        return;
    }
    let d = Daemon::start("");
    let id = d.detach(&["--", "sleep", "1000"]).to_string();
    let ps = as_nobody(&d, &["ps"]);
    assert!(stdout(&ps).contains("sleep"), "{}", stdout(&ps));
    for args in [vec!["kill", &id], vec!["suspend", &id], vec!["class", &id, "standby"]] {
        check(&as_nobody(&d, &args), 5, &["not yours", "root"]);
    }
    check(&as_nobody(&d, &["policy", "local"]), 5, &["administrator"]);
    check(&as_nobody(&d, &["run", "--class", "express", "--", "true"]), 125, &["express", "administrators"]);
    assert_eq!(d.client().job(id.parse().unwrap()).unwrap().state, JobState::Running);
}

#[test]
fn a_user_runs_his_own_jobs_and_lowers_their_class() {
    if !needs_root() || !nobody_can_execute() {
        return;
    }
    let d = Daemon::start("");
    let out = as_nobody(&d, &["run", "--", "id", "-u"]);
    check(&out, 0, &[]);
    assert_eq!(stdout(&out).trim(), NOBODY.to_string());

    open_to_all(&d);
    let script = ["run", "--class", "batch", "--", "sleep", "1000"];
    let mut run = d.command("cosched").args(script).uid(NOBODY).gid(NOBODY).current_dir("/").spawn().unwrap();
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.len() == 1));
    let id = d.client().jobs(false).unwrap().jobs[0].id.to_string();
    check(&as_nobody(&d, &["class", &id, "interactive"]), 5, &["administrator"]);
    check(&as_nobody(&d, &["class", &id, "standby"]), 0, &[]);
    check(&as_nobody(&d, &["kill", &id]), 0, &[]);
    assert_eq!(run.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn nobody_registers_a_process_that_is_not_his() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut request =
        cosched_api::JobRequest { command: vec!["x".to_owned()], pid: 1, ..cosched_api::JobRequest::default() };
    let refused = d.client().register(&request).unwrap_err().to_string();
    assert!(refused.contains("process 1"), "{refused}");
    request.pid = other.id() as i32;
    assert!(d.client().register(&request).is_ok(), "a child of the caller is his");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn no_daemon_is_said_clearly() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    d.stop();
    check(&d.cosched(&["ps"]), 3, &["no daemon", "coschedd"]);
}

#[test]
fn a_second_daemon_is_refused() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let again = |socket: &str, state: &str| {
        let mut c = d.command("coschedd");
        c.arg("--socket").arg(d.dir.path().join(socket)).arg("--state-dir").arg(d.dir.path().join(state));
        c.args(["--cgroup", &d.cgroup]).output().unwrap()
    };
    check(&again("coschedd.sock", "state"), 1, &["already", "coschedd.sock"]);
    check(&again("other.sock", "state"), 1, &["another daemon", "--state-dir"]);
    check(&again("other.sock", "other-state"), 1, &["another daemon", "--cgroup", &d.cgroup]);
    assert!(d.client().status().is_ok());
}

#[test]
fn a_wrong_configuration_is_explained() {
    if !needs_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    for (text, words) in [
        ("slot_lenght = \"20ms\"", ["slot_lenght", "slot_length"]),
        ("slot_length = \"1ms\"", ["slot_length", "10ms to 30s"]),
        ("policy = \"gangs\"", ["gangs", "gang"]),
        ("admins = [\"no-such-user-here\"]", ["no-such-user-here", "admins"]),
    ] {
        std::fs::write(&file, text).unwrap();
        let mut c = Command::new(cosched_tests::bin_dir().join("coschedd"));
        c.arg("--config").arg(&file).arg("--socket").arg(dir.path().join("s")).arg("--state-dir").arg(dir.path());
        c.args(["--cgroup", &format!("cst-{}-config", std::process::id())]);
        check(&c.output().unwrap(), 1, &words);
        assert!(!dir.path().join("s").exists());
    }
}

#[test]
fn the_socket_speaks_http_to_anybody() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let curl = |args: &[&str]| {
        let mut c = Command::new("curl");
        c.args(["-s", "-w", "\n%{http_code}", "--unix-socket"]).arg(d.socket()).args(args);
        c.output()
    };
    let Ok(out) = curl(&["http://localhost/v1/status"]) else {
        println!("SKIPPED: curl is not installed");
        return;
    };
    let text = stdout(&out);
    let (body, code) = text.rsplit_once('\n').unwrap();
    assert_eq!(code, "200");
    let status: cosched_api::Status = serde_json::from_str(body).unwrap();
    assert_eq!(status.pid, d.pid());
    for (args, code, word) in [
        (vec!["http://localhost/v1/jobs/12"], "404", "12"),
        (vec!["http://localhost/v2/jobs"], "404", "openapi"),
        (vec!["-X", "DELETE", "http://localhost/v1/jobs"], "404", "DELETE"),
        (vec!["-d", "{\"clas\": 1}", "http://localhost/v1/jobs"], "400", "clas"),
        (vec!["-d", "not json", "http://localhost/v1/jobs"], "400", "body"),
        (vec!["http://localhost/v1/jobs/abc"], "400", "abc"),
    ] {
        let text = stdout(&curl(&args).unwrap());
        let (body, got) = text.rsplit_once('\n').unwrap();
        assert_eq!(got, code, "{args:?}: {body}");
        let error: cosched_api::ErrorBody = serde_json::from_str(body).expect(body);
        assert!(body.contains(word) && !error.hint.is_empty(), "{body}");
    }
}
