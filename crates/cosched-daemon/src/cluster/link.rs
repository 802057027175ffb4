//! The daemon's way to the store of its cluster.

#[cfg(feature = "etcd")]
use super::etcd::{Etcd, EtcdConfig, Tls};
use super::{FromStore, memory::Memory};
#[cfg(feature = "etcd")]
use crate::config::EtcdFile;
use crate::config::{ClusterConfig, StoreChoice};
use anyhow::{Context, bail};
use cosched_cluster::OpId;
use cosched_cluster::store::{Do, Done, Op, OpDone, Range, Txn};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long a store is waited for that is tried.
const REACH_TIME: Duration = Duration::from_secs(5);

const HINT: &str = "Is etcd up? Check endpoints, certificates, user and password in [etcd]";

/// A store that answers.
#[derive(Debug)]
pub(crate) struct Link {
    arm: Arm,
    from: UnboundedReceiver<FromStore>,
}

#[derive(Debug)]
enum Arm {
    Memory(Memory),
    #[cfg(feature = "etcd")]
    Etcd(Box<Etcd>),
}

impl Link {
    /// The store of the configuration; nothing is connected yet. An answer is waited for so long.
    ///
    /// # Errors
    /// A file cannot be read, or the configuration cannot be.
    pub(crate) fn new(config: &ClusterConfig, answer_max: Duration) -> anyhow::Result<Link> {
        let (to, from) = unbounded_channel();
        let arm = match &config.store {
            StoreChoice::Memory => Arm::Memory(Memory::new(to)),
            #[cfg(feature = "etcd")]
            StoreChoice::Etcd(file) => Arm::Etcd(Box::new(Etcd::new(&etcd_config(file, answer_max)?, to)?)),
            #[cfg(not(feature = "etcd"))]
            StoreChoice::Etcd(_) => {
                bail!("this coschedd was built without etcd. Build it with the cargo feature `etcd`")
            }
        };
        Ok(Link { arm, from })
    }

    /// Asks for the cluster once, to see whether the store answers; in words.
    ///
    /// # Errors
    /// It does not, or refuses us.
    pub(crate) async fn reach(config: &ClusterConfig) -> anyhow::Result<String> {
        let mut link = Link::new(config, REACH_TIME)?;
        let get = Do::Get(Range::one(config.keys().state()));
        link.call(OpId(1), Op::Txn(Txn { then: vec![get], ..Txn::default() }));
        let answer = tokio::time::timeout(REACH_TIME * 2, link.told()).await;
        let done = match answer {
            Ok(FromStore::Done(_, done)) => done,
            Ok(other) => bail!("the store answers something else: {other:?}"),
            Err(_) => bail!("the store does not answer. {HINT}"),
        };
        match done {
            Ok(OpDone::Txn { done, .. }) => Ok(match done.first() {
                Some(Done::Got(found)) if found.is_empty() => "answers; the cluster is new".to_owned(),
                _ => "answers; the cluster is there".to_owned(),
            }),
            Ok(other) => bail!("the store answers something else: {other:?}"),
            Err(e) => bail!("{e}. {HINT}"),
        }
    }

    /// Begins an operation.
    pub(crate) fn call(&mut self, id: OpId, op: Op) {
        match &mut self.arm {
            Arm::Memory(memory) => memory.call(id, op),
            #[cfg(feature = "etcd")]
            Arm::Etcd(etcd) => etcd.call(id, op),
        }
    }

    /// Gives up a watch.
    pub(crate) fn drop_watch(&mut self, id: OpId) {
        match &mut self.arm {
            Arm::Memory(memory) => memory.drop_watch(id),
            #[cfg(feature = "etcd")]
            Arm::Etcd(etcd) => etcd.drop_watch(id),
        }
    }

    /// The next thing that the store tells.
    pub(crate) async fn told(&mut self) -> FromStore {
        match self.from.recv().await {
            Some(told) => told,
            // The arm holds the other end.
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
            "`{key}` of the configuration's [etcd], {}, cannot be read. Check the path and its rights",
            path.display()
        )
    })
}
