//! `cosched nodes`: the nodes of the cluster and its queues.

use crate::args::{Cli, Nodes};
use crate::format;
use crate::jobs::connect;
use crate::out::{Failure, print, print_json};
use crate::table::{Cell, numbers, render, words};
use cosched_api::{ClusterStatus, NodeRequest, NodeStatus, QueueStatus};

const EXIT_NO_CLUSTER: u8 = 6;

/// Lists, or drains first.
pub(crate) fn nodes(cli: &Cli, options: &Nodes) -> Result<u8, Failure> {
    let mut client = connect(cli)?;
    for name in &options.drain {
        client.set_node(name, &NodeRequest { drains: true })?;
    }
    for name in &options.undrain {
        client.set_node(name, &NodeRequest { drains: false })?;
    }
    let status = client.status()?;
    let (Some(nodes), Some(cluster)) = (&status.nodes, &status.cluster) else {
        let hint = "set store, cluster and node in /etc/cosched.toml: see docs/cluster.md";
        return Err(Failure::explained(EXIT_NO_CLUSTER, "there is no cluster", "this daemon serves one machine", hint));
    };
    if cli.json {
        print_json(nodes)?;
    } else {
        print(&text(nodes, cluster))?;
    }
    Ok(0)
}

fn text(nodes: &[NodeStatus], cluster: &ClusterStatus) -> String {
    let store = if cluster.store_answers { "" } else { ", whose store does not answer now" };
    let plan = cluster.plan_in_use.map_or("no plan".to_owned(), |plan| format!("plan {plan}"));
    format!(
        "cluster {}{store}; this node runs {plan} of {}; gangs that span nodes have at most {} of a node\n\n{}\n{}",
        cluster.name,
        cluster.plan_generation,
        format::percent(cluster.ceiling),
        node_table(nodes),
        queue_table(&cluster.queues)
    )
}

fn node_table(nodes: &[NodeStatus]) -> String {
    let columns = [
        words("NODE", 0),
        words("STATE", 0),
        numbers("CPUS", 0),
        numbers("MEM", 1),
        numbers("OTHERS", 2),
        words("CLOCK", 2),
        words("VERSION", 3),
    ];
    let row = |node: &NodeStatus| {
        let state = match (node.alive, node.drains) {
            (false, _) => "gone",
            (true, true) => "drains",
            (true, false) => "up",
        };
        let synchronised = node.clock.as_ref().and_then(|clock| clock.synchronised);
        let clock = synchronised.map_or("-", |good| if good { "good" } else { "not synchronised" });
        vec![
            node.name.as_str().into(),
            state.into(),
            node.cpus.to_string().into(),
            or_dash(node.memory_bytes.map(format::size)),
            or_dash(node.load.map(|load| format!("{load:.0}"))),
            clock.into(),
            or_dash(node.version.clone()),
        ]
    };
    render(&columns, &nodes.iter().map(row).collect::<Vec<_>>(), None)
}

fn queue_table(queues: &[QueueStatus]) -> String {
    let columns = [
        words("QUEUE", 0),
        words("KIND", 0),
        numbers("WAITING", 0),
        numbers("MEM MAX", 1),
        numbers("DISK MAX", 2),
        numbers("TIME MAX", 1),
    ];
    let row = |queue: &QueueStatus| {
        vec![
            queue.name.as_str().into(),
            if queue.exclusive { "exclusive" } else { "shared" }.into(),
            queue.waiting.to_string().into(),
            or_dash(queue.memory_bytes_max.map(format::size)),
            or_dash(queue.disk_bytes_max.map(format::size)),
            or_dash(queue.time_ms_max.map(format::duration_ms)),
        ]
    };
    render(&columns, &queues.iter().map(row).collect::<Vec<_>>(), None)
}

fn or_dash(value: Option<String>) -> Cell {
    value.unwrap_or_else(|| "-".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_queues_in_tables() {
        let node = NodeStatus {
            name: "a".to_owned(),
            cpus: 2,
            memory_bytes: Some(1 << 30),
            load: Some(3.0),
            clock: None,
            plan_generation: None,
            alive: true,
            drains: true,
            version: None,
        };
        let queue = QueueStatus {
            name: "night".to_owned(),
            exclusive: true,
            memory_bytes_max: Some(1 << 30),
            disk_bytes_max: None,
            time_ms_max: Some(90_000),
            waiting: 2,
        };
        let cluster = ClusterStatus {
            name: "c".to_owned(),
            store_answers: false,
            plan_generation: 9,
            plan_in_use: Some(8),
            ceiling: 0.8,
            queues: vec![queue],
        };
        assert_eq!(
            text(&[node], &cluster),
            "cluster c, whose store does not answer now; this node runs plan 8 of 9; gangs that span nodes have at most 80% of a node\n\n\
             NODE  STATE   CPUS   MEM  OTHERS  CLOCK  VERSION\n\
             a     drains     2  1.0G       3  -      -\n\n\
             QUEUE  KIND       WAITING  MEM MAX  DISK MAX  TIME MAX\n\
             night  exclusive        2     1.0G         -     1m30s\n"
        );
    }
}
