//! What root and its clients read from strangers, as plain functions of bytes. Each panics if a reader does, or if what it read is not
//! read again from what was written.

use cosched_cluster::wire::{Job, Node, Request, Stored, decode, encode};

#[allow(dead_code, unreachable_pub, reason = "a module of a program, of which one function is wanted")]
#[path = "../../crates/cosched-cli/src/slurm/hostlist.rs"]
mod hostlist;

/// A request's body, for every path that takes one.
pub fn request(data: &[u8]) {
    cosched_daemon::fuzz::request(data);
}

/// What a client gets from who answers on the socket.
pub fn answer(data: &[u8]) {
    cosched_api::fuzz::answer(data);
}

/// The journal of the state directory.
pub fn journal(data: &[u8]) {
    cosched_daemon::fuzz::journal(data);
}

/// A job's wait page, which is its user's.
pub fn wait_page(data: &[u8]) {
    cosched_daemon::fuzz::wait_page(data);
}

/// The daemon's configuration.
pub fn configuration(data: &[u8]) {
    cosched_daemon::fuzz::configuration(data);
}

/// A value of a cluster's store.
pub fn stored(data: &[u8]) {
    fn again<T: Stored + PartialEq + std::fmt::Debug>(data: &[u8]) {
        if let Ok(value) = decode::<T>(data) {
            assert_eq!(decode::<T>(&encode(&value)).unwrap(), value);
        }
    }
    again::<Job>(data);
    again::<Node>(data);
    again::<Request>(data);
    let _ = decode::<cosched_core::cluster::State>(data);
}

/// Slurm's list of nodes.
pub fn host_list(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = hostlist::expand(text);
    }
}
