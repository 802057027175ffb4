//! The part of the configuration that makes a node a member of a cluster.

use super::{ConfigError, File, choice, error, range, set_duration};
use crate::cluster::own;
use crate::users::{group_id, ids, user_id};
use cosched_api::{self as api, FairShareTable, QueueTable};
use cosched_cluster::{Keys, check_name};
use cosched_core::cluster::{FairShare, NEVER, NODE_DEAD_AFTER_NS, Packing, Queue, Rights};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// The range of etcd's lease.
const NODE_LEASE: std::ops::RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_secs(300);

/// The longest silence that can be set before a node counts as dead.
const NODE_DEAD_AFTER_MAX: Duration = Duration::from_secs(365 * 86_400);

/// The default limit on the rows of a matrix.
const ROWS_MAX: u32 = 64;

/// The settings of a cluster's node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterConfig {
    /// The store that the nodes share.
    pub(crate) store: StoreChoice,
    /// The cluster's name; several clusters may share one etcd.
    pub(crate) name: String,
    /// The node's name.
    pub(crate) node: String,
    /// After a silence of this length, gangs that span nodes have no slots on the silent node.
    pub(crate) node_lease: Duration,
    /// Initial setting of a new cluster: after a silence of this length a node is dead; [`NEVER`] when only an operator decides that.
    pub(crate) node_dead_after_ns: u64,
    /// How often rows and loads are rebalanced.
    pub(crate) rebalance_period: Duration,
    /// Initial setting of a new cluster: where new gangs are placed.
    pub(crate) packing: Packing,
    /// Initial setting of a new cluster: the limit on rows.
    pub(crate) rows_max: u32,
    /// Initial setting of a new cluster: the limit on the CPU time of a node for gangs that span nodes, in thousandths.
    pub(crate) ceiling_permille: u32,
    /// Initial setting of a new cluster: the queues, the most urgent first.
    pub(crate) queues: Vec<Queue>,
    /// Whether the file names queues.
    pub(crate) queues_are_set: bool,
    /// Initial setting of a new cluster: whether past usage counts in the order of a queue.
    pub(crate) fair_share: Option<FairShare>,
    /// Whether jobs wait for memory; on one machine only where the file sets a limit on memory.
    pub(crate) admits_by_memory: bool,
}

/// The store that the nodes of a cluster share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoreChoice {
    /// A file in the state directory: a single machine.
    Own,
    /// A store in memory, lost when the daemon ends: a cluster of this node alone, for trials and for tests.
    Memory,
    /// etcd.
    Etcd(EtcdFile),
}

/// How etcd is reached; table `[etcd]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EtcdFile {
    /// The addresses of its members.
    pub(crate) endpoints: Vec<String>,
    /// The certificate authority that signs their certificates.
    pub(crate) ca_file: Option<PathBuf>,
    /// The daemon's certificate.
    pub(crate) cert_file: Option<PathBuf>,
    /// The key of the daemon's certificate.
    pub(crate) key_file: Option<PathBuf>,
    /// The name in the members' certificates, when it differs from the endpoint's.
    pub(crate) server_name: Option<String>,
    /// The user name for etcd's own authentication.
    pub(crate) user: Option<String>,
    /// A file with the user's password.
    pub(crate) password_file: Option<PathBuf>,
}

/// The values of `store`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    File,
    Memory,
    Etcd,
}

