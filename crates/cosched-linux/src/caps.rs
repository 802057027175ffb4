//! The limits that a process would leave behind with its cgroups, and keeping them.
//!
//! A job has a cgroup of its own. Its first process comes out of another one: a systemd slice, a container, a scope with a quota. The limits of that
//! cgroup, and of those above it that are not above our tree as well, would no longer apply. So they are read here, from the kernel and not from the
//! user, and the daemon refuses the process, or gives the job the same limits (decision 0037). In the hybrid layout a process keeps its cpuset,
//! memory and pids cgroups where these are limited: no limit of theirs is lost. Limits that a job's cgroup cannot have are in `unkept.rs`. Weights
//! are not limits, and are not read.
//! Source: Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max, pids.max, cpuset.cpus.effective); sched-bwc.rst.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::job::JobCgroup;
use crate::place::{below, own_v1, own_v2};
use crate::problem::TreeError;
use crate::quota;
use crate::tree::Tree;
use crate::unkept::{Unkept, page_sizes, unkept_in};

/// The period of a quota that is kept, in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

/// The depth up to which cgroups are searched for limits.
const LEVELS_MAX: usize = 32;

/// The resources that a cgroup can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// CPU time, in millionths of a CPU.
    Cpu,
    /// Memory in bytes; beyond it processes are killed.
    Memory,
    /// Memory in bytes; beyond it processes are slowed down.
    MemoryHigh,
    /// Swap space in bytes.
    Swap,
    /// Processes and threads.
    Tasks,
}

impl Resource {
    const ALL: [Resource; 5] = [Resource::Cpu, Resource::Memory, Resource::MemoryHigh, Resource::Swap, Resource::Tasks];

    fn file(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu.max",
            Resource::Memory => "memory.max",
            Resource::MemoryHigh => "memory.high",
            Resource::Swap => "memory.swap.max",
            Resource::Tasks => "pids.max",
        }
    }
}

/// A limit, and the cgroup that sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// The limited resource.
    pub resource: Resource,
    /// The limit, in the unit of the resource.
    pub most: u64,
    /// The cgroup, relative to its mount.
    pub of: PathBuf,
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.resource.file();
        match self.resource {
            Resource::Cpu => write!(f, "{:.2} CPUs ({file}", self.most as f64 / 1e6)?,
            Resource::Tasks => write!(f, "{} processes ({file}", self.most)?,
            _ => write!(f, "{} MiB ({file}", self.most >> 20)?,
        }
        write!(f, " of {})", self.of.display())
    }
}

/// The strictest limits along a path, and its CPUs if these are not all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caps {
    /// At most one of each resource.
    pub caps: Vec<Cap>,
    /// The CPUs as the kernel lists them, such as "0-1,4".
    pub cpus: Option<String>,
    /// Limits that no job can have.
    pub unkept: Vec<Unkept>,
}

impl Caps {
    fn take(&mut self, resource: Resource, dir: &Path, relative: &Path) {
        let Some(most) = limit_of(resource, dir) else { return };
        let cap = Cap { resource, most, of: relative.to_path_buf() };
        match self.caps.iter_mut().find(|cap| cap.resource == resource) {
            Some(known) if known.most <= most => (),
            Some(known) => *known = cap,
            None => self.caps.push(cap),
        }
    }

    fn most(&self, resource: Resource) -> Option<u64> {
        self.caps.iter().find(|cap| cap.resource == resource).map(|cap| cap.most)
    }

    /// Leaves out limits for which `others` has one that is as strict.
    #[must_use]
    pub fn beyond(mut self, others: &Caps) -> Caps {
        self.caps.retain(|cap| others.most(cap.resource).is_none_or(|most| most > cap.most));
        self.cpus = self.cpus.filter(|cpus| others.cpus.as_ref() != Some(cpus));
        self
    }
}

impl Tree {
    /// The limits on process `pid` in its present cgroups that it would not have in a cgroup of this tree. Empty for a process that no longer exists.
    ///
    /// # Errors
    /// The kernel does not report its cgroups, or they are nested too deep. A user who may make cgroups can nest them until their path is too long to
    /// be reported: most kernels report as much of it as there is room for, some report nothing. And to read all limits of two thousand levels takes
    /// half a minute, in which no other request is served.
    pub fn caps_left_by(&self, pid: i32) -> io::Result<Caps> {
        if self.has_keepers() {
            // It stays in its cgroups.
            return Ok(Caps::default());
        }
        let content = unless_gone(cgfile::read(Path::new(&format!("/proc/{pid}/cgroup"))))?;
        match content.lines().any(|line| line.matches('/').count() > LEVELS_MAX) {
            true => Err(io::Error::other(format!("it is in a cgroup nested more than {LEVELS_MAX} levels deep"))),
            false => Ok(self.caps_left_in(&content)),
        }
    }

