//! The classes of threads of a job that has subgangs, and the mark of its cgroup.
//!
//! The mark is an extended attribute of the cgroup: when the job began to have subgangs, and which processes they are. With it the guard, the kernel's
//! agent and the next daemon bring all threads back. They leave the mark: the daemon may only have been slow.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};

use super::spread;
use crate::cgfile;
use crate::process::{stat, threads};
use crate::thread::{nice_of, set_policy};

const ATTRIBUTE: &str = "user.cosched.subgangs";
/// A number of ticks, and twice as many numbers as there may be subgangs.
const ATTRIBUTE_BYTES_MAX: usize = 16 * 1024;
/// How often the threads are searched for such as were made meanwhile.
const PASSES_MAX: usize = 16;
/// The most processes that are searched for what subgangs have started.
const PROCESSES_MAX: usize = 4096;
/// A process that is being forked has its class before it is in any list. The copy of a large one takes milliseconds.
const FORK: Duration = Duration::from_millis(20);

/// When a job began to have subgangs, in clock ticks since boot, and each of them with its start time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) since_ticks: u64,
    pub(super) subgangs: BTreeMap<i32, u64>,
}

impl Marked {
    pub(super) fn write(&self, job: &Path) -> io::Result<()> {
        let each = self.subgangs.iter().map(|(pid, start)| format!(" {pid} {start}"));
        let text: String = std::iter::once(self.since_ticks.to_string()).chain(each).collect();
        Ok(setxattr(job, ATTRIBUTE, text.as_bytes(), XattrFlags::empty())?)
    }

    fn read(job: &Path) -> Option<Marked> {
        let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
        let length = getxattr(job, ATTRIBUTE, &mut value[..]).ok()?;
        let text = std::str::from_utf8(&value[..length]).ok()?;
        let mut numbers = text.split(' ').map_while(|number| number.parse::<u64>().ok());
        let mut marked = Marked { since_ticks: numbers.next()?, subgangs: BTreeMap::new() };
        while let (Some(pid), Some(start)) = (numbers.next(), numbers.next()) {
            marked.subgangs.insert(i32::try_from(pid).ok()?, start);
        }
        Some(marked)
    }

    pub(super) fn remove(job: &Path) {
        // A removed cgroup has none.
        let _ = removexattr(job, ATTRIBUTE);
    }

    /// Whether this process is one of them, and no later one of its number.
    pub(super) fn is_subgang(&self, pid: i32) -> bool {
        self.subgangs.get(&pid).is_some_and(|start| stat(pid).is_some_and(|now| now.start_ticks == *start))
    }

    /// Brings back what the subgangs have started since, which is born behind the others as they are. What was behind them before, and what such a
    /// process has started, stays where it is.
    pub(super) fn bring_back_children(&self, job: &Path) {
        for _ in 0..PASSES_MAX {
            let procs = cgfile::reachable(job).into_iter().flat_map(|dir| cgfile::procs(&dir).unwrap_or_default());
            let idle = procs
                .take(PROCESSES_MAX)
                .filter(|pid| !self.is_subgang(*pid) && threads(*pid).into_iter().any(is_idle));
            let mut born: Vec<(u64, i32, i32)> = idle
                .filter_map(|pid| stat(pid).map(|of| (of.start_ticks, pid, of.ppid)))
                .filter(|(start, ..)| *start >= self.since_ticks)
                .collect();
            // Parents first: what one that was brought back has started is brought back, too.
            born.sort_unstable();
            let is_theirs = |(_, _, ppid): &(u64, i32, i32)| !is_idle(*ppid) || self.is_subgang(*ppid);
            let before = born.len();
            born.retain(|process| {
                let theirs = is_theirs(process);
                if theirs {
                    set_process(process.1, false);
                }
                !theirs
            });
            if born.len() == before {
                return;
            }
        }
    }

    /// Ends them all.
    pub(super) fn bring_back(&self, job: &Path) {
        self.subgangs.keys().filter(|pid| self.is_subgang(**pid)).for_each(|pid| set_process(*pid, false));
        self.bring_back_children(job);
    }
}

/// Whether a process is of the default class, and no nicer than others: one that gives way by itself is left alone.
pub(super) fn is_default(pid: i32) -> bool {
    policy(pid) == libc::SCHED_OTHER && nice_of(pid).is_some_and(|nice| nice <= 0)
}

fn policy(tid: i32) -> i32 {
    // SAFETY: numbers only.
    unsafe { libc::sched_getscheduler(tid) }
}

pub(super) fn is_idle(tid: i32) -> bool {
    policy(tid) == libc::SCHED_IDLE
}

/// Moves the threads of a process behind the others, or to the default class, until no other thread is found. Threads of other classes stay as they are.
pub(super) fn set_process(pid: i32, behind: bool) {
    for _ in 0..PASSES_MAX {
        if threads(pid).into_iter().filter(|tid| set_behind(*tid, behind)).count() == 0 {
            return;
        }
    }
}

/// Moves one thread; false if it stays as it is.
pub(super) fn set_behind(tid: i32, behind: bool) -> bool {
    let (from, to) = if behind { (libc::SCHED_OTHER, libc::SCHED_IDLE) } else { (libc::SCHED_IDLE, libc::SCHED_OTHER) };
    // A thread that has ended needs nothing.
    policy(tid) == from && set_policy(tid, to)
}

/// The CPU time that a process has used, also by threads that have ended, in ns; 0 if it no longer exists.
pub(super) fn process_cpu_ns(pid: i32) -> u64 {
    // The clock of another process, as clock_getcpuclockid(3) makes it.
    let clock = (!pid << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec, which the call writes.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => 0,
    }
}

/// Ends the subgangs of these jobs, where their cgroups are marked.
pub(crate) fn end_all(jobs: &[PathBuf]) {
    let marked: Vec<(&PathBuf, Marked)> = jobs.iter().filter_map(|job| Some((job, Marked::read(job)?))).collect();
    for (job, marked) in &marked {
        spread::end(job, marked.subgangs.keys().copied());
        marked.bring_back(job);
    }
    if !marked.is_empty() {
        sleep(FORK);
        marked.iter().for_each(|(job, marked)| marked.bring_back(job));
    }
}

/// Removes the marks that an earlier daemon has left in a tree, after [`crate::thaw::thaw_all`].
pub fn forget(v2_tree: &Path) {
    for job in cgfile::children(v2_tree).unwrap_or_default() {
        Marked::remove(&job);
        spread::forget(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let marked = Marked { since_ticks: 77, subgangs: BTreeMap::from([(8, 5), (4_000_000, u64::MAX)]) };
        match marked.write(dir.path()) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return println!("SKIPPED: no user.* attributes here"),
            written => written.unwrap(),
        }
        assert_eq!(Marked::read(dir.path()), Some(marked.clone()));
        let none = Marked { subgangs: BTreeMap::new(), ..marked };
        none.write(dir.path()).unwrap();
        assert_eq!(Marked::read(dir.path()), Some(none));
        Marked::remove(dir.path());
        assert_eq!(Marked::read(dir.path()), None);
        setxattr(dir.path(), ATTRIBUTE, b"nonsense", XattrFlags::empty()).unwrap();
        assert_eq!(Marked::read(dir.path()), None);
    }
}
