//! The daemon's connection to the store of its cluster.

use super::FromStore;
#[cfg(feature = "etcd")]
use super::etcd::{Etcd, EtcdConfig};
use super::memory::{Disk, Memory};
#[cfg(feature = "etcd")]
use crate::config::EtcdFile;
use crate::config::{ClusterConfig, StoreChoice};
use crate::store::Store;
#[cfg(feature = "etcd")]
use crate::tls::Tls;
use anyhow::{Context, bail};
use cosched_cluster::OpId;
use cosched_cluster::store::{Compare, Do, Done, Of, Op, OpDone, Range, Txn};
use cosched_cluster::wire::{Node, decode};
#[cfg(feature = "etcd")]
use std::path::Path;
use std::time::Duration;
#[cfg(feature = "etcd")]
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long to wait for the answer of a store that is only checked.
pub(crate) const REACH_TIME: Duration = Duration::from_secs(5);

const HINT: &str = "Is etcd up? Check endpoints, certificates, user and password in [etcd]";

/// What was found in a store that answers and can be written.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The cluster does not exist in it yet.
    pub(crate) is_new: bool,
    /// The entry of a daemon that has the node's name now, if there is one; the inner value is `None` if it cannot be parsed.
    pub(crate) same_name: Option<Option<Node>>,
}

/// A connection to a store.
#[derive(Debug)]
pub(crate) struct Link {
    arm: Arm,
    from: UnboundedReceiver<FromStore>,
    /// How etcd is reached, from the files at their last reading.
    #[cfg(feature = "etcd")]
    files: Option<Files>,
}

/// Password, certificates and key are in files, which may change while the daemon runs.
#[cfg(feature = "etcd")]
#[derive(Debug)]
struct Files {
    file: EtcdFile,
    read: EtcdConfig,
    to: UnboundedSender<FromStore>,
    /// An operation failed since: the files may have changed.
    stale: bool,
}

#[derive(Debug)]
enum Arm {
    Memory(Memory),
    #[cfg(feature = "etcd")]
    Etcd(Box<Etcd>),
}

impl Link {
    /// A link to the configured store; nothing is connected yet. `answer_max` limits the wait for an answer.
    ///
    /// # Errors
    /// A file cannot be read, or the configuration is invalid.
    #[cfg_attr(not(feature = "etcd"), expect(unused_variables))]
    pub(crate) fn new(config: &ClusterConfig, answer_max: Duration) -> anyhow::Result<Link> {
        let (to, from) = unbounded_channel();
        #[cfg(feature = "etcd")]
        let files = match &config.store {
            StoreChoice::Etcd(file) => {
                let read = etcd_config(file, answer_max)?;
                Some(Files { file: file.clone(), read, to: to.clone(), stale: false })
            }
            StoreChoice::Memory | StoreChoice::Own => None,
        };
        let arm = match &config.store {
            StoreChoice::Memory => Arm::Memory(Memory::new(to)),
            StoreChoice::Own => Arm::Memory(Memory::own(to)),
            #[cfg(feature = "etcd")]
            StoreChoice::Etcd(file) => Arm::Etcd(Box::new(Etcd::new(&etcd_config(file, answer_max)?, to)?)),
            #[cfg(not(feature = "etcd"))]
            StoreChoice::Etcd(_) => {
                bail!("this coschedd was built without etcd. Build it with the cargo feature `etcd`: make build")
            }
        };
        Ok(Link {
            arm,
            from,
            #[cfg(feature = "etcd")]
            files,
        })
    }

    /// Reads the cluster's state once, to see whether the store answers, and whether it would let us write.
    ///
    /// # Errors
    /// It does not answer, or refuses access.
    pub(crate) async fn reach(config: &ClusterConfig) -> anyhow::Result<Reached> {
        let mut link = Link::new(config, REACH_TIME)?;
        let keys = config.keys();
        let read = [keys.state(), keys.node(&config.node)].map(|key| Do::Get(Range::one(key)));
        let done = link.do_once(Txn { then: read.into(), ..Txn::default() }).await?;
        let found = |at: usize| match done.get(at) {
            Some(Done::Got(found)) => found.first(),
            _ => None,
        };
        let is_new = found(0).is_none();
        // If it is of another version, at least its existence is known.
        let same_name = found(1).map(|entry| decode::<Node>(&entry.value).ok());
        // The condition cannot hold, so nothing is written; etcd checks the rights and the room first.
        let never = Compare { key: keys.scratch(), of: Of::Create, is: i64::MAX as u64 };
        let put = Do::Put { key: keys.scratch(), value: Vec::new(), lease: None };
        let write =
            Txn { compare: vec![never], then: vec![put, Do::Delete(Range::one(keys.state()))], or_else: vec![] };
        link.do_once(write).await.context("the cluster can be read, but not written")?;
        Ok(Reached { is_new, same_name })
    }

    /// Carries out a transaction, and waits for the result.
    async fn do_once(&mut self, txn: Txn) -> anyhow::Result<Vec<Done>> {
        self.once(Op::Txn(txn)).await.map(|(_, done)| done)
    }

