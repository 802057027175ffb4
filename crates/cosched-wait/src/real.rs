//! The functions that this library interposes: the next ones of the same name, or bare system calls until those are known (another library's
//! constructor may poll before ours has run).

use core::ffi::{CStr, c_int, c_ulong, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{epoll_event, fd_set, msghdr, pollfd, sigset_t, sockaddr, socklen_t, ssize_t, timespec, timeval};

/// A function found by name.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn named(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(core::ptr::null_mut()) }
    }

    fn find(&self) {
        self.address.store(crate::front::next(self.name), Relaxed);
    }

    /// Its address, once found.
    fn get(&self) -> Option<*mut c_void> {
        let address = self.address.load(Relaxed);
        (!address.is_null()).then_some(address)
    }
}

/// One function: its name, its type, and the system call that does the same.
macro_rules! next {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $fallback:expr;)*) => {
        mod address {
            use super::Next;
            $(
                #[allow(non_upper_case_globals)]
                pub(super) static $name: Next = Next::named({
                    const NAME: &[u8] = concat!(stringify!($name), "\0").as_bytes();
                    match core::ffi::CStr::from_bytes_with_nul(NAME) { Ok(name) => name, Err(_) => panic!() }
                });
            )*
        }
        $(
            /// The function of this name that the program would have called without this library.
            ///
            /// # Safety
            /// As the C library's function of this name.
            #[inline]
            pub(crate) unsafe fn $name($($arg: $ty),*) -> $ret {
                match address::$name.get() {
                    Some(address) => {
                        type Function = unsafe extern "C-unwind" fn($($ty),*) -> $ret;
                        // SAFETY: the C library's function of this name has this type.
                        let function = unsafe { core::mem::transmute::<*mut c_void, Function>(address) };
                        // SAFETY: the caller keeps the function's contract.
                        unsafe { function($($arg),*) }
                    }
                    // SAFETY: the caller keeps the function's contract, which is the system call's.
                    None => (unsafe { $fallback }) as $ret,
                }
            }
        )*
        /// Looks up all of them.
        pub(crate) fn resolve() {
            $(address::$name.find();)*
        }
    };
}

/// The size of the kernel's set of signals, in bytes.
const SIGNALS: usize = 8;

next! {
    fn poll(fds: *mut pollfd, count: c_ulong, timeout: c_int) -> c_int = {
        let time = crate::sys::timespec(timeout.max(0) as u64 * 1_000_000);
        let time = if timeout < 0 { core::ptr::null() } else { &raw const time };
        libc::syscall(libc::SYS_ppoll, fds, count, time, 0_usize, SIGNALS)
    };
    fn ppoll(fds: *mut pollfd, count: c_ulong, time: *const timespec, mask: *const sigset_t) -> c_int = {
        // The kernel writes the remaining time back; the C library hides that from the caller.
        let mut copy = if time.is_null() { crate::sys::timespec(0) } else { *time };
        let time = if time.is_null() { core::ptr::null_mut() } else { &raw mut copy };
        libc::syscall(libc::SYS_ppoll, fds, count, time, mask, SIGNALS)
    };
    fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, time: *mut timeval) -> c_int = {
        let copy = if time.is_null() { 0 } else { (*time).tv_sec as u64 * 1_000_000_000 + (*time).tv_usec as u64 * 1_000 };
        let mut copy = crate::sys::timespec(copy);
        let time = if time.is_null() { core::ptr::null_mut() } else { &raw mut copy };
        libc::syscall(libc::SYS_pselect6, count, read, write, except, time, 0_usize)
    };
    fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, time: *const timespec,
               mask: *const sigset_t) -> c_int = {
        let mut copy = if time.is_null() { crate::sys::timespec(0) } else { *time };
        let time = if time.is_null() { core::ptr::null_mut() } else { &raw mut copy };
        let signals = [mask as usize, SIGNALS];
        libc::syscall(libc::SYS_pselect6, count, read, write, except, time, signals.as_ptr())
    };
    fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int =
        libc::syscall(libc::SYS_epoll_pwait, epoll, events, max, timeout, 0_usize, SIGNALS);
    fn epoll_pwait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int =
        libc::syscall(libc::SYS_epoll_pwait, epoll, events, max, timeout, mask, SIGNALS);
    fn epoll_pwait2(epoll: c_int, events: *mut epoll_event, max: c_int, time: *const timespec,
                    mask: *const sigset_t) -> c_int =
        libc::syscall(libc::SYS_epoll_pwait2, epoll, events, max, time, mask, SIGNALS);
    fn sched_yield() -> c_int = libc::syscall(libc::SYS_sched_yield);
    fn recv(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> ssize_t =
        libc::syscall(libc::SYS_recvfrom, fd, buffer, length, flags, 0_usize, 0_usize);
    fn recvfrom(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int, from: *mut sockaddr,
                from_length: *mut socklen_t) -> ssize_t =
        libc::syscall(libc::SYS_recvfrom, fd, buffer, length, flags, from, from_length);
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t =
        libc::syscall(libc::SYS_recvmsg, fd, message, flags);
    fn __poll_chk(fds: *mut pollfd, count: c_ulong, timeout: c_int, size: usize) -> c_int = {
        let _ = size;
        poll(fds, count, timeout)
    };
    fn __ppoll_chk(fds: *mut pollfd, count: c_ulong, time: *const timespec, mask: *const sigset_t,
                   size: usize) -> c_int = {
        let _ = size;
        ppoll(fds, count, time, mask)
    };
    fn __recv_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int) -> ssize_t = {
        let _ = size;
        recv(fd, buffer, length, flags)
    };
    fn __recvfrom_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int, from: *mut sockaddr,
                      from_length: *mut socklen_t) -> ssize_t = {
        let _ = size;
        recvfrom(fd, buffer, length, flags, from, from_length)
    };
}
