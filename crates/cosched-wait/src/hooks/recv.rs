//! recv, recvfrom and recvmsg with MSG_DONTWAIT. Without that flag a call either blocks by itself, or the program has made the descriptor
//! non-blocking; detecting that would cost a system call each time.

use super::{Wait, ask, one};
use crate::{real, sys, thread};
use core::ffi::{c_int, c_void};
use core::ptr::null;
use libc::{msghdr, sockaddr, socklen_t, ssize_t};

/// recv, as the C library's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn recv(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller keeps recv's contract.
    received(fd, flags, || unsafe { real::recv(fd, buffer, length, flags) })
}

/// recvfrom, as the C library's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller keeps recvfrom's contract.
    received(fd, flags, || unsafe { real::recvfrom(fd, buffer, length, flags, from, from_length) })
}

/// recvmsg, as the C library's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller keeps recvmsg's contract. A call that found nothing has changed nothing in the message.
    received(fd, flags, || unsafe { real::recvmsg(fd, message, flags) })
}

/// recv as programs built with _FORTIFY_SOURCE call it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    size: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller keeps recv's contract.
    received(fd, flags, || unsafe { real::__recv_chk(fd, buffer, length, size, flags) })
}

/// recvfrom as programs built with _FORTIFY_SOURCE call it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    size: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller keeps recvfrom's contract.
    received(fd, flags, || unsafe { real::__recvfrom_chk(fd, buffer, length, size, flags, from, from_length) })
}

#[inline]
fn received(fd: c_int, flags: c_int, call: impl Fn() -> ssize_t) -> ssize_t {
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
