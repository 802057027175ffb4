//! The cluster: the store that its nodes share.

pub mod etcd;
