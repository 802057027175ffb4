//! poll and ppoll.

use super::{Wait, ask, is_zero};
use crate::thread;
use core::ffi::{c_int, c_ulong};
use core::ptr::null;
use libc::{pollfd, sigset_t, timespec};

/// Calls with more descriptors than this are passed on: they cost more than a block.
const DESCRIPTORS_MAX: c_ulong = 4096;

/// The descriptors of a call as a slice; `None` if there are none, too many, or no address.
///
/// # Safety
/// `fds` points to `count` descriptors, as poll's contract says.
unsafe fn slice<'a>(fds: *mut pollfd, count: c_ulong) -> Option<&'a mut [pollfd]> {
    let usual = !fds.is_null() && (1..=DESCRIPTORS_MAX).contains(&count);
    // SAFETY: the caller's promise.
    usual.then(|| unsafe { core::slice::from_raw_parts_mut(fds, count as usize) })
}

interpose! {
    fn poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int
        => |call| polled(fds, count, timeout == 0, null(), call);
    fn ppoll(fds: *mut pollfd, count: c_ulong, time: *const timespec, mask: *const sigset_t) -> c_int
        => |call| polled(fds, count, is_zero(time), mask, call);
    // As programs built with _FORTIFY_SOURCE call them:
    fn __poll_chk(fds: *mut pollfd, count: c_ulong, timeout: c_int, size: usize) -> c_int
        => |call| polled(fds, count, timeout == 0 && fits(count, size), null(), call);
    fn __ppoll_chk(fds: *mut pollfd, count: c_ulong, time: *const timespec, mask: *const sigset_t, size: usize) -> c_int
        => |call| polled(fds, count, is_zero(time) && fits(count, size), mask, call);
}

/// Where this is false, the C library ends the program; the call must get there.
fn fits(count: c_ulong, size: usize) -> bool {
    size / size_of::<pollfd>() >= count as usize
}

/// # Safety
/// `fds`, `count` and `mask` are as ppoll's contract says.
#[inline]
unsafe fn polled(
    fds: *mut pollfd,
    count: c_ulong,
    at_once: bool,
    mask: *const sigset_t,
    call: impl Fn() -> c_int,
) -> c_int {
    if !at_once {
        return call();
    }
    let Some(thread) = thread::enter() else { return call() };
    // A bad address is detected by the kernel: the slice is only made after a successful call.
    // SAFETY: the caller's promise.
    let asked = |wait: Wait<'_>| unsafe { slice(fds, count) }.is_some_and(wait);
    // SAFETY: the caller's promise.
    unsafe { ask(thread, asked, mask, call, |result| result == 0) }
}
