//! Threads whose turn begins on one CPU, while on another one only threads wait that are behind them: the kernel's balancer takes as long as a turn to
//! move one, and meanwhile neither gets on.
//!
//! A thread moves by its affinity, for a moment one CPU. Only one that may run on all CPUs is moved, so that a process that finds it in between knows
//! what it had: an attribute of the job's cgroup names it.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::job::JobCgroup;
use crate::process::{stat, threads};
use crate::topology;

const ATTRIBUTE: &str = "user.cosched.moving";
/// With more threads for each CPU than this the kernel's balance suffices, and looking would take longer.
const THREADS_MAX: usize = 8;

/// Moves threads of these processes that are ready, of which several are on one CPU, to CPUs on which none is.
pub(super) fn spread(job: &JobCgroup, processes: &[i32]) {
    let Ok(online) = topology::online() else { return };
    let tids: Vec<i32> = processes.iter().copied().flat_map(threads).collect();
    if tids.len() > THREADS_MAX * online.len() {
        return;
    }
    let mut on: BTreeMap<u32, Vec<i32>> = online.iter().map(|cpu| (*cpu, Vec::new())).collect();
    for tid in tids {
        if let Some(of) = stat(tid).filter(|of| of.state == 'R') {
            on.entry(of.cpu).or_default().push(tid);
        }
    }
    let mut free = on.iter().filter(|(_, tids)| tids.is_empty()).map(|(cpu, _)| *cpu).peekable();
    for tid in on.values().flat_map(|tids| tids.iter().skip(1)) {
        let Some(cpu) = free.peek() else { return };
        if may_run_on(*tid, &online) && job.has_thread(*tid) && move_to(job.v2_dir(), *tid, *cpu) {
            free.next();
        }
    }
}

fn may_run_on(tid: i32, cpus: &[u32]) -> bool {
    let may = Pid::from_raw(tid).and_then(|tid| sched_getaffinity(Some(tid)).ok());
    may.is_some_and(|may| cpus.iter().all(|cpu| (*cpu as usize) < CpuSet::MAX_CPU && may.is_set(*cpu as usize)))
}

fn move_to(job: &Path, tid: i32, cpu: u32) -> bool {
    if setxattr(job, ATTRIBUTE, tid.to_string().as_bytes(), XattrFlags::empty()).is_err() {
        return false;
    }
    let moved = set_affinity(tid, &[cpu]);
    release(tid);
    forget(job);
    moved
}

fn set_affinity(tid: i32, cpus: &[u32]) -> bool {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu as usize));
    Pid::from_raw(tid).is_some_and(|tid| sched_setaffinity(Some(tid), &set).is_ok())
}

/// All that there may ever be: the kernel leaves out those that its cpuset does not have.
fn release(tid: i32) -> bool {
    set_affinity(tid, &(0..CpuSet::MAX_CPU as u32).collect::<Vec<_>>())
}

/// Releases the thread that was being moved, if it is one of these processes'.
pub(super) fn end(job: &Path, processes: impl Iterator<Item = i32>) {
    let mut value = [0; 16];
    let Ok(length) = getxattr(job, ATTRIBUTE, &mut value[..]) else { return };
    let moving = std::str::from_utf8(&value[..length]).ok().and_then(|text| text.parse::<i32>().ok());
    if let Some(tid) = moving.filter(|tid| processes.flat_map(threads).any(|of| of == *tid)) {
        release(tid);
    }
}

/// Removes the attribute.
pub(super) fn forget(job: &Path) {
    // Where there is none, there is nothing to do.
    let _ = removexattr(job, ATTRIBUTE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_being_moved_when_all_died_may_run_everywhere_again() {
        let online = topology::online().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id() as i32;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let tid = crate::thread::current_tid();
                if !may_run_on(tid, &online) || online.len() < 2 {
                    return println!("SKIPPED: this process may not run on several CPUs");
                }
                let mark = |tid: i32| setxattr(dir.path(), ATTRIBUTE, tid.to_string().as_bytes(), XattrFlags::empty());
                if mark(tid).is_err() {
                    return println!("SKIPPED: no user.* attributes here");
                }
                assert!(set_affinity(tid, &online[1..2]));
                end(dir.path(), [1].into_iter());
                assert!(!may_run_on(tid, &online), "a thread of none of the processes is left alone");
                end(dir.path(), [own].into_iter());
                assert!(may_run_on(tid, &online));
                assert!(move_to(dir.path(), tid, online[1]));
                assert_eq!(stat(tid).map(|of| of.cpu), Some(online[1]));
                assert!(may_run_on(tid, &online));
                assert!(getxattr(dir.path(), ATTRIBUTE, &mut [0; 16][..]).is_err());
            });
        });
    }
}