    fn caps_left_in(&self, content: &str) -> Caps {
        let mut caps = Caps::default();
        let (layout, page_sizes) = (self.layout(), page_sizes());
        if let Some(path) = own_v2(content) {
            for (dir, relative) in left(&layout.v2_mount, &path, self.v2_dir()) {
                Resource::ALL.into_iter().for_each(|resource| caps.take(resource, &dir, &relative));
                caps.unkept.extend(unkept_in(&dir, &relative, &page_sizes));
            }
            let cpus = |dir: &Path| cgfile::read(&dir.join("cpuset.cpus.effective")).ok();
            let own = cpus(&below(&layout.v2_mount, &path)).map(|text| text.trim().to_owned());
            let tree = cpus(self.v2_dir()).or_else(|| cpus(&layout.v2_mount)).map(|text| text.trim().to_owned());
            caps.cpus = own.filter(|own| !own.is_empty() && Some(own) != tree.as_ref());
        }
        if let (Some(mount), Some(own), Some(path)) = (&layout.cpu_mount, self.cpu_dir(), own_v1(content, "cpu")) {
            for (dir, relative) in left(mount, &path, own) {
                caps.take(Resource::Cpu, &dir, &relative);
                caps.unkept.extend(unkept_in(&dir, &relative, &page_sizes));
            }
        }
        caps
    }
}

