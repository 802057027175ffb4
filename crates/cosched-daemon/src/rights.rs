//! Who may do what: the uid at the other end of the Unix socket decides (DESIGN.md, chapter 5, Rights).
//!
//! A user changes only his own jobs; what he sees of others' is privacy.rs's matter. He may lower a class, not raise it, and cannot choose express.
//! Administrators (root, the daemon's own user, and those in the configuration) may do everything.

use crate::record::Record;
use crate::refuse::{Answer, refuse};
use crate::users::user_name;
use cosched_api::{Class, ErrorCode};
use std::collections::BTreeSet;
use tokio::net::UnixStream;

/// The process at the other end of the socket, as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its user.
    pub(crate) uid: u32,
    /// Its process, where the kernel tells it.
    pub(crate) pid: Option<i32>,
}

impl Peer {
    /// Somebody whom the kernel does not name: uid -1 owns no job and is no administrator.
    pub(crate) const NOBODY: Peer = Peer { uid: u32::MAX, pid: None };

    /// Who is at the other end.
    pub(crate) fn of(stream: &UnixStream) -> Peer {
        stream.peer_cred().map_or(Peer::NOBODY, |cred| Peer { uid: cred.uid(), pid: cred.pid() })
    }
}

/// The users with all rights.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    admins: BTreeSet<u32>,
}

impl Rights {
    /// Root, the daemon's own user and `admins`.
    pub(crate) fn new(own_uid: u32, admins: impl IntoIterator<Item = u32>) -> Rights {
        Rights { admins: [0, own_uid].into_iter().chain(admins).collect() }
    }

    /// Whether `peer` may do everything.
    pub(crate) fn is_admin(&self, peer: Peer) -> bool {
        self.admins.contains(&peer.uid)
    }

    /// May `peer` change this job?
    pub(crate) fn change_job(&self, peer: Peer, job: &Record) -> Answer<()> {
        if self.is_admin(peer) || peer.uid == job.uid {
            return Ok(());
        }
        Err(refuse(
            ErrorCode::Forbidden,
            format!("job {} is not yours", job.id),
            format!("it belongs to {}, you are {}", user_name(job.uid), user_name(peer.uid)),
            "Ask its owner or an administrator.",
        ))
    }

    /// May `peer` submit a job of this class?
    pub(crate) fn submit(&self, peer: Peer, class: Class) -> Answer<()> {
        if class != Class::Express || self.is_admin(peer) {
            return Ok(());
        }
        Err(refuse(
            ErrorCode::Forbidden,
            "class express is not for you",
            "Only administrators place jobs into it",
            "Use interactive, batch or standby, or ask an administrator.",
        ))
    }

    /// Who owns the job that `peer` submits: himself, or with an administrator's right somebody else.
    pub(crate) fn owner(&self, peer: Peer, wanted_uid: Option<u32>) -> Answer<u32> {
        let owner = wanted_uid.unwrap_or(peer.uid);
        if wanted_uid == Some(Peer::NOBODY.uid) {
            let hint = "Give the number of the user who is to own the job.";
            return Err(refuse(
                ErrorCode::Invalid,
                "no job for nobody",
                "uid 4294967295 means that there is none",
                hint,
            ));
        }
        if owner == peer.uid || self.is_admin(peer) {
            return Ok(owner);
        }
        Err(refuse(
            ErrorCode::Forbidden,
            format!("no job for {}", user_name(owner)),
            format!("you are {}, and only administrators submit jobs for others", user_name(peer.uid)),
            "Leave out `owner_uid`: the job is yours then.",
        ))
    }

    /// May `peer` move this job of his from its class to `to`?
    pub(crate) fn reclass(&self, peer: Peer, job: &Record, to: Class) -> Answer<()> {
        self.change_job(peer, job)?;
        if to >= job.class || self.is_admin(peer) {
            return Ok(());
        }
        Err(refuse(
            ErrorCode::Forbidden,
            format!("job {} stays {}", job.id, name(job.class)),
            format!("users may lower a class, and {} is above {}", name(to), name(job.class)),
            "Ask an administrator to raise it.",
        ))
    }

    /// May `peer` change the nodes or the queues, as the message is to call them?
    pub(crate) fn change_for_all(&self, peer: Peer, what: &str) -> Answer<()> {
        if self.is_admin(peer) {
            return Ok(());
        }
        Err(refuse(
            ErrorCode::Forbidden,
            format!("{what} yours to change"),
            format!("you are {}, and it concerns the jobs of all users", crate::users::user_name(peer.uid)),
            "Ask an administrator: root, and those whom `admins` in /etc/cosched.toml names.",
        ))
    }

