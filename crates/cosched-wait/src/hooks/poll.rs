//! poll and ppoll.

use super::{Wait, ask, is_zero};
use crate::{real, thread};
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

/// poll, as the C library's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int {
    // SAFETY: the caller keeps poll's contract, here and below.
    let call = || unsafe { real::poll(fds, count, timeout) };
    // SAFETY: as above.
    unsafe { polled(fds, count, timeout == 0, null(), call) }
}

/// ppoll, as the C library's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: c_ulong,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller keeps ppoll's contract, here and below.
    let call = || unsafe { real::ppoll(fds, count, time, mask) };
    // SAFETY: as above.
    unsafe { polled(fds, count, is_zero(time), mask, call) }
}

/// poll as programs built with _FORTIFY_SOURCE call it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut pollfd,
    count: c_ulong,
    timeout: c_int,
    size: usize,
) -> c_int {
    // SAFETY: the caller keeps poll's contract, here and below.
    let call = || unsafe { real::__poll_chk(fds, count, timeout, size) };
    // SAFETY: as above.
    unsafe { polled(fds, count, timeout == 0 && fits(count, size), null(), call) }
}

/// ppoll as programs built with _FORTIFY_SOURCE call it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: c_ulong,
    time: *const timespec,
    mask: *const sigset_t,
    size: usize,
) -> c_int {
    // SAFETY: the caller keeps ppoll's contract, here and below.
    let call = || unsafe { real::__ppoll_chk(fds, count, time, mask, size) };
    // SAFETY: as above.
    unsafe { polled(fds, count, is_zero(time) && fits(count, size), mask, call) }
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