impl JobCgroup {
    /// Applies these limits to the job.
    ///
    /// # Errors
    /// The kernel refuses, or has no controller for a limit here.
    pub fn keep(&self, caps: &Caps) -> Result<(), TreeError> {
        let dirs = self.dirs();
        let put = |path: PathBuf, value: &str| cgfile::write(&path, value).map_err(TreeError::io("write", &path));
        for Cap { resource, most, .. } in &caps.caps {
            match (resource, &dirs.cpu) {
                (Resource::Cpu, Some(cpu)) => {
                    put(cpu.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                    put(cpu.join("cpu.cfs_quota_us"), &quota_us(*most).to_string())?;
                }
                (Resource::Cpu, None) => {
                    put(dirs.outer.join("cpu.max"), &format!("{} {PERIOD_US}", quota_us(*most)))?;
                }
                _ => put(dirs.outer.join(resource.file()), &most.to_string())?,
            }
        }
        match &caps.cpus {
            Some(cpus) => put(dirs.outer.join("cpuset.cpus"), cpus),
            None => Ok(()),
        }
    }

    /// The limits of the job's own cgroups.
    pub fn caps(&self) -> Caps {
        let (dirs, mut caps) = (self.dirs(), Caps::default());
        for resource in Resource::ALL {
            caps.take(resource, &dirs.outer, &dirs.relative);
        }
        if let Some(cpu) = &dirs.cpu {
            caps.take(Resource::Cpu, cpu, &dirs.relative);
        }
        let cpus = cgfile::read(&dirs.outer.join("cpuset.cpus")).unwrap_or_default();
        caps.cpus = Some(cpus.trim().to_owned()).filter(|cpus| !cpus.is_empty());
        caps
    }
}

/// For a process that no longer exists: empty content instead of an error.
fn unless_gone(read: io::Result<String>) -> io::Result<String> {
    match read {
        Err(e) if cgfile::is_gone(&e) || e.raw_os_error() == Some(libc::ESRCH) => Ok(String::new()),
        read => read,
    }
}

/// The cgroups on the way from `mount` to `path` that are not on the way to `tree`.
fn left(mount: &Path, path: &Path, tree: &Path) -> Vec<(PathBuf, PathBuf)> {
    let both = |relative: &Path| (below(mount, relative), relative.to_path_buf());
    path.ancestors().map(both).filter(|(dir, _)| !tree.starts_with(dir)).collect()
}

fn quota_us(millionths: u64) -> u64 {
    // The kernel's minimum is 1 ms.
    (millionths * PERIOD_US / 1_000_000).max(1000)
}

/// The limit of a cgroup, if it has one.
fn limit_of(resource: Resource, dir: &Path) -> Option<u64> {
    if resource != Resource::Cpu {
        return cgfile::read(&dir.join(resource.file())).ok()?.trim().parse().ok();
    }
    match quota::now(dir)? {
        quota::Now::Unlimited => None,
        quota::Now::Us(quota, period) => Some((u128::from(quota) * 1_000_000 / u128::from(period.max(1))) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, LayoutKind};
    use crate::place::Place;
    use std::fs;

    fn put(base: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn unified(base: &Path, place: Place) -> Tree {
        let layout = Layout::without_v1(LayoutKind::Unified, base.into());
        put(base, &[("cgroup.subtree_control", ""), ("cgroup.controllers", "cpu memory pids cpuset")]);
        put(
            &base.join("user.slice"),
            &[("cgroup.subtree_control", ""), ("cgroup.controllers", "cpu"), ("cgroup.procs", "")],
        );
        fs::create_dir_all(base.join("user.slice/cosched")).unwrap();
        put(&base.join("user.slice/cosched"), &[("cgroup.subtree_control", ""), ("cgroup.controllers", "cpu")]);
        fs::create_dir_all(base.join("cosched")).unwrap();
        put(&base.join("cosched"), &[("cgroup.subtree_control", ""), ("cgroup.controllers", "cpu")]);
        Tree::open(&layout, place).unwrap()
    }

    #[test]
    fn the_strictest_limit_of_each_kind_along_the_path_is_found() {
        let base = tempfile::tempdir().unwrap();
        let root = Place::Root { name: "cosched".into() };
        put(
            base.path(),
            &[
                ("user.slice/cpu.max", "150000 100000\n"),
                ("user.slice/pids.max", "10813\n"),
                ("user.slice/memory.max", "max\n"),
                ("user.slice/box/cpu.max", "max 100000\n"),
                ("user.slice/box/memory.max", "1073741824\n"),
                ("user.slice/box/pids.max", "50\n"),
                ("user.slice/box/cpuset.cpus.effective", "0-1\n"),
                ("cosched/cpuset.cpus.effective", "0-3\n"),
            ],
        );
        let tree = unified(base.path(), root);
        let caps = tree.caps_left_in("0::/user.slice/box\n");
        let texts: Vec<String> = caps.caps.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "1024 MiB (memory.max of /user.slice/box)",
                "50 processes (pids.max of /user.slice/box)",
                "1.50 CPUs (cpu.max of /user.slice)"
            ]
        );
        assert_eq!(caps.cpus.as_deref(), Some("0-1"));
        assert_eq!(tree.caps_left_in("0::/\n"), Caps::default());
        assert_eq!(tree.caps_left_in(""), Caps::default());
        // A job with these limits accepts such a process; a job with fewer does not.
        assert_eq!(caps.clone().beyond(&caps), Caps::default());
        assert_eq!(caps.clone().beyond(&Caps::default()), caps);
        let looser = Caps { caps: vec![Cap { most: 51, ..caps.caps[1].clone() }], ..Caps::default() };
        assert_eq!(caps.clone().beyond(&looser), caps);
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_no_limit() {
        let read = |errno| unless_gone(Err(io::Error::from_raw_os_error(errno)));
        assert_eq!([libc::ENOENT, libc::ESRCH].map(|errno| read(errno).unwrap()), ["", ""]);
        assert!([libc::ENAMETOOLONG, libc::EIO, libc::EMFILE].into_iter().all(|errno| read(errno).is_err()));
    }

    #[test]
    fn what_no_job_can_keep_is_found_in_v2_and_beside_the_v1_cpu_controller() {
        let base = tempfile::tempdir().unwrap();
        let (v2, cpu) = (base.path().join("v2"), base.path().join("cpu"));
        let limit = "8:0 rbps=1048576 wbps=max riops=max wiops=max\n";
        put(&v2, &[("a/io.max", limit), ("a/b/io.max", "")]);
        put(&cpu, &[("c/blkio.throttle.read_bps_device", "8:0 1000\n")]);
        let tree = unified(&v2, Place::Root { name: "cosched".into() });
        let told = |tree: &Tree, content: &str| -> Vec<String> {
            tree.caps_left_in(content).unkept.iter().map(ToString::to_string).collect()
        };
        let io_max = format!("I/O {} (io.max of /a)", limit.trim_end());
        assert_eq!(told(&tree, "0::/a/b\n"), [io_max]);
        let caps = tree.caps_left_in("0::/a/b\n");
        assert_eq!(caps.clone().beyond(&Caps::default()), caps, "no job has it");
        let layout = Layout { kind: LayoutKind::Hybrid, cpu_mount: Some(cpu), ..tree.layout().clone() };
        let tree = Tree::open(&layout, Place::Root { name: "cosched".into() }).unwrap();
        let throttled = "I/O 8:0 1000 (blkio.throttle.read_bps_device of /c)";
        assert_eq!(told(&tree, "2:cpu,blkio:/c\n0::/\n"), [throttled]);
    }

    #[test]
    fn limits_above_our_own_tree_go_with_the_job() {
        let base = tempfile::tempdir().unwrap();
        put(base.path(), &[("user.slice/cpu.max", "50000 100000"), ("user.slice/s.scope/pids.max", "9")]);
        let place = Place::Delegated { dir: "/user.slice".into(), cpu_dir: None, name: "cosched".into() };
        let tree = unified(base.path(), place);
        let caps = tree.caps_left_in("0::/user.slice/s.scope\n");
        assert_eq!(caps.caps.len(), 1);
        assert_eq!((caps.caps[0].resource, caps.caps[0].most), (Resource::Tasks, 9));
    }

    #[test]
    fn a_quota_of_v1_is_read_and_minus_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")]);
        assert_eq!(limit_of(Resource::Cpu, dir.path()), None);
        put(dir.path(), &[("cpu.cfs_quota_us", "10000\n")]);
        assert_eq!(limit_of(Resource::Cpu, dir.path()), Some(100_000));
        assert_eq!((quota_us(100_000), quota_us(5)), (10_000, 1000));
    }
}