/// The node's place in its cluster; `memory`: whether the memory for jobs is set.
pub(super) fn read(file: &mut File, memory: bool) -> Result<ClusterConfig, ConfigError> {
    let names = [("file", Kind::File), ("memory", Kind::Memory), ("etcd", Kind::Etcd)];
    let kind = file.store.as_deref().map_or(Ok(Kind::File), |store| choice("store", store, &names))?;
    if kind == Kind::File && file.etcd.is_none() {
        return alone(file, memory);
    }
    let store = match (kind, file.etcd.take()) {
        (Kind::File, _) | (Kind::Memory, Some(_)) => {
            return Err(error(
                "`[etcd]` is set, but the store is not etcd",
                "the table is only for store = \"etcd\"",
                "Set store = \"etcd\", or remove the table.",
            ));
        }
        (Kind::Memory, None) => StoreChoice::Memory,
        (Kind::Etcd, etcd) => StoreChoice::Etcd(check_etcd(etcd.unwrap_or_default())?),
    };
    let mut node_lease = Duration::from_secs(5);
    set_duration(&mut node_lease, "node_lease", file.node_lease.take())?;
    if !NODE_LEASE.contains(&node_lease) {
        return Err(range("node_lease", &format!("{}ms", node_lease.as_millis()), "2s to 5min"));
    }
    let node_dead_after_ns = node_dead_after(file.node_dead_after.take(), node_lease)?;
    let mut rebalance_period = Duration::from_secs(60);
    set_duration(&mut rebalance_period, "rebalance_period", file.rebalance_period.take())?;
    if rebalance_period < Duration::from_secs(1) {
        return Err(range("rebalance_period", &format!("{}ms", rebalance_period.as_millis()), "1s and more"));
    }
    let packings = [("first-fit", Packing::FirstFit), ("best-fit", Packing::BestFit), ("buddy", Packing::Buddy)];
    let rows_max = file.rows_max.unwrap_or(ROWS_MAX);
    if !(1..=1000).contains(&rows_max) {
        return Err(range("rows_max", &rows_max.to_string(), "1 to 1000"));
    }
    Ok(ClusterConfig {
        store,
        name: name("cluster", file.cluster.take().unwrap_or_else(|| "default".to_owned()))?,
        node: name("node", file.node.take().unwrap_or_else(cosched_linux::observe::hostname))?,
        node_lease,
        node_dead_after_ns,
        rebalance_period,
        packing: file.packing.as_deref().map_or(Ok(Packing::Buddy), |text| choice("packing", text, &packings))?,
        rows_max,
        ceiling_permille: ceiling(file.ceiling)?,
        queues_are_set: file.queue.is_some(),
        queues: queues(file.queue.take())?,
        fair_share: fair_share(file.fair_share.take())?,
        admits_by_memory: true,
    })
}

/// One machine: keys that have a meaning only for several nodes are errors, not ignored.
fn alone(file: &mut File, memory: bool) -> Result<ClusterConfig, ConfigError> {
    let of_nodes = "the store is \"file\", which other machines cannot read";
    let of_rows = "it is about gangs that span nodes, and one machine has none";
    let keys = [
        ("cluster", file.cluster.is_some(), of_nodes),
        ("node", file.node.is_some(), of_nodes),
        ("node_lease", file.node_lease.is_some(), of_nodes),
        ("node_dead_after", file.node_dead_after.is_some(), of_nodes),
        ("rebalance_period", file.rebalance_period.is_some(), of_rows),
        ("rows_max", file.rows_max.is_some(), of_rows),
    ];
    if let Some((key, _, why)) = keys.into_iter().find(|(_, set, _)| *set) {
        let hint = "Set store = \"etcd\" for a cluster, or remove the key.";
        return Err(error(format!("`{key}` is set, but this is one machine"), why, hint));
    }
    let asks_for_order = file.ceiling.is_some() || file.queue.is_some() || file.fair_share.is_some();
    Ok(ClusterConfig {
        ceiling_permille: ceiling(file.ceiling)?,
        queues_are_set: file.queue.is_some(),
        queues: queues(file.queue.take())?,
        fair_share: fair_share(file.fair_share.take())?,
        admits_by_memory: memory || asks_for_order,
        ..ClusterConfig::one_machine()
    })
}

