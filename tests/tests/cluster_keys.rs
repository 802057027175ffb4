//! Keys in the store are deleted or damaged by hand, or a machine is copied: jobs continue, and commands repair the damage.

use cosched_api::JobState;
use cosched_tests::cluster::jobs::PULSE;
use cosched_tests::cluster::{Cluster, needs};
use cosched_tests::{stderr, stdout, wait_until};
use std::fs::{self, File};
use std::time::Duration;

const TOOLS: [&str; 3] = ["etcd", "openssl", "etcdctl"];

fn key(name: &str) -> String {
    format!("/cosched/cst/{name}")
}

fn alarm(cluster: &Cluster, n: usize) -> bool {
    let warnings = cluster.node(n).client().status().unwrap().warnings;
    warnings.iter().any(|warning| warning.hint.contains("cosched cluster repair"))
}

#[test]
fn a_deleted_or_damaged_state_stops_changes_and_no_job() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let (gang, own) = cluster.gang_and_own();
    let before = cluster.first_pids(gang, own);
    let backup = cluster.node(0).host.dir.join("backup.json").display().to_string();
    let out = cluster.node(0).cosched(&["cluster", "export", &backup]);
    assert!(out.status.success(), "{}", stderr(&out));
    for (at, way) in ["deleted", "damaged", "cannot be", "twins"].into_iter().enumerate() {
        let state = key("state");
        let out = match way {
            "deleted" => cluster.etcd.ctl_as_user(&["del", &state]),
            "damaged" => cluster.etcd.ctl_as_user(&["put", &state, "{\"form"]),
            // Two nodes with one number.
            "twins" => {
                let one = stdout(&cluster.etcd.ctl_as_user(&["get", "--print-value-only", &key("names/n1")]));
                cluster.etcd.ctl_as_user(&["put", &key("names/n2"), one.trim_end()])
            }
            // Cells where there is no CPU: they are noticed at once, not with the next event.
            _ => {
                let old = stdout(&cluster.etcd.ctl_as_user(&["get", "--print-value-only", &state]));
                let wrong = old.trim_end().replace("\"first\":0", "\"first\":77");
                assert_ne!(wrong, old.trim_end(), "the gang has no cells");
                cluster.etcd.ctl_as_user(&["put", &state, &wrong])
            }
        };
        assert!(out.status.success(), "{}", stderr(&out));
        assert!(wait_until(|| (0..2).all(|n| alarm(&cluster, n))), "{way}: no alarm");
        assert!(cluster.node(0).log().contains("ERROR"), "{way}: it is not in the log");
        assert!(cluster.node(0).client().metrics().unwrap().contains("cosched_cluster_alarm 1"), "{way}");
        // One daemon is restarted during the fault: it has only what its previous life kept.
        std::thread::sleep(Duration::from_secs(3));
        cluster.node_mut(1).restart();
        assert!(wait_until(|| alarm(&cluster, 1)), "{way}");
        let listed = cluster.node(1).client().jobs(false).unwrap().jobs;
        let states: Vec<_> = listed.iter().filter(|job| [gang, own].contains(&job.id)).map(|job| job.state).collect();
        assert_eq!(states, [JobState::Running; 2], "{way}");
        // Longer than any lease.
        std::thread::sleep(Duration::from_secs(9));
        assert_eq!(cluster.first_pids(gang, own), before, "{way}: a job was ended");
        let out = cluster.node(at % 2).cosched(&["cluster", "repair"]);
        assert!(stdout(&out).contains("--yes does it"), "{way}: {}{}", stdout(&out), stderr(&out));
        assert!(alarm(&cluster, 0), "{way}: nothing was to be done");
        let out = cluster.node(at % 2).cosched(&["cluster", "repair", "--yes"]);
        assert!(stdout(&out).contains("done; all nodes"), "{way}: {}{}", stdout(&out), stderr(&out));
        assert!(wait_until(|| (0..2).all(|n| !alarm(&cluster, n))), "{way}: the alarm stays");
        cluster.until_met();
        let next = cluster.node(0).detach(&["--nodes", "n1:1", "--", "sleep", "600"]);
        assert_eq!(next, own + 1 + at as u64, "{way}");
        assert_eq!(cluster.first_pids(gang, own), before, "{way}: a job was ended by the repair");
        assert!(wait_until(|| [gang, own].iter().all(|id| cluster.all_say(*id, JobState::Running))), "{way}");
        cluster.end(0, &[next]);
        let slots = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().plan_in_use.is_some();
        assert!(wait_until(|| (0..2).all(|n| slots(n) && cluster.is_planned(n, gang))), "{way}: no slots again");
    }
    a_backup_is_brought_back(&cluster, &backup, &before);
    cluster.end(1, &[gang, own]);
}

