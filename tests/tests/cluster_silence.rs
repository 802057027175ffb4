//! Silent nodes: what continues on them, what the others know of them, and that nothing lives twice.

use cosched_api::JobState;
use cosched_tests::cluster::jobs::{PULSE, SPIN, wait_for_death};
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{stderr, stdout, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

const TOOLS: [&str; 2] = ["etcd", "openssl"];

fn daemon(node: &Node, signal: Signal) {
    kill_process(Pid::from_raw(node.pid()).unwrap(), signal).unwrap();
}

fn listed(node: &Node, name: &str) -> String {
    let out = stdout(&node.cosched(&["nodes"]));
    out.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default().to_owned()
}

/// A link that is cut for longer than a lease, and a daemon that is stopped for as long: no job ends, and a hanging node that is
/// not involved does not prevent others from starting.
#[test]
fn a_silence_longer_than_a_lease_costs_slots_and_no_lives() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(3, "");
    let first = cluster.node(0);
    first.cosched(&["policy", "--node-dead-after", "5min"]);
    let gangs = ["kill", "keep", "requeue"].map(|rule| cluster.gang(&[0, 1], PULSE, &["--on-node-loss", rule]));
    let own = [1, 2].map(|n| cluster.node(n).detach(&["--nodes", &format!("n{}:1", n + 1), "--", "sh", "-c", PULSE]));
    assert!(wait_until(|| (0..2).all(|n| !cluster.node(n + 1).job_pids(own[n]).is_empty())));
    let all = [gangs.as_slice(), &own].concat();
    let before = cluster.lone_pids(&all);
    cluster.cut(1);
    daemon(cluster.node(2), Signal::STOP);
    assert!(wait_until(|| ["n2", "n3"].iter().all(|name| listed(first, name).contains("silent "))));
    assert!(all.iter().all(|id| first.state(*id) == Some(JobState::Running)), "nobody has ended");
    // Nothing waits for the silent nodes.
    let new = first.detach(&["--nodes", "n1:1", "--", "sh", "-c", PULSE]);
    assert!(wait_until(|| !first.job_pids(new).is_empty()));
    cluster.heal(1);
    daemon(cluster.node(2), Signal::CONT);
    assert!(wait_until(|| cluster.nodes().iter().all(|node| node.names().len() == 3)), "they do not come back");
    assert!(wait_until(|| gangs.iter().all(|id| cluster.is_planned(1, *id))), "they have no slots again");
    assert_eq!(cluster.pids(&all), before, "other processes than before");
    cluster.end(0, &[all.as_slice(), &[new]].concat());
}

/// A node that cannot send, one that cannot receive, and one that resumes its watch after etcd has compacted what it missed.
#[test]
fn links_that_are_cut_one_way_and_a_compacted_store_cost_no_job() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let [first, second] = [0, 1].map(|n| cluster.node(n));
    assert!(first.cosched(&["policy", "--node-dead-after", "5min"]).status.success());
    let (gang, own) = cluster.gang_and_own();
    let before = cluster.lone_pids(&[gang, own]);
    let is_silent = || {
        assert!(wait_until(|| listed(first, "n2").contains("silent ")), "{}", listed(first, "n2"));
        assert!([gang, own].iter().all(|id| first.state(*id) == Some(JobState::Running)), "nobody has ended");
    };
    let is_back = |why: &str| {
        assert!(
            wait_until(|| cluster.nodes().iter().all(|node| node.names().len() == 2)),
            "{why}: it does not come back"
        );
        assert!(wait_until(|| cluster.is_planned(1, gang)), "{why}: the gang has no slots again");
        assert_eq!(cluster.pids(&[gang, own]), before, "{why}: other processes than before");
    };
    cluster.cut_one_way(1, true, is_silent);
    is_back("what it sends is lost");
    cluster.cut_one_way(1, false, is_silent);
    is_back("what it is sent is lost");
    daemon(second, Signal::STOP);
    is_silent();
    let missed = first.detach(&["--nodes", "n1:1", "--", "sh", "-c", PULSE]);
    assert!(wait_until(|| !first.job_pids(missed).is_empty()));
    cluster.etcd.compact();
    daemon(second, Signal::CONT);
    is_back("the store was compacted");
    assert!(wait_until(|| second.state(missed) == Some(JobState::Running)), "{:?}", second.state(missed));
    cluster.end(1, &[gang, own, missed]);
}

