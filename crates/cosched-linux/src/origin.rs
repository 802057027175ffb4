//! The cgroups of a process before it entered a job, and the move back.

use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::layout::Layout;
use crate::place::{below, own_v1, own_v2};
use crate::problem::TreeError;
use crate::process::{self, Held};
use crate::tree::Tree;

/// The cgroups of a process, as in /proc/PID/cgroup: relative to their mounts, with a leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// In the v2 hierarchy.
    pub v2: PathBuf,
    /// Of the v1 cpu controller.
    pub cpu: Option<PathBuf>,
    /// Of the v1 memory controller.
    pub memory: Option<PathBuf>,
    /// Of the v1 pids controller.
    pub pids: Option<PathBuf>,
}

impl Origin {
    /// The present cgroups of `pid`; `None` if it no longer exists.
    pub fn of(pid: i32) -> Option<Origin> {
        Origin::parse(&cgfile::read(Path::new(&format!("/proc/{pid}/cgroup"))).ok()?)
    }

    fn parse(content: &str) -> Option<Origin> {
        let v1 = |controller| own_v1(content, controller);
        Some(Origin { v2: own_v2(content)?, cpu: v1("cpu"), memory: v1("memory"), pids: v1("pids") })
    }

    /// Whether its cgroups still exist.
    pub fn exists(&self, layout: &Layout) -> bool {
        let v2 = below(&layout.v2_mount, &self.v2).is_dir();
        let cpu = match (&layout.cpu_mount, &self.cpu) {
            (Some(mount), Some(dir)) => below(mount, dir).is_dir(),
            _ => true,
        };
        v2 && cpu
    }
}

impl Tree {
    /// Moves a process with all its threads out of its job, to `origin`: memory and CPU first, the v2 cgroup last, where it leaves the freezer. Its
    /// memory and pids cgroups are left alone unless they are the job's.
    ///
    /// # Errors
    /// The process or the cgroup no longer exists, or the kernel refuses.
    pub fn send_back(&self, pid: i32, origin: &Origin) -> Result<(), TreeError> {
        let layout = self.layout();
        let now = Origin::of(pid);
        let in_ours = now.as_ref().and_then(|now| now.memory.as_ref()).is_some_and(|dir| self.is_job_path(dir));
        let memory = origin.memory.as_ref().filter(|_| in_ours);
        let in_ours = now.as_ref().and_then(|now| now.pids.as_ref()).is_some_and(|dir| self.is_job_pids(dir));
        // A record from the time before pids cgroups does not contain its origin.
        let root = PathBuf::from("/");
        let pids = in_ours.then_some(origin.pids.as_ref().unwrap_or(&root));
        let own = cgfile::read(Path::new(&format!("/proc/{pid}/cgroup"))).unwrap_or_default();
        // A process from a cpuset other than the root has stayed in it.
        let in_ours = own_v1(&own, "cpuset").is_some_and(|dir| self.is_job_cpuset(&dir));
        let dirs = [
            (layout.cpuset_mount.as_ref(), in_ours.then_some(&root)),
            (layout.memory_mount.as_ref(), memory),
            (layout.pids_mount.as_ref(), pids),
            (layout.cpu_mount.as_ref(), origin.cpu.as_ref()),
        ];
        let v1 = dirs.into_iter().filter_map(|(mount, dir)| Some(below(mount?, dir?)));
        for dir in v1.chain([below(&layout.v2_mount, &origin.v2)]) {
            let path = dir.join("cgroup.procs");
            cgfile::write(&path, &pid.to_string()).map_err(TreeError::io("write", &path))?;
        }
        Ok(())
    }

    /// After a process has ended while it was moved: if its number was reused meanwhile, the new process goes to its parent, where it was born.
    /// It never was where the former one came from, which may be a cgroup of the user who wanted the move. `None` if there is no such process.
    pub fn put_back_successor(&self, held: &Held) -> Option<Result<(), TreeError>> {
        process::start_ticks(held.pid()).filter(|ticks| *ticks != held.start_ticks())?;
        let parent = process::facts(held.pid())?.ppid;
        Some(self.send_back(held.pid(), &Origin::of(parent)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_are_read() {
        let hybrid = "5:cpu,cpuacct:/a\n4:memory:/m\n1:name=systemd:/s\n0::/u/x\n";
        let expected = Origin { v2: "/u/x".into(), cpu: Some("/a".into()), memory: Some("/m".into()), pids: None };
        assert_eq!(Origin::parse(hybrid), Some(expected));
        assert_eq!(Origin::parse("0::/\n"), Some(Origin { v2: "/".into(), cpu: None, memory: None, pids: None }));
        assert_eq!(Origin::parse(""), None);
        assert!(Origin::of(std::process::id() as i32).is_some());
    }
}
