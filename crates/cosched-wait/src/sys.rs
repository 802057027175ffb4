//! The few system services that are used outside the interposed calls.

use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// errno of this thread.
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns the address of this thread's own errno, which is always valid.
    unsafe { *libc::__errno_location() }
}

/// Sets errno of this thread.
pub(crate) fn set_errno(value: i32) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value };
}

/// A clock in nanoseconds; 0 if there is no such clock.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for one timespec; the call is async-signal-safe.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds, without a system call on the usual machines.
pub(crate) fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The CPU time of this thread in nanoseconds; a system call.
pub(crate) fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How often this thread has blocked; a system call. A yield is not among that.
pub(crate) fn voluntary() -> u64 {
    // SAFETY: all zeros is a valid rusage.
    let mut used: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `used` is a place for one rusage; the call is async-signal-safe.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut used) };
    used.ru_nvcsw as u64
}

/// A duration in the kernel's form.
pub(crate) fn timespec(time_ns: u64) -> libc::timespec {
    let time = Duration::from_nanos(time_ns);
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: libc::c_long::from(time.subsec_nanos() as i32) }
}

/// Sleeps while `word` equals `seen`, for at most `time_ns`. True if it was woken or the word has changed, false if the time expired.
pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, time_ns: u64) -> bool {
    let time = timespec(time_ns);
    // SAFETY: the word and the time live during the call; it has no other effect on memory.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const time) };
    result == 0 || errno() == libc::EAGAIN
}

/// Wakes all threads that sleep on `word`, in every process.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives during the call, which only uses its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// A file, opened and closed by bare system calls: these are not cancellation points and not interposed.
pub(crate) struct File(i32);

impl File {
    /// Opens `path`; `None` if that fails.
    pub(crate) fn open(path: &core::ffi::CStr, flags: i32) -> Option<Self> {
        const MODE: libc::mode_t = 0o644;
        let at = libc::AT_FDCWD;
        // SAFETY: the path ends with a zero.
        let fd = unsafe { libc::syscall(libc::SYS_openat, at, path.as_ptr(), flags | libc::O_CLOEXEC, MODE) };
        (fd >= 0).then_some(Self(fd as i32))
    }

    /// Reads up to `bytes.len()` bytes.
    pub(crate) fn read<'a>(&self, bytes: &'a mut [u8]) -> &'a [u8] {
        // SAFETY: the kernel writes at most `len` bytes to the slice.
        let length = unsafe { libc::syscall(libc::SYS_read, self.0, bytes.as_mut_ptr(), bytes.len()) };
        &bytes[..usize::try_from(length).unwrap_or(0)]
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> i32 {
        self.0
    }

    /// Closes it.
    pub(crate) fn close(self) {
        // SAFETY: the descriptor is this file's own.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// What `stat` or `lstat` knows of a file.
pub(crate) fn look(
    path: &core::ffi::CStr,
    ask: unsafe extern "C" fn(*const libc::c_char, *mut libc::stat) -> i32,
) -> Option<libc::stat> {
    // SAFETY: all zeroes is a valid value of this plain structure, and the kernel overwrites it.
    let mut facts: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the path ends with a zero, and `facts` is a place for one structure.
    (unsafe { ask(path.as_ptr(), &raw mut facts) } == 0).then_some(facts)
}

/// Reads the start of a file; nothing if that fails.
pub(crate) fn read_file<'a>(path: &core::ffi::CStr, bytes: &'a mut [u8]) -> &'a [u8] {
    let Some(file) = File::open(path, libc::O_RDONLY) else { return &[] };
    let read = file.read(bytes);
    file.close();
    read
}

/// Writes all of `bytes`, as far as the kernel takes them.
pub(crate) fn write_all(fd: i32, bytes: &[u8]) {
    // SAFETY: the kernel reads `len` bytes of the slice.
    unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) };
}

/// A variable of the environment; for the constructor only.
pub(crate) fn variable(name: &core::ffi::CStr) -> Option<&'static core::ffi::CStr> {
    // SAFETY: the name ends with a zero, and so does what is returned; in the constructor no other thread changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: as above.
    (!value.is_null()).then(|| unsafe { core::ffi::CStr::from_ptr(value) })
}

/// A whole number in decimal digits; `None` for any other text.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.len() < 19 && text.iter().all(u8::is_ascii_digit);
    digits.then(|| text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
