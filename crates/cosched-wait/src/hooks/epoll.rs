//! epoll_wait, epoll_pwait and epoll_pwait2. To block we poll the epoll descriptor, which consumes no event.

use super::{Wait, ask, is_zero, one};
use crate::thread;
use core::ffi::c_int;
use core::ptr::null;
use libc::{epoll_event, sigset_t, timespec};

interpose! {
    fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int
        => |call| waited(epoll, timeout == 0, null(), call);
    fn epoll_pwait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int
        => |call| waited(epoll, timeout == 0, mask, call);
    fn epoll_pwait2(epoll: c_int, events: *mut epoll_event, max: c_int, time: *const timespec,
                    mask: *const sigset_t) -> c_int
        => |call| waited(epoll, is_zero(time), mask, call);
}

/// # Safety
/// `mask` is null or a valid set of signals.
#[inline]
unsafe fn waited(epoll: c_int, at_once: bool, mask: *const sigset_t, call: impl Fn() -> c_int) -> c_int {
    if !at_once {
        return call();
    }
    let Some(thread) = thread::enter() else { return call() };
    let asked = |wait: Wait<'_>| wait(&mut one(epoll, libc::POLLIN));
    // SAFETY: the caller's promise.
    unsafe { ask(thread, asked, mask, call, |result| result == 0) }
}
