//! The CPUs that a job's processes may use: its place.
//!
//! The problem: a gang of N columns has N CPUs, and its programs have to see exactly these (nproc, OpenMP, Go, Python, and mpirun, which binds its
//! ranks). The rule: the cpuset controller, where one is available: in v2 that of the job's `gang`, in the hybrid layout a v1 cpuset of the job's
//! own. Otherwise the affinity of its threads, which programs can change, and which mpirun does not read.
//!
//! Processes with a binding of their own: the kernel runs such a process on the intersection with the place, and on the whole place where that is
//! empty. Since Linux 6.2 the kernel remembers the binding and returns to it when the place changes; before, the binding is lost. With affinity we do
//! the same: a binding inside the place moves along with it, one outside is left alone.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus), cgroup-v1/cpusets.rst; sched_setaffinity(2); Linux 8f9ea86fdf99.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::cgfile;
use crate::cpulist;
use crate::descent::is_below;
use crate::job::{JobCgroup, JobDirs};
use crate::keeper::files;
use crate::place::own_v2;
use crate::problem::TreeError;
use crate::process::threads;
use crate::thaw::ThawPaths;

/// How often the threads of a job are searched for new ones at most.
const LOOKS_MAX: usize = 16;

/// A job's current place and its new one, each as CPUs in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The current place; all CPUs when it has none.
    pub from: Vec<u32>,
    /// The new place; all CPUs when it may use all.
    pub to: Vec<u32>,
    /// `to` is all CPUs.
    pub all: bool,
}

impl JobDirs {
    /// The file that sets its processes' CPUs, if a controller does that.
    fn cpuset_file(&self) -> Option<PathBuf> {
        let file = self.cpuset.clone().unwrap_or_else(|| self.gang()).join("cpuset.cpus");
        file.exists().then_some(file)
    }

    /// Enables the cpuset controller for the gang, below the CPUs that the job is limited to. Not before the job has a place: a cgroup with
    /// controllers takes no processes of its own, and a job that creates cgroups may want to have processes there. Errors are ignored: it is enabled
    /// already, or the controller is missing; then affinity is used.
    fn enable_cpuset(&self) {
        if self.adopted.is_none() {
            let _ = cgfile::write(&self.outer.join("cgroup.subtree_control"), "+cpuset");
        }
    }

    /// Its processes came from a v1 cpuset made by hand or by another program, and have stayed there.
    fn is_in_old_cpuset(&self) -> bool {
        let is_empty = |dir: &PathBuf| cgfile::procs(dir).is_ok_and(|pids| pids.is_empty());
        self.cpuset.as_ref().is_some_and(is_empty) && !is_empty(&self.gang())
    }
}

impl JobCgroup {
    /// Restricts its processes to the place. The work grows with the number of the job's threads: the slot thread must not call this.
    ///
    /// # Errors
    /// The kernel refuses. With affinity, a thread that cannot be moved is left where it is.
    pub fn confine(&self, place: &Move) -> Result<(), TreeError> {
        self.switch_handle().set_place(&place.to);
        let is_v1 = self.dirs().cpuset.is_some();
        if !is_v1 && !place.all {
            self.dirs().enable_cpuset();
        }
        let file = self.dirs().cpuset_file();
        if let Some(file) = &file {
            // Later processes inherit it.
            cgfile::write(file, &list(is_v1, place)).map_err(TreeError::io("write", file))?;
        }
        if file.is_none() || self.dirs().is_in_old_cpuset() { self.bind(place) } else { Ok(()) }
    }

    /// The same for one process that has entered, or is about to leave, where no cpuset controls it.
    pub fn confine_process(&self, pid: i32, place: &Move) {
        let dirs = self.dirs();
        let is_held = match &dirs.cpuset {
            Some(dir) => cgfile::procs(dir).is_ok_and(|pids| pids.contains(&pid)),
            None => dirs.cpuset_file().is_some(),
        };
        if !is_held && place.from != place.to {
            threads(pid).into_iter().for_each(|tid| self.bind_thread(tid, place));
        }
    }

    /// Sets the affinity of its threads.
    fn bind(&self, place: &Move) -> Result<(), TreeError> {
        let mut done: BTreeSet<i32> = BTreeSet::new();
        for _ in 0..LOOKS_MAX {
            let before = done.len();
            for tid in self.own_procs()?.into_iter().flat_map(threads) {
                if done.insert(tid) {
                    self.bind_thread(tid, place);
                }
            }
            if done.len() == before {
                break;
            }
        }
        Ok(())
    }

