//! The cluster: the store that its nodes share.

#[cfg(feature = "etcd")]
pub mod etcd;
mod link;
mod memory;
pub(crate) mod own;

pub(crate) use link::{Link, REACH_TIME, Reached};

use cosched_cluster::OpId;
use cosched_cluster::store::{News, OpDone, StoreError};

/// Messages from the store to the control plane.
#[derive(Debug)]
pub enum FromStore {
    /// The result of an operation.
    Done(OpId, Result<OpDone, StoreError>),
    /// The news of a watch.
    News(OpId, News),
    /// A watch has ended.
    WatchLost(OpId, StoreError),
}
