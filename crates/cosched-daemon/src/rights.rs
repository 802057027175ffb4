//! Rights: the uid at the other end of the Unix socket decides what a user may do (DESIGN.md, chapter 5, Rights).
//!
//! Administrators are root, the daemon's own user, and those in the configuration. What they and others may do is decided in `cosched_node::rights`;
//! what users see of others' jobs in privacy.rs.

use std::collections::BTreeSet;
use tokio::net::UnixStream;

/// The process at the other end of the socket, as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its uid.
    pub(crate) uid: u32,
    /// Its process number, if the kernel reports it.
    pub(crate) pid: Option<i32>,
}

impl Peer {
    /// A peer that the kernel does not name: uid -1 owns no job and is no administrator.
    pub(crate) const UNKNOWN: Peer = Peer { uid: u32::MAX, pid: None };

    /// The peer of a connection.
    pub(crate) fn of(stream: &UnixStream) -> Peer {
        stream.peer_cred().map_or(Peer::UNKNOWN, |cred| Peer { uid: cred.uid(), pid: cred.pid() })
    }
}

/// The administrators.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    admins: BTreeSet<u32>,
}

impl Rights {
    /// Root, the daemon's own user and `admins`.
    pub(crate) fn new(own_uid: u32, admins: impl IntoIterator<Item = u32>) -> Rights {
        Rights { admins: [0, own_uid].into_iter().chain(admins).collect() }
    }

    /// Whether `peer` is an administrator.
    pub(crate) fn is_admin(&self, peer: Peer) -> bool {
        self.admins.contains(&peer.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights() -> Rights {
        Rights::new(990, [42])
    }

    #[test]
    fn root_the_daemons_own_user_and_those_in_the_file_are_administrators() {
        let admins = (0..2000).filter(|uid| rights().is_admin(Peer { uid: *uid, pid: None }));
        assert_eq!(admins.collect::<Vec<_>>(), [0, 42, 990]);
        assert!(!rights().is_admin(Peer::UNKNOWN), "the kernel does not name him");
    }
}
