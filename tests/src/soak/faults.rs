//! Breaks things: one fault after the other, sometimes two at a time, with calm periods between them.

use super::history::Fault;
use super::{Draw, now, sleep_ms};
use crate::cluster::Cluster;
use crate::procs;
use rustix::process::Signal;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// kill -9 of a daemon, which is restarted.
    KillDaemon,
    /// A daemon hangs.
    StopDaemon,
    /// kill -9 of a daemon's guard.
    KillGuard,
    /// A daemon is ended as an operator does, and restarted.
    Restart,
    /// kill -9 of etcd, which is restarted.
    KillEtcd,
    /// etcd hangs.
    StopEtcd,
    /// etcd is as slow as on a disk that hangs repeatedly.
    SlowEtcd,
    /// A node is cut off.
    Cut,
    /// What a node sends to etcd is lost.
    CutThere,
    /// What etcd sends to a node is lost.
    CutBack,
    /// etcd is cut off from all nodes.
    CutEtcd,
}

const KINDS: [Kind; 11] = [
    Kind::KillDaemon,
    Kind::StopDaemon,
    Kind::KillGuard,
    Kind::Restart,
    Kind::KillEtcd,
    Kind::StopEtcd,
    Kind::SlowEtcd,
    Kind::Cut,
    Kind::CutThere,
    Kind::CutBack,
    Kind::CutEtcd,
];

/// Injects one fault after the other until `until`; everything is repaired then.
pub(super) fn run(cluster: &mut Cluster, until: u64, mut draw: Draw) -> Vec<Fault> {
    let mut faults = Vec::new();
    loop {
        // Some pauses are long enough for everything to settle, most are not.
        let pause = if draw.between(0, 4) == 0 { draw.between(13_000, 18_000) } else { draw.between(300, 3_000) };
        let (kind, node) = (*draw.one_of(&KINDS), draw.between(0, cluster.nodes().len() as u64 - 1) as usize);
        let lasts = draw.between(200, 9_000);
        if now() + pause + lasts > until {
            return faults;
        }
        sleep_ms(pause);
        let from = now();
        break_and_mend(cluster, kind, node, lasts);
        let lets_go = matches!(kind, Kind::KillDaemon | Kind::StopDaemon | Kind::Restart).then_some(node);
        faults.push(Fault { from, to: now(), what: format!("{kind:?} node {node} for {lasts} ms"), lets_go });
    }
}

fn break_and_mend(cluster: &mut Cluster, kind: Kind, node: usize, lasts: u64) {
    match kind {
        Kind::KillDaemon => {
            cluster.node_mut(node).kill_daemon();
            sleep_ms(lasts);
            cluster.node_mut(node).restart();
        }
        Kind::StopDaemon => {
            let pid = cluster.node(node).pid();
            procs::signal(pid, Signal::STOP);
            sleep_ms(lasts);
            procs::signal(pid, Signal::CONT);
        }
        Kind::KillGuard => {
            let guards = procs::children_named(cluster.node(node).pid(), "cosched-guard");
            guards.into_iter().for_each(|pid| procs::signal(pid, Signal::KILL));
        }
        Kind::Restart => cluster.node_mut(node).restart(),
        Kind::KillEtcd => {
            cluster.etcd.kill();
            sleep_ms(lasts);
            cluster.etcd.launch();
        }
        Kind::StopEtcd => {
            cluster.etcd.freeze();
            sleep_ms(lasts);
            cluster.etcd.thaw();
        }
        Kind::SlowEtcd => {
            for _ in 0..=lasts / 1_000 {
                cluster.etcd.freeze();
                sleep_ms(900);
                cluster.etcd.thaw();
                sleep_ms(100);
            }
        }
        Kind::Cut => {
            cluster.cut(node);
            sleep_ms(lasts);
            cluster.heal(node);
        }
        Kind::CutThere | Kind::CutBack => {
            cluster.cut_one_way(node, kind == Kind::CutThere, || sleep_ms(lasts));
        }
        Kind::CutEtcd => {
            cluster.cut_etcd();
            sleep_ms(lasts);
            cluster.heal_etcd();
        }
    }
}
