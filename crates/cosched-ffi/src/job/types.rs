//! The types of arguments and results: codes, classes, states, and plain structs that can be extended.

use std::ffi::{c_char, c_int};

/// What a function of the job API returns. 0 is success, all others are negative.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_err {
    /// Done.
    OK = 0,
    /// An argument that cannot be: NULL, no handle, out of range, a job that can never fit.
    INVALID = -1,
    /// No daemon answers on the socket.
    NO_DAEMON = -2,
    /// No such job, process or node.
    NOT_FOUND = -3,
    /// Not the caller's right.
    FORBIDDEN = -4,
    /// Not in the present state of the job or the process.
    CONFLICT = -5,
    /// This daemon or this machine cannot do it, such as a node that it does not have.
    UNSUPPORTED = -6,
    /// Program, library and daemon are of versions that do not go together.
    VERSION = -7,
    /// The daemon failed, or its answer was not understood.
    DAEMON = -8,
    /// The daemon did not answer in time.
    TIMEOUT = -9,
    /// A fault in this library.
    INTERNAL = -10,
}

/// A job's class, from the most to the least urgent.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_class {
    /// What the daemon gives: interactive.
    DEFAULT = 0,
    /// Mission critical; for administrators.
    EXPRESS = 1,
    /// Rapid response.
    INTERACTIVE = 2,
    /// Throughput.
    BATCH = 3,
    /// Takes what others leave.
    STANDBY = 4,
}

/// Where a job is in its life.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_state {
    /// Scheduled.
    RUNNING = 1,
    /// A gang that used no CPU for a while: it has no slots until it uses some.
    ASLEEP = 2,
    /// Stopped by its user or an administrator.
    SUSPENDED = 3,
    /// All its processes have ended or left.
    ENDED = 4,
    /// Its processes vanished while no daemon was looking.
    LOST = 5,
    /// A gang that used no CPU for a very long time: Linux schedules it until a user resumes it.
    DROPPED = 6,
    /// In its queue: it has no place yet, or its nodes lack memory for it now.
    WAITING = 7,
}

/// What a job wants of one node. Set it to zero first (memset, or = {0}): what is 0 is not said.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cosched_resources {
    /// The node's name, as gethostname says it there; NULL or "" for the node of the daemon.
    pub node: *const c_char,
    /// CPUs at a time; 0: all of the node's.
    pub cpus: u32,
    /// The job also takes fewer, but not fewer than this; 0: it wants exactly `cpus`.
    pub cpus_min: u32,
    /// The memory that it needs there; 0: not said.
    pub memory_bytes: u64,
    /// The disk space that it needs there; 0: not said. Kept and shown; no disk is reserved.
    pub disk_bytes: u64,
    /// For later versions: 0.
    pub reserved: [u64; 4],
}

/// What a job uses: in a cluster, on the node of the daemon that is asked, and when it has ended, on all its nodes.
/// COSCHED_UNKNOWN where the kernel does not tell.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cosched_use {
    /// CPU time so far, of all its processes, those that have ended or left included. Of a job that has ended: to the
    /// millisecond.
    pub cpu_time_us: u64,
    /// Memory in use now; unknown of a job that has ended.
    pub memory_bytes: u64,
    /// The most memory that it used.
    pub memory_peak_bytes: u64,
    /// Its processes now; 0 of a job that has ended.
    pub processes: u64,
    /// For later versions.
    pub reserved: [u64; 4],
}

/// What a job is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cosched_job {
    /// Its number.
    pub id: u64,
    /// Its owner's number.
    pub uid: u32,
    /// A cosched_state; 0: one that this library does not know.
    pub state: c_int,
    /// A cosched_class.
    pub job_class: c_int,
    /// The CPUs at a time that it was given.
    pub cpus: u32,
    /// Its first process; 0: none yet.
    pub pid: i32,
    /// 0.
    pub unused: u32,
    /// The memory that it says it needs, on all its nodes together; COSCHED_UNKNOWN: it does not.
    pub memory_bytes: u64,
    /// The disk space that it says it needs; COSCHED_UNKNOWN: it does not.
    pub disk_bytes: u64,
    /// When it was registered, in milliseconds since 1970.
    pub submitted_unix_ms: u64,
    /// When it ended; COSCHED_UNKNOWN: it has not.
    pub ended_unix_ms: u64,
    /// Its name, cut to fit, ended by NUL.
    pub name: [c_char; 256],
    /// For later versions.
    pub reserved: [u64; 4],
}

/// How busy a node is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cosched_load {
    /// The node's name, cut to fit, ended by NUL.
    pub node: [c_char; 256],
    /// The CPUs that it gives to jobs.
    pub cpus: u32,
    /// Threads that run or wait for a CPU now, registered or not.
    pub runnable: u32,
    /// Jobs that are neither ended nor suspended.
    pub jobs: u32,
    /// The CPUs that these jobs have at a time, together.
    pub job_cpus: u32,
    /// Threads that run or wait for a CPU, on average over 1 minute.
    pub load_1min: f64,
    /// Over 5 minutes.
    pub load_5min: f64,
    /// Over 15 minutes.
    pub load_15min: f64,
    /// The node's memory.
    pub memory_bytes: u64,
    /// Memory that new programs could have without swapping.
    pub memory_available_bytes: u64,
    /// The memory that its jobs say they need, together.
    pub memory_declared_bytes: u64,
    /// When that was measured, in ms since the Unix epoch: of another node than the daemon's. A node reports again, within half a
    /// minute, when one of its load averages has changed by half a thread and an eighth, or its memory by a sixteenth.
    /// COSCHED_UNKNOWN: now.
    pub measured_unix_ms: u64,
    /// For later versions.
    pub reserved: [u64; 3],
}

/// The value of COSCHED_UNKNOWN.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// A text in a C array, cut at a character boundary and terminated by NUL.
pub(super) fn fixed<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut end = text.len().min(SIZE - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut array = [0; SIZE];
    for (to, from) in array.iter_mut().zip(text[..end].bytes().take_while(|byte| *byte != 0)) {
        *to = from as c_char;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_whole_characters() {
        let text = |array: &[c_char]| array.iter().map(|c| *c as u8).collect::<Vec<u8>>();
        assert_eq!(text(&fixed::<4>("ab")), b"ab\0\0");
        assert_eq!(text(&fixed::<4>("abcdef")), b"abc\0");
        assert_eq!(text(&fixed::<4>("ab\u{e9}")), b"ab\0\0");
        assert_eq!(text(&fixed::<4>("a\0b")), b"a\0\0\0");
    }
}
