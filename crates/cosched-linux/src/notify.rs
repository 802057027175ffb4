//! A message to systemd on behalf of a service's process, as `systemd-notify --pid` sends it: only root may.

use std::io;
use std::mem::MaybeUninit;

use rustix::fd::AsFd;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    UCred, sendmsg_addr, socket_with,
};
use rustix::process::{Pid, getgid, getuid};

/// Where systemd listens for its services.
pub const SOCKET: &str = "/run/systemd/notify";

/// Sends a message of sd_notify(3) to a socket, as if the process had sent it.
///
/// # Errors
/// The kernel's: no systemd, no such process, no permission, or its queue is full (it is not waited for).
pub fn on_behalf(to: &str, pid: i32, message: &str) -> io::Result<()> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let sender = SendAncillaryMessage::ScmCredentials(UCred { pid, uid: getuid(), gid: getgid() });
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(sender);
    let words = [io::IoSlice::new(message.as_bytes())];
    sendmsg_addr(socket.as_fd(), &SocketAddrUnix::new(to)?, &words, &mut control, SendFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::set_socket_passcred;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn the_sender_is_the_process_that_is_named() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIPPED: only root may name another process");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        set_socket_passcred(&systemd, true).unwrap();
        on_behalf(path.to_str().unwrap(), 1, "WATCHDOG=1").unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let (mut control, mut bytes) = (RecvAncillaryBuffer::new(&mut space), [0; 64]);
        let read = recvmsg(&systemd, &mut [io::IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::empty()).unwrap();
        assert_eq!(&bytes[..read.bytes], b"WATCHDOG=1");
        let pid = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid.as_raw_nonzero().get()),
            _ => None,
        });
        assert_eq!(pid, Some(1));
        assert!(on_behalf(path.to_str().unwrap(), 0, "WATCHDOG=1").is_err());
    }
}