impl ClusterConfig {
    /// One machine with one queue and no limits.
    pub(super) fn one_machine() -> ClusterConfig {
        let host = cosched_linux::observe::hostname();
        ClusterConfig {
            store: StoreChoice::Own,
            name: own::NAME.to_owned(),
            node: if check_name(&host).is_ok() { host } else { "localhost".to_owned() },
            // No other node could take this node's place, and it has no gangs that span nodes.
            node_lease: *NODE_LEASE.end(),
            node_dead_after_ns: NEVER,
            rebalance_period: Duration::from_secs(60),
            packing: Packing::Buddy,
            rows_max: ROWS_MAX,
            ceiling_permille: 1000,
            queues: vec![default_queue()],
            queues_are_set: false,
            fair_share: None,
            admits_by_memory: false,
        }
    }

    /// Whether this is a single machine, whose store is its own file.
    pub(crate) fn is_alone(&self) -> bool {
        self.store == StoreChoice::Own
    }

    /// The keys of the cluster in its store.
    pub(crate) fn keys(&self) -> Keys {
        Keys::new(&self.name).expect("the name was checked when it was read")
    }
}

/// A node renews its lease after each third of it. Twice the lease is the least time that distinguishes a dead node from one that stalled for a
/// moment.
fn node_dead_after(text: Option<String>, node_lease: Duration) -> Result<u64, ConfigError> {
    if text.as_deref() == Some("never") {
        return Ok(NEVER);
    }
    let mut after = Duration::from_nanos(NODE_DEAD_AFTER_NS).max(2 * node_lease);
    set_duration(&mut after, "node_dead_after", text)?;
    if !(2 * node_lease..=NODE_DEAD_AFTER_MAX).contains(&after) {
        let given = format!("{}ms", after.as_millis());
        return Err(range("node_dead_after", &given, "twice node_lease to 365d, or \"never\""));
    }
    Ok(after.as_nanos() as u64)
}

fn ceiling(part: Option<f64>) -> Result<u32, ConfigError> {
    let part = part.unwrap_or(1.0);
    if !(0.01..=1.0).contains(&part) {
        return Err(range("ceiling", &part.to_string(), "0.01 to 1"));
    }
    Ok((part * 1000.0).round() as u32)
}

fn check_etcd(etcd: EtcdFile) -> Result<EtcdFile, ConfigError> {
    if etcd.endpoints.is_empty() {
        return Err(error(
            "etcd cannot be reached",
            "`endpoints` of `[etcd]` is not set",
            "Name etcd's members, as in endpoints = [\"https://10.0.0.1:2379\"].",
        ));
    }
    let half = |one: &str, other: &str| {
        error(format!("`{one}` is set without `{other}`"), "the two belong together", "Set both or none.")
    };
    if etcd.cert_file.is_some() != etcd.key_file.is_some() {
        return Err(half("cert_file", "key_file"));
    }
    if etcd.user.is_some() != etcd.password_file.is_some() {
        return Err(half("user", "password_file"));
    }
    let tls = etcd.endpoints.iter().any(|endpoint| endpoint.starts_with("https://"));
    if tls && etcd.ca_file.is_none() {
        return Err(error(
            "etcd's certificate cannot be checked",
            "an endpoint begins with https and `ca_file` is not set",
            "Name the file with the certificate of the authority (CA) that signed etcd's.",
        ));
    }
    Ok(etcd)
}

fn name(key: &str, name: String) -> Result<String, ConfigError> {
    match check_name(&name) {
        Ok(()) => Ok(name),
        Err(e) => Err(error(format!("`{key} = \"{name}\"` is not possible"), e.to_string(), "Choose another name.")),
    }
}

/// The queue that exists when the file names none.
fn default_queue() -> Queue {
    Queue { name: "default".to_owned(), ..Queue::default() }
}

fn queues(tables: Option<Vec<QueueTable>>) -> Result<Vec<Queue>, ConfigError> {
    let Some(tables) = tables else { return Ok(vec![default_queue()]) };
    let mut queues: Vec<Queue> = Vec::new();
    for table in tables {
        let queue = queue(&table)?;
        if queues.iter().any(|other| other.name == queue.name) {
            let what = format!("the queue `{}` is listed twice", queue.name);
            return Err(error(what, "jobs name their queue", "Give each queue a name of its own."));
        }
        queues.push(queue);
    }
    if queues.is_empty() {
        return Err(error(
            "there is no queue",
            "`queue` is an empty list",
            "Remove the key for one queue without limits.",
        ));
    }
    Ok(queues)
}

