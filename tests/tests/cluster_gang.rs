//! Cgroups on several nodes as one gang, as the plug-in for Kubernetes asks for it: in the same slots on all nodes (decision 0077).

use cosched_api::{CgroupRequest, Job, JobRequest, JobState, NodeResources, OnNodeLoss};
use cosched_tests::cluster::jobs::SPIN;
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::service::Service;
use cosched_tests::wait_until;

/// How often a new plan may reach the nodes one after the other while they are watched; pods that are often out of step are no gang.
const UNCLEAN_MAX: usize = 2;

/// Asks for the gang as each node's plug-in does, and puts the node's pod into it.
fn enter(node: &Node, pod: &Service) -> Job {
    let request = JobRequest {
        command: vec!["pods of ns/solver".to_owned()],
        name: Some("ns/solver".to_owned()),
        once: true,
        on_node_loss: Some(OnNodeLoss::Keep),
        nodes: node.names().into_iter().map(|name| NodeResources { name, ..NodeResources::default() }).collect(),
        ..JobRequest::default()
    };
    let id = node.client().register(&request).unwrap().id;
    // Its part may begin a moment later than the answer comes.
    let request = CgroupRequest { cgroup: pod.path() };
    assert!(
        wait_until(|| node.client().add_cgroup(id, &request).is_ok()),
        "{:?}",
        node.client().add_cgroup(id, &request)
    );
    node.client().job(id).unwrap()
}

#[test]
fn pods_of_two_nodes_take_the_same_slots() {
    if !needs(&["etcd", "openssl"]) {
        return;
    }
    // Else a node lends its idle CPU to a gang that has no turn, by itself.
    let mut cluster = Cluster::met(2, "sharing = \"strict\"\n");
    let mut pods = [Service::new(SPIN), Service::new(SPIN)];
    let jobs = [0, 1].map(|n| enter(cluster.node(n), &pods[n]));
    let id = jobs[0].id;
    assert!(jobs[1].id == id && jobs[1].cgroups == [pods[1].path()], "{jobs:?}");
    let rival = cluster.gang(&[0, 1], SPIN, &[]);
    assert!(pods.iter().all(Service::is_switched), "{:?}", cluster.node(0).job(id));
    // By the load of what else runs on the machine, the cycle has turns in which neither gang runs, and a new plan reaches one node up to a second
    // later than the other: they are in step for a while at the latest after that. If a switch happened between the checks, they tell nothing.
    let (mut both, mut neither, mut differ) = (0, 0, 0);
    let mut seen = Vec::new();
    let ended = wait_until(|| {
        let (before, there, after) = (pods[0].is_frozen(), pods[1].is_frozen(), pods[0].is_frozen());
        match (before == after, before, there) {
            (false, ..) => (),
            (_, true, true) => neither += 1,
            (_, false, false) => both += 1,
            _ => differ += 1,
        }
        let enough = both >= 40 && neither >= 40;
        if enough && differ > 4 {
            seen.push(std::mem::take(&mut differ));
            (both, neither) = (0, 0);
            return seen.len() > UNCLEAN_MAX;
        }
        enough
    });
    let in_step = ended && seen.len() <= UNCLEAN_MAX;
    assert!(in_step, "{both} running together, {neither} frozen together, {differ} not alike, before {seen:?}");

    // One node's daemon is killed: its pod runs, and is in the gang again with the next daemon.
    assert!(wait_until(|| pods[1].is_frozen()));
    cluster.node_mut(1).kill_daemon();
    assert!(wait_until(|| pods[1].runs()), "it stays frozen");
    cluster.node_mut(1).restart();
    assert!(wait_until(|| cluster.node(1).job(id).cgroups == [pods[1].path()]), "{}", cluster.node(1).log());
    assert!(wait_until(|| pods[1].is_switched()));

    // One that goes leaves the other in its slots, and one that comes back finds the gang.
    pods[1].end();
    assert!(wait_until(|| cluster.node(1).job(id).cgroups.is_empty()) && pods[0].is_switched());
    pods[1] = Service::new(SPIN);
    assert_eq!(enter(cluster.node(1), &pods[1]).id, id);
    pods.iter_mut().for_each(Service::end);
    assert!(wait_until(|| cluster.all_say(id, JobState::Ended)), "the last one has ended");
    cluster.end(0, &[rival]);
}
