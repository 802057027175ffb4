//! The cluster: the store that its nodes share.

#[cfg(feature = "etcd")]
pub mod etcd;
mod link;
mod memory;
pub(crate) mod own;

pub(crate) use link::{Link, REACH_TIME, Reached};

use cosched_cluster::OpId;
use cosched_cluster::store::{News, OpDone, StoreError};

/// What comes from the store, for the control plane.
#[derive(Debug)]
pub enum FromStore {
    /// What came of an operation.
    Done(OpId, Result<OpDone, StoreError>),
    /// What a watch tells.
    News(OpId, News),
    /// A watch has ended.
    WatchLost(OpId, StoreError),
}