fn fair_share(table: Option<FairShareTable>) -> Result<Option<FairShare>, ConfigError> {
    let wrong = |why: String| {
        let hint = "Give two durations, as in half_life = \"7d\" and weight = \"1d\", or remove the table.";
        error("`[fair_share]` cannot be used", why, hint)
    };
    let read = table.map(|table| table.read().map_err(|e| wrong(e.to_string()))).transpose()?;
    read.map(|read| fair_share_of(read).map_err(wrong)).transpose().map(Option::flatten)
}

/// Fair share in the planner's form; `None` when the weight is zero.
///
/// # Errors
/// Why the setting is impossible.
pub(crate) fn fair_share_of(read: api::FairShare) -> Result<Option<FairShare>, String> {
    let api::FairShare { half_life_ms, weight_ms } = read;
    if half_life_ms == 0 && weight_ms > 0 {
        return Err("`half_life` is 0".to_owned());
    }
    let ns = |ms: u64| ms.saturating_mul(1_000_000);
    Ok((weight_ms > 0).then(|| FairShare { half_life_ns: ns(half_life_ms), weight_ns: ns(weight_ms) }))
}

fn queue(table: &QueueTable) -> Result<Queue, ConfigError> {
    let read = table.read().map_err(|e| {
        let what = format!("`{}` of the queue `{}` cannot be used", e.key, e.queue);
        error(what, e.why.to_string(), "Remove the key for no limit.")
    })?;
    name("name", read.name.clone())?;
    queue_of(read).map_err(|(what, why, hint)| error(what, why, hint))
}

