//! Facts about processes, and handles to them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cgfile;

/// What /proc tells of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its parent.
    pub ppid: i32,
    /// Its real user.
    pub uid: u32,
    /// Its real group.
    pub gid: u32,
}

/// Parent, user and group of `pid`; none when it has gone.
pub fn facts(pid: i32) -> Option<Facts> {
    parse_status(&cgfile::read(Path::new(&format!("/proc/{pid}/status"))).ok()?)
}

fn parse_status(content: &str) -> Option<Facts> {
    let first = |key: &str| content.lines().find_map(|l| l.strip_prefix(key)?.split_whitespace().next());
    Some(Facts {
        ppid: first("PPid:")?.parse().ok()?,
        uid: first("Uid:")?.parse().ok()?,
        gid: first("Gid:")?.parse().ok()?,
    })
}

/// When `pid` started, in clock ticks since boot. With the pid it names one process for ever.
pub fn start_ticks(pid: i32) -> Option<u64> {
    parse_start_ticks(&cgfile::read(Path::new(&format!("/proc/{pid}/stat"))).ok()?)
}

fn parse_start_ticks(stat: &str) -> Option<u64> {
    // The name may hold blanks and parentheses; the fields after its end start with the state, which is field 3.
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The resident set of `pid` in bytes.
pub(crate) fn resident_bytes(pid: i32) -> Option<u64> {
    let statm = cgfile::read(Path::new(&format!("/proc/{pid}/statm"))).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// A handle that becomes readable when `pid` ends, and never means another process.
///
/// # Errors
/// When there is no such process or the kernel has no pidfds (Linux 5.3).
pub fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Sends a signal; false when the process has gone or is not ours to signal.
pub fn send_signal(pid: i32, signal: i32) -> bool {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) == 0 }
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

/// Lets the child have these descriptors under the same numbers. They must stay open until it has been started.
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
    fn odd_process_names_do_not_confuse() {
        let stat = "7 (a) S (b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(parse_start_ticks(stat), Some(4711));
        assert_eq!(
            parse_status("Name:\tx\nPPid:\t9\nUid:\t1\t2\t3\t4\nGid:\t5\t6\n"),
            Some(Facts { ppid: 9, uid: 1, gid: 5 })
        );
    }
}
