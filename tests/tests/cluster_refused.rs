//! A store that refuses requests: it is full, the password was changed, it does not know a certificate. What continues, and how it
//! recovers.

use cosched_api::JobState;
use cosched_tests::cluster::jobs::PULSE;
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{stderr, wait_until};
use std::fs;
use std::time::Duration;

const TOOLS: [&str; 2] = ["etcd", "openssl"];

fn is_back(cluster: &Cluster) -> bool {
    cluster.nodes().iter().all(|node| node.client().status().is_ok_and(|status| status.cluster.unwrap().store_answers))
}

fn is_out(cluster: &Cluster) -> bool {
    cluster.nodes().iter().all(|node| node.client().status().is_ok_and(|status| !status.cluster.unwrap().store_answers))
}

fn lines(node: &Node, text: &str) -> usize {
    node.log().lines().filter(|line| line.contains(text)).count()
}

/// etcd at its quota: jobs continue and can be ended on their nodes, nodes retry rarely and report it once.
#[test]
fn a_store_without_room_keeps_nobody_from_ending_jobs() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let ids = [0, 1].map(|n| cluster.node(n).detach(&["--nodes", &format!("n{}:1", n + 1), "--", "sh", "-c", PULSE]));
    assert!(wait_until(|| (0..2).all(|n| !cluster.node(n).job_pids(ids[n]).is_empty())));
    cluster.etcd.is_full();
    let killed = cluster.node(0).cosched(&["kill", "-9", &ids[0].to_string()]);
    // The first request may still reach the store, which then refuses it.
    assert!(
        wait_until(|| !cluster.node(0).log().is_empty() && lines(cluster.node(0), "NOSPACE") > 0),
        "{}",
        stderr(&killed)
    );
    let again = cluster.node(0).cosched(&["kill", "-9", &ids[0].to_string()]);
    assert!(again.status.success() || stderr(&again).contains("has ended"), "{}", stderr(&again));
    assert!(wait_until(|| !cluster.node(0).v2_job(ids[0]).exists()), "its processes live");
    let status = cluster.node(0).cosched(&["status"]);
    assert!(cosched_tests::stdout(&status).contains("NOSPACE"), "{}", cosched_tests::stdout(&status));
    let said = ["no contact with the store", "the store answers again"].map(|text| lines(cluster.node(0), text));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(
        ["no contact with the store", "the store answers again"].map(|text| lines(cluster.node(0), text)),
        said,
        "said again"
    );
    assert!(!cluster.node(1).job_pids(ids[1]).is_empty(), "the other goes on");
    cluster.etcd.has_room();
    assert!(wait_until(|| is_back(&cluster)));
    assert!(wait_until(|| cluster.all_say(ids[0], JobState::Ended)), "that it was ended is recorded");
    cluster.end(1, &ids[1..]);
}

/// Password and certificates are changed while daemons run, in both orders.
#[test]
fn a_changed_password_or_certificate_needs_no_restart() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let id = cluster.gang(&[0, 1], PULSE, &[]);
    let before = cluster.lone_pids(&[id]);
    cluster.etcd.change_password("another");
    assert!(wait_until(|| is_out(&cluster)), "etcd has let them in with the old one");
    fs::write(cluster.etcd.file("password"), "another\n").unwrap();
    assert!(wait_until(|| is_back(&cluster)), "the new password is not read");
    // A certificate that etcd does not know, then the right one again.
    let files = ["client.pem", "client.key"].map(|name| cluster.etcd.file(name));
    let right = files.each_ref().map(|file| fs::read(file).unwrap());
    for (file, wrong) in files.iter().zip(["stranger.pem", "stranger.key"]) {
        fs::copy(cluster.etcd.file(wrong), file).unwrap();
    }
    cluster.cut_etcd();
    assert!(wait_until(|| is_out(&cluster)));
    cluster.heal_etcd();
    std::thread::sleep(Duration::from_secs(5));
    assert!(is_out(&cluster), "the certificate is not read again");
    for (file, content) in files.iter().zip(right) {
        fs::write(file, content).unwrap();
    }
    assert!(wait_until(|| is_back(&cluster)), "the right certificate is not read again");
    assert_eq!(cluster.pids(&[id]), before);
    cluster.end(0, &[id]);
}
