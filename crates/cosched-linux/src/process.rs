//! Facts about processes, and handles to them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cgfile;

/// The fields of /proc/PID/status that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its parent.
    pub ppid: i32,
    /// Its real user.
    pub uid: u32,
    /// Its real group.
    pub gid: u32,
    /// Its threads.
    pub threads: u64,
}

/// Parent, user and group of `pid`; `None` if it no longer exists.
pub fn facts(pid: i32) -> Option<Facts> {
    parse_status(&cgfile::read_proc(Path::new(&format!("/proc/{pid}/status"))).ok()?)
}

fn parse_status(content: &str) -> Option<Facts> {
    let first = |key: &str| content.lines().find_map(|l| l.strip_prefix(key)?.split_whitespace().next());
    Some(Facts {
        ppid: first("PPid:")?.parse().ok()?,
        uid: first("Uid:")?.parse().ok()?,
        gid: first("Gid:")?.parse().ok()?,
        threads: first("Threads:")?.parse().ok()?,
    })
}

/// The start time of `pid`, in clock ticks since boot. Together with the pid it identifies a process uniquely.
pub fn start_ticks(pid: i32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

/// Whether a signal has stopped `pid` (Ctrl-Z), or a debugger holds it.
pub fn is_stopped(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// The fields of /proc/PID/stat that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Its state, such as `R`, and `T` when a signal has stopped it.
    pub(crate) state: char,
    /// Its parent.
    pub(crate) ppid: i32,
    /// Its threads; 1 or 0 once all have ended.
    pub(crate) threads: u64,
    /// Its start time, in clock ticks since boot.
    pub(crate) start_ticks: u64,
    /// The CPU time of all its threads and of the children that it has waited for, in clock ticks.
    pub(crate) cpu_ticks: u64,
    /// The CPU on which it runs or was last.
    pub(crate) cpu: u32,
}

/// What the kernel tells about `pid`; `None` if it no longer exists.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&cgfile::read_proc(Path::new(&format!("/proc/{pid}/stat"))).ok()?)
}

fn parse_stat(stat: &str) -> Option<Stat> {
    // The name may contain blanks and parentheses; the fields after its end start with the state, which is field 3.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        ppid: number(4)? as i32,
        threads: number(20)?,
        start_ticks: number(22)?,
        cpu_ticks: (14..=17).filter_map(number).sum(),
        cpu: number(39)? as u32,
    })
}

