//! The nodes of a Slurm job's cosched job: all of them, if cosched has them in one cluster under the same names, so that
//! the job runs in the same slots on all; else this node alone, with a separate job on each of the others.

use super::environment::{Share, SlurmJob};
use cosched_api::{NodeResources, NodeStatus, Status};

/// The nodes and resources to request.
#[derive(Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) nodes: Vec<NodeResources>,
    /// Why it is this node alone, although the Slurm job has more.
    pub(super) alone_because: Option<String>,
}

impl Spread {
    /// Decides by what this node's daemon knows.
    pub(super) fn of(slurm: &SlurmJob, status: &Status) -> Spread {
        let cluster = status.nodes.as_deref().filter(|_| status.cluster.as_ref().is_some_and(|cluster| !cluster.alone));
        let Some(known) = cluster.filter(|_| slurm.node_count > 1) else { return Spread::here(slurm, status, None) };
        match all(slurm, &status.node, known) {
            Ok(nodes) => Spread { nodes, alone_because: None },
            Err(why) => Spread::here(slurm, status, Some(why)),
        }
    }

    /// This node alone.
    pub(super) fn here(slurm: &SlurmJob, status: &Status, alone_because: Option<String>) -> Spread {
        let own = status.nodes.iter().flatten().find(|node| node.name == status.node);
        let has_bytes = own.and_then(|node| node.memory_bytes).unwrap_or(status.memory_bytes);
        let share = Share { node: String::new(), cpus: slurm.cpus, memory_bytes: slurm.memory_bytes };
        Spread { nodes: vec![resources(&share, Some(has_bytes))], alone_because }
    }
}

fn all(slurm: &SlurmJob, own: &str, known: &[NodeStatus]) -> Result<Vec<NodeResources>, String> {
    if slurm.shares.is_empty() {
        return Err("the list of its nodes cannot be read".to_owned());
    }
    if slurm.node.as_deref() != Some(own) {
        let name = slurm.node.as_deref().unwrap_or("nothing");
        return Err(format!("this node is {name} to Slurm and {own} to cosched (`node` in cosched.toml)"));
    }
    let find = |share: &Share| {
        let node = known.iter().find(|node| node.name == share.node && node.alive);
        let missing = || format!("node {} is not in cosched's cluster: no daemon there, or another name", share.node);
        node.map(|node| resources(share, node.memory_bytes)).ok_or_else(missing)
    };
    slurm.shares.iter().map(find).collect()
}

/// Slurm may believe that a node is larger than it is: then the job gets what exists.
fn resources(share: &Share, has_bytes: Option<u64>) -> NodeResources {
    NodeResources {
        name: share.node.clone(),
        cpus: share.cpus,
        cpus_min: share.cpus.map(|_| 1),
        memory_bytes: share.memory_bytes.map(|bytes| bytes.min(has_bytes.unwrap_or(u64::MAX))),
        ..NodeResources::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, alive: bool) -> NodeStatus {
        NodeStatus {
            name: name.into(),
            cpus: 2,
            memory_bytes: Some(100),
            load: None,
            clock: None,
            plan_generation: None,
            alive,
            gone_since_unix_ms: None,
            silent_since_unix_ms: None,
            drains: false,
            version: None,
        }
    }

    fn job(node: &str) -> SlurmJob {
        let share = |node: &str| Share { node: node.into(), cpus: Some(2), memory_bytes: Some(150) };
        let shares = vec![share("a"), share("b")];
        SlurmJob { node: Some(node.into()), node_count: 2, shares, ..SlurmJob::default() }
    }

    #[test]
    fn a_cluster_that_has_all_nodes_has_the_whole_job() {
        let nodes = all(&job("b"), "b", &[node("a", true), node("b", true), node("c", true)]).unwrap();
        let expected = |name: &str| NodeResources {
            name: name.into(),
            cpus: Some(2),
            cpus_min: Some(1),
            memory_bytes: Some(100),
            disk_bytes: None,
        };
        assert_eq!(nodes, [expected("a"), expected("b")]);
    }

    #[test]
    fn what_keeps_it_apart_is_said() {
        let known = [node("a", true), node("b", true)];
        let why = |slurm: &SlurmJob, own: &str, known: &[NodeStatus]| all(slurm, own, known).unwrap_err();
        assert!(why(&job("a"), "a", &known[..1]).starts_with("node b is not in cosched's cluster"));
        assert!(why(&job("a"), "a", &[node("a", true), node("b", false)]).starts_with("node b is not"));
        assert!(why(&job("a"), "rack-a", &known).starts_with("this node is a to Slurm and rack-a to cosched"));
        let unread = SlurmJob { shares: Vec::new(), ..job("a") };
        assert_eq!(why(&unread, "a", &known), "the list of its nodes cannot be read");
    }
}
