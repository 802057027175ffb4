//! Containers of a real podman, with an image that is made on the spot: adopted, released, restarted, and running on whatever dies.

use cosched_api::JobState;
use cosched_tests::service::{CONFIG, is_frozen, is_switched};
use cosched_tests::{Daemon, needs_root, procs, stderr, stdout, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const IMAGE: &str = "localhost/cosched-test:1";

/// A program of this machine.
fn installed(name: &str) -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&dirs).chain(["/usr/sbin".into(), "/bin".into()]);
    places.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// podman with a store, containers and settings of this test's own.
struct Podman {
    dir: tempfile::TempDir,
}

impl Podman {
    /// None, with the reason, where containers cannot be run.
    fn new() -> Option<Podman> {
        let needed = ["podman", "runc", "tar", "busybox"];
        if let Some(missing) = needed.iter().find(|name| installed(name).is_none()) {
            println!("SKIPPED: {missing} is not installed");
            return None;
        }
        let podman = Podman { dir: tempfile::tempdir().unwrap() };
        podman.configure();
        let tried = podman.import().and_then(|()| podman.start("try", "exit 0"));
        match tried {
            Ok(()) => Some(podman),
            Err(why) => {
                println!("SKIPPED: podman runs no container here: {why}");
                None
            }
        }
    }

    /// vfs: without mounts that could be left. runc: crun refuses the hybrid layout.
    fn configure(&self) {
        let dir = self.dir.path().display();
        let storage = format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{dir}/store\"\nrunroot = \"{dir}/run\"\n");
        let engine = format!(
            "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n[engine]\nruntime = \"runc\"\n\
             cgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nlock_type = \"file\"\ntmp_dir = \"{dir}/tmp\"\n"
        );
        std::fs::write(self.dir.path().join("storage.conf"), storage).unwrap();
        std::fs::write(self.dir.path().join("containers.conf"), engine).unwrap();
    }

    /// For podman itself, and for `cosched`, which asks it.
    fn with_settings<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let file = |name: &str| self.dir.path().join(name);
        command.env("CONTAINERS_STORAGE_CONF", file("storage.conf")).env("CONTAINERS_CONF", file("containers.conf"))
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let output = self.with_settings(&mut Command::new("podman")).args(words).stdin(Stdio::null()).output().unwrap();
        if output.status.success() { Ok(stdout(&output).trim().to_owned()) } else { Err(stderr(&output)) }
    }

    fn import(&self) -> Result<(), String> {
        let root = self.dir.path().join("root");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::copy(installed("busybox").unwrap(), root.join("bin/busybox")).unwrap();
        std::os::unix::fs::symlink("busybox", root.join("bin/sh")).unwrap();
        let file = self.dir.path().join("image.tar");
        let tar = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&file).arg(".").status();
        assert!(tar.is_ok_and(|status| status.success()), "tar");
        self.ask(&["import", file.to_str().unwrap(), IMAGE]).map(drop)
    }

    fn start(&self, name: &str, script: &str) -> Result<(), String> {
        let words = ["run", "--detach", "--name", name, "--network", "none", IMAGE, "sh", "-c", script];
        self.ask(&words).map(drop)
    }

    fn pid(&self, name: &str) -> i32 {
        self.ask(&["inspect", "--format", "{{.State.Pid}}", name]).unwrap().parse().unwrap()
    }

    /// Its cgroup; the directory of another one, when the container was started again.
    fn cgroup(&self, name: &str) -> PathBuf {
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", self.pid(name))).unwrap();
        let path = text.lines().find_map(|line| line.strip_prefix("0::/")).expect("a v2 cgroup");
        procs::v2_mount().join(path)
    }

    fn cosched(&self, d: &Daemon, words: &[&str]) -> Output {
        self.with_settings(&mut d.command("cosched")).args(words).stdin(Stdio::null()).output().unwrap()
    }

    fn adopt(&self, d: &Daemon, name: &str) -> u64 {
        let output = self.cosched(d, &["adopt", "--container", name, "--share", "50%"]);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().parse().expect("an id")
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        for container in self.ask(&["ps", "--all", "--quiet"]).unwrap_or_default().lines() {
            // A frozen one ends, too.
            let frozen = self.ask(&["inspect", "--format", "{{.State.Pid}}", container]).unwrap_or_default();
            if frozen.parse().is_ok_and(|pid: i32| pid > 0) {
                let _ = std::fs::write(self.cgroup(container).join("cgroup.freeze"), "0");
            }
            let _ = self.ask(&["rm", "--force", "--time", "0", container]);
        }
        // The directories above the containers' cgroups go when no other podman has some there.
        for mount in procs::cgroup_mounts() {
            let _ = std::fs::remove_dir(mount.join("libpod_parent/conmon"));
            let _ = std::fs::remove_dir(mount.join("libpod_parent"));
        }
    }
}

/// It computes, and is not frozen.
fn runs(cgroup: &Path) -> bool {
    wait_until(|| {
        let before = procs::cpu_usec(cgroup);
        std::thread::sleep(std::time::Duration::from_millis(300));
        !is_frozen(cgroup) && procs::cpu_usec(cgroup) > before + 2000
    })
}

#[test]
fn a_container_is_adopted_with_a_share_released_and_runs_on_without_the_daemon() {
    if !needs_root() {
        return;
    }
    // The containers go first: they hold the mounts of the daemon's hierarchy.
    let mut d = Daemon::start(CONFIG);
    let Some(podman) = Podman::new() else { return };
    podman.start("llama", "while :; do :; done").unwrap();
    let (pid, cgroup) = (podman.pid("llama"), podman.cgroup("llama"));
    let id = podman.adopt(&d, "llama");
    assert!(is_switched(&cgroup), "{}", stdout(&d.cosched(&["show", &id.to_string()])));
    let shown = stdout(&d.cosched(&["show", "llama"]));
    assert!(shown.contains("container llama (podman)") && shown.contains("50% of the time"), "{shown}");
    assert_eq!(podman.pid("llama"), pid, "it was restarted");
    assert!(d.cosched(&["release", "llama"]).status.success());
    assert!(runs(&cgroup));

    let id = podman.adopt(&d, "llama");
    assert!(is_switched(&cgroup) && wait_until(|| is_frozen(&cgroup)));
    d.kill();
    assert!(runs(&cgroup), "the container stays frozen");
    assert_eq!(podman.ask(&["inspect", "--format", "{{.State.Status}}", "llama"]).as_deref(), Ok("running"));
    d.launch();
    assert!(is_switched(&cgroup), "the next daemon does not switch it");

    // Under its old name, and in a cgroup of the same path.
    podman.ask(&["restart", "--time", "0", "llama"]).unwrap();
    let fresh = podman.cgroup("llama");
    let is_over = || matches!(d.client().job(id).unwrap().state, JobState::Ended | JobState::Lost);
    assert!(wait_until(is_over), "{:?}", d.client().job(id).unwrap().state);
    assert!(runs(&fresh), "the container that was started again is no job");
    let again = podman.adopt(&d, "llama");
    assert!(again > id && is_switched(&fresh));
    d.stop();
    assert!(runs(&fresh), "the daemon has ended in order");
    assert!(podman.pid("llama") != pid);
}
