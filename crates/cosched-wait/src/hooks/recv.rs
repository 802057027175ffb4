//! recv, recvfrom and recvmsg with MSG_DONTWAIT. Without that flag a call either blocks by itself, or the program has made the descriptor
//! non-blocking; detecting that would cost a system call each time.

use super::{Wait, ask, one};
use crate::{sys, thread};
use core::ffi::{c_int, c_void};
use core::ptr::null;
use libc::{msghdr, sockaddr, socklen_t, ssize_t};

interpose! {
    fn recv(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> ssize_t => |call| received(fd, flags, call);
    fn recvfrom(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int, from: *mut sockaddr,
                from_length: *mut socklen_t) -> ssize_t
        => |call| received(fd, flags, call);
    // A call that found nothing has changed nothing in the message.
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t => |call| received(fd, flags, call);
    // As programs built with _FORTIFY_SOURCE call them:
    fn __recv_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int) -> ssize_t
        => |call| received(fd, flags, call);
    fn __recvfrom_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int, from: *mut sockaddr,
                      from_length: *mut socklen_t) -> ssize_t
        => |call| received(fd, flags, call);
}

/// # Safety
/// `fd` is as recv's contract says.
#[inline]
unsafe fn received(fd: c_int, flags: c_int, call: impl Fn() -> ssize_t) -> ssize_t {
    // For out-of-band data and errors poll reports other events; programs do not poll for them in a loop.
    if flags & (libc::MSG_DONTWAIT | libc::MSG_OOB | libc::MSG_ERRQUEUE) != libc::MSG_DONTWAIT {
        return call();
    }
    let Some(thread) = thread::enter() else { return call() };
    let asked = |wait: Wait<'_>| wait(&mut one(fd, libc::POLLIN));
    // EAGAIN and EWOULDBLOCK are the same number on Linux.
    let nothing = |result: ssize_t| result == -1 && sys::errno() == libc::EAGAIN;
    // SAFETY: no mask.
    unsafe { ask(thread, asked, null(), call, nothing) }
}
