//! Finds the sockets of a process, and duplicates them for a moment.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{RawDir, fstat, readlinkat};
use rustix::io::{DupFlags, Errno, dup3};
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::problem::Problem;

const WHAT: &str = "waiting messages cannot be watched";

/// How a socket is treated.
#[derive(Debug)]
pub(super) enum Found<R> {
    /// It brings messages: the result of using it.
    Watch(R),
    /// It is not connected yet: the next scan checks it again.
    Later,
    /// It brings no messages.
    Ignore,
}

/// The one descriptor number under which every socket is registered. A registration is identified by the open file description and the descriptor
/// number that it had in the call; with one number for all, it can be found again and changed later.
#[derive(Debug)]
pub(super) struct Door {
    number: OwnedFd,
    /// The file behind the number between two uses.
    rest: OwnedFd,
}

impl Door {
    /// Also tests whether this kernel has pidfd_getfd.
    pub(super) fn open() -> Result<Door, Problem> {
        let make = || -> Result<Door, Errno> {
            let rest = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok(Door { number: rustix::io::fcntl_dupfd_cloexec(&rest, 0)?, rest })
        };
        let door = make().map_err(|e| Problem::new(WHAT, e.to_string(), "check the limit of open files"))?;
        let me = Pid::from_raw(std::process::id() as i32).ok_or_else(|| Problem::new(WHAT, "no pid", "report this"))?;
        let own = pidfd_open(me, PidfdFlags::empty())
            .and_then(|pidfd| pidfd_getfd(pidfd, rustix::fd::AsRawFd::as_raw_fd(&door.rest), PidfdGetfdFlags::empty()));
        match own {
            Ok(_) => Ok(door),
            Err(Errno::NOSYS) => Err(Problem::new(WHAT, "this kernel has no pidfd_getfd", "it came with Linux 5.6")),
            Err(e) => Err(Problem::new(WHAT, format!("pidfd_getfd: {e}"), "a sandbox may forbid it")),
        }
    }

    /// Duplicates descriptor `number` of a process, passes it to `use_it` if it is the socket `inode` and is `watched` already or brings messages,
    /// and closes it again. `None` if the process or its descriptor no longer exists.
    ///
    /// # Errors
    /// The process may not be inspected.
    pub(super) fn pass<R>(
        &mut self,
        pidfd: &OwnedFd,
        number: i32,
        inode: u64,
        watched: bool,
        use_it: impl FnOnce(BorrowedFd<'_>) -> R,
    ) -> Result<Option<Found<R>>, Errno> {
        let socket = match pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()) {
            Ok(socket) => socket,
            Err(Errno::BADF | Errno::SRCH) => return Ok(None),
            Err(e) => return Err(e),
        };
        // The number may belong to another file by now. A file that is not a socket is not queried further: its file system may be the user's.
        if sockopt::socket_domain(&socket).is_err() || !fstat(&socket).is_ok_and(|stat| stat.st_ino == inode) {
            return Ok(None);
        }
        Ok(Some(match if watched { Some(Kind::Messages) } else { kind(&socket) } {
            Some(Kind::Messages) => {
                dup3(&socket, &mut self.number, DupFlags::CLOEXEC)?;
                drop(socket);
                let result = use_it(self.number.as_fd());
                dup3(&self.rest, &mut self.number, DupFlags::CLOEXEC)?;
                Found::Watch(result)
            }
            Some(Kind::NotYet) => Found::Later,
            None => Found::Ignore,
        }))
    }
}

enum Kind {
    Messages,
    NotYet,
}

fn kind(socket: &OwnedFd) -> Option<Kind> {
    let families = [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX, AddressFamily::VSOCK];
    if !families.contains(&sockopt::socket_domain(socket).ok()?) || sockopt::socket_acceptconn(socket).ok()? {
        return None;
    }
    match sockopt::socket_type(socket).ok()? {
        SocketType::DGRAM => Some(Kind::Messages),
        SocketType::STREAM | SocketType::SEQPACKET => match rustix::net::getpeername(socket) {
            Ok(_) => Some(Kind::Messages),
            // Not yet connected (it may also start to listen), or no longer.
            Err(_) => Some(Kind::NotYet),
        },
        _ => None,
    }
}

/// Calls `tell` with the inode number of each socket of `pid` from descriptor `first` on, a handle of the process, and the descriptor's number there.
/// Returns the number at which it stopped because `may_go_on` was false. A process that no longer exists has no sockets.
///
/// # Errors
/// The kernel does not let us inspect the process.
pub(super) fn sockets_of(
    pid: i32,
    first: i32,
    mut may_go_on: impl FnMut() -> bool,
    mut tell: impl FnMut(u64, &OwnedFd, i32) -> Result<(), Errno>,
) -> Result<Option<i32>, Problem> {
    match visit(pid, first, &mut may_go_on, &mut tell) {
        Ok(stopped_at) => Ok(stopped_at),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(e @ (Errno::PERM | Errno::ACCESS)) => Err(Problem::new(
            format!("the sockets of process {pid} cannot be watched"),
            e.to_string(),
            "coschedd must run as root, or as the job's user where kernel.yama.ptrace_scope is 0",
        )),
        Err(e) => {
            Err(Problem::new(format!("the sockets of process {pid} cannot be watched"), e.to_string(), "see dmesg"))
        }
    }
}

fn visit(
    pid: i32,
    first: i32,
    may_go_on: &mut impl FnMut() -> bool,
    tell: &mut impl FnMut(u64, &OwnedFd, i32) -> Result<(), Errno>,
) -> Result<Option<i32>, Errno> {
    // Opened before the list is read: what is duplicated then belongs to the process that was listed.
    let Some(id) = Pid::from_raw(pid) else { return Ok(None) };
    let pidfd = pidfd_open(id, PidfdFlags::empty())?;
    let dir = fs::File::open(format!("/proc/{pid}/fd")).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    // The kernel lists descriptor n at position n + 2.
    rustix::fs::seek(&dir, rustix::fs::SeekFrom::Start(first.max(0) as u64 + 2))?;
    let mut listed = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&dir, &mut listed);
    let mut buffer = Vec::with_capacity(64);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if !may_go_on() {
            return Ok(Some(number));
        }
        buffer.clear();
        let Ok(link) = readlinkat(&dir, entry.file_name(), std::mem::take(&mut buffer)) else { continue };
        if let Some(inode) = inode(link.as_bytes()) {
            tell(inode, &pidfd, number)?;
        }
        buffer = link.into_bytes();
    }
    Ok(None)
}

/// The number in the name of a socket's link.
fn inode(link: &[u8]) -> Option<u64> {
    let digits = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_have_a_number() {
        assert_eq!(inode(b"socket:[4711]"), Some(4711));
        assert_eq!(inode(b"pipe:[4711]"), None);
        assert_eq!(inode(b"/tmp/socket:[1]"), None);
        assert_eq!(inode(b"socket:[]"), None);
    }
}
