//! The functions that interpose the C library's. Each passes on calls that may wait; a call that polls without waiting joins the thread's row if
//! others want the CPUs.

/// The C library's functions of these names, as programs call them. `call` calls the next function of the same name with the same arguments.
macro_rules! interpose {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty => |$call:ident| $body:expr;)*) => {$(
        /// The C library's function of this name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the caller keeps the function's contract.
            let $call = || unsafe { crate::real::$name($($arg),*) };
            // SAFETY: as above.
            unsafe { $body }
        }
    )*};
}

mod epoll;
mod mpi;
mod poll;
pub(crate) mod progress;
mod recv;
mod select;
mod yields;

use crate::sys;
use crate::thread::{Thread, Verdict};
use libc::{pollfd, sigset_t, timespec};

/// Handles the descriptors of a call. True: the call is to be made again.
type Wait<'a> = &'a mut dyn FnMut(&mut [pollfd]) -> bool;

/// A call that polls without waiting: makes it, and if it found nothing, waits as the thread's row decides and makes it again. `asked` passes the
/// call's descriptors, or returns false if there are none. The result and errno are those of the last call.
///
/// # Safety
/// `mask` is null or a valid set of signals, and the descriptors are valid.
unsafe fn ask<R: Copy + Default + PartialOrd>(
    thread: &Thread,
    asked: impl FnOnce(Wait<'_>) -> bool,
    mask: *const sigset_t,
    call: impl Fn() -> R,
    is_nothing: impl Fn(R) -> bool,
) -> R {
    thread.asks();
    let before = sys::errno();
    let mut result = call();
    let mut after = sys::errno();
    if !is_nothing(result) {
        thread.found(result < R::default());
    } else if asked(&mut |descriptors| {
        // SAFETY: the caller's promise.
        unsafe { wait(thread, descriptors, mask) }
    }) {
        sys::set_errno(before);
        result = call();
        after = sys::errno();
        if !is_nothing(result) {
            thread.found(result < R::default());
        }
    }
    thread.leave();
    sys::set_errno(after);
    result
}

/// # Safety
/// As [`ask`].
unsafe fn wait(thread: &Thread, asked: &mut [pollfd], mask: *const sigset_t) -> bool {
    let verdict = thread.nothing(false);
    let known = thread.remember(asked);
    match verdict {
        Verdict::Spin => false,
        Verdict::Yield => {
            thread.give_way();
            true
        }
        // SAFETY: the caller's promise.
        Verdict::Block => unsafe { thread.block(asked, known, mask) },
    }
}

/// Whether a time is given, and is zero.
///
/// # Safety
/// `time` is null or valid.
unsafe fn is_zero(time: *const timespec) -> bool {
    // SAFETY: the caller's promise.
    unsafe { time.as_ref() }.is_some_and(|time| time.tv_sec == 0 && time.tv_nsec == 0)
}

fn one(fd: i32, events: i16) -> [pollfd; 1] {
    [pollfd { fd, events, revents: 0 }]
}
