//! Real-time priority and locked memory, as far as this user is permitted.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Gives the calling thread SCHED_FIFO at `priority` (1 to 99), which its children do not inherit.
///
/// # Errors
/// The kernel's: EPERM without CAP_SYS_NICE, and also when CONFIG_RT_GROUP_SCHED is on and the thread's v1 cpu cgroup has no real-time
/// budget (cpu.rt_runtime_us is 0 in every cgroup but the root).
pub fn become_realtime(priority: i32) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live sched_param, which the call only reads.
    let result = unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the calling thread's real-time priority, which is always permitted.
///
/// Every thread does so before it ends or drops what reaps a process: the kernel takes what has ended from /proc in a loop that waits for those that
/// read there, and at real-time priority that keeps them from the CPU, up to a second long.
pub(crate) fn become_ordinary() {
    let _ = set_policy(libc::SCHED_OTHER, 0);
}

/// While this lives, the calling thread has priority over everything of ordinary priority: for bounded work that others wait for, or until the thread
/// ends.
#[derive(Debug)]
pub struct Ahead {
    // It applies to the thread that made it.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Ahead {
    /// `None` where real-time priority is not permitted.
    pub fn begin() -> Option<Ahead> {
        Ahead::at(1).ok()
    }

    /// # Errors
    /// As of [`become_realtime`].
    pub(crate) fn at(priority: i32) -> io::Result<Ahead> {
        become_realtime(priority).map(|()| Ahead { _not_send: std::marker::PhantomData })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        become_ordinary();
    }
}

/// Gives the calling thread the best fair priority (nice −20), for when real time is not permitted.
///
/// # Errors
/// EPERM or EACCES without CAP_SYS_NICE.
pub fn become_nice() -> io::Result<()> {
    // Not through libc, which has gettid only since glibc 2.30.
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    // SAFETY: setpriority takes numbers only. On Linux PRIO_PROCESS with a thread's number means that thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, -20) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the calling thread's timers fire without slack (the default is 50 µs for fair threads).
pub(crate) fn no_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one number, the slack in nanoseconds.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}

/// Keeps the pages of this process in memory once they have been touched, now and later. It does not touch them all, so the process does not grow.
///
/// # Errors
/// ENOMEM or EPERM when RLIMIT_MEMLOCK does not allow it.
pub fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

/// Raises the limit of open files to the hard limit, or to 65,536 if that is less (a job takes four), and returns it.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // A higher limit would slow down programs that close all descriptors one by one.
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(65_536);
    let current = limit.current.unwrap_or(u64::MAX);
    if current < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).is_ok()
    {
        return wanted;
    }
    current
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_is_ahead_is_an_ordinary_thread_afterwards() {
        // SAFETY: takes a number only.
        let policy = || unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
        let Some(ahead) = super::Ahead::begin() else {
            println!("SKIPPED: real-time priority is not permitted");
            return;
        };
        assert_eq!(policy(), libc::SCHED_FIFO);
        assert_eq!(std::thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER, "nobody inherits it");
        drop(ahead);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }

    #[test]
    fn the_limit_of_open_files_never_falls() {
        let first = super::raise_open_files();
        assert!(super::raise_open_files() >= first);
    }
}
