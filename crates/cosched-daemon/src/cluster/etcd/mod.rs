//! etcd as the store of a cluster: executes the operations that the control plane requests.
//!
//! One connection at a time, to one of several endpoints; when it fails the next one is tried. Nothing is retried here: after an operation without an
//! answer it is unknown whether it was carried out, and the control plane handles that by reading again. The one exception is an expired token,
//! because etcd has refused the operation then.

mod proto;
mod wire;
mod words;

#[cfg(test)]
mod tests;

use super::FromStore;
use crate::tls::Tls;
use cosched_cluster::OpId;
use cosched_cluster::store::Op;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use wire::Wire;

/// How etcd is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Its members: `http://host:port`, or `https://host:port` with certificates.
    pub endpoints: Vec<String>,
    /// Needed for https.
    pub(crate) tls: Option<Tls>,
    /// User and password, when etcd requires them.
    pub user: Option<(String, String)>,
    /// The limit on the wait for an answer.
    pub answer_max: Duration,
}

/// An invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}. {hint}")]
pub struct EtcdConfigError {
    /// The invalid part.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do.
    pub hint: String,
}

/// A client. It runs on a `LocalSet` of a tokio runtime with one thread.
#[derive(Debug)]
pub struct Etcd {
    wire: Rc<Wire>,
    to: UnboundedSender<FromStore>,
    watches: BTreeMap<OpId, JoinHandle<()>>,
}

impl Etcd {
    /// A client that sends all results to `to`. Nothing is connected yet.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: &EtcdConfig, to: UnboundedSender<FromStore>) -> Result<Etcd, EtcdConfigError> {
        Ok(Etcd { wire: Rc::new(Wire::new(config)?), to, watches: BTreeMap::new() })
    }

    /// Begins an operation.
    pub fn call(&mut self, id: OpId, op: Op) {
        let (wire, to) = (Rc::clone(&self.wire), self.to.clone());
        // The receiver may have been dropped; then the result is not needed.
        match op {
            Op::Watch { range, from } => {
                self.watches.retain(|_, task| !task.is_finished());
                let task = tokio::task::spawn_local(async move { wire.watch(id, range, from, &to).await });
                self.watches.insert(id, task);
            }
            op => {
                tokio::task::spawn_local(async move {
                    let done = wire.call(op).await;
                    let _ = to.send(FromStore::Done(id, done));
                });
            }
        }
    }

    /// Ends a watch.
    pub fn drop_watch(&mut self, id: OpId) {
        if let Some(task) = self.watches.remove(&id) {
            task.abort();
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.watches.values().for_each(JoinHandle::abort);
    }
}
