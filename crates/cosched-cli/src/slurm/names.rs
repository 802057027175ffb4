//! Whether Slurm and cosched use the same names for the nodes: only then is a job on several nodes one cosched job.

use super::finding::{Finding, field};
use cosched_api::Status;

/// The maximum number of names listed in a message.
const NAMES_MAX: usize = 5;

/// Checks `scontrol show nodes --oneliner`, on the machine `hostname`.
pub(super) fn agree(nodes: &str, hostname: &str, status: &Status) -> Vec<Finding> {
    let all: Vec<(String, String)> = nodes
        .lines()
        .filter(|line| line.contains("NodeName="))
        .map(|line| (field(line, "NodeName"), field(line, "NodeHostName")))
        .collect();
    let cluster = status.cluster.as_ref().filter(|cluster| !cluster.alone);
    let (Some(cluster), Some(known)) = (cluster, &status.nodes) else {
        let what = format!(
            "Slurm has {} nodes, and coschedd's store is a file: a job of several nodes is a separate cosched job on each \
             of them, in different slots; for one gang on all nodes set store = \"etcd\" (docs/cluster.md)",
            all.len()
        );
        return if all.len() > 1 { vec![Finding::new("note", what)] } else { Vec::new() };
    };
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let own = all.iter().find(|(_, host)| short(host) == short(hostname));
    let mut found = vec![match own {
        Some((name, _)) if *name == status.node => Finding::new("ok", format!("this node is {name} to both")),
        Some((name, _)) => Finding::new(
            "wrong",
            format!(
                "this node is {name} to Slurm and {} to cosched: set node = \"{name}\" in cosched.toml",
                status.node
            ),
        ),
        None => Finding::new("note", format!("Slurm has no node with the host name {hostname}")),
    }];
    let missing: Vec<&str> =
        all.iter().map(|(name, _)| name.as_str()).filter(|name| !known.iter().any(|node| node.name == *name)).collect();
    if !missing.is_empty() {
        let some = missing[..missing.len().min(NAMES_MAX)].join(", ");
        let more = if missing.len() > NAMES_MAX { ", …" } else { "" };
        found.push(Finding::new(
            "note",
            format!(
                "{} of Slurm's {} nodes are not in cluster {}: {some}{more}; jobs on one of them are a separate cosched job on each node",
                missing.len(),
                all.len(),
                cluster.name
            ),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NODES: &str = "NodeName=a Arch=x NodeAddr=10.0.0.1 NodeHostName=a.site Version=22\n\
                         NodeName=b NodeAddr=10.0.0.2 NodeHostName=b Version=22\n\n";

    fn status(node: &str, nodes: &[&str]) -> Status {
        let distribution = json!({ "count": 0, "p50_us": 0.0, "p99_us": 0.0, "max_us": 0.0 });
        let nodes: Vec<_> = nodes.iter().map(|name| json!({ "name": name, "cpus": 1, "alive": true })).collect();
        let cluster = json!({ "name": "c", "store_answers": true, "plan_generation": 1, "ceiling": 1.0, "queues": [] });
        let in_cluster = !nodes.is_empty();
        let status = json!({
            "version": "1", "pid": 1, "uid": 0, "started_unix_ms": 0, "embedded": false, "socket": "", "node": node,
            "cpus": [0], "memory_bytes": 1, "policy": "gang", "sharing": "soft", "slot_length_ms": 100, "reserve": 0.0,
            "layout": "", "mechanism": "", "mechanisms": {}, "generation": 0,
            "matrix": { "columns": [], "rows": [], "text": "", "slot": 0, "current": [], "cycle_slots": 0 },
            "switches": { "count": 0, "wake": distribution, "done": distribution, "late": 0, "errors": 0 },
            "jobs": {}, "safety": { "lease_ms": 1, "kernel_agent": false }, "warnings": [],
            "nodes": in_cluster.then_some(nodes), "cluster": in_cluster.then_some(cluster),
        });
        serde_json::from_value(status).unwrap()
    }

    fn verdicts(status: &Status) -> Vec<&'static str> {
        agree(NODES, "a", status).iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn names_are_compared() {
        assert_eq!(verdicts(&status("a", &["a", "b"])), ["ok"]);
        assert_eq!(verdicts(&status("a", &["a"])), ["ok", "note"]);
        assert_eq!(verdicts(&status("rack-a", &["rack-a", "b"])), ["wrong", "note"]);
        assert_eq!(agree(NODES, "z", &status("a", &["a", "b"]))[0].verdict, "note");
    }

    #[test]
    fn nodes_without_a_cluster_are_a_note() {
        let found = agree(NODES, "a", &status("a", &[]));
        assert!(found.len() == 1 && found[0].what.contains("store = \"etcd\""), "{found:?}");
        assert_eq!(agree("NodeName=a NodeHostName=a\n", "a", &status("a", &[])), []);
    }
}
