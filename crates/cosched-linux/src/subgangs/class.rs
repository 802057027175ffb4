//! The classes of threads of a job that has turns, and its mark.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};

use crate::cgfile;
use crate::process::threads;

const ATTRIBUTE: &str = "user.cosched.subgangs";

pub(super) fn mark(job: &Path) -> io::Result<()> {
    Ok(setxattr(job, ATTRIBUTE, b"1", XattrFlags::empty())?)
}

pub(super) fn unmark(job: &Path) {
    // A removed cgroup has none.
    let _ = removexattr(job, ATTRIBUTE);
}

fn policy(tid: i32) -> i32 {
    // SAFETY: numbers only.
    unsafe { libc::sched_getscheduler(tid) }
}

pub(super) fn is_idle(tid: i32) -> bool {
    policy(tid) == libc::SCHED_IDLE
}

/// Moves a thread of the default class behind the others, or one that is behind them to the default class. Others stay as they are.
pub(super) fn set_behind(tid: i32, behind: bool) {
    let (from, to) = if behind { (libc::SCHED_OTHER, libc::SCHED_IDLE) } else { (libc::SCHED_IDLE, libc::SCHED_OTHER) };
    if policy(tid) == from {
        let parameters = libc::sched_param { sched_priority: 0 };
        // A thread that has ended needs nothing.
        // SAFETY: the pointer is to a live sched_param, which the call only reads.
        unsafe { libc::sched_setscheduler(tid, to, &raw const parameters) };
    }
}

/// All threads of a cgroup's processes and of those below it that are behind the others, but for these, are not any more.
pub(super) fn bring_back(job: &Path, but_for: &BTreeSet<i32>) {
    let procs = cgfile::reachable(job).into_iter().flat_map(|dir| cgfile::procs(&dir).unwrap_or_default());
    procs.flat_map(threads).filter(|tid| !but_for.contains(tid)).for_each(|tid| set_behind(tid, false));
}

/// Ends the turns of a job, if its cgroup is marked.
pub(crate) fn end_subgangs(job: &Path) {
    if getxattr(job, ATTRIBUTE, &mut [0; 1]).is_ok() {
        bring_back(job, &BTreeSet::new());
        unmark(job);
    }
}
