//! System services: clocks, the environment, the kernel's account of a thread.

use core::ffi::CStr;
use libc::{c_int, clockid_t};

/// errno of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library returns the address of this thread's own errno, which is always valid.
    unsafe { *libc::__errno_location() }
}

/// Sets errno of this thread.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value };
}

/// A clock in nanoseconds; 0 if there is no such clock.
fn clock_ns(clock: clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The CPU time of this thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The CPU time of all threads of the process, in nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// A number for the calling thread that no other thread of the process has.
pub(crate) fn thread_name() -> usize {
    // SAFETY: no arguments, no effect.
    unsafe { libc::pthread_self() as usize }
}

/// A variable of the environment; for the constructor only.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero, and so does what is returned; in the constructor no other thread changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: as above.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// The kernel's account of how long the calling thread has waited for a CPU. The file stays open.
#[derive(Debug)]
pub(crate) struct RunDelay(c_int);

impl RunDelay {
    /// That of the calling thread; on a kernel without this account it is always 0.
    pub(crate) fn open() -> RunDelay {
        let path = c"/proc/thread-self/schedstat";
        // SAFETY: the path ends with a zero.
        RunDelay(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
    }

    /// Nanoseconds so far: the second of the file's numbers.
    pub(crate) fn ns(&self) -> u64 {
        let mut bytes = [0_u8; 96];
        // SAFETY: the kernel writes at most this number of bytes; a descriptor that is not open is an error.
        let length = unsafe { libc::pread(self.0, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        let text = &bytes[..usize::try_from(length).unwrap_or(0)];
        let second = text.split(u8::is_ascii_whitespace).nth(1).unwrap_or(b"");
        second.iter().filter(|b| b.is_ascii_digit()).fold(0, |n, b| n * 10 + u64::from(b - b'0'))
    }
}

/// The number of voluntary context switches of the calling thread, that is, how often it waited for something.
pub(crate) fn voluntary_switches() -> u64 {
    // SAFETY: all bytes zero is a valid value of this structure of numbers.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is a place for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nvcsw as u64
}

/// Prints a message on standard error, in one write.
pub(crate) fn complain(text: &str) {
    let line = format!("cosched_record: {text}\n");
    // SAFETY: the kernel reads `len` bytes of the line.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on_and_delays_can_be_read() {
        let (wall, cpu) = (now_ns(), thread_cpu_ns());
        let sum: u64 = (0..100_000_u64).fold(0, |a, b| std::hint::black_box(a ^ b));
        assert!(sum < u64::MAX && now_ns() > wall && thread_cpu_ns() > cpu);
        let delay = RunDelay::open();
        let first = delay.ns();
        assert!(delay.ns() >= first);
        assert_eq!(RunDelay(-1).ns(), 0, "no such file");
    }
}
