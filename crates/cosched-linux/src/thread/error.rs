//! Errors of reading or changing a thread's scheduling.

use std::io;

use super::Class;
use super::attr::nice_min_unprivileged;

/// A change that failed, or a thread that cannot be read. The message says what, why and what would help.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The kernel refuses this user (EPERM, EACCES).
    #[error("{what} of thread {tid}: not permitted: {right}")]
    NoRight {
        /// The requested setting, e.g. `nice -5`.
        what: String,
        /// The thread.
        tid: i32,
        /// The missing right and how to get it.
        right: String,
    },
    /// The setting is unknown to this kernel (EINVAL, E2BIG, ENOSYS) or had no effect.
    #[error("{what} of thread {tid}: this kernel does not support it ({why})")]
    NotSupported {
        /// The requested setting.
        what: String,
        /// The thread.
        tid: i32,
        /// What the kernel did, and which kernel is needed.
        why: String,
    },
    /// No kernel accepts the value; nothing was changed.
    #[error("{what}: {why}")]
    OutOfRange {
        /// The requested setting.
        what: String,
        /// The allowed values.
        why: String,
    },
    /// The thread has ended, or is not one of this process.
    #[error("thread {tid} has ended or is not a thread of this process")]
    Gone {
        /// The thread.
        tid: i32,
    },
    /// Any other error of the kernel.
    #[error("{what} of thread {tid}: {source}")]
    Os {
        /// The requested setting.
        what: String,
        /// The thread.
        tid: i32,
        /// The kernel's error.
        source: io::Error,
    },
}

impl ThreadError {
    /// The reason alone, for messages that name the request themselves.
    pub fn why(&self) -> String {
        match self {
            ThreadError::NoRight { right, .. } => format!("it is not permitted: {right}"),
            ThreadError::NotSupported { why, .. } => format!("this kernel does not support it: {why}"),
            ThreadError::OutOfRange { why, .. } => why.clone(),
            ThreadError::Gone { .. } => "the thread has ended".to_owned(),
            ThreadError::Os { source, .. } => source.to_string(),
        }
    }

    /// Converts the kernel's error `source` about `what`; if it is a refusal, `right` is missing.
    pub(super) fn of(what: String, tid: i32, right: impl FnOnce() -> String, source: io::Error) -> ThreadError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => ThreadError::NoRight { what, tid, right: right() },
            Some(libc::E2BIG | libc::ENOSYS) => ThreadError::NotSupported { what, tid, why: source.to_string() },
            Some(libc::EINVAL) => {
                let why = "it answers EINVAL: the value or the class is unknown to it".to_owned();
                ThreadError::NotSupported { what, tid, why }
            }
            Some(libc::ESRCH | libc::ENOENT) => ThreadError::Gone { tid },
            _ => ThreadError::Os { what, tid, source },
        }
    }
}

/// Why the kernel refuses a lower nice value.
pub(super) fn nice_right() -> String {
    let allowed = match nice_min_unprivileged() {
        20 => "no raise, not even back to 0".to_owned(),
        least => format!("nice values down to {least}"),
    };
    format!(
        "a lower nice value needs CAP_SYS_NICE or a higher RLIMIT_NICE (`ulimit -e`, /etc/security/limits.conf); \
         the present limit permits {allowed}"
    )
}

/// Why the kernel refuses a class.
pub(super) fn class_right(class: Class) -> String {
    match class {
        Class::Fifo(priority) => format!(
            "SCHED_FIFO needs CAP_SYS_NICE or RLIMIT_RTPRIO (`ulimit -r`) of at least {priority}, and a cgroup with a \
             real-time budget"
        ),
        _ => format!("to leave SCHED_IDLE or SCHED_FIFO as it was set here, {}", nice_right()),
    }
}
