//! The disk with a node's records hangs: what depends on it, and what does not.

use cosched_api::JobState;
use cosched_tests::cluster::jobs::PULSE;
use cosched_tests::cluster::{Cluster, needs};
use cosched_tests::{stderr, wait_until};
use std::process::Command;
use std::time::{Duration, Instant};

const TOOLS: [&str; 5] = ["etcd", "openssl", "mkfs.ext4", "fsfreeze", "nsenter"];

/// A file system that accepts no writes until this is dropped.
struct Frozen {
    anchor: i32,
    dir: String,
}

impl Frozen {
    fn new(anchor: i32, dir: &str) -> Frozen {
        let frozen = Frozen { anchor, dir: dir.to_owned() };
        assert!(frozen.fsfreeze("--freeze"), "{dir} cannot be frozen");
        frozen
    }

    fn fsfreeze(&self, how: &str) -> bool {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.anchor.to_string(), "fsfreeze", how, &self.dir]);
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.fsfreeze("--unfreeze");
    }
}

/// Longer than two leases: the node stays in touch, keeps its slots, and takes and ends jobs.
#[test]
fn a_disk_that_hangs_costs_no_lease_and_no_job() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    cluster.node_mut(1).stop();
    let dir = cluster.node(1).host.dir.clone();
    let [state, image] = ["state", "image"].map(|name| dir.join(name).display().to_string());
    let make = format!("truncate -s 16M {image} && mkfs.ext4 -q {image} && mount -o loop {image} {state}");
    cluster.node(1).host.run(&["sh", "-c", &make]);
    cluster.node_mut(1).restart();
    cluster.until_met();
    let gang = cluster.gang(&[0, 1], PULSE, &[]);
    let pids = cluster.lone_pids(&[gang]);
    let (first, second) = (cluster.node(0), cluster.node(1));
    let waits = || second.client().status().unwrap().warnings.iter().any(|of| of.why.contains("does not answer"));
    let frozen = Frozen::new(second.host.anchor(), &state);
    let until = Instant::now() + Duration::from_secs(15);
    while Instant::now() < until {
        let ran = first.cosched(&["run", "--nodes", "n1:1,n2:1", "--", "true"]);
        assert!(ran.status.success(), "{}", stderr(&ran));
        assert_eq!(first.names().len(), 2, "the lease is out");
    }
    assert!(wait_until(waits), "no warning of the disk: {:?}", second.client().status().unwrap().warnings);
    assert!(cluster.computes(gang, &[0, 1]) && cluster.is_planned(1, gang));
    drop(frozen);
    assert!(wait_until(|| !waits()), "what is owed is not written");
    assert_eq!(cluster.pids(&[gang]), pids);
    cluster.node_mut(1).restart();
    assert!(wait_until(|| cluster.all_say(gang, JobState::Running)));
    assert_eq!(cluster.pids(&[gang]), pids, "it is found again");
    cluster.end(0, &[gang]);
    cluster.node_mut(1).stop();
    cluster.node(1).host.run(&["umount", &state]);
}
