//! `coschedd --check`: tells an operator before the start whether the daemon can work here. Nothing is changed.

use crate::args::Args;
use crate::cluster::{Link, Reached};
use crate::config::{ClusterConfig, Config, StoreChoice};
use crate::driver::not_good_enough;
use crate::ground;
use crate::instance::{Places, home, lock_tree};
use anyhow::Context;
use cosched_linux::mechanism;
use cosched_linux::observe::clock_error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Prints what the machine offers, where jobs are stored, and what will cause trouble.
///
/// # Errors
/// Why the daemon could not work.
pub(crate) fn check(config: &Config, args: &Args) -> anyhow::Result<()> {
    let places = Places::new(args, config);
    let (tree, without) = ground::open_tree(ground::cgroups(&args.cgroup), (args, config, &places))?;
    println!("cgroups    {}", tree.layout());
    println!("subtree    {}", tree.v2_dir().display());
    for probe in mechanism::probe(&tree) {
        println!("mechanism  {}: {}", probe.name, probe.why);
    }
    // A running daemon holds the lock of the cgroup, also while it has no jobs.
    match lock_tree(&tree) {
        Ok(_lock) if tree.jobs()?.is_empty() => tree.remove()?,
        Ok(_) => println!("jobs       those of an earlier daemon are in {}", tree.v2_dir().display()),
        Err(_) => {
            println!("daemon     one is running, with its jobs in {}; it is not disturbed", tree.v2_dir().display())
        }
    }
    let (store, mut warnings) = check_store(config, &places.state_dir)?;
    println!("store      {store}");
    warnings.extend(without.map(|of| format!("{}: {}", of.what, of.why)));
    let slot_length_ns = config.slot_length.as_nanos() as u64;
    if let Some(why) = not_good_enough(clock_error(), slot_length_ns).filter(|_| config.require_synchronised_clock) {
        let hint = "Let chrony or another time daemon keep the clock";
        warnings.push(format!("{why}: gangs would have no slots here. {hint}"));
    }
    let has = cosched_linux::observe::memory_total();
    if let Some(memory) = config.memory_bytes.filter(|memory| *memory > has) {
        let (memory, has) = (memory >> 20, has >> 20);
        warnings.push(format!(
            "`memory` is {memory} MiB, the machine has {has} MiB: jobs that use it all will swap or be killed"
        ));
    }
    for warning in &warnings {
        println!("warning    {warning}");
    }
    println!(
        "configuration and machine are fine{}",
        if warnings.is_empty() { "" } else { ", except for the warnings" }
    );
    Ok(())
}

/// Where jobs are stored and which daemon plans, in words; and the problems found there.
fn check_store(config: &Config, state_dir: &Path) -> anyhow::Result<(String, Vec<String>)> {
    let dir = state_dir.display();
    let cluster = &config.cluster;
    if cluster.is_alone() {
        let found = crate::store::look(state_dir).with_context(|| format!("the store in {dir} cannot be read"))?;
        let queues: Vec<&str> = cluster.queues.iter().map(|queue| queue.name.as_str()).collect();
        let queues = queues.join(", ");
        let memory = if cluster.admits_by_memory { "with" } else { "without" };
        let words = format!("one machine, in {dir}: {found}; {memory} admission by memory; queues: {queues}");
        return Ok((words, Vec::new()));
    }
    let mut warnings = secrets(cluster);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The causes in one line: the message is all that is printed.
    let reached = tokio::task::LocalSet::new().block_on(&runtime, Link::reach(cluster));
    let Reached { is_new, same_name } = reached.map_err(|e| anyhow::anyhow!("{e:#}"))?;
    let own_home = home(state_dir);
    if let Some(node) = same_name.filter(|node| node.as_ref().is_none_or(|node| node.home != own_home)) {
        let whose = node.map_or_else(String::new, |node| format!(" (machine and state: {})", node.home));
        warnings.push(format!(
            "a running daemon has the name {} in cluster {}{whose}. If that is another machine, this one cannot join: \
             give each `node` a name of its own",
            cluster.node, cluster.name
        ));
    }
    let there = if is_new { "the cluster is new" } else { "the cluster exists" };
    Ok((format!("answers, and is writable; {there} ({}, as node {})", cluster.name, cluster.node), warnings))
}

/// The files with whose content another process could act as this daemon.
fn secrets(cluster: &ClusterConfig) -> Vec<String> {
    let StoreChoice::Etcd(etcd) = &cluster.store else { return Vec::new() };
    let files = [("password_file", &etcd.password_file), ("key_file", &etcd.key_file)];
    let open = |(key, path): (&str, &Option<PathBuf>)| {
        let path = path.as_ref()?;
        let mode = path.metadata().ok()?.mode() & 0o7777;
        let path = path.display();
        (mode & 0o077 != 0).then(|| {
            format!(
                "`{key}` {path} can be read by others (mode {mode:o}): anyone with its contents can start programs as \
                 any user on any node. chmod 600 {path}"
            )
        })
    };
    files.into_iter().filter_map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn who_else_may_read_a_secret_is_warned_of() {
        let dir = tempfile::tempdir().unwrap();
        let (password, key) = (dir.path().join("password"), dir.path().join("key"));
        for path in [&password, &key] {
            std::fs::write(path, "secret").unwrap();
        }
        let text = format!(
            "store = \"etcd\"\n[etcd]\nendpoints = [\"http://e\"]\nuser = \"u\"\npassword_file = {password:?}\n\
             cert_file = \"/c\"\nkey_file = {key:?}\n"
        );
        let cluster = Config::parse(&text).unwrap().cluster;
        let warned = |modes: [u32; 2]| {
            for (path, mode) in [&password, &key].into_iter().zip(modes) {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            secrets(&cluster).len()
        };
        assert_eq!([warned([0o600, 0o400]), warned([0o640, 0o600]), warned([0o604, 0o660])], [0, 1, 2]);
        assert!(secrets(&cluster)[0].contains("`password_file`") && secrets(&cluster)[0].contains("mode 604"));
        std::fs::remove_file(&key).unwrap();
        assert_eq!(secrets(&cluster).len(), 1, "what is not there nobody reads");
    }
}
