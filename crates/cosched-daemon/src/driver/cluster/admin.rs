//! Repair, backup and restore of the cluster's store: by a separate connection, in a task beside the driver.

use super::super::{Driver, Reply};
use crate::call::Op;
use crate::clock::{now, unix_ms};
use crate::cluster::{Link, REACH_TIME};
use crate::config::{ClusterConfig, StoreChoice};
use crate::refuse::{Answer, conflict, invalid, refuse, unsupported};
use crate::rights::Peer;
use cosched_api::{BACKUP_FORMAT, BACKUP_VERSION, ClusterBackup, ErrorBody, ErrorCode, ImportRequest, RepairReport};
use cosched_cluster::backup;
use cosched_cluster::repair::{CannotRepair, Known, read_all, repair};
use cosched_cluster::store::{Done, Entry, Op as StoreOp};
use cosched_node::{ForAll, rights};
use tokio::sync::oneshot;

impl Driver {
    /// `/v1/cluster/…`
    pub(in super::super) fn administer(&mut self, peer: Peer, op: Op, reply: oneshot::Sender<Answer<Reply>>) {
        if let Err(why) = rights::for_all(self.caller(peer), ForAll::Store) {
            return drop(reply.send(Err(self.refusal(why))));
        }
        let config = self.config.cluster.clone();
        if !matches!(config.store, StoreChoice::Etcd(_)) {
            return drop(reply.send(Err(no_store())));
        }
        let work = Work { known: self.cluster.member().known(), config };
        tokio::task::spawn_local(async move {
            let _ = reply.send(work.done(op).await);
        });
    }
}

fn no_store() -> ErrorBody {
    let why = "this machine is not in a cluster; its state is in its state directory";
    let hint = "To keep a copy, copy that directory while no daemon runs.";
    unsupported("there is no cluster store", why, hint)
}

/// The state that one request needs.
struct Work {
    known: Known,
    config: ClusterConfig,
}

impl Work {
    async fn done(self, op: Op) -> Answer<Reply> {
        match op {
            Op::Export => self.export().await.map(|backup| Reply::Backup(Box::new(backup))),
            Op::Import(request) => self.import(*request).await.map(Reply::Repair),
            Op::Repair(request) => self.repair(request.carry_out).await.map(Reply::Repair),
            _ => Err(invalid("this is not a request for the store", "it is another path", "Ask there.")),
        }
    }

    /// A link to the store, and all of its entries.
    async fn read(&self) -> Answer<(Link, Vec<Entry>)> {
        let read = async {
            let mut link = Link::new(&self.config, REACH_TIME)?;
            let (_, done) = link.once(read_all(&self.known.keys)).await?;
            Ok((link, done.into_iter().flat_map(Done::entries).collect()))
        };
        read.await.map_err(|e: anyhow::Error| {
            let hint = "Nothing was changed. Ask again when etcd answers.";
            refuse(ErrorCode::Internal, "the cluster's store cannot be read", format!("{e:#}"), hint)
        })
    }

    async fn repair(self, carry_out: bool) -> Answer<RepairReport> {
        let (link, entries) = self.read().await?;
        let found =
            repair(&self.known, now(), &entries).map_err(|e| cannot("the cluster cannot be repaired here", e))?;
        finish(link, found.says, found.ops, carry_out).await
    }

    async fn export(self) -> Answer<ClusterBackup> {
        let (_, entries) = self.read().await?;
        let (keys, left_out) = backup::export(&self.known.keys, &entries);
        Ok(ClusterBackup {
            format: BACKUP_FORMAT.to_owned(),
            version: BACKUP_VERSION,
            cluster: self.config.name,
            node: self.known.node,
            made_by: self.known.version,
            made_unix_ms: unix_ms(),
            keys,
            left_out,
        })
    }

    async fn import(self, request: ImportRequest) -> Answer<RepairReport> {
        let ImportRequest { backup, carry_out } = request;
        let what = "the backup is not restored";
        if backup.format != BACKUP_FORMAT || backup.version != BACKUP_VERSION {
            let why = format!(
                "it is `{}` version {}, and not {BACKUP_FORMAT} {BACKUP_VERSION}",
                backup.format, backup.version
            );
            let hint = "Give a file that `cosched cluster export` of this version wrote.";
            return Err(invalid(what, why, hint));
        }
        if backup.cluster != self.config.name {
            let why = format!("it is a backup of cluster {}, and this is {}", backup.cluster, self.config.name);
            return Err(invalid(what, why, "Restore it on a node of that cluster."));
        }
        let (link, entries) = self.read().await?;
        let import = backup::import(&self.known, &backup.keys, &entries).map_err(|e| cannot(what, e))?;
        finish(link, import.says, import.ops, carry_out).await
    }
}

async fn finish(mut link: Link, says: Vec<String>, ops: Vec<StoreOp>, carry_out: bool) -> Answer<RepairReport> {
    if !carry_out || ops.is_empty() {
        return Ok(RepairReport { says, done: false });
    }
    for (at, op) in ops.into_iter().enumerate() {
        let why = match link.once(op).await {
            Ok((true, _)) => continue,
            Ok((false, _)) => "the store was changed meanwhile".to_owned(),
            Err(e) => format!("{e:#}"),
        };
        let what = if at == 0 { "nothing was changed" } else { "only a part of it was done" };
        return Err(conflict(what, why, "Jobs keep running. Run the same command again."));
    }
    says.iter().for_each(|line| tracing::warn!("by an administrator: {line}"));
    Ok(RepairReport { says, done: true })
}

fn cannot(what: &str, CannotRepair { why, hint }: CannotRepair) -> ErrorBody {
    conflict(what, why, hint)
}
