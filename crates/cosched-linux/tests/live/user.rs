//! A program that the daemon starts for a user has none of the daemon's privileges.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

use cosched_linux::user::{User, spawn_gate};

use crate::support::helper;

const WORDS: [&str; 2] = ["/bin/sh", "-c"];

fn argv(script: &str) -> Vec<OsString> {
    WORDS.iter().chain([&script]).map(OsString::from).collect()
}

/// This test again, as a process with a daemon's privileges. It prints the properties of its child.
fn as_daemon() {
    let script = "exec >\"$OUT\" 2>&1; id; ulimit -l; ulimit -n; ulimit -r; umask; cat /proc/self/oom_score_adj; \
                  grep -E '^(Cap(Inh|Prm|Eff|Amb)|Sig(Blk|Ign))' /proc/self/status; cut -d' ' -f19,41 /proc/self/stat; env";
    std::fs::write("/proc/self/oom_score_adj", "123").unwrap();
    // SAFETY: this process has nothing else to do: numbers, and structures that live.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -7);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        libc::umask(0o077);
        let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        libc::setrlimit(libc::RLIMIT_MEMLOCK, &all);
        let many = libc::rlimit { rlim_cur: 99, rlim_max: 99 };
        libc::setrlimit(libc::RLIMIT_RTPRIO, &many);
    }
    let out = std::env::var("OUT").unwrap();
    let environment = [("OUT".to_owned(), out), ("MINE".to_owned(), "two\nlines".to_owned())];
    let user = User { uid: 65_534, groups: vec![65_533, 65_532] };
    let gate = spawn_gate(Path::new(helper()), Some(&user), &environment, &argv(script)).unwrap();
    assert_eq!(
        std::fs::read(format!("/proc/{}/environ", gate.pid())).unwrap(),
        b"",
        "nothing of the user's is in the gate"
    );
    assert!(gate.open().unwrap().wait().unwrap().success());
}

#[test]
fn it_has_what_a_login_gives() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: becoming another user needs root");
        return;
    }
    if std::env::var_os("OUT").is_some() {
        return as_daemon();
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let out = dir.path().join("out");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "user::it_has_what_a_login_gives"]).env("OUT", &out);
    let done = again.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    let text = std::fs::read_to_string(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("uid=65534") && lines[0].contains("gid=65533") && lines[0].contains("65532"),
        "{text}"
    );
    assert_eq!(lines[1..6], ["8192", "1024", "0", "0022", "0"], "locked memory, files, real time, umask, OOM score");
    for name in ["SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(lines.contains(&format!("{name}:\t0000000000000000").as_str()), "{name}: {text}");
    }
    assert!(lines.contains(&"0 0"), "nice and policy: {text}");
    assert!(text.contains("MINE=two\nlines") && !text.contains("CARGO"), "{text}");
    assert!(!text.contains("=0("), "no group of root's: {text}");
}

#[test]
fn a_gate_that_is_never_opened_runs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let environment = [("MARK".to_owned(), mark.display().to_string())];
    let gate = spawn_gate(Path::new(helper()), None, &environment, &argv("touch $MARK")).unwrap();
    assert_eq!(gate.cancel(io::Error::other("no")).to_string(), "no");
    assert!(!mark.exists());
}
