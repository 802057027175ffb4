//! One round: a cluster of its own, clients and faults for a while, then calm; its history, and what is wrong with it.

use super::beat;
use super::check::check;
use super::clients::{self, Shared, locked};
use super::faults;
use super::history::{Heard, History, Look, Ms, Register};
use super::{Draw, now, sleep_ms};
use crate::cluster::Cluster;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The number of nodes, and of clients.
const NODES: usize = 3;
const CLIENTS: usize = 4;

/// At the end nothing is broken for this time, or a little longer, until all nodes have settled.
const CALM_MS: Ms = 16_000;
const REST_MS_MAX: Ms = 45_000;

/// Two gangs do not share a slot; strict, so that this is visible from outside.
const CONFIG: &str = "require_synchronised_clock = false\nslot_length = \"50ms\"\nsharing = \"strict\"\n";
const QUEUES: &str = "[[queue]]\nname = \"day\"\n[[queue]]\nname = \"night\"\n";
const SLOT_MS: Ms = 50;

/// With even seeds no fault lasts as long as the lease, so that no node is given up; with odd ones many do.
const LEASES_S: [u64; 2] = [20, 6];

/// The result of a round.
#[derive(Debug)]
pub struct Outcome {
    /// The findings, one line each.
    pub wrong: Vec<String>,
    /// Operations, jobs, processes, beats, faults.
    pub counts: [usize; 5],
    /// The directory of the history and the logs.
    pub kept: Option<PathBuf>,
}

/// A round of about this number of seconds. History and logs are kept if something is wrong, or always.
///
/// # Panics
/// When the cluster does not come up, or a daemon does not come back.
pub fn round(seed: u64, seconds: u64, keep: &Path, keep_sound: bool) -> Outcome {
    let lease_s = LEASES_S[(seed % 2) as usize];
    let mut cluster = Cluster::start(NODES, 1, &format!("{CONFIG}node_lease = \"{lease_s}s\"\n{QUEUES}"));
    cluster.until_met();
    let beats = cluster.net().dir.join("beats");
    fs::create_dir_all(&beats).expect("a directory for the beats");
    let shared = Shared::new(cluster.net().hosts[..NODES].to_vec(), &beats);
    let mut draw = Draw(seed);
    let mut history =
        History { initial: values(&cluster, 0), lease_ms: lease_s * 1_000, slot_ms: SLOT_MS, ..History::default() };
    let until = now() + (seconds * 1_000).saturating_sub(CALM_MS).max(10_000);
    let draws: Vec<Draw> = (0..CLIENTS).map(|_| Draw(draw.next())).collect();
    std::thread::scope(|scope| {
        for (number, draw) in draws.into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            scope.spawn(move || clients::run(&shared, number, draw));
        }
        history.faults = faults::run(&mut cluster, until, draw.clone());
        shared.over.store(true, Ordering::Relaxed);
    });
    let faultless = now();
    // No node is drained any more, so a job that still gets no place waits without a reason.
    for node in 0..NODES {
        while matches!(shared.set_drains(CLIENTS, 0, node, false), Heard::Unknown(_)) && now() < faultless + REST_MS_MAX
        {
            sleep_ms(200);
        }
    }
    sleep_ms(CALM_MS.saturating_sub(now() - faultless));
    history.last = last(&shared, faultless + REST_MS_MAX);
    history.values = (0..NODES).flat_map(|node| values(&cluster, node)).collect();
    history.entries = std::mem::take(&mut *locked(&shared.entries));
    history.looks = std::mem::take(&mut *locked(&shared.looks));
    history.lives = beat::read(&beats);
    shared.gone.store(true, Ordering::Relaxed);
    let wrong = check(&history);
    let kept = (keep_sound || !wrong.is_empty()).then(|| keep_all(&cluster, &history, &wrong, keep, seed));
    Outcome { counts: counts(&history), wrong, kept }
}

fn counts(history: &History) -> [usize; 5] {
    let jobs: std::collections::BTreeSet<_> = history.lives.iter().map(|life| &life.name).collect();
    let beats = history.lives.iter().map(|life| life.beats.len()).sum();
    [history.entries.len(), jobs.len(), history.lives.len(), beats, history.faults.len()]
}

/// What all nodes report, once all of them report the same and no job waits, or the time is over.
fn last(shared: &Shared, until: Ms) -> Vec<Look> {
    loop {
        let looks: Vec<Look> = (0..NODES).filter_map(|node| shared.look(node)).collect();
        let same = |look: &Look| look.jobs == looks[0].jobs;
        let rest = |look: &Look| look.jobs.iter().all(|job| job.state != "waiting");
        if looks.len() == NODES && looks.iter().all(|look| same(look) && rest(look)) || now() > until {
            return looks;
        }
        sleep_ms(500);
    }
}

/// The values of the cluster, as a node reports them.
fn values(cluster: &Cluster, node: usize) -> Vec<(Register, String)> {
    let Ok(status) = cluster.node(node).client().status() else { return Vec::new() };
    let drains = |node: cosched_api::NodeStatus| (Register::Drains(node.name), node.drains.to_string());
    let mut values: Vec<_> = status.nodes.unwrap_or_default().into_iter().map(drains).collect();
    if let Some(cluster) = status.cluster {
        values.push((Register::Ceiling, cluster.ceiling.to_string()));
        let limit = cluster.queues.first().and_then(|queue| queue.time_ms_max);
        values.push((Register::TimeLimit, limit.unwrap_or(0).to_string()));
    }
    values
}

fn keep_all(cluster: &Cluster, history: &History, wrong: &[String], keep: &Path, seed: u64) -> PathBuf {
    let dir = keep.join(format!("soak-{seed}"));
    let file = |name: &str| dir.join(name);
    let copied = fs::create_dir_all(&dir).and_then(|()| {
        fs::write(file("wrong"), wrong.join("\n") + "\n")?;
        fs::write(file("history"), history.to_string())?;
        cluster.nodes().iter().try_for_each(|node| fs::write(file(&format!("{}.log", node.host.name)), node.log()))?;
        fs::copy(cluster.etcd.file("etcd.log"), file("etcd.log"))?;
        fs::create_dir_all(file("beats"))?;
        for beats in fs::read_dir(cluster.net().dir.join("beats"))?.flatten() {
            fs::copy(beats.path(), file("beats").join(beats.file_name()))?;
        }
        Ok(())
    });
    if let Err(e) = copied {
        eprintln!("the history could not be kept whole in {}: {e}", dir.display());
    }
    dir
}
