//! The daemon of this node: the one that the environment names, otherwise the system's, otherwise the user's own, like the choice of the command
//! `cosched` (crates/cosched-api, `socket`). A named socket that does not exist belongs to another node.

use super::answer::Answer;
use crate::sys;
use crate::text::Text;
use core::ffi::CStr;
use core::fmt::Write;
use core::mem::zeroed;

/// How long a hanging daemon may delay the start of a program, for each of the few calls.
static PATIENCE: libc::timeval = libc::timeval { tv_sec: 1, tv_usec: 0 };
/// A process that has entered a job is stopped until the job's slot; its call that waits for the answer may then end early.
const INTERRUPTIONS_MAX: u32 = 100;

/// The address of a daemon.
pub(super) struct Daemon {
    address: libc::sockaddr_un,
}

/// A connection. It is closed when it is dropped; a program that another thread executes does not inherit it.
struct Connection(i32);

impl Daemon {
    /// The first daemon that listens.
    pub(super) fn find() -> Option<Self> {
        let named = sys::variable(c"COSCHED_SOCKET").map(CStr::to_bytes).unwrap_or_default();
        let listens = |path: &[u8]| Self::at(path).filter(|daemon| daemon.connect().is_some());
        listens(named).or_else(|| listens(b"/run/cosched/coschedd.sock")).or_else(|| listens(own()?.bytes()))
    }

    fn at(path: &[u8]) -> Option<Self> {
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut address: libc::sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if path.is_empty() || path.len() >= address.sun_path.len() {
            return None;
        }
        for (place, byte) in address.sun_path.iter_mut().zip(path) {
            *place = *byte as libc::c_char;
        }
        Some(Self { address })
    }

    fn connect(&self) -> Option<Connection> {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: numbers only.
        let fd = unsafe { libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0) };
        let connection = (fd >= 0).then_some(Connection(fd as i32))?;
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let (time, length) = (&raw const PATIENCE, size_of::<libc::timeval>());
            // SAFETY: the kernel reads `length` bytes of the time.
            unsafe { libc::syscall(libc::SYS_setsockopt, connection.0, libc::SOL_SOCKET, option, time, length) };
        }
        let connect = || {
            let (address, length) = (&raw const self.address, size_of::<libc::sockaddr_un>());
            // SAFETY: the kernel reads `length` bytes of the address.
            unsafe { libc::syscall(libc::SYS_connect, connection.0, address, length) }
        };
        until_uninterrupted(connect)?;
        Some(connection)
    }

    /// Sends a request and reads the answer to its end.
    pub(super) fn ask(&self, request: &[u8]) -> Option<Answer> {
        let connection = self.connect()?;
        let fd = connection.0;
        let send = || {
            let (start, length, flags) = (request.as_ptr(), request.len(), libc::MSG_NOSIGNAL);
            // SAFETY: the kernel reads `length` bytes.
            unsafe { libc::syscall(libc::SYS_sendto, fd, start, length, flags, 0_usize, 0_usize) }
        };
        // A request is shorter than any socket's buffer: it is sent in one piece.
        (until_uninterrupted(send)? as usize == request.len()).then_some(())?;
        Answer::read(|bytes| {
            // SAFETY: the kernel writes at most the length of `bytes`.
            let read = || unsafe { libc::syscall(libc::SYS_read, fd, bytes.as_mut_ptr(), bytes.len()) };
            until_uninterrupted(read).map(|length| length as usize)
        })
    }
}

/// The call's result; the call is repeated when a signal or a stop ended it; `None` when it fails.
fn until_uninterrupted(mut call: impl FnMut() -> libc::c_long) -> Option<libc::c_long> {
    for _ in 0..INTERRUPTIONS_MAX {
        let result = call();
        if result >= 0 {
            return Some(result);
        }
        if sys::errno() != libc::EINTR {
            return None;
        }
    }
    None
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this connection's own.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// The socket of the user's own daemon. Not for root, whose own is the system's; not in a directory where another user could have put a fake one.
fn own() -> Option<Text<256>> {
    // SAFETY: no arguments, no effect.
    let uid = unsafe { libc::getuid() };
    if uid == 0 {
        return None;
    }
    let mut path = Text::<256>::new();
    let runtime = sys::variable(c"XDG_RUNTIME_DIR").and_then(|path| path.to_str().ok()).filter(|p| p.starts_with('/'));
    let _ = runtime.map(|directory| path.write_str(directory));
    // The variable may be another user's (`su`), or name what is not there (a container).
    let is_own = |of: libc::stat| of.st_mode & libc::S_IFMT == libc::S_IFDIR && of.st_uid == uid;
    if look(&path, libc::stat).is_some_and(is_own) {
        let _ = path.write_str("/cosched");
    } else {
        path = Text::new();
        let _ = write!(path, "/tmp/cosched-{uid}");
    }
    is_private(&path, uid).then_some(())?;
    let _ = path.write_str("/coschedd.sock");
    Some(path)
}

/// What `stat` or `lstat` knows of a file.
fn look(
    path: &Text<256>,
    ask: unsafe extern "C" fn(*const libc::c_char, *mut libc::stat) -> i32,
) -> Option<libc::stat> {
    let mut name = [0; 257];
    name[..path.bytes().len()].copy_from_slice(path.bytes());
    sys::look(CStr::from_bytes_until_nul(&name).ok()?, ask)
}

fn is_private(directory: &Text<256>, uid: u32) -> bool {
    // Not through a link: in /tmp it may be any user's, and lead to a directory of root's that contains the attacker's socket.
    look(directory, libc::lstat).is_some_and(|facts| {
        let is_directory = facts.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let others_write = facts.st_mode & 0o022 != 0 && facts.st_mode & 0o1000 == 0;
        is_directory && (facts.st_uid == uid || facts.st_uid == 0) && !others_write
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_ours_is_trusted_and_a_link_to_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let trusted = |path: &std::path::Path| {
            let mut name = Text::<256>::new();
            write!(name, "{}", path.display()).unwrap();
            // SAFETY: no arguments, no effect.
            is_private(&name, unsafe { libc::getuid() })
        };
        assert!(trusted(dir.path()) && !trusted(&link));
    }

    #[test]
    fn names_that_are_no_socket() {
        assert!(Daemon::at(b"").is_none() && Daemon::at(&[b'x'; 108]).is_none());
        assert!(Daemon::at(&[b'x'; 107]).is_some_and(|daemon| daemon.connect().is_none()));
        assert!(Daemon::at(b"/nonexistent").is_some_and(|daemon| daemon.ask(b"GET / HTTP/1.1\r\n\r\n").is_none()));
    }
}