/// The name of `pid`, at most 15 characters of it, and its parent; `None` if it no longer exists.
pub(crate) fn name_and_parent(pid: i32) -> Option<(String, i32)> {
    let stat = cgfile::read_proc(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?;
    Some((name.to_owned(), parse_stat(&stat)?.ppid))
}

/// The threads of `pid`; none if it no longer exists.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    let tasks = cgfile::children(Path::new(&format!("/proc/{pid}/task"))).unwrap_or_default();
    tasks.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

/// The resident set of `pid` in bytes.
pub(crate) fn resident_bytes(pid: i32) -> Option<u64> {
    let statm = cgfile::read(Path::new(&format!("/proc/{pid}/statm"))).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// A handle that becomes readable when `pid` ends, and never refers to another process.
///
/// # Errors
/// There is no such process or the kernel has no pidfds (Linux 5.3).
pub fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    let pid = Some(pid)
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// One particular process, even if its number is reused: a pidfd, and the start time of the process.
#[derive(Debug)]
pub struct Held {
    pid: i32,
    start_ticks: u64,
    pidfd: OwnedFd,
}

impl Held {
    /// Opens the process that has this number now.
    ///
    /// # Errors
    /// `ESRCH` when there is none or it has ended, `EINVAL` when the number is a thread's.
    pub fn open(pid: i32) -> io::Result<Held> {
        let pidfd = open_pidfd(pid)?;
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        // Read with the pidfd open: if the process still lives afterwards, the time is its own and not a successor's.
        let start_ticks = start_ticks(pid).ok_or_else(gone)?;
        let held = Held { pid, start_ticks, pidfd };
        if held.alive() { Ok(held) } else { Err(gone()) }
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its start time, in clock ticks since boot.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Sends it a signal; false when it has ended or may not be signalled by us.
    pub(crate) fn signal(&self, signal: i32) -> bool {
        signal_pidfd(&self.pidfd, signal)
    }

    /// Whether it has not ended. While this is true its number is not reused.
    pub fn alive(&self) -> bool {
        self.lives_for(Duration::ZERO)
    }

    /// Waits for its end, or until this time has passed; true when it has not ended.
    pub(crate) fn lives_for(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        // If the poll fails, the process counts as ended, which only leads to a refusal.
        matches!(poll(&mut fds, Some(&timeout)), Ok(0))
    }
}

/// The pidfd: readable when the process has ended.
impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Sends a signal; false when the process no longer exists or may not be signalled by us.
pub fn send_signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Sends a signal to the process of a pidfd, and to no other; false when it has ended or may not be signalled by us.
pub(crate) fn signal_pidfd(pidfd: &OwnedFd, signal: i32) -> bool {
    // SAFETY: the descriptor lives; no information goes along. A process that has ended gets nothing.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<u8>(), 0) == 0 }
}

/// A descriptor that our parent passed to us by number.
pub(crate) fn inherited(value: &OsStr) -> Result<OwnedFd, String> {
    let number: RawFd = value.to_str().and_then(|v| v.parse().ok()).ok_or("a descriptor is a number")?;
    // SAFETY: F_GETFD takes numbers only.
    if number < 3 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(format!("descriptor {number}: {}", io::Error::last_os_error()));
    }
    // SAFETY: it is open, our parent passed it to us by number, and nothing else in this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lets the child inherit these descriptors under the same numbers. They must stay open until it has been started.
pub(crate) fn keep_descriptors(command: &mut Command, descriptors: &[RawFd]) {
    let descriptors = descriptors.to_vec();
    let keep = move || {
        for &fd in &descriptors {
            // SAFETY: takes numbers only.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec and makes async-signal-safe system calls only.
    unsafe { command.pre_exec(keep) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let me = std::process::id() as i32;
        let facts = facts(me).unwrap();
        assert_eq!(facts.ppid as u32, std::os::unix::process::parent_id());
        assert_eq!(facts.uid, rustix::process::getuid().as_raw());
        assert!(start_ticks(me).unwrap() > 0);
        assert!(resident_bytes(me).unwrap() > 4096);
        assert!(super::facts(i32::MAX).is_none());
    }

    #[test]
    fn a_held_process_is_told_from_a_thread_and_from_one_that_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let held = Held::open(child.id() as i32).unwrap();
        assert!(held.alive() && held.start_ticks() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!held.alive());
        assert_eq!(Held::open(held.pid()).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert!(Held::open(0).is_err() && Held::open(-1).is_err() && Held::open(i32::MAX).is_err());
        // The number of a thread that does not lead its process.
        let own = || Held::open(rustix::thread::gettid().as_raw_nonzero().get());
        assert!(std::thread::spawn(own).join().unwrap().is_err());
    }

    #[test]
    fn odd_process_names_do_not_confuse() {
        let stat = "7 (a) S (b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 1";
        assert_eq!(
            parse_stat(stat),
            Some(Stat { state: 'R', ppid: 1, threads: 17, start_ticks: 4711, cpu_ticks: 11 + 12 + 13 + 14, cpu: 1 })
        );
        assert_eq!(
            parse_status("Name:\tx\nPPid:\t9\nUid:\t1\t2\t3\t4\nGid:\t5\t6\nThreads:\t3\n"),
            Some(Facts { ppid: 9, uid: 1, gid: 5, threads: 3 })
        );
    }
}
