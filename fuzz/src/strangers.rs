//! Inputs that root and its clients read from untrusted sources, as plain functions of bytes. Each panics if a reader does, or if
//! writing and reading a parsed value does not give the same value.

/// A request's body, for every path that has one.
pub fn request(data: &[u8]) {
    cosched_daemon::fuzz::request(data);
}

/// The answer that a client gets on the socket.
pub fn answer(data: &[u8]) {
    cosched_api::fuzz::answer(data);
}

/// What labels of containers and annotations of pods ask for.
pub fn labels(data: &[u8]) {
    cosched_api::fuzz::labels(data);
}

/// The journal of the state directory.
pub fn journal(data: &[u8]) {
    cosched_daemon::fuzz::journal(data);
}

/// A job's wait page, which its user can write.
pub fn wait_page(data: &[u8]) {
    cosched_daemon::fuzz::wait_page(data);
}

/// The daemon's configuration.
pub fn configuration(data: &[u8]) {
    cosched_daemon::fuzz::configuration(data);
}

/// A value in a cluster's store.
pub fn stored(data: &[u8]) {
    cosched_cluster::fuzz::stored(data);
}

/// A backup of a cluster's store that is imported.
pub fn backup(data: &[u8]) {
    cosched_cluster::fuzz::backup(data);
}

/// A store with damaged keys.
pub fn repairs(data: &[u8]) {
    cosched_cluster::fuzz::repairs(data);
}
