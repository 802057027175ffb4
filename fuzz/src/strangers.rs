//! What root and its clients read from strangers, as plain functions of bytes. Each panics if a reader does, or if what it read is not
//! read again from what was written.

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
    cosched_cluster::fuzz::stored(data);
}

/// What somebody has kept of a cluster's store, and brings back.
pub fn backup(data: &[u8]) {
    cosched_cluster::fuzz::backup(data);
}

/// A store of which somebody has damaged keys.
pub fn repairs(data: &[u8]) {
    cosched_cluster::fuzz::repairs(data);
}
