//! The classes of threads of a job that has subgangs, and the mark of its cgroup.
//!
//! The mark is an extended attribute of the cgroup: when the job began to have subgangs, and which processes they are. With it the guard, the kernel's
//! agent and the next daemon bring all threads back. They leave the mark: the daemon may only have been slow.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};

use crate::cgfile;
use crate::process::{nice, stat, threads};

const ATTRIBUTE: &str = "user.cosched.subgangs";
/// A number of ticks, and twice as many numbers as there may be subgangs.
const ATTRIBUTE_BYTES_MAX: usize = 16 * 1024;
/// How often the threads are searched for such as were made meanwhile.
const PASSES_MAX: usize = 16;

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
            let idle = procs.filter(|pid| threads(*pid).into_iter().any(is_idle) && !self.is_subgang(*pid));
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
    policy(pid) == libc::SCHED_OTHER && nice(pid).is_some_and(|nice| nice <= 0)
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
    let parameters = libc::sched_param { sched_priority: 0 };
    // A thread that has ended needs nothing.
    // SAFETY: the pointer is to a live sched_param, which the call only reads.
    policy(tid) == from && unsafe { libc::sched_setscheduler(tid, to, &raw const parameters) } == 0
}

/// Ends the subgangs of a job, if its cgroup is marked.
pub(crate) fn end_subgangs(job: &Path) {
    if let Some(marked) = Marked::read(job) {
        marked.bring_back(job);
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
