//! Containers of a real podman, with an image that is made on the spot: adopted, released, restarted, and running on whatever dies.

use cosched_api::{Class, Job, JobState, Policy};
use cosched_tests::service::{CONFIG, Service, is_frozen, is_switched};
use cosched_tests::users::BOB;
use cosched_tests::{Daemon, needs_root, procs, stderr, stdout, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        let podman = Podman { dir: tempfile::Builder::new().prefix("cst-").tempdir().unwrap() };
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

    /// For podman itself, and for `cosched` and its daemon, which ask it.
    fn settings(&self) -> Vec<(&'static str, PathBuf)> {
        let file = |name: &str| self.dir.path().join(name);
        vec![("CONTAINERS_STORAGE_CONF", file("storage.conf")), ("CONTAINERS_CONF", file("containers.conf"))]
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let output = Command::new("podman").envs(self.settings()).args(words).stdin(Stdio::null()).output().unwrap();
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
        self.start_labelled(name, &[], script)
    }

    fn start_labelled(&self, name: &str, labels: &[&str], script: &str) -> Result<(), String> {
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
        let words = ["run", "--detach", "--name", name, "--network", "none"];
        self.ask(&[&words, &labels[..], &[IMAGE, "sh", "-c", script]].concat()).map(drop)
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

    /// Whether a process was started with a file of this podman's.
    fn has(&self, pid: i32) -> bool {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(self.dir.path().to_str().expect("a path in UTF-8"))
    }
}

fn adopt(d: &Daemon, name: &str) -> u64 {
    let output = d.cosched(&["adopt", "--container", name, "--share", "50%"]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).trim().parse().expect("an id")
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
        // conmon calls podman once more for each container that has ended, which makes its directories again.
        wait_until(|| procs::all().into_iter().all(|pid| !self.has(pid)));
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
    d.environment = podman.settings();
    podman.start("llama", "while :; do :; done").unwrap();
    let (pid, cgroup) = (podman.pid("llama"), podman.cgroup("llama"));
    let id = adopt(&d, "llama");
    assert!(is_switched(&cgroup), "{}", stdout(&d.cosched(&["show", &id.to_string()])));
    let shown = stdout(&d.cosched(&["show", "llama"]));
    assert!(shown.contains("container llama (podman)") && shown.contains("50% of the time"), "{shown}");
    assert_eq!(podman.pid("llama"), pid, "it was restarted");
    assert!(d.cosched(&["release", "llama"]).status.success());
    assert!(runs(&cgroup));

    let id = adopt(&d, "llama");
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
    let again = adopt(&d, "llama");
    assert!(again > id && is_switched(&fresh));
    d.stop();
    assert!(runs(&fresh), "the daemon has ended in order");
    assert!(podman.pid("llama") != pid);
}

/// The job that a rule made of a container.
fn by_rule(d: &Daemon, name: &str) -> Option<Job> {
    let mut jobs = d.client().jobs(false).unwrap().jobs.into_iter();
    jobs.rfind(|job| job.name == name && !matches!(job.state, JobState::Ended | JobState::Lost))
}

#[test]
fn labels_of_containers_say_how_they_are_adopted_within_a_rule() {
    if !needs_root() {
        return;
    }
    const LOOP: &str = "while :; do :; done";
    let mut d = Daemon::start(CONFIG);
    let Some(podman) = Podman::new() else { return };
    d.environment = podman.settings();
    let labels = ["cosched.share=40%", "cosched.class=standby", "cosched.policy=gang", "org.example=x"];
    podman.start_labelled("web", &labels, LOOP).unwrap();
    podman.start("plain", LOOP).unwrap();
    d.stop();
    d.configure(&format!("{CONFIG}policy = \"local\"\n[[adopt]]\ncontainer_labels = true\nclass = \"batch\"\n"));
    d.launch();
    assert!(wait_until(|| by_rule(&d, "web").is_some()), "it was there already: {}", d.log());
    let job = by_rule(&d, "web").unwrap();
    assert_eq!((job.class, job.policy, job.share_max), (Class::Standby, Policy::Gang, Some(0.4)));
    assert_eq!(job.adopted.and_then(|adopted| adopted.from).as_deref(), Some("rule 1: container web (podman)"));
    let web = podman.cgroup("web");
    assert!(is_switched(&web), "{}", d.log());

    // More than the rule gives; one that only looks like a container; one of a user's, which is not asked for.
    podman.start_labelled("greedy", &["cosched.class=express"], LOOP).unwrap();
    let named = |digit: &str| web.with_file_name(format!("libpod-{}", digit.repeat(64)));
    let (unknown, of_user) =
        (Service::at(named("a"), 0, "exec sleep 1000"), Service::at(named("b"), BOB, "exec sleep 1000"));
    podman.start_labelled("late", &["cosched.cpus=1"], LOOP).unwrap();
    assert!(wait_until(|| by_rule(&d, "late").is_some()), "{}", d.log());
    let late = by_rule(&d, "late").unwrap();
    assert_eq!((late.class, late.cpus), (Class::Batch, 1));
    for said in ["container greedy (podman): `cosched.class = \"express\"` is not possible", "no such container"] {
        assert!(wait_until(|| d.log().contains(said)), "{said}: {}", d.log());
    }
    assert!(!d.log().contains(&"b".repeat(64)));
    let names: Vec<String> = d.client().jobs(false).unwrap().jobs.into_iter().map(|job| job.name).collect();
    assert_eq!(names, ["web", "late"]);
    assert!(runs(&podman.cgroup("greedy")) && runs(&podman.cgroup("plain")));

    // Started again it is adopted again, and runs when the daemon does not.
    podman.ask(&["restart", "--time", "0", "web"]).unwrap();
    assert!(wait_until(|| by_rule(&d, "web").is_some_and(|again| again.id > job.id)), "{}", d.log());
    let again = podman.cgroup("web");
    assert!(is_switched(&again));
    d.kill_with_guard();
    assert!(runs(&again) && runs(&podman.cgroup("late")));
    drop((unknown, of_user));
}
