//! The scheduling of single threads of this process: nice value, slice, class, CPUs; and the usage of each.
//!
//! Linux schedules threads, not processes: each has a nice value, a policy and a set of CPUs of its own. Since Linux 6.12 it also has
//! its own slice: a shorter one gives an earlier deadline, so a thread that runs seldom and briefly gets its CPU sooner, and a longer
//! one is preempted less often, at the same share (`sched_setattr` with a runtime in a fair class). That is the "lengthen or
//! shorten timeslices" that Roysden 2004, section 5, asked for; it needs no privilege.
//!
//! A [`Thread`] is a handle that never refers to a thread other than the one it was made for. [`Thread::scheduling`] reads the present settings,
//! [`Thread::restore`] restores them. After each change the setting is read back, so one that was ignored or clamped is reported.

mod attr;
pub mod barrier;
mod change;
mod cpus;
mod error;
mod usage;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;

use rustix::process::Pid;

pub use change::{Scheduling, slice_us_range};
pub use cpus::{cpus_busy_ns, cpus_usable};
pub use error::ThreadError;
pub use usage::{Switches, Usage};

/// How often the thread left its CPU because it waited; `status` is its open file. `None` if it has ended.
pub(crate) fn voluntary_switches(status: &File) -> Option<u64> {
    Some(usage::switches(status).ok()?.voluntary)
}

/// What a thread of any process has used; `None` if it has ended.
pub(crate) fn usage_of(pid: i32, tid: i32) -> Option<Usage> {
    usage::usage(&File::open(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?).ok()
}

/// The nice value of a thread of any process; `None` if it has ended.
pub(crate) fn nice_of(tid: i32) -> Option<i32> {
    attr::nice(Pid::from_raw(tid)?).ok()
}

/// Gives a thread of any process one of the classes without priorities, by the kernel's number. Returns whether it has it.
pub(crate) fn set_policy(tid: i32, policy: i32) -> bool {
    Pid::from_raw(tid).is_some_and(|tid| attr::set_policy(tid, policy, 0).is_ok())
}

/// A scheduling class of the kernel ("policy" in its manual).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// SCHED_OTHER: the fair class, the default.
    Normal,
    /// SCHED_BATCH: fair, but does not preempt other threads when it wakes up.
    Batch,
    /// SCHED_IDLE: a very small share beside any other class. Without privilege it cannot be left.
    Idle,
    /// SCHED_FIFO at this priority (1 to 99): before all fair threads, until it blocks. Needs privilege.
    Fifo(u8),
    /// A class that can be read and restored, but not set here, by the kernel's number: SCHED_RR 2, SCHED_DEADLINE 6, SCHED_EXT 7.
    Other(u32),
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Class::Normal => f.write_str("normal"),
            Class::Batch => f.write_str("batch"),
            Class::Idle => f.write_str("idle"),
            Class::Fifo(priority) => write!(f, "fifo {priority}"),
            Class::Other(policy) => write!(f, "policy {policy}"),
        }
    }
}

/// The calling thread's id.
pub fn current_tid() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

/// Whether this process has CAP_SYS_NICE.
pub(crate) fn is_privileged() -> bool {
    attr::is_privileged()
}

/// The lowest nice value that the calling thread may set: −20 with CAP_SYS_NICE, otherwise what RLIMIT_NICE permits, or 20 for none.
pub fn nice_min() -> i8 {
    if attr::is_privileged() { -20 } else { attr::nice_min_unprivileged() as i8 }
}

/// One thread of this process.
#[derive(Debug)]
pub struct Thread {
    tid: Pid,
    /// Stays bound to the thread that it was opened for: once that has ended, reading gives ESRCH, even if its number is reused.
    schedstat: File,
    status: File,
}

impl Thread {
    /// The calling thread.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub fn current() -> Result<Thread, ThreadError> {
        Thread::of(current_tid())
    }

    /// Thread `tid` of this process.
    ///
    /// # Errors
    /// [`ThreadError::Gone`] where this process has no such thread.
    pub fn of(tid: i32) -> Result<Thread, ThreadError> {
        let number = Pid::from_raw(tid.max(0)).ok_or(ThreadError::Gone { tid })?;
        let open = |name| File::open(format!("/proc/self/task/{tid}/{name}"));
        let failed = |source| error_of(tid, "/proc/self/task", source);
        Ok(Thread {
            tid: number,
            schedstat: open("schedstat").map_err(failed)?,
            status: open("status").map_err(failed)?,
        })
    }

    /// Its number.
    pub fn tid(&self) -> i32 {
        self.tid.as_raw_pid()
    }

    /// Its usage so far. Does not allocate.
    ///
    /// # Errors
    /// [`ThreadError::Gone`] once it has ended.
    pub fn usage(&self) -> Result<Usage, ThreadError> {
        let usage = usage::usage(&self.schedstat).map_err(|source| error_of(self.tid(), "schedstat", source))?;
        // The thread lived a moment ago; if its clock no longer exists, the file's value was the last.
        let cpu_ns = attr::cpu_ns(self.tid).unwrap_or(0).max(usage.cpu_ns);
        Ok(Usage { cpu_ns, ..usage })
    }

    /// How often it has left its CPU. Does not allocate.
    ///
    /// # Errors
    /// [`ThreadError::Gone`] once it has ended.
    pub fn switches(&self) -> Result<Switches, ThreadError> {
        usage::switches(&self.status).map_err(|source| error_of(self.tid(), "status", source))
    }

    /// The number of a thread that has ended may be reused at once, even by another process. A few microseconds remain between this check and the
    /// system call after it; all numbers would have to be used up in that time.
    fn alive(&self) -> Result<(), ThreadError> {
        self.usage().map(|_| ())
    }
}

fn error_of(tid: i32, what: &str, source: io::Error) -> ThreadError {
    ThreadError::of(what.to_owned(), tid, || "/proc".to_owned(), source)
}
