//! Clusters for tests: nodes that are namespaces, a real etcd, real daemons. As root only.

pub mod etcd;
pub mod jobs;
mod leftovers;
pub mod net;
mod node;

use etcd::{Etcd, Security};
use net::Net;
pub use node::Node;
use std::process::Command;

/// Whether the machine has namespaces and these commands; otherwise says why the test is skipped.
pub fn needs(commands: &[&str]) -> bool {
    if !crate::needs_root() {
        return false;
    }
    for command in ["ip", "nsenter", "unshare", "taskset"].iter().chain(commands) {
        let found = Command::new("sh").args(["-c", &format!("command -v {command} >/dev/null")]).status();
        if !found.is_ok_and(|status| status.success()) {
            println!("SKIPPED: {command} is not installed: `tools/setup test` installs it");
            return false;
        }
    }
    let possible = Command::new("unshare").args(["--net", "--uts", "--mount", "true"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        println!("SKIPPED: this machine does not let root make namespaces");
        return false;
    }
    true
}

/// Nodes with separate daemons, which share only a network. Nodes are counted from 0.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    /// Their network; places without a daemon come after the nodes.
    pub net: Net,
}

impl Nodes {
    /// Starts `count` nodes; `config` generates a node's configuration (TOML) from its number and name.
    pub fn start(count: usize, config: impl Fn(usize, &str) -> String) -> Nodes {
        let net = Net::new(count);
        let mut all = Nodes { nodes: Vec::new(), net };
        all.launch(count, config);
        all
    }

    fn launch(&mut self, count: usize, config: impl Fn(usize, &str) -> String) {
        for (n, host) in self.net.hosts[..count].iter().enumerate() {
            self.nodes.push(Node::start(host, &self.net.dir, &config(n, &host.name)));
        }
        self.nodes.iter().for_each(Node::until_ready);
    }

    /// A node; the first is 0.
    pub fn node(&self, n: usize) -> &Node {
        &self.nodes[n]
    }

    /// The same, to kill and restart its daemon.
    pub fn node_mut(&mut self, n: usize) -> &mut Node {
        &mut self.nodes[n]
    }
}

/// A cluster: nodes whose daemons share a real etcd, which has its own place on the network.
#[derive(Debug)]
pub struct Cluster {
    nodes: Nodes,
    /// The store.
    pub etcd: Etcd,
    /// The store's place on the network.
    etcd_place: usize,
}

impl Cluster {
    /// Starts `count` nodes, and a store of `members` members with TLS, users and passwords. `config` (TOML) is added to
    /// every node's configuration.
    pub fn start(count: usize, members: usize, config: &str) -> Cluster {
        Cluster::on_net(Net::new(count + 1), members, config)
    }

    /// The same on a net whose last place is the store's.
    pub fn on_net(net: Net, members: usize, config: &str) -> Cluster {
        let count = net.hosts.len() - 1;
        let etcd = Etcd::start_members(&net.hosts[count], Security::TlsAndUsers, members);
        let table = etcd.config();
        let nodes = Nodes { nodes: Vec::new(), net };
        let mut cluster = Cluster { nodes, etcd, etcd_place: count };
        cluster.nodes.launch(count, |_, name| node_config(name, config, &table));
        cluster
    }

    /// A node; the first is 0.
    pub fn node(&self, n: usize) -> &Node {
        self.nodes.node(n)
    }

    /// The same, to kill and restart its daemon.
    pub fn node_mut(&mut self, n: usize) -> &mut Node {
        self.nodes.node_mut(n)
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.nodes.net
    }

    /// Takes a node off the network.
    pub fn cut(&self, n: usize) {
        self.nodes.net.cut(n);
    }

    /// Reconnects it.
    pub fn heal(&self, n: usize) {
        self.nodes.net.heal(n);
    }

    /// Drops what a node sends to the store (`there`), or what the store sends to the node, while `meanwhile` runs.
    pub fn cut_one_way(&self, n: usize, there: bool, meanwhile: impl FnOnce()) {
        let (node, store) = (&self.net().hosts[n], &self.net().hosts[self.etcd_place]);
        let (from, to) = if there { (node, store) } else { (store, node) };
        from.run(&["ip", "route", "add", "blackhole", &to.address]);
        meanwhile();
        from.run(&["ip", "route", "del", "blackhole", &to.address]);
    }

    /// Takes the store off the network, for all nodes at once.
    pub fn cut_etcd(&self) {
        self.nodes.net.cut(self.etcd_place);
    }

    /// Reconnects it.
    pub fn heal_etcd(&self) {
        self.nodes.net.heal(self.etcd_place);
    }
}

/// Keys must precede tables in TOML, and `config` may end with a table of its own.
fn node_config(name: &str, config: &str, table: &str) -> String {
    format!("store = \"etcd\"\ncluster = \"cst\"\nnode = \"{name}\"\n{config}\n{table}")
}

/// Runs a system command; returns its output.
fn tool(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(done.status.success(), "{command:?}: {}{}", crate::stdout(&done), crate::stderr(&done));
    crate::stdout(&done)
}