/// Two lives write to one file: no line of the old one comes after the first of the new one, whether the node is cut off, or its
/// daemon is stopped, or dead.
#[test]
fn nothing_lives_twice() {
    if !needs(&TOOLS) {
        return;
    }
    // A stopped daemon must not be ended by its watchdog.
    let mut cluster = Cluster::met(4, "watchdog = \"10min\"\n");
    let files = [1, 2, 3].map(|n| cluster.net().dir.join(format!("lives{n}")));
    let mut ids = Vec::new();
    for (n, file) in (1..4).zip(&files) {
        let script = format!("while :; do echo $$ >> {}; sleep 0.02; done", file.display());
        let on = format!("n{}:1", n + 1);
        let words = ["--nodes", &on, "--on-node-loss", "requeue", "--", "sh", "-c", &script];
        ids.push(cluster.node(n).detach(&words));
        assert!(wait_until(|| !cluster.node(n).job_pids(ids[n - 1]).is_empty()), "job {n} has not begun");
    }
    cluster.cut(1);
    daemon(cluster.node(2), Signal::STOP);
    cluster.node_mut(3).kill_daemon();
    let first = cluster.node(0);
    let waits = |id: &u64| first.state(*id) == Some(JobState::Waiting);
    assert!(wait_for_death(|| ids.iter().all(waits)), "their nodes are not dead");
    for id in &ids {
        let moved = first.cosched(&["resources", &id.to_string(), "--nodes", "n1:1"]);
        assert!(moved.status.success(), "{}", stderr(&moved));
    }
    let anew = |id: &u64| first.job(*id).restarts == 1 && !first.job_pids(*id).is_empty();
    assert!(wait_until(|| ids.iter().all(anew)), "they do not begin anew");
    // A process may exist for a while before it writes.
    let lives = |file: &PathBuf| {
        let lines = std::fs::read_to_string(file).unwrap_or_default();
        lines.lines().collect::<BTreeSet<_>>().len()
    };
    assert!(wait_until(|| files.iter().all(|file| lives(file) > 1)), "{:?} lives write", files.each_ref().map(lives));
    std::thread::sleep(Duration::from_secs(1));
    cluster.heal(1);
    daemon(cluster.node(2), Signal::CONT);
    cluster.node_mut(3).restart();
    let names = || cluster.nodes().iter().map(Node::names).collect::<Vec<_>>();
    assert!(wait_until(|| names().iter().all(|names| names.len() == 4)), "{:?}", names());
    std::thread::sleep(Duration::from_secs(1));
    for (n, file) in (1..4).zip(&files) {
        let lines = std::fs::read_to_string(file).unwrap();
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        let mut began: Vec<&str> = Vec::new();
        for (at, life) in lines.lines().enumerate() {
            if last.insert(life, at).is_none() {
                began.push(life);
            }
        }
        assert_eq!(began.len(), 2, "node {n}: {began:?}");
        let second = lines.lines().position(|life| life == began[1]).unwrap();
        assert!(last[began[0]] < second, "node {n}: the first life wrote line {} after {second}", last[began[0]]);
    }
    cluster.end(0, &ids);
}

/// An operator's declaration takes effect at once, and the operator is asked to be sure.
#[test]
fn an_operator_says_that_a_node_is_dead() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let said = cluster.node(0).cosched(&["policy", "--node-dead-after", "never"]);
    assert!(stderr(&said).contains("dead only when an operator declares it"), "{}", stderr(&said));
    let short = cluster.node(0).cosched(&["policy", "--node-dead-after", "6s"]);
    assert!(stderr(&short).contains("twice `node_lease`"), "{}", stderr(&short));
    let id = cluster.gang(&[0, 1], SPIN, &[]);
    let lives = cluster.node(0).cosched(&["nodes", "--dead", "n2"]);
    assert!(!lives.status.success() && stderr(&lives).contains("its lease is valid"), "{}", stderr(&lives));
    cluster.node_mut(1).kill_daemon();
    let first = cluster.node(0);
    assert!(wait_until(|| listed(first, "n2").contains("silent ")));
    assert_eq!(first.state(id), Some(JobState::Running));
    let dead = first.cosched(&["nodes", "--dead", "n2"]);
    assert!(
        dead.status.success() && stderr(&dead).contains("end any processes still running there"),
        "{}",
        stderr(&dead)
    );
    assert!(wait_until(|| first.state(id) == Some(JobState::Ended)));
    assert!(wait_until(|| listed(first, "n2").contains("gone ")));
    cluster.node_mut(1).restart();
    assert!(wait_until(|| cluster.is_clear_of(id)));
}