    /// May `peer` change what holds for the whole machine?
    pub(crate) fn change_machine(&self, peer: Peer) -> Answer<()> {
        if self.is_admin(peer) {
            return Ok(());
        }
        Err(refuse(
            ErrorCode::Forbidden,
            "the machine's policy is not yours to change",
            format!("you are uid {}, and it holds for the jobs of all users", peer.uid),
            "Ask an administrator, or change one job's policy: `cosched policy --job JOB gang`.",
        ))
    }
}

/// A class's name as users write it.
pub(crate) fn name(class: Class) -> &'static str {
    match class {
        Class::Express => "express",
        Class::Interactive => "interactive",
        Class::Batch => "batch",
        Class::Standby => "standby",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    const OWNER: Peer = Peer { uid: 1000, pid: None };
    const OTHER: Peer = Peer { uid: 1001, pid: None };
    const ROOT: Peer = Peer { uid: 0, pid: None };

    fn rights() -> Rights {
        Rights::new(990, [42])
    }

    #[test]
    fn a_user_changes_only_his_own_jobs() {
        let job = example(1);
        assert!(rights().change_job(OWNER, &job).is_ok());
        assert!(rights().change_job(ROOT, &job).is_ok());
        assert!(rights().change_job(Peer { uid: 42, pid: None }, &job).is_ok());
        assert_eq!(rights().change_job(OTHER, &job).unwrap_err().code, ErrorCode::Forbidden);
    }

    #[test]
    fn a_user_lowers_a_class_but_does_not_raise_it() {
        let mut job = example(1);
        job.class = Class::Batch;
        assert!(rights().reclass(OWNER, &job, Class::Standby).is_ok());
        assert!(rights().reclass(OWNER, &job, Class::Batch).is_ok());
        assert!(rights().reclass(OWNER, &job, Class::Interactive).is_err());
        assert!(rights().reclass(OTHER, &job, Class::Standby).is_err());
        assert!(rights().reclass(ROOT, &job, Class::Express).is_ok());
    }

    #[test]
    fn only_administrators_submit_for_others() {
        assert_eq!(rights().owner(OWNER, None).unwrap(), 1000);
        assert_eq!(rights().owner(OWNER, Some(1000)).unwrap(), 1000);
        for other in [0, 42, 990, 1001] {
            assert_eq!(rights().owner(OWNER, Some(other)).unwrap_err().code, ErrorCode::Forbidden);
        }
        assert!(rights().owner(Peer::NOBODY, Some(0)).is_err());
        assert_eq!(rights().owner(ROOT, Some(u32::MAX)).unwrap_err().code, ErrorCode::Invalid);
        assert_eq!(rights().owner(ROOT, Some(1000)).unwrap(), 1000);
    }

    #[test]
    fn express_and_the_machine_are_for_administrators() {
        assert!(rights().submit(OWNER, Class::Express).is_err());
        assert!(rights().submit(OWNER, Class::Interactive).is_ok());
        assert!(rights().submit(ROOT, Class::Express).is_ok());
        assert!(rights().change_machine(OWNER).is_err());
        assert!(rights().change_machine(ROOT).is_ok());
        let refused = rights().change_for_all(OWNER, "the queues are not").unwrap_err();
        assert_eq!(refused.what, "the queues are not yours to change");
        assert!(rights().change_for_all(ROOT, "the queues are not").is_ok());
    }

    #[test]
    fn who_is_not_named_by_the_kernel_may_do_nothing() {
        let mut job = example(1);
        job.uid = Peer::NOBODY.uid;
        assert!(!rights().is_admin(Peer::NOBODY));
        assert!(rights().submit(Peer::NOBODY, Class::Express).is_err());
        assert!(rights().change_machine(Peer::NOBODY).is_err());
        assert!(rights().owner(Peer::NOBODY, Some(1000)).is_err());
    }

    #[test]
    fn root_the_daemons_own_user_and_those_in_the_file_are_administrators() {
        let admins = (0..2000).filter(|uid| rights().is_admin(Peer { uid: *uid, pid: None }));
        assert_eq!(admins.collect::<Vec<_>>(), [0, 42, 990]);
    }
}