    fn bind_thread(&self, tid: i32, place: &Move) {
        let Some(thread) = Pid::from_raw(tid) else { return };
        let Ok(has) = sched_getaffinity(Some(thread)) else { return };
        let own: Vec<u32> = (0..CpuSet::MAX_CPU).filter(|cpu| has.is_set(*cpu)).map(|cpu| cpu as u32).collect();
        let Some(wanted) = moved(&own, place) else { return };
        let mut set = CpuSet::new();
        wanted.iter().for_each(|cpu| set.set(*cpu as usize));
        // The thread may have ended and its number may have been reused: a thread that is not in the job gets its old affinity back.
        if sched_setaffinity(Some(thread), &set).is_ok() && !self.has_thread(tid) {
            let _ = sched_setaffinity(Some(thread), &has);
        }
    }

    pub(crate) fn has_thread(&self, tid: i32) -> bool {
        if let Some(dir) = self.kept() {
            return files::keeper_of(dir).is_some_and(|keeper| is_below(tid, keeper));
        }
        let content = cgfile::read(Path::new(&format!("/proc/{tid}/cgroup"))).unwrap_or_default();
        own_v2(&content).is_some_and(|path| path.starts_with(self.v2_path_relative()))
    }
}

/// The text to write: in v2 an empty line means all CPUs.
fn list(is_v1: bool, place: &Move) -> String {
    if place.all && !is_v1 { "\n".to_owned() } else { cpulist::format(&place.to) }
}

/// The new affinity of a thread with this affinity; `None` if it keeps it. A thread bound to a part of the place gets the same part of the new one; a
/// thread bound elsewhere stays there.
fn moved(own: &[u32], place: &Move) -> Option<Vec<u32>> {
    let inside = |cpu: &u32| place.from.binary_search(cpu).ok();
    if place.from.iter().all(|cpu| own.contains(cpu)) {
        return Some(place.to.clone());
    }
    let at: Vec<usize> = own.iter().map(inside).collect::<Option<_>>()?;
    let mut to: Vec<u32> = at.into_iter().map(|at| place.to[at % place.to.len().max(1)]).collect();
    to.sort_unstable();
    to.dedup();
    Some(to)
}

/// Lets every job of a tree use all CPUs again, where a controller has confined it: the daemon has ended, and no process would give a remaining job
/// the CPUs of those that have ended.
pub fn widen_all(paths: &ThawPaths) {
    let (dir, file, all) = match &paths.cpuset_tree {
        Some(dir) => (dir, "cpuset.cpus", cgfile::read(&dir.join("cpuset.cpus")).unwrap_or_default()),
        None => (&paths.v2_tree, "gang/cpuset.cpus", "\n".to_owned()),
    };
    for job in cgfile::children(dir).unwrap_or_default() {
        // One that no longer exists, or has no such file, needs nothing.
        let _ = cgfile::write(&job.join(file), &all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(from: &[u32], to: &[u32]) -> Move {
        Move { from: from.to_vec(), to: to.to_vec(), all: false }
    }

    #[test]
    fn bindings_inside_of_a_place_move_along_and_others_stay() {
        assert_eq!(moved(&[0, 1, 2, 3], &to(&[0, 1, 2, 3], &[1, 3])), Some(vec![1, 3]), "unbound");
        assert_eq!(moved(&[0], &to(&[0, 1], &[2, 3])), Some(vec![2]));
        assert_eq!(moved(&[1], &to(&[0, 1], &[2, 3])), Some(vec![3]));
        assert_eq!(moved(&[5], &to(&[0, 1], &[2, 3])), None, "bound elsewhere");
        assert_eq!(moved(&[2, 3], &to(&[0, 1, 2, 3], &[4])), Some(vec![4]));
        assert_eq!(moved(&[0, 1, 2, 3], &to(&[0, 1], &[0, 1, 2, 3])), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn jobs_of_a_daemon_that_has_ended_have_all_cpus() {
        let base = tempfile::tempdir().unwrap();
        let (v2, v1) = (base.path().join("v2"), base.path().join("cpuset"));
        for dir in [&v1, &v1.join("job-1"), &v2.join("job-1/gang"), &v2.join("probe")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        std::fs::write(v1.join("cpuset.cpus"), "0-7\n").unwrap();
        std::fs::write(v1.join("job-1/cpuset.cpus"), "3\n").unwrap();
        std::fs::write(v2.join("job-1/gang/cpuset.cpus"), "3").unwrap();
        let mut paths = ThawPaths { v2_tree: v2.clone(), cpu_tree: None, cpuset_tree: Some(v1.clone()) };
        widen_all(&paths);
        assert_eq!(std::fs::read_to_string(v1.join("job-1/cpuset.cpus")).unwrap(), "0-7\n");
        paths.cpuset_tree = None;
        widen_all(&paths);
        assert_eq!(std::fs::read_to_string(v2.join("job-1/gang/cpuset.cpus")).unwrap(), "\n");
    }
}
