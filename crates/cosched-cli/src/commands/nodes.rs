//! `cosched nodes`: the nodes of the cluster, or the one machine, with their loads, and the queues.

use super::options::Nodes;
use crate::context::Context;
use crate::format;
use crate::jobs::{connect, patiently, status_of_cluster};
use crate::out::{Failure, say, terminal_width};
use crate::table::Listing;
use cosched_api::{ClusterStatus, NodeLoad, NodeRequest, NodeStatus};
use serde::Serialize;

/// Lists the nodes, after draining or undraining those named.
pub(crate) fn nodes(context: &Context, options: &Nodes) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    let socket = client.path().to_owned();
    let changes = [(&options.drain, true), (&options.undrain, false)];
    let changes = changes.iter().flat_map(|(names, drains)| names.iter().map(move |name| (name, drains)));
    for (name, drains) in changes {
        let request = NodeRequest { drains: Some(*drains), ..NodeRequest::default() };
        patiently(&socket, || client.set_node(name, &request))?;
    }
    for name in &options.dead {
        patiently(&socket, || client.set_node(name, &NodeRequest { dead: true, ..NodeRequest::default() }))?;
        say(&format!("{name} counts as dead: end any processes still running there before it is back in the network"));
    }
    let status = client.status()?;
    let (nodes, cluster) = status_of_cluster(&status)?;
    // Without the store, the loads of the other nodes are unknown; the list of nodes is known all the same.
    let loads = client.loads().map(|list| list.nodes).unwrap_or_default();
    let all = both(nodes, &loads);
    context.give(&all, || text(&all, cluster, format::now_unix_ms(), terminal_width()))
}

fn both<'a>(nodes: &'a [NodeStatus], loads: &'a [NodeLoad]) -> Vec<Both<'a>> {
    let both = |node: &'a NodeStatus| Both { node, measured: loads.iter().find(|load| load.name == node.name) };
    nodes.iter().map(both).collect()
}

/// What the cluster knows about a node, and the load that the node itself reports.
#[derive(Clone, Copy, Serialize)]
struct Both<'a> {
    #[serde(flatten)]
    node: &'a NodeStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<&'a NodeLoad>,
}

fn text(nodes: &[Both<'_>], cluster: &ClusterStatus, now_unix_ms: u64, width: Option<usize>) -> String {
    let tables = (node_table(nodes, now_unix_ms, width), super::queues::table(&cluster.queues, width));
    if cluster.alone {
        let store = if cluster.store_answers { "" } else { "; its queues cannot be written now" };
        let ceiling = format::percent(cluster.ceiling);
        return format!("one machine{store}; gangs have at most {ceiling} of its slots\n\n{}\n{}", tables.0, tables.1);
    }
    let store = if cluster.store_answers { "" } else { ", whose store does not answer" };
    let plan = cluster.plan_in_use.map_or("no plan".to_owned(), |plan| format!("plan {plan}"));
    format!(
        "cluster {}{store}; this node runs {plan} of {}; gangs that span nodes have at most {} of a node\n\n{}\n{}",
        cluster.name,
        cluster.plan_generation,
        format::percent(cluster.ceiling),
        tables.0,
        tables.1
    )
}

fn node_table(nodes: &[Both<'_>], now_unix_ms: u64, width: Option<usize>) -> String {
    let state = |node: &NodeStatus| match (node.alive, node.drains) {
        (false, _) => match node.silent_since_unix_ms {
            Some(since) => format!("silent {}", format::duration_ms(now_unix_ms.saturating_sub(since))),
            None => format::gone(node.gone_since_unix_ms, now_unix_ms),
        },
        (true, true) => "drained".to_owned(),
        (true, false) => "up".to_owned(),
    };
    let clock = |node: &NodeStatus| match node.clock.as_ref().and_then(|clock| clock.synchronised) {
        None => "-",
        Some(true) => "good",
        Some(false) => "not synchronised",
    };
    let free = |load: &NodeLoad| format::size(load.memory_available_bytes);
    Listing::of(nodes)
        .words("NODE", 0, |of| of.node.name.as_str())
        .words("STATE", 0, |of| state(of.node))
        .numbers("CPUS", 0, |of| format::or_dash(of.node.alive.then(|| of.node.cpus.to_string())))
        .numbers("MEM", 1, |of| format::or_dash(of.node.memory_bytes.map(format::size)))
        .numbers("LOAD", 1, |of| format::or_dash(of.measured.map(|load| format!("{:.2}", load.load_1min))))
        .numbers("FREE", 2, |of| format::or_dash(of.measured.map(free)))
        .numbers("OTHERS", 2, |of| format::or_dash(of.node.load.map(|load| format!("{load:.0}"))))
        .words("CLOCK", 2, |of| clock(of.node))
        .words("VERSION", 3, |of| format::or_dash(of.node.version.clone()))
        .render(width)
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
            gone_since_unix_ms: None,
            silent_since_unix_ms: None,
            drains: true,
            version: None,
        };
        let load =
            NodeLoad { name: "a".to_owned(), load_1min: 1.257, memory_available_bytes: 1 << 29, ..NodeLoad::default() };
        let queue = cosched_api::QueueStatus {
            name: "night".to_owned(),
            exclusive: true,
            memory_bytes_max: Some(1 << 30),
            disk_bytes_max: None,
            time_ms_max: Some(90_000),
            users: Vec::new(),
            groups: Vec::new(),
            memory_bytes_max_per_user: None,
            jobs_max_per_user: None,
            waiting: 2,
            running: 0,
        };
        let cluster = ClusterStatus {
            name: "c".to_owned(),
            alone: false,
            store_answers: false,
            plan_generation: 9,
            plan_in_use: Some(8),
            ceiling: 0.8,
            node_dead_after_ms: Some(300_000),
            queues: vec![queue],
            packing: None,
            rows_max: None,
            fair_share: None,
            shares: None,
            off_hours: None,
        };
        let gone = NodeStatus {
            name: "b".to_owned(),
            cpus: 0,
            memory_bytes: None,
            load: None,
            alive: false,
            gone_since_unix_ms: Some(5_000),
            drains: false,
            ..node.clone()
        };
        assert_eq!(
            text(&both(&[node.clone(), gone], std::slice::from_ref(&load)), &cluster, 197_000, None),
            "cluster c, whose store does not answer; this node runs plan 8 of 9; gangs that span nodes have at most 80% of a node\n\n\
             NODE  STATE       CPUS   MEM  LOAD  FREE  OTHERS  CLOCK  VERSION\n\
             a     drained        2  1.0G  1.26  512M       3  -      -\n\
             b     gone 3m12s     -     -     -     -       -  -      -\n\n\
             QUEUE  KIND       WAITING  STARTED  MEM MAX  DISK MAX  TIME MAX  USER JOBS  USER MEM  FOR\n\
             night  exclusive        2        0     1.0G         -     1m30s          -         -  all users\n"
        );
        let alone = ClusterStatus { alone: true, store_answers: true, ..cluster };
        let text = text(&both(&[node], &[load]), &alone, 0, Some(50));
        assert!(text.starts_with("one machine; gangs have at most 80% of its slots\n\nNODE"), "{text}");
        assert!(text.lines().skip(1).all(|line| line.len() <= 50), "{text}");
    }
}
