//! One user without root: a daemon in a delegated cgroup subtree, started on demand, and the messages without such a
//! subtree.

use cosched_tests::{bin_dir, needs_root, procs, stderr, stdout, wait_until};
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Output};

const NOBODY: u32 = 65534;

/// Cgroups that belong to the user `nobody`, and a home directory; all of it is removed at the end.
struct Delegation {
    name: String,
    home: tempfile::TempDir,
}

impl Delegation {
    fn new(delegate: bool) -> Delegation {
        let home = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
        chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        // As unique as the name of the home directory.
        let name = home.path().file_name().expect("a name").to_string_lossy().into_owned();
        let d = Delegation { name, home };
        for dir in d.dirs().iter().filter(|_| delegate) {
            std::fs::create_dir(dir).unwrap();
            let files = ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"];
            for path in files.iter().map(|f| dir.join(f)).filter(|p| p.exists()) {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        d
    }

    /// The user's cgroup in the v2 hierarchy and, in the hybrid layout, in the v1 cpu and memory hierarchies.
    fn dirs(&self) -> Vec<PathBuf> {
        let named = |m: &PathBuf| *m == procs::v2_mount() || m.ends_with("cpu") || m.ends_with("memory");
        procs::cgroup_mounts().into_iter().filter(named).map(|m| m.join(&self.name)).collect()
    }

    /// Runs `cosched ARGS` as the user `nobody`, from inside the user's cgroups where they exist.
    fn cosched(&self, args: &[&str]) -> Output {
        let enter = self.dirs().into_iter().filter(|d| d.exists());
        let enter: String = enter.map(|d| format!("echo $$ > {}/cgroup.procs && ", d.display())).collect();
        let script = format!("{enter}exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \"$@\"");
        Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(bin_dir().join("cosched"))
            .args(args)
            .env("COSCHED_SOCKET", self.home.path().join("coschedd.sock"))
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path())
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .current_dir("/")
            .output()
            .unwrap()
    }

    fn daemon(&self) -> Option<i32> {
        let status: cosched_api::Status = serde_json::from_slice(&self.cosched(&["--json", "status"]).stdout).ok()?;
        assert_eq!((status.uid, status.embedded), (NOBODY, true));
        Some(status.pid)
    }
}

impl Drop for Delegation {
    fn drop(&mut self) {
        for dir in self.dirs() {
            procs::end_cgroup(&dir);
        }
        procs::remove_tree_everywhere(&self.name);
    }
}

/// Another user must be able to execute the programs.
fn can_run() -> bool {
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid", "65534", "--clear-groups"]).arg(bin_dir().join("cosched")).arg("--version");
    let ok = nobody.output().is_ok_and(|o| o.status.success());
    if !ok {
        println!("SKIPPED: another user cannot execute the programs in this checkout, or there is no setpriv");
    }
    ok
}

#[test]
fn a_user_with_a_delegated_subtree_needs_no_root() {
    if !needs_root() || !can_run() {
        return;
    }
    let d = Delegation::new(true);
    let out = d.cosched(&["run", "--", "sh", "-c", "id -u; cat /proc/self/cgroup; exit 6"]);
    assert_eq!(out.status.code(), Some(6), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.starts_with("65534\n"), "{text}");
    assert!(text.contains(&format!("0::/{}/cosched/job-1/gang", d.name)), "{text}");
    let daemon = d.daemon().expect("his daemon still runs");
    procs::signal(daemon, rustix::process::Signal::TERM);
    assert!(wait_until(|| procs::state(daemon).is_none_or(|s| s == 'Z')));
    assert!(!d.dirs()[0].join("cosched").exists(), "the daemon left its cgroups");
}

#[test]
fn without_a_delegated_subtree_it_says_what_to_do() {
    if !needs_root() || !can_run() {
        return;
    }
    let d = Delegation::new(false);
    let config = d.home.path().join("cosched");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("cosched.toml"), "without_cgroups = \"refuse\"\n").unwrap();
    let out = d.cosched(&["run", "--policy", "gang", "--", "true"]);
    assert_eq!(out.status.code(), Some(125), "{}", stderr(&out));
    for word in ["cgroup", "may not write", "administrator"] {
        assert!(stderr(&out).contains(word), "`{word}` is missing in: {}", stderr(&out));
    }
}

#[test]
fn a_users_own_daemon_can_have_queues() {
    if !needs_root() || !can_run() {
        return;
    }
    let d = Delegation::new(true);
    let config = d.home.path().join("cosched");
    std::fs::create_dir(&config).unwrap();
    let text = "memory = \"1G\"\n[[queue]]\nname = \"day\"\n[[queue]]\nname = \"small\"\nmemory_max = \"100M\"\n";
    std::fs::write(config.join("cosched.toml"), text).unwrap();
    let out = d.cosched(&["run", "--queue", "small", "--mem", "50M", "--", "sh", "-c", "id -u; exit 6"]);
    assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(6), "65534\n"), "{}", stderr(&out));
    let refused = d.cosched(&["run", "--queue", "small", "--mem", "500M", "--", "true"]);
    assert!(stderr(&refused).contains("permits"), "{}", stderr(&refused));
    let ids =
        [0, 1].map(|_| stdout(&d.cosched(&["run", "-d", "--mem", "900M", "--", "sleep", "300"])).trim().to_owned());
    let state = |id: &str| {
        let job: cosched_api::Job = serde_json::from_slice(&d.cosched(&["--json", "show", id]).stdout).unwrap();
        job.state
    };
    assert_eq!(ids.each_ref().map(|id| state(id)), [cosched_api::JobState::Running, cosched_api::JobState::Waiting]);
    for id in &ids {
        assert!(d.cosched(&["kill", "-s", "KILL", id]).status.success());
        assert!(wait_until(|| state(id) == cosched_api::JobState::Ended));
    }
    let daemon = d.daemon().expect("his daemon still runs");
    procs::signal(daemon, rustix::process::Signal::TERM);
    assert!(wait_until(|| procs::state(daemon).is_none_or(|s| s == 'Z')));
}