    /// Carries out an operation, and waits for the result: whether its conditions held, and the results.
    pub(crate) async fn once(&mut self, op: Op) -> anyhow::Result<(bool, Vec<Done>)> {
        self.call(OpId(1), op, None);
        let answer = tokio::time::timeout(REACH_TIME * 2, self.told()).await;
        match answer {
            Ok(FromStore::Done(_, Ok(OpDone::Txn { succeeded, done, .. }))) => Ok((succeeded, done)),
            Ok(FromStore::Done(_, Err(e))) => bail!("{e}. {HINT}"),
            Ok(other) => bail!("unexpected answer from the store: {other:?}"),
            Err(_) => bail!("the store does not answer. {HINT}"),
        }
    }

    /// Begins an operation. `disk` has the keys of a single machine.
    pub(crate) fn call(&mut self, id: OpId, op: Op, disk: Option<Disk<'_>>) {
        #[cfg(feature = "etcd")]
        self.read_files_again();
        match &mut self.arm {
            Arm::Memory(memory) => memory.call(id, op, disk),
            #[cfg(feature = "etcd")]
            Arm::Etcd(etcd) => etcd.call(id, op),
        }
    }

    /// After a failure: reads the files again, and makes a new client if they have changed.
    #[cfg(feature = "etcd")]
    fn read_files_again(&mut self) {
        let Some(files) = self.files.as_mut().filter(|files| files.stale) else { return };
        files.stale = false;
        let made = etcd_config(&files.file, files.read.answer_max).and_then(|read| {
            let changed = read != files.read;
            Ok((changed.then(|| Etcd::new(&read, files.to.clone())).transpose()?, read))
        });
        match made {
            Ok((Some(etcd), read)) => {
                tracing::info!(
                    "password, certificates or key of [etcd] have changed: the new ones are used from now on"
                );
                (self.arm, files.read) = (Arm::Etcd(Box::new(etcd)), read);
            }
            Ok((None, _)) => (),
            // The files are about to be replaced: the next failure reads them once more.
            Err(e) => tracing::warn!("the files of [etcd] cannot be reread: {e:#}"),
        }
    }

    /// A failure may be caused by outdated files.
    fn heed(&mut self, told: &FromStore) {
        #[cfg(feature = "etcd")]
        if let (Some(files), FromStore::Done(_, Err(_)) | FromStore::WatchLost(..)) = (&mut self.files, told) {
            files.stale = true;
        }
        #[cfg(not(feature = "etcd"))]
        let _ = told;
    }

    /// Removes a request from a machine's own store, also while the store cannot write; not if it has a reply there. Returns whether
    /// nothing is done for it.
    pub(crate) fn withdraw(&mut self, request: &str, reply: &str, disk: &mut Store) -> bool {
        match &mut self.arm {
            Arm::Memory(memory) => memory.withdraw(request, reply, disk),
            #[cfg(feature = "etcd")]
            Arm::Etcd(_) => false,
        }
    }

    /// Ends a watch.
    pub(crate) fn drop_watch(&mut self, id: OpId) {
        match &mut self.arm {
            Arm::Memory(memory) => memory.drop_watch(id),
            #[cfg(feature = "etcd")]
            Arm::Etcd(etcd) => etcd.drop_watch(id),
        }
    }

    /// The next message of the store, if there is one already.
    pub(crate) fn told_now(&mut self) -> Option<FromStore> {
        let told = self.from.try_recv().ok()?;
        self.heed(&told);
        Some(told)
    }

    /// The next message of the store.
    pub(crate) async fn told(&mut self) -> FromStore {
        match self.from.recv().await {
            Some(told) => {
                self.heed(&told);
                told
            }
            // The arm holds the sender, so this does not happen.
            None => std::future::pending().await,
        }
    }
}

#[cfg(feature = "etcd")]
fn etcd_config(file: &EtcdFile, answer_max: Duration) -> anyhow::Result<EtcdConfig> {
    let tls = match &file.ca_file {
        None => None,
        Some(ca) => {
            let own_pem = match (&file.cert_file, &file.key_file) {
                (Some(cert), Some(key)) => Some((read("cert_file", cert)?, read("key_file", key)?)),
                _ => None,
            };
            Some(Tls { ca_pem: read("ca_file", ca)?, own_pem, server_name: file.server_name.clone() })
        }
    };
    let user = match (&file.user, &file.password_file) {
        (Some(user), Some(path)) => {
            let password = read("password_file", path)?;
            Some((user.clone(), password.trim_end_matches(['\r', '\n']).to_owned()))
        }
        _ => None,
    };
    Ok(EtcdConfig { endpoints: file.endpoints.clone(), tls, user, answer_max })
}

#[cfg(feature = "etcd")]
fn read(key: &str, path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| {
        format!(
            "`{key}` of the configuration's [etcd], {}, cannot be read. Check the path and its permissions",
            path.display()
        )
    })
}
