//! Process trees that become a job without having a cgroup of their own: they are moved into the job's, and back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::descent::walk;
use crate::job::JobCgroup;
use crate::origin::Origin;
use crate::problem::{Problem, TreeError};
use crate::process::{Held, facts};
use crate::tree::Tree;

/// The limit on the processes that are examined and moved: the daemon does nothing else meanwhile.
pub const PROCESSES_MAX: usize = 1024;
/// The limit on their threads.
pub const THREADS_MAX: usize = 8192;
/// The limit on repetitions while new processes appear during a move.
const ROUNDS_MAX: usize = 16;
/// A process and its present descendants; the process first. `None` beyond [`PROCESSES_MAX`] processes or [`THREADS_MAX`] threads.
pub fn family(pid: i32) -> Option<Vec<i32>> {
    let below = walk(pid, None, (PROCESSES_MAX - 1, THREADS_MAX))?;
    Some(std::iter::once(pid).chain(below).collect())
}

impl Tree {
    /// Moves a process and its descendants into `job`, until none is found outside. `may` decides for each whether it may come along. `limit`: while
    /// others fork without a pause, the kernel takes 50 ms for a process instead of 3.
    ///
    /// # Errors
    /// Of `may`; also if there are too many, they are in different cgroups, fork faster than they are moved, cannot be moved, or not within `limit`. Those
    /// already moved are in the job then: send them back.
    pub fn attach_family(
        &self,
        job: &JobCgroup,
        root: &Held,
        limit: Duration,
        may: impl Fn(i32) -> Result<(), Problem>,
    ) -> Result<(), TreeError> {
        let problem =
            |why: String, hint: &str| Problem::new(format!("process {} cannot become a job", root.pid()), why, hint);
        let gone = || problem("it has ended".into(), "Nothing was changed.");
        let origin = Origin::of(root.pid()).ok_or_else(gone)?;
        let mut moved = BTreeSet::new();
        let deadline = Instant::now() + limit;
        for _ in 0..ROUNDS_MAX {
            let family = family(root.pid())
                .ok_or_else(|| problem(too_many(), "Put it into a cgroup of its own, and adopt that (`--cgroup`)."))?;
            // Whoever is born in the job is in it: only those that are moved can have had children outside meanwhile.
            let mut was_outside = false;
            for pid in family {
                // One that has ended meanwhile is skipped. It is checked again with its pidfd open: its number may have been reused.
                let Some(held) = Held::open(pid).ok().filter(|_| !moved.contains(&pid)) else { continue };
                let (Some(facts), Some(own)) = (facts(pid), Origin::of(pid)) else { continue };
                let is_new = self.job_of_path(&own.v2) != Some(job.id());
                if pid != root.pid() && !moved.contains(&facts.ppid) {
                    continue;
                }
                if Instant::now() >= deadline {
                    let hint = "Put it into a cgroup of its own, and adopt that (`--cgroup`), or try again when less is started.";
                    return Err(problem(
                        format!("its processes cannot be moved within {} ms", limit.as_millis()),
                        hint,
                    )
                    .into());
                }
                may(pid)?;
                if is_new && !self.comes_from(&own, &origin) {
                    let why = format!("its descendant {pid} is in another cgroup than it is");
                    return Err(problem(why, "Adopt the cgroups themselves (`--cgroup`).").into());
                }
                let attached = if is_new { job.attach(pid) } else { Ok(()) };
                was_outside |= is_new;
                moved.insert(pid);
                if !held.alive() {
                    self.put_back_successor(&held).transpose()?;
                    continue;
                }
                attached?;
            }
            if !was_outside {
                return if root.alive() { Ok(()) } else { Err(gone().into()) };
            }
        }
        Err(problem("they fork faster than they can be moved".into(), "Stop them (SIGSTOP) until it is a job.").into())
    }

    /// Whether a process has these cgroups because it is from `origin`: the child of a process that is just being moved, v1 hierarchies first, is born
    /// with some of a job's.
    fn comes_from(&self, own: &Origin, origin: &Origin) -> bool {
        let is_from = |own: &Option<PathBuf>, origin: &Option<PathBuf>, is_job: fn(&Tree, &Path) -> bool| {
            own == origin || own.as_deref().is_some_and(|dir| is_job(self, dir))
        };
        own.v2 == origin.v2
            && is_from(&own.cpu, &origin.cpu, Tree::is_job_cpu)
            && is_from(&own.memory, &origin.memory, Tree::is_job_path)
            && is_from(&own.pids, &origin.pids, Tree::is_job_pids)
    }

    /// Moves all processes of `job` to the origin of its first one, until none is left.
    ///
    /// # Errors
    /// There are more than [`PROCESSES_MAX`], they fork faster than they are moved, not all can be moved within `limit`, or the kernel refuses.
    pub fn send_all_back(&self, job: &JobCgroup, origin: &Origin, limit: Duration) -> Result<(), TreeError> {
        let problem = |why: String| {
            let hint = "Suspend it, or end some of its processes, and try again.";
            Problem::new(format!("the processes of job {} cannot be moved back", job.id()), why, hint)
        };
        let deadline = Instant::now() + limit;
        for _ in 0..ROUNDS_MAX {
            let pids = job.own_procs()?;
            if pids.is_empty() {
                return Ok(());
            }
            if pids.len() > PROCESSES_MAX {
                return Err(problem(format!("it has {}, more than {PROCESSES_MAX}", pids.len())).into());
            }
            for pid in pids {
                let Ok(held) = Held::open(pid) else { continue };
                if self.job_of(pid) != Some(job.id()) {
                    continue;
                }
                if Instant::now() >= deadline {
                    let late =
                        format!("not all within {} ms; those that are left are still in the job", limit.as_millis());
                    return Err(problem(late).into());
                }
                let moved = self.send_back(pid, origin);
                if !held.alive() {
                    self.put_back_successor(&held).transpose()?;
                    continue;
                }
                moved?;
            }
        }
        Err(problem("they fork faster than they can be moved".into()).into())
    }
}

/// Why a family is none that is examined.
pub fn too_many() -> String {
    format!("it has more than {PROCESSES_MAX} processes, or {THREADS_MAX} threads, itself and its descendants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_a_process_and_its_descendants() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 1000 & wait"]).spawn().unwrap();
        let pid = child.id() as i32;
        let has_child = || family(pid).unwrap().len() == 2;
        while !has_child() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let family = family(pid).unwrap();
        assert_eq!(family[0], pid);
        assert!(super::family(std::process::id() as i32).unwrap().contains(&family[1]));
        for pid in family {
            crate::process::send_signal(pid, libc::SIGKILL);
        }
        child.wait().unwrap();
    }
}
