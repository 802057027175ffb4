//! Services and other cgroups that are adopted.

use crate::{Daemon, procs, stderr, stdout, wait_until};
use cosched_api::{Adopt, JobRequest};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A thread that computes for ever.
pub const SPIN: &str = "while :; do :; done";
/// Two of them.
pub const SPIN_2: &str = "while :; do :; done & while :; do :; done";
/// Short slots, and a guard that does not wait for long.
pub const CONFIG: &str = "slot_length = \"50ms\"\nlease = \"1s\"\n";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A request that adopts.
pub fn ask(adopt: Adopt) -> JobRequest {
    JobRequest { command: vec!["service".to_owned()], adopt: Some(adopt), ..JobRequest::default() }
}

/// Whether a cgroup is frozen.
pub fn is_frozen(cgroup: &Path) -> bool {
    std::fs::read_to_string(cgroup.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "1")
}

/// Whether a cgroup is frozen by turns.
pub fn is_switched(cgroup: &Path) -> bool {
    wait_until(|| is_frozen(cgroup)) && wait_until(|| !is_frozen(cgroup)) && wait_until(|| is_frozen(cgroup))
}

/// A program in a cgroup of its own, as systemd or a container engine starts one. It is no job, and ends with the test.
pub struct Service {
    /// Its cgroup.
    pub dir: PathBuf,
    /// Its first process.
    pub child: Child,
}

impl Service {
    /// Of root.
    pub fn new(script: &str) -> Service {
        Service::of(0, script)
    }

    /// Of a user, who owns the cgroup, too.
    pub fn of(uid: u32, script: &str) -> Service {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        Service::at(procs::v2_mount().join(format!("cst-{}-{n}.service", std::process::id())), uid, script)
    }

    /// In this cgroup, which is made.
    pub fn at(dir: PathBuf, uid: u32, script: &str) -> Service {
        std::fs::create_dir(&dir).expect("a cgroup");
        std::os::unix::fs::chown(&dir, Some(uid), Some(uid)).unwrap();
        let child = Service::spawn(&dir, uid, script);
        Service { dir, child }
    }

    /// It waits until it is in its cgroup.
    pub fn spawn(dir: &Path, uid: u32, script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("read word; {script}")]).current_dir("/").stdin(Stdio::piped());
        let mut child = command.uid(uid).gid(uid).spawn().expect("sh runs");
        std::fs::write(dir.join("cgroup.procs"), child.id().to_string()).expect("it enters its cgroup");
        drop(child.stdin.take());
        child
    }

    /// Its cgroup, as in /proc/PID/cgroup.
    pub fn path(&self) -> String {
        self.dir.strip_prefix(procs::v2_mount()).map(|path| format!("/{}", path.display())).unwrap()
    }

    /// Whether its cgroup is frozen.
    pub fn is_frozen(&self) -> bool {
        is_frozen(&self.dir)
    }

    /// Its CPU time.
    pub fn cpu_us(&self) -> u64 {
        procs::cpu_usec(&self.dir)
    }

    /// It gets CPU time, little beside jobs, whose subtree weighs much, and is not frozen.
    pub fn runs(&self) -> bool {
        let before = self.cpu_us();
        std::thread::sleep(Duration::from_millis(300));
        !self.is_frozen() && self.cpu_us() > before + 2000
    }

    /// The request that adopts it.
    pub fn ask(&self) -> JobRequest {
        ask(Adopt { cgroup: Some(self.path()), ..Adopt::default() })
    }

    /// As an operator does.
    pub fn adopt(&self, d: &Daemon, more: &[&str]) -> u64 {
        let output = d.cosched(&[&["adopt", "--cgroup", &self.path()], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().parse().expect("an id")
    }

    /// It takes turns.
    pub fn is_switched(&self) -> bool {
        is_switched(&self.dir)
    }

    /// All of its processes end, and its cgroup goes.
    pub fn end(&mut self) {
        let _ = std::fs::write(self.dir.join("cgroup.kill"), "1");
        let _ = self.child.wait();
        assert!(wait_until(|| std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists()), "{:?}", self.dir);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = std::fs::write(self.dir.join("cgroup.freeze"), "0");
        procs::end_cgroup(&self.dir);
        let _ = self.child.wait();
        wait_until(|| std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists());
    }
}