/// It restores the state of that time, and gives no number twice. Not every user may do it, and not every file is accepted.
fn a_backup_is_brought_back(cluster: &Cluster, backup: &str, before: &[i32]) {
    let last = cluster.node(0).detach(&["--nodes", "n1:1", "--", "sleep", "600"]);
    let out = cluster.node(1).cosched(&["cluster", "import", backup, "--yes"]);
    assert!(stdout(&out).contains("done; all nodes"), "{}{}", stdout(&out), stderr(&out));
    cluster.until_met();
    assert!(wait_until(|| (0..2).all(|n| !alarm(cluster, n))));
    assert!(
        before.iter().all(|pid| cosched_tests::procs::state(*pid).is_some_and(|state| state != 'Z')),
        "a job was ended by the backup"
    );
    assert!(!cluster.node(0).job_pids(last).is_empty(), "what the backup does not know goes on");
    let next = cluster.node(1).detach(&["--nodes", "n2:1", "--", "sleep", "600"]);
    assert!(next > last, "job {next} after job {last}");
    let mut command = cluster.node(0).command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(cosched_tests::bin_dir().join("cosched")).args(["cluster", "repair", "--yes"]);
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(5), "{}{}", stdout(&out), stderr(&out));
    fs::write(backup, "{}").unwrap();
    let out = cluster.node(0).cosched(&["cluster", "import", backup, "--yes"]);
    assert!(stderr(&out).contains("is not a backup of a cluster"), "{}", stderr(&out));
    cluster.node(0).cosched(&["kill", "-9", &last.to_string()]);
    cluster.end(1, &[next]);
}

#[test]
fn a_node_whose_name_is_deleted_writes_it_again_and_a_copy_of_it_is_refused() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let own = cluster.node(1).detach(&["--", "sh", "-c", PULSE]);
    assert!(wait_until(|| !cluster.node(1).job_pids(own).is_empty()));
    let before = cluster.node(1).job_pids(own)[0];
    let get = |name: &str| stdout(&cluster.etcd.ctl_as_user(&["get", "--print-value-only", &key(name)]));
    for name in ["names/n2", "ids/1", "begun", "format"] {
        let old = get(name);
        assert!(cluster.etcd.ctl_as_user(&["del", &key(name)]).status.success());
        if name == "ids/1" {
            // The number of a name is known by the name; a repair restores it.
            let out = cluster.node(0).cosched(&["cluster", "repair", "--yes"]);
            assert!(out.status.success(), "{}", stderr(&out));
        }
        assert!(wait_until(|| get(name) == old), "{name}: {} and not {old}", get(name));
    }
    assert!(wait_until(|| cluster.node(1).log().contains("names/n2")), "it is not said");
    let warnings = || cluster.node(1).client().status().unwrap().warnings;
    let warns = || warnings().iter().any(|warning| warning.why.contains("/names/n2"));
    assert!(wait_until(warns), "{:?}", warnings());

    // A copy of the second node, with its state directory at the same path, on another place of the network.
    let (twin, copied) = (cluster.node(0), &cluster.node(1).host.dir);
    let copy = twin.host.dir.join("copy");
    let [from, to] = [copied, &copy].map(|path| path.display().to_string());
    twin.host.run(&[
        "sh",
        "-c",
        &format!("mkdir -p {to} && cp -a {from}/state {to}/ && mount --bind {to}/state {from}/state"),
    ]);
    let log = File::create(twin.host.dir.join("twin.log")).unwrap();
    let mut command = twin.command("timeout");
    command.args(["-k", "5", "60"]).arg(cosched_tests::bin_dir().join("coschedd"));
    command.arg("--config").arg(copied.join("cosched.toml")).arg("--socket").arg(twin.host.dir.join("twin.sock"));
    command.arg("--state-dir").arg(copied.join("state")).args(["--cgroup", &twin.another_cgroup()]);
    let mut child = command.stderr(log).spawn().unwrap();
    let said = || fs::read_to_string(twin.host.dir.join("twin.log")).unwrap_or_default();
    let refused = wait_until(|| said().contains("taken by a copy of this machine"));
    cosched_tests::procs::signal(child.id() as i32, rustix::process::Signal::TERM);
    child.wait().unwrap();
    twin.host.run(&["umount", &format!("{from}/state")]);
    assert!(refused, "{}", said());
    assert!(cluster.node(1).client().status().unwrap().cluster.unwrap().store_answers, "the first was disturbed");
    assert_eq!(cluster.node(1).job_pids(own)[0], before, "its job was ended");
    assert!(wait_until(|| cluster.all_say(own, JobState::Running)), "{:?}", cluster.node(0).state(own));
    cluster.end(0, &[own]);
}