/// A queue in the planner's form. Names of users and groups are resolved on this machine.
///
/// # Errors
/// The queue is invalid: what, why, what to do.
pub(crate) fn queue_of(queue: api::Queue) -> Result<Queue, (String, String, &'static str)> {
    let api::Queue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ms_max, users, groups, .. } = queue;
    let api::Queue { memory_bytes_max_per_user, jobs_max_per_user, .. } = queue;
    if time_ms_max == Some(0) {
        let what = format!("`time_max` of the queue `{name}` is 0");
        return Err((what, "no job could run in it".to_owned(), "Name at least 1ms, or remove the key for no limit."));
    }
    if jobs_max_per_user == Some(0) {
        let what = format!("`jobs_max_per_user` of the queue `{name}` is 0");
        return Err((what, "no job could start in it".to_owned(), "Name at least 1, or remove the key for no limit."));
    }
    let unknown = |key: &str, entry: String| {
        let what = format!("`{key}` of the queue `{name}` cannot be used");
        let hint = "Name those of /etc/passwd and /etc/group, or give numbers.";
        (what, format!("`{entry}` is unknown on this machine"), hint)
    };
    let rights = Rights {
        users: ids(&users, user_id).map_err(|entry| unknown("users", entry))?,
        groups: ids(&groups, group_id).map_err(|entry| unknown("groups", entry))?,
        memory_bytes_max: memory_bytes_max_per_user,
        jobs_max: jobs_max_per_user,
    };
    let time_ns_max = time_ms_max.map(|ms| ms.saturating_mul(1_000_000));
    Ok(Queue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max, rights })
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn one_machine_has_one_queue_and_no_limits_until_its_file_names_some() {
        for text in ["", "store = \"file\"", "packing = \"best-fit\"", "[shares]\nbatch = 3"] {
            assert_eq!(Config::parse(text).unwrap().cluster, ClusterConfig::one_machine(), "{text}");
        }
        for key in
            ["cluster = \"c\"", "node = \"a\"", "node_lease = \"5s\"", "rows_max = 3", "rebalance_period = \"9s\""]
        {
            let e = Config::parse(key).unwrap_err();
            assert!(e.what.contains("one machine"), "{e}");
        }
        let fair = "[fair_share]\nhalf_life = \"7d\"\nweight = \"1d\"";
        for text in ["ceiling = 0.5", "memory = \"1G\"", "[[queue]]\nname = \"day\"", fair] {
            let config = Config::parse(text).unwrap();
            let own = config.cluster;
            assert!(own.is_alone() && own.admits_by_memory, "{text}");
            assert_eq!((own.queues.len(), config.require_synchronised_clock), (1, false), "{text}");
        }
        let config = Config::parse("ceiling = 0.5\npacking = \"best-fit\"").unwrap();
        assert_eq!(config.packing, cosched_core::Packing::BestFit, "of the machine's own matrix");
        assert_eq!(config.cluster.ceiling_permille, 500);
        for (text, word) in
            [("ceiling = 0.5\npacking = \"buddy\"", "first-fit, best-fit"), ("ceiling = 0", "0.01 to 1")]
        {
            let e = Config::parse(text).unwrap_err().to_string();
            assert!(e.contains(word), "{text}: {e}");
        }
    }

    #[test]
    fn every_key_is_read() {
        let c = Config::parse(
            "store = \"etcd\"\ncluster = \"c\"\nnode = \"a\"\nnode_lease = \"3s\"\nrebalance_period = \"10s\"\n\
             packing = \"best-fit\"\nrows_max = 5\nceiling = 0.75\n\
             [etcd]\nendpoints = [\"https://e:1\"]\nca_file = \"/ca\"\ncert_file = \"/cert\"\nkey_file = \"/key\"\n\
             server_name = \"s\"\nuser = \"u\"\npassword_file = \"/p\"\n\
             [fair_share]\nhalf_life = \"2h\"\nweight = \"30min\"\n\
             [[queue]]\nname = \"short\"\ntime_max = \"10min\"\nusers = [\"root\", 7]\ngroups = [8]\njobs_max_per_user = 3\n\
             memory_max_per_user = \"2G\"\n\
             [[queue]]\nname = \"big\"\nexclusive = true\nmemory_max = \"1G\"\ndisk_max = \"2G\"\n",
        );
        let cluster = c.unwrap().cluster;
        assert_eq!((cluster.name.as_str(), cluster.node.as_str()), ("c", "a"));
        assert_eq!((cluster.node_lease.as_secs(), cluster.rebalance_period.as_secs()), (3, 10));
        assert_eq!((cluster.packing, cluster.rows_max, cluster.ceiling_permille), (Packing::BestFit, 5, 750));
        assert!(matches!(&cluster.store, StoreChoice::Etcd(etcd) if etcd.user.as_deref() == Some("u")));
        let rights = Rights { users: vec![0, 7], groups: vec![8], memory_bytes_max: Some(2 << 30), jobs_max: Some(3) };
        assert_eq!(cluster.queues[0].rights, rights);
        let hour_ns = 3_600_000_000_000;
        assert_eq!(cluster.fair_share, Some(FairShare { half_life_ns: 2 * hour_ns, weight_ns: hour_ns / 2 }));
        assert_eq!(cluster.queues[0].time_ns_max, Some(600_000_000_000));
        assert_eq!((cluster.queues[1].exclusive, cluster.queues[1].memory_bytes_max), (true, Some(1 << 30)));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        for (text, word) in [
            ("store = \"etcd\"", "endpoints"),
            ("store = \"redis\"", "file, memory, etcd"),
            ("[etcd]\nendpoints = [\"http://e\"]", "the store is not etcd"),
            ("store = \"etcd\"\n[etcd]\nendpoints = [\"https://e\"]", "ca_file"),
            ("store = \"etcd\"\n[etcd]\nendpoints = [\"http://e\"]\nuser = \"u\"", "password_file"),
            ("store = \"etcd\"\n[etcd]\nendpoint = [\"http://e\"]", "endpoints"),
            ("store = \"memory\"\nnode = \"a b\"", "letters"),
            ("store = \"memory\"\nnode_lease = \"1s\"", "2s to 5min"),
            ("store = \"memory\"\nceiling = 1.5", "0.01 to 1"),
            ("store = \"memory\"\nrows_max = 0", "1 to 1000"),
            ("store = \"memory\"\nqueue = []", "no queue"),
            ("store = \"memory\"\n[[queue]]\nname = \"a\"\n[[queue]]\nname = \"a\"", "twice"),
            ("store = \"memory\"\n[[queue]]\nname = \"a\"\nmemory_max = \"much\"", "size"),
            ("store = \"memory\"\n[[queue]]\nname = \"a\"\ntime_max = \"0s\"", "is 0"),
            ("store = \"memory\"\n[[queue]]\nname = \"a\"\njobs_max_per_user = 0", "is 0"),
            (
                "store = \"memory\"\n[[queue]]\nname = \"a\"\nusers = [\"nobody-of-this-name\"]",
                "unknown on this machine",
            ),
            ("[fair_share]\nhalf_life = \"0s\"\nweight = \"1d\"", "is 0"),
            ("[fair_share]\nhalf_life = \"7d\"", "weight"),
            ("packing = \"buddy\"", "first-fit, best-fit"),
        ] {
            let e = Config::parse(text).unwrap_err().to_string();
            assert!(e.contains(word), "{text}: {e}");
        }
    }

    #[test]
    fn a_silence_that_kills_is_at_least_two_leases() {
        let after = |text: &str| {
            let config = Config::parse(&format!("store = \"memory\"\n{text}"));
            config.map(|config| config.cluster.node_dead_after_ns).map_err(|e| e.to_string())
        };
        assert_eq!(after(""), Ok(NODE_DEAD_AFTER_NS));
        assert_eq!(after("node_lease = \"4min\""), Ok(480_000_000_000), "the default grows with the lease");
        assert_eq!(after("node_dead_after = \"never\""), Ok(NEVER));
        assert_eq!(after("node_lease = \"5s\"\nnode_dead_after = \"10s\""), Ok(10_000_000_000));
        for text in ["node_lease = \"5s\"\nnode_dead_after = \"9s\"", "node_dead_after = \"366d\""] {
            assert!(after(text).unwrap_err().contains("twice node_lease to 365d"), "{text}");
        }
    }

    #[test]
    fn what_belongs_together_is_asked_for_together() {
        let etcd = |text: &str| {
            Config::parse(&format!("store = \"etcd\"\n[etcd]\nendpoints = [\"http://e\"]\n{text}"))
                .map_err(|e| e.to_string())
        };
        assert!(etcd("").is_ok());
        for (text, word) in [
            ("cert_file = \"/c\"", "cert_file"),
            ("key_file = \"/k\"", "key_file"),
            ("user = \"u\"", "password_file"),
            ("password_file = \"/p\"", "user"),
        ] {
            let e = etcd(text).unwrap_err();
            assert!(e.contains(word) && e.contains("Set both or none"), "{text}: {e}");
        }
        assert!(etcd("cert_file = \"/c\"\nkey_file = \"/k\"").is_ok());
    }

    #[test]
    fn only_nodes_that_share_slots_need_a_clock_that_is_synchronised() {
        let required = |text: &str| Config::parse(text).unwrap().require_synchronised_clock;
        assert!(!required("") && !required("ceiling = 0.5"));
        assert!(required("store = \"memory\""));
        assert!(!required("store = \"memory\"\nrequire_synchronised_clock = false"));
        assert!(required("require_synchronised_clock = true"));
    }

    #[test]
    fn without_a_weight_usage_does_not_count() {
        let share = |half_life_ms, weight_ms| fair_share_of(api::FairShare { half_life_ms, weight_ms });
        assert_eq!(share(1000, 0), Ok(None));
        assert_eq!(share(0, 0), Ok(None));
        assert!(share(0, 1).is_err());
        assert_eq!(share(1, 2), Ok(Some(FairShare { half_life_ns: 1_000_000, weight_ns: 2_000_000 })));
        assert!(share(u64::MAX, u64::MAX).unwrap().unwrap().weight_ns == u64::MAX, "no overflow");
    }
}
