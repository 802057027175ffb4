//! A memory barrier that one thread makes for all threads of the process: membarrier(2).
//!
//! Problem: of two threads each writes one word and then reads the other's; a barrier between write and read must be on both
//! sides, though one of them does so a million times as often. Rule: the seldom one makes the barrier for both. Source:
//! Desnoyers et al., "Extending restartable sequences with virtual CPU IDs" and the manual page of membarrier, Linux 4.14.

use std::io;

/// From now on this process may call [`everywhere`]. Takes some milliseconds in a process with threads, at the first call.
///
/// # Errors
/// A kernel without it, or a filter of system calls that refuses it.
pub fn register() -> io::Result<()> {
    call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// All threads of this process that run have made a full memory barrier between this call's begin and its end; those that do
/// not run have made one before. It interrupts the CPUs of those that run: some microseconds.
///
/// # Errors
/// [`register`] was not called, or has failed.
pub fn everywhere() -> io::Result<()> {
    call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

fn call(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_that_has_registered_may_make_barriers() {
        // A kernel without it, or a container that forbids it, says so at the registration.
        if super::register().is_ok() {
            super::everywhere().unwrap();
            super::register().unwrap();
            super::everywhere().unwrap();
        }
    }
}
