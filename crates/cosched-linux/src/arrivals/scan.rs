//! Finding the sockets of a process, and borrowing them for a moment.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{fstat, readlinkat};
use rustix::io::{DupFlags, Errno, dup3};
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::problem::Problem;

const WHAT: &str = "waiting messages cannot be watched";

/// What becomes of a socket.
#[derive(Debug)]
pub(super) enum Found<R> {
    /// It brings messages: this is what was done with it.
    Watch(R),
    /// It is not connected yet: look again at the next scan.
    Later,
    /// It brings none.
    Ignore,
}

/// The one descriptor number under which every socket is registered. A registration is named by the open file description and the
/// number that it had in the call; with one number for all, it can be found again and changed later.
#[derive(Debug)]
pub(super) struct Door {
    number: OwnedFd,
    /// What stands behind the number between two uses.
    rest: OwnedFd,
}

impl Door {
    /// Also tries whether this kernel has pidfd_getfd.
    pub(super) fn open() -> Result<Door, Problem> {
        let make = || -> Result<Door, Errno> {
            let rest = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok(Door { number: rustix::io::fcntl_dupfd_cloexec(&rest, 0)?, rest })
        };
        let door = make().map_err(|e| Problem::new(WHAT, e.to_string(), "see the limit of open files"))?;
        let me = Pid::from_raw(std::process::id() as i32).ok_or_else(|| Problem::new(WHAT, "no pid", "report this"))?;
        let own = pidfd_open(me, PidfdFlags::empty())
            .and_then(|pidfd| pidfd_getfd(pidfd, rustix::fd::AsRawFd::as_raw_fd(&door.rest), PidfdGetfdFlags::empty()));
        match own {
            Ok(_) => Ok(door),
            Err(Errno::NOSYS) => Err(Problem::new(WHAT, "this kernel has no pidfd_getfd", "it came with Linux 5.6")),
            Err(e) => Err(Problem::new(WHAT, format!("pidfd_getfd: {e}"), "a sandbox may forbid it")),
        }
    }

    /// Duplicates descriptor `number` of a process, hands it to `use_it` if it is the socket `inode` and is `watched` already or brings
    /// messages, and closes it again. None when the process or its descriptor has gone meanwhile.
    ///
    /// # Errors
    /// When the process may not be looked into.
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
        if !fstat(&socket).is_ok_and(|stat| stat.st_ino == inode) {
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
            // Not connected yet (it may also come to listen), or no more.
            Err(_) => Some(Kind::NotYet),
        },
        _ => None,
    }
}

/// Calls `tell` with the inode number of each socket of `pid`, a handle of the process, and the descriptor's number there. A process
/// that has gone has none.
///
/// # Errors
/// When the kernel does not let us look into the process.
pub(super) fn sockets_of(
    pid: i32,
    mut tell: impl FnMut(u64, &OwnedFd, i32) -> Result<(), Errno>,
) -> Result<(), Problem> {
    match visit(pid, &mut tell) {
        Ok(()) | Err(Errno::NOENT | Errno::SRCH) => Ok(()),
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

fn visit(pid: i32, tell: &mut impl FnMut(u64, &OwnedFd, i32) -> Result<(), Errno>) -> Result<(), Errno> {
    // Opened before the list is read: what is duplicated is then of the process that was listed.
    let Some(id) = Pid::from_raw(pid) else { return Ok(()) };
    let pidfd = pidfd_open(id, PidfdFlags::empty())?;
    let dir = fs::File::open(format!("/proc/{pid}/fd")).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    let mut buffer = Vec::with_capacity(64);
    for entry in rustix::fs::Dir::read_from(&dir)? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()) else { continue };
        buffer.clear();
        let Ok(link) = readlinkat(&dir, entry.file_name(), std::mem::take(&mut buffer)) else { continue };
        if let Some(inode) = inode(link.as_bytes()) {
            tell(inode, &pidfd, number)?;
        }
        buffer = link.into_bytes();
    }
    Ok(())
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
