//! A job that is frozen when its daemon dies, and its launcher.

use crate::fake::{Fake, Place, ended, until};
use crate::run::start_ready;
use cosched_api::Job;
use std::path::{Path, PathBuf};
use std::process::Child;

/// A cgroup for a job, which a daemon would have made.
struct Cgroup {
    /// Relative to the mount.
    name: String,
    dir: PathBuf,
    /// The one with the processes, which is frozen.
    inner: PathBuf,
}

impl Cgroup {
    /// `None` where none can be made; `inner` is the name of the cgroup below it that has the processes, if there is one.
    fn new(name: &str, inner: &str) -> Option<Cgroup> {
        let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
        let mount = mounts.into_iter().find(|mount| mount.join("cgroup.procs").exists());
        let name = format!("cst-{}-{name}", std::process::id());
        let dir = mount.map(|mount| mount.join(&name)).filter(|dir| std::fs::create_dir(dir).is_ok());
        let Some(dir) = dir else {
            eprintln!("SKIPPED: making a cgroup needs root and a cgroup v2 hierarchy");
            return None;
        };
        let inner = dir.join(inner);
        std::fs::create_dir_all(&inner).unwrap();
        Some(Cgroup { name, dir, inner })
    }

    /// A daemon whose jobs are in it.
    fn daemon(&self, socket: &Path) -> Fake {
        let (name, inner) = (self.name.clone(), self.inner.clone());
        Fake::with(socket, move |job| {
            std::fs::write(inner.join("cgroup.procs"), job.pid.to_string()).unwrap();
            job.cgroup.clone_from(&name);
            Ok(())
        })
    }

    fn freeze(&self) {
        std::fs::write(self.inner.join("cgroup.freeze"), "1").unwrap();
        until("the freeze", || self.is_frozen());
    }

    fn is_frozen(&self) -> bool {
        std::fs::read_to_string(self.inner.join("cgroup.events")).unwrap().contains("frozen 1")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // After a failure.
        let _ = std::fs::write(self.inner.join("cgroup.freeze"), "0");
        let _ = std::fs::write(self.dir.join("cgroup.kill"), "1");
        until("the empty cgroup", || {
            let _ = std::fs::remove_dir(&self.inner);
            let _ = std::fs::remove_dir(&self.dir);
            !self.dir.exists()
        });
    }
}

/// A command that ends when there is a file `go`.
fn script(place: &Place) -> String {
    format!("echo ready; until [ -e {} ]; do sleep 0.05; done; exit 6", place.path("go").display())
}

/// It is thawed, and a further daemon that knows the job is told of its end.
fn runs_to_its_end(cgroup: &Cgroup, place: &Place, jobs: Vec<Job>, child: &mut Child) {
    until("the thaw", || !cgroup.is_frozen());
    let next = Fake::start(&place.socket);
    next.state().jobs = jobs;
    std::fs::write(place.path("go"), "").unwrap();
    assert_eq!(ended(child).code(), Some(6));
}

#[test]
fn the_launcher_thaws_its_job_when_the_daemon_dies() {
    // A job's processes are in its `gang`, those of an adopted cgroup in itself.
    for (name, inner) in [("thaw", "gang"), ("thaw-adopted", "")] {
        let Some(cgroup) = Cgroup::new(name, inner) else { return };
        let place = Place::new();
        let fake = cgroup.daemon(&place.socket);
        let (mut child, _stdout) = start_ready(&place, &["run", "--", "sh", "-c", &script(&place)]);
        fake.until("the long poll", |state| state.seen.iter().any(|line| line.contains("/wait")));
        cgroup.freeze();
        let jobs = fake.state().jobs.clone();
        drop(fake);
        runs_to_its_end(&cgroup, &place, jobs, &mut child);
    }
}

/// The next daemon has thawed all jobs when it began. What it has frozen since is its own affair.
#[test]
fn the_launcher_thaws_nothing_while_the_next_daemon_listens() {
    let Some(cgroup) = Cgroup::new("next", "gang") else { return };
    let place = Place::new();
    let mut first = cgroup.daemon(&place.socket);
    let (mut child, _stdout) = start_ready(&place, &["run", "--", "sh", "-c", &script(&place)]);
    first.until("the long poll", |state| state.seen.iter().any(|line| line.contains("/wait")));
    cgroup.freeze();
    let jobs = first.state().jobs.clone();
    first.socket = place.path("first.sock");
    std::fs::rename(&place.socket, &first.socket).unwrap();
    let second = Fake::start(&place.socket);
    second.state().jobs.clone_from(&jobs);
    second.state().mute = true;
    drop(first);
    second.until("the next long poll", |state| state.seen.iter().any(|line| line.contains("/wait")));
    // Twice as long as a daemon may be away.
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert!(cgroup.is_frozen());
    drop(second);
    runs_to_its_end(&cgroup, &place, jobs, &mut child);
}
