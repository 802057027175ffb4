//! A memory barrier that one thread executes for all threads of the process: membarrier(2).
//!
//! Problem: of two threads each writes one word and then reads the other's; a barrier between write and read is needed on both sides, though one of
//! them does so a million times as often. Rule: the thread that needs it rarely executes the barrier for both. Source: Desnoyers et al., "Extending
//! restartable sequences with virtual CPU IDs" and the manual page of membarrier, Linux 4.14.

use std::io;

/// Registers this process for [`everywhere`]. Takes some milliseconds in a process with threads, at the first call.
///
/// # Errors
/// The kernel does not support it, or a filter of system calls refuses it.
pub fn register() -> io::Result<()> {
    call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// Executes a full memory barrier on all running threads of this process between this call's begin and end; those that do not run have executed one
/// before. It interrupts the CPUs of those that run: some microseconds.
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
        // A kernel without it, or a container that forbids it, reports that at the registration.
        if super::register().is_ok() {
            super::everywhere().unwrap();
            super::register().unwrap();
            super::everywhere().unwrap();
        }
    }
}
