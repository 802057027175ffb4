//! The wire types of the limits of a user.

use crate::wire::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// `GET /v1/limits`: what the caller may have of the daemon that is asked, and has.
    pub struct LimitList {
        /// The caller.
        pub uid: u32,
        /// His name, or the number where he has none.
        pub user: String,
        /// He is an administrator: nothing is refused to him for these limits.
        pub exempt: bool,
        /// Each limit.
        pub limits: Vec<Limit>,
    }

    /// A limit of one user.
    pub struct Limit {
        /// As in `[limits]` of the configuration; `_bytes` where it is bytes.
        pub name: String,
        /// What he has.
        pub used: u64,
        /// The most; no limit when absent.
        pub max: Option<u64>,
    }
}
