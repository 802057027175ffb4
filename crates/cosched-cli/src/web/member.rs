//! The process that answers one member of a team: before it reads anything from that user it has become that user for good, so the daemon
//! and the file system see no other user. `team.rs` starts it, and sends it connections through a socket, its standard input.

use super::guard::Guard;
use super::{Site, Threads, connection};
use crate::out::Failure;
use cosched_api::SocketChoice;
use nix::unistd::{Gid, Uid, User, initgroups, setresgid, setresuid};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::ffi::{CString, OsString};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// The first word of its command line; name, uid, gid and the page's origin follow.
pub(crate) const MEMBER: &str = "__member";
/// Without a connection and a run it ends.
const IDLE: Duration = Duration::from_secs(60);
/// More than the head of a request, and what is read with it.
const BEGUN_BYTES_MAX: usize = 64 << 10;
const NAME_BYTES_MAX: usize = 256;
/// Whose files have no owner, and who has no rights: it belongs to no person.
const NOBODY: u32 = 65534;

/// The user of this name whose uid is not below this one; or why there is none.
pub(super) fn account(name: &str, uid_min: u32) -> Result<User, String> {
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
    if !is_name {
        return Err("that is no user's name".to_owned());
    }
    match User::from_name(name) {
        Err(e) => Err(format!("it is unknown whether there is a user `{name}`: {e}")),
        Ok(None) => Err(format!("this machine has no user `{name}`")),
        Ok(Some(user)) if user.uid.as_raw() < uid_min || [0, NOBODY].contains(&user.uid.as_raw()) => {
            Err(format!("`{name}` is a system user (uid {})", user.uid))
        }
        Ok(Some(user)) => Ok(user),
    }
}

/// Sends a connection, and what has been read from it, without waiting.
pub(super) fn send(link: impl AsFd, begun: &[u8], stream: &UnixStream) -> rustix::io::Result<()> {
    let descriptors = [stream.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(link, &[IoSlice::new(begun)], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
}

/// The next connection, and what has been read from it; none if the other side has ended.
fn receive(link: BorrowedFd<'_>) -> io::Result<Option<(Vec<u8>, UnixStream)>> {
    let mut begun = vec![0; BEGUN_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(link, &mut [IoSliceMut::new(&mut begun)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    begun.truncate(got.bytes);
    let stream = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(stream.map(|stream| (begun, UnixStream::from(stream))))
}

/// The main function.
pub(crate) fn member(words: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let [name, uid, gid, origin] = words.as_slice() else { return Err(Failure::silent(2)) };
    let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else { return Err(Failure::silent(2)) };
    let failed = |e: io::Error| Failure::other(format!("no page for {name}: {e}"));
    become_user(name, Uid::from_raw(uid), Gid::from_raw(gid)).map_err(failed)?;
    let socket = SocketChoice::find(None);
    serve(rustix::stdio::stdin(), &Site::new(Guard::of_team(origin.clone()), socket), IDLE).map_err(failed)?;
    Ok(0)
}

/// The order matters: without the uid, groups cannot be changed.
fn become_user(name: &str, uid: Uid, gid: Gid) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    initgroups(&CString::new(name)?, gid)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    // The user can end this process, but not have it say something else: a proxy may obey headers of answers.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    Ok(())
}

/// Answers until the other side has ended, or nothing has come for this time and nothing is being done.
fn serve(link: BorrowedFd<'_>, site: &Arc<Site>, idle: Duration) -> io::Result<()> {
    let threads = Threads::default();
    set_socket_timeout(link, Timeout::Recv, Some(idle))?;
    loop {
        match receive(link) {
            Ok(Some((begun, stream))) => {
                let site = Arc::clone(site);
                threads.start(move || connection(&site, &begun, stream));
            }
            Ok(None) => return Ok(()),
            // An open page has a stream of events.
            Err(e) if e.kind() == ErrorKind::WouldBlock && threads.are_idle() && !site.ask.is_busy() => return Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::{Read, Write};

    #[test]
    fn answers_what_it_is_sent_and_ends_when_idle_or_alone() {
        let pair = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let site = || {
            let socket = SocketChoice::Named("/nowhere/x.sock".into());
            Site::new(Guard::of_team("https://x".into()), socket)
        };
        let (ours, theirs) = pair();
        let (mut browser, stream) = UnixStream::pair().unwrap();
        send(&ours, b"GET /app.css HTTP/1.1\r\nHo", &stream).unwrap();
        drop(stream);
        browser.write_all(b"st: x\r\n\r\n").unwrap();
        serve(theirs.as_fd(), &site(), Duration::from_millis(20)).unwrap();
        let mut answer = String::new();
        browser.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        drop(theirs);
        assert_eq!(send(&ours, b"x", &browser), Err(rustix::io::Errno::PIPE), "another one is started");
        let (ours, theirs) = pair();
        drop(ours);
        serve(theirs.as_fd(), &site(), Duration::from_secs(3600)).unwrap();
    }

    #[test]
    fn what_is_not_read_is_refused_and_not_waited_for() {
        let (ours, _theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (stream, _browser) = UnixStream::pair().unwrap();
        let refused = (0..10_000).find_map(|_| send(&ours, &[b'x'; 1 << 10], &stream).err());
        assert_eq!(refused, Some(rustix::io::Errno::AGAIN));
    }

    #[test]
    fn only_users_above_a_uid_have_a_page() {
        for (name, why) in [
            ("", "no user's name"),
            ("a b", "no user's name"),
            ("root", "system user"),
            ("no-such-user", "has no user"),
        ] {
            assert!(account(name, 1000).unwrap_err().contains(why), "{name}");
        }
        assert!(account(&"a".repeat(300), 1000).is_err());
        assert!(account("root", 0).is_err() && account("nobody", 1).is_err());
        assert!(account("daemon", 1000).is_err() && account("daemon", 1).is_ok());
    }
}
