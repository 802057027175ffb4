//! Four nodes: gangs over all of them and over halves, jobs on one node beside them, and every node reports the same.

use cosched_api::{Class, JobState};
use cosched_tests::cluster::jobs::{PULSE, SPIN};
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{procs, stderr, stdout, wait_until};

const TOOLS: [&str; 2] = ["etcd", "openssl"];

/// The nodes of a job, counted from 0, once this node knows them.
fn nodes_of(from: &Node, id: u64) -> Vec<usize> {
    let job = from.job_when(id, |job| !job.nodes.is_empty());
    let number = |name: &str| name.trim_start_matches('n').parse::<usize>().expect("a node's name") - 1;
    let mut nodes: Vec<usize> = job.nodes.iter().map(|node| number(&node.name)).collect();
    nodes.sort_unstable();
    nodes
}

/// The place of a node in the order in which the nodes joined: blocks consist of neighbours in it.
fn place(cluster: &Cluster, n: usize) -> usize {
    let log = cluster.node(n).log();
    let joined = log.lines().rfind(|line| line.contains("joined the cluster")).expect("it has joined");
    joined.rsplit_once("number=").expect("a number").1.trim().parse().expect("a number")
}

/// The JSON output of a command on every node, once all are the same.
fn all_print(
    cluster: &Cluster,
    args: &[&str],
    pick: impl Fn(&serde_json::Value) -> serde_json::Value,
) -> serde_json::Value {
    let print = |n: usize| {
        let out = cluster.node(n).cosched(args);
        assert!(out.status.success(), "{args:?}: {}", stderr(&out));
        pick(&serde_json::from_str(&stdout(&out)).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", stdout(&out))))
    };
    let mut said = Vec::new();
    let same = wait_until(|| {
        said = (0..4).map(print).collect();
        said.iter().all(|value| *value == said[0])
    });
    assert!(same, "{args:?}: {said:#?}");
    said.swap_remove(0)
}

/// All nodes report the same: about all jobs and this one, about nodes and the cluster.
fn all_tell_the_same(cluster: &Cluster, name: &str) {
    let fields = ["id", "state", "class", "nodes", "cpus", "name", "submitted_unix_ms"];
    let jobs = |value: &serde_json::Value| {
        let of = |job: &serde_json::Value| fields.iter().map(|field| job[field].clone()).collect::<serde_json::Value>();
        value["jobs"].as_array().unwrap_or_else(|| panic!("{value}")).iter().map(of).collect()
    };
    let listed = all_print(cluster, &["ps", "--json"], jobs);
    assert_eq!(listed.as_array().unwrap().len(), 4, "{listed}");
    let one = |job: &serde_json::Value| fields.iter().map(|field| job[field].clone()).collect();
    all_print(cluster, &["show", "--json", name], one);
    let name_and_cpus = |node: &serde_json::Value| serde_json::json!([node["name"], node["cpus"], node["drains"]]);
    let nodes = |value: &serde_json::Value| {
        let list = value["nodes"].as_array().or(value.as_array()).unwrap_or_else(|| panic!("{value}"));
        list.iter().map(name_and_cpus).collect::<serde_json::Value>()
    };
    let known = all_print(cluster, &["nodes", "--json"], nodes);
    assert_eq!(known.as_array().unwrap().len(), 4, "{known}");
    let generation = |value: &serde_json::Value| value["cluster"]["plan_generation"].clone();
    all_print(cluster, &["status", "--json"], generation);
    all_print(cluster, &["status", "--json"], |value| value["jobs"].clone());
}

#[test]
fn four_nodes_share_their_gangs_and_tell_the_same() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(4, "sharing = \"strict\"\n");
    let whole = cluster.gang(&[0, 1, 2, 3], PULSE, &[]);
    // Two halves, placed by the planner: neighbours beside neighbours, in one row.
    let halves = [0, 1].map(|_| cluster.node(0).detach(&["--cpus", "2", "--", "sh", "-c", PULSE]));
    let on = halves.map(|id| nodes_of(cluster.node(3), id));
    let all: Vec<usize> = (0..4).filter(|n| on.iter().any(|half| half.contains(n))).collect();
    assert_eq!(all, [0, 1, 2, 3], "the halves are not beside each other: {on:?}");
    for half in &on {
        let [a, b] = [place(&cluster, half[0]), place(&cluster, half[1])];
        assert_eq!(a / 2, b / 2, "{half:?} is no block");
    }
    let rows = |n: usize| cluster.node(n).client().status().unwrap().matrix.rows.len();
    assert!(wait_until(|| (0..4).all(|n| rows(n) == 2)), "{:?} rows", [0, 1, 2, 3].map(rows));
    let frozen = |n: usize, id: u64| procs::is_frozen(&cluster.node(n).v2_job(id));
    // All processes of a gang are frozen, or run, on all their nodes; never all jobs at once.
    for (id, nodes) in [(whole, &all), (halves[0], &on[0]), (halves[1], &on[1])] {
        for wanted in [true, false, true] {
            let there = |n: &usize| wait_until(|| frozen(*n, id) == wanted);
            assert!(nodes.iter().all(there), "job {id}: frozen is not {wanted}");
        }
    }

    // Controlled from a node that has no part of it.
    let (id, away, name) = (halves[0], cluster.node(on[1][0]), halves[0].to_string());
    let steer = |args: &[&str]| {
        let out = away.cosched(args);
        assert!(out.status.success(), "{args:?}: {}", stderr(&out));
    };
    steer(&["suspend", &name]);
    assert!(wait_until(|| cluster.all_say(id, JobState::Suspended)));
    assert!(wait_until(|| on[0].iter().all(|n| frozen(*n, id))));
    // What it leaves is used by a job on one node, which has no row.
    let own = cluster.node(on[0][1]).detach(&["--", "sh", "-c", SPIN]);
    assert!(cluster.computes(own, &[on[0][1]]), "a job of one node gets nothing of what is free");
    steer(&["resume", &name]);
    assert!(wait_until(|| cluster.all_say(id, JobState::Running)));
    assert!(wait_until(|| on[0].iter().all(|n| !frozen(*n, id))));
    steer(&["class", &name, "standby"]);
    assert!(wait_until(|| (0..4).all(|n| cluster.node(n).job(id).class == Class::Standby)));

    all_tell_the_same(&cluster, &name);

    steer(&["kill", "-9", &name]);
    assert!(wait_until(|| cluster.is_clear_of(id)));
    assert!(wait_until(|| cluster.all_say(id, JobState::Ended)));
    // Its place is taken by the next one.
    let next = cluster.node(0).detach(&["--cpus", "2", "--", "sh", "-c", PULSE]);
    assert_eq!(nodes_of(cluster.node(2), next), on[0]);
    cluster.end(2, &[whole, halves[1], own, next]);
}
