//! The quota of what is adopted becomes a share, and comes back whatever dies (decision 0065).

use cosched_tests::service::{CONFIG, SPIN_2, Service};
use cosched_tests::{Daemon, needs_root, procs, stderr, wait_until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::Duration;

/// The quota of one CPU that a service's owner has set, where this machine has quotas.
struct Quota {
    file: PathBuf,
    /// A v1 cgroup of the service.
    v1: Option<PathBuf>,
}

impl Quota {
    fn of(service: &Service, us: u64) -> Quota {
        let has_v1 = |mount: &PathBuf| mount.join("cpu.cfs_quota_us").exists();
        let v1 =
            procs::cgroup_mounts().into_iter().find(has_v1).map(|mount| mount.join(service.dir.file_name().unwrap()));
        let Some(dir) = v1 else {
            let file = service.dir.join("cpu.max");
            std::fs::write(&file, format!("{us} 100000")).unwrap();
            return Quota { file, v1: None };
        };
        std::fs::create_dir(&dir).unwrap();
        let file = dir.join("cpu.cfs_quota_us");
        std::fs::write(&file, us.to_string()).unwrap();
        for pid in procs::pids_in(&service.dir) {
            std::fs::write(dir.join("cgroup.procs"), pid.to_string()).unwrap();
        }
        Quota { file, v1: Some(dir) }
    }

    fn us(&self) -> Option<u64> {
        std::fs::read_to_string(&self.file).unwrap().split_whitespace().next().and_then(|word| word.parse().ok())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        if let Some(dir) = &self.v1 {
            procs::pids_in(dir).into_iter().for_each(|pid| procs::signal(pid, Signal::KILL));
            wait_until(|| std::fs::remove_dir(dir).is_ok());
        }
    }
}

/// Both threads of a service, so that both are in what it is put into.
fn busy_service() -> Service {
    let service = Service::new(SPIN_2);
    assert!(wait_until(|| procs::pids_in(&service.dir).len() == 2));
    service
}

/// As `survives`, of a service whose quota was turned into a share.
fn quota_survives(kill: impl FnOnce(&mut Daemon)) {
    let mut d = Daemon::start(CONFIG);
    let service = busy_service();
    let quota = Quota::of(&service, 100_000);
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let id = service.adopt(&d, &["--share", "from-quota"]);
    assert!(wait_until(|| quota.us().is_none()) && service.is_switched(), "{:?}", quota.us());
    let job = d.client().job(id).unwrap();
    let part = job.share_max.unwrap();
    assert!((part * cpus as f64 - 1.0).abs() < 0.01 && job.adopted.unwrap().quota == Some(part), "{part}");
    kill(&mut d);
    assert!(wait_until(|| quota.us() == Some(100_000)), "the owner's quota is lost: {:?}", quota.us());
    assert!(wait_until(|| service.runs()));
    d.launch();
    assert!(wait_until(|| quota.us().is_none()) && service.is_switched(), "the next daemon does not go on with it");
    // Whoever lifts the share has the quota again.
    let asked = |words: &[&str]| assert!(d.cosched(words).status.success(), "{words:?}");
    asked(&["share", &id.to_string(), "none"]);
    assert!(wait_until(|| quota.us() == Some(100_000)));
    asked(&["share", &id.to_string(), "20%"]);
    assert!(wait_until(|| quota.us().is_none()));
    asked(&["release", &id.to_string()]);
    assert!(wait_until(|| quota.us() == Some(100_000) && service.runs()));
}

#[test]
fn a_quota_that_is_a_share_comes_back_when_the_daemon_is_killed() {
    if needs_root() {
        quota_survives(Daemon::kill);
    }
}

#[test]
fn a_quota_that_is_a_share_comes_back_when_daemon_and_guard_are_killed() {
    if needs_root() {
        quota_survives(Daemon::kill_with_guard);
    }
}

#[test]
fn a_quota_that_is_a_share_comes_back_when_the_daemon_ends_in_order() {
    if needs_root() {
        quota_survives(Daemon::stop);
    }
}

#[test]
fn a_quota_that_the_owner_changes_holds_and_one_that_cannot_be_a_share_is_refused() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let refused = |service: &Service, why: &str| {
        let said = d.cosched(&["adopt", "--cgroup", &service.path(), "--share", "from-quota"]);
        assert!(!said.status.success() && stderr(&said).contains(why), "{}", stderr(&said));
    };
    let service = busy_service();
    refused(&service, if has_v1_cpu() { "others are there too" } else { "none of its own" });
    let quota = Quota::of(&service, 900_000_000);
    refused(&service, "that is no limit");
    std::fs::write(&quota.file, "1000").unwrap();
    refused(&service, "one slot a second");
    std::fs::write(&quota.file, "100000").unwrap();
    let id = service.adopt(&d, &["--share", "from-quota"]);
    assert!(wait_until(|| quota.us().is_none()));
    std::fs::write(&quota.file, "70000").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(d.cosched(&["release", &id.to_string()]).status.success());
    assert!(wait_until(|| service.runs()) && quota.us() == Some(70_000), "the owner has said otherwise");
}

fn has_v1_cpu() -> bool {
    procs::cgroup_mounts().iter().any(|mount| mount.join("cpu.cfs_quota_us").exists())
}
