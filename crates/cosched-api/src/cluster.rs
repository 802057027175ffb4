//! Wire types for administrators of a cluster's store: repair, backup, restore.

use crate::wire::wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The `format` field of a backup.
pub const BACKUP_FORMAT: &str = "cosched-cluster-backup";
/// The version of the backup format.
pub const BACKUP_VERSION: u32 = 1;

wire! {
    /// `POST /v1/cluster/repair`.
    #[serde(deny_unknown_fields)]
    pub struct RepairRequest {
        /// Whether it is done, and not only said what would be.
        #[serde(default)]
        pub carry_out: bool,
    }

    /// What is wrong with a cluster's store and done about it, or what bringing a backup back does.
    pub struct RepairReport {
        /// A line each; none when nothing is to be done.
        pub says: Vec<String>,
        /// Whether it was done.
        pub done: bool,
    }

    /// `GET /v1/cluster/export`: what a cluster has in its store.
    #[serde(deny_unknown_fields)]
    pub struct ClusterBackup {
        /// `cosched-cluster-backup`.
        pub format: String,
        /// The version of this form.
        pub version: u32,
        /// The cluster's name.
        pub cluster: String,
        /// The node that wrote it.
        pub node: String,
        /// The version of its daemon.
        pub made_by: String,
        /// When.
        pub made_unix_ms: u64,
        /// Values by their keys, which are told without `/cosched/CLUSTER/`.
        pub keys: BTreeMap<String, String>,
        /// Keys that cannot be read, and are not in it.
        #[serde(default)]
        pub left_out: Vec<String>,
    }

    /// `POST /v1/cluster/import`.
    #[serde(deny_unknown_fields)]
    pub struct ImportRequest {
        /// What `GET /v1/cluster/export` gave.
        pub backup: ClusterBackup,
        /// Whether it is done, and not only said what would be.
        #[serde(default)]
        pub carry_out: bool,
    }
}
