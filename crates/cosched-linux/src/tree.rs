//! Our subtree of cgroups: one directory in each hierarchy, and below it one per job.
//!
//! ```text
//! <v2>/cosched/job-7/          CPU time, kill, "populated"; in the unified layout also weight, idle and memory
//! <v2>/cosched/job-7/gang/     the processes; this one is frozen
//! <v2>/cosched/job-8/          no process: the marker of an adopted cgroup elsewhere, which is frozen itself (see `marker.rs`)
//! <v2>/cosched/annex-7-4711/   no process: the marker of an adopted cgroup that job 7 has beside its own (see `annex.rs`)
//! <v2>/cosched/probe/          the idle probe, below every job
//! <v1 cpu>/cosched/job-7/      weight and idle (hybrid)
//! <v1 memory>/cosched/job-7/   memory (hybrid)
//! <v1 pids>/cosched/job-7/     the most processes (hybrid)
//! <v1 cpuset>/cosched/job-7/   its CPUs (hybrid)
//! ```
//! The gang has a cgroup of its own so that a freeze at every slot does not wake the processes that watch the job's cgroup.events.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::descent::ancestors;
use crate::job::{JobCgroup, JobDirs};
use crate::keeper::files;
use crate::layout::{Layout, LayoutKind};
use crate::marker;
use crate::place::{Place, SUPERVISOR, below, own_v2};
use crate::private;
use crate::problem::{Problem, TreeError};
use crate::reserve;
use crate::thaw::ThawPaths;
use crate::treeweight::{TreeWeight, Weighs, Weights};

/// The controllers that a unified tree enables for its jobs; only the first is required.
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "pids", "cpuset"];

/// Our subtree.
#[derive(Debug, Clone)]
pub struct Tree {
    layout: Layout,
    delegated: bool,
    /// Relative to the v2 mount, with a leading slash, as in /proc/PID/cgroup.
    relative: PathBuf,
    v2_dir: PathBuf,
    cpu_dir: Option<PathBuf>,
    memory_dir: Option<PathBuf>,
    pids_dir: Option<PathBuf>,
    cpuset_dir: Option<PathBuf>,
    /// The limit on the processes and threads of a job.
    tasks_max: Option<u64>,
}

/// Why the control files of a scratch job do not work, for the mechanisms; `None` when the file works.
pub(crate) struct ProbeFiles {
    pub(crate) freeze: Option<String>,
    pub(crate) idle: Option<String>,
    pub(crate) weight: Option<String>,
}

impl Tree {
    /// Opens our subtree, and creates it where it is missing. Existing jobs stay as they are. A delegated place in the unified layout moves this
    /// process (and its neighbours) into a leaf named `supervisor`.
    ///
    /// # Errors
    /// A directory cannot be made or the cpu controller cannot be enabled.
    pub fn open(layout: &Layout, place: Place) -> Result<Tree, TreeError> {
        let mut tree = Tree::at(layout, &place);
        if tree.has_keepers() {
            private::keep_directory(&tree.v2_dir, &[]).map_err(TreeError::io("make", &tree.v2_dir))?;
            return Ok(tree);
        }
        // If that hierarchy is not writable, as in many containers, jobs get their CPUs by affinity.
        let made = |dir: &PathBuf| cgfile::mkdir(dir).is_ok() && JobDirs::fill_cpuset(dir).is_ok();
        tree.cpuset_dir = tree.cpuset_dir.take().filter(made);
        if layout.kind == LayoutKind::Unified {
            let parent = tree.v2_dir.parent().unwrap_or(&layout.v2_mount).to_path_buf();
            if tree.delegated {
                leave_inner_node(&parent)?;
            }
            enable_controllers(&parent)?;
        }
        for dir in tree.dirs() {
            cgfile::mkdir(dir).map_err(TreeError::io("create", dir))?;
        }
        if layout.kind == LayoutKind::Unified {
            enable_controllers(&tree.v2_dir)?;
        }
        Ok(tree)
    }

    /// Derives the paths only; touches nothing.
    fn at(layout: &Layout, place: &Place) -> Tree {
        let root = PathBuf::from("/");
        let mounts = (layout.memory_mount.as_ref(), layout.pids_mount.as_ref(), layout.cpuset_mount.as_ref());
        let (dir, cpu, (memory_mount, pids_mount, cpuset_mount), name, delegated) = match place {
            Place::Root { name } | Place::Signals { name } => (&root, &root, mounts, name, false),
            // A user's parts of the v1 memory, pids and cpuset hierarchies are not used: memory is then summed over the processes.
            Place::Delegated { dir, cpu_dir, name } => {
                (dir, cpu_dir.as_ref().unwrap_or(&root), (None, None, None), name, true)
            }
        };
        Tree {
            layout: layout.clone(),
            delegated,
            relative: dir.join(name),
            v2_dir: below(&layout.v2_mount, dir).join(name),
            cpu_dir: layout.cpu_mount.as_ref().map(|mount| below(mount, cpu).join(name)),
            memory_dir: memory_mount.map(|mount| mount.join(name)),
            pids_dir: pids_mount.map(|mount| mount.join(name)),
            cpuset_dir: cpuset_mount.map(|mount| mount.join(name)),
            tasks_max: None,
        }
    }

    fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        let v1 = [&self.cpu_dir, &self.memory_dir, &self.pids_dir, &self.cpuset_dir];
        v1.into_iter().flatten().chain(std::iter::once(&self.v2_dir))
    }

    /// The layout of the hierarchies that it is in.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// True without cgroups: each job has a keeper, which stops and continues it by signals.
    pub fn has_keepers(&self) -> bool {
        self.layout.kind == LayoutKind::Signals
    }

    /// Its directory in the v2 hierarchy.
    pub fn v2_dir(&self) -> &Path {
        &self.v2_dir
    }

    /// Its directory in the v1 cpu hierarchy (hybrid).
    pub(crate) fn cpu_dir(&self) -> Option<&Path> {
        self.cpu_dir.as_deref()
    }

    /// Whether jobs have a cgroup in a v1 memory hierarchy.
    pub(crate) fn has_v1_memory(&self) -> bool {
        self.memory_dir.is_some()
    }

    /// Limits the processes and threads of new jobs. Returns whether there is a controller for that.
    pub fn bound_tasks(&mut self, most: u64) -> bool {
        self.tasks_max = Some(most);
        let enabled = cgfile::read(&self.v2_dir.join("cgroup.subtree_control")).unwrap_or_default();
        self.pids_dir.is_some() || enabled.split_whitespace().any(|name| name == "pids")
    }

    /// Locks the tree for as long as the file lives: two daemons on one subtree would switch each other's jobs.
    ///
    /// # Errors
    /// `WouldBlock` when another daemon holds it; otherwise the kernel's.
    pub fn lock(&self) -> io::Result<File> {
        if !self.has_keepers() {
            return private::lock_cgroup(&self.v2_dir);
        }
        let lock = private::lock_file(&self.v2_dir)?;
        files::begin(&self.v2_dir)?;
        Ok(lock)
    }

    /// The paths that a guard needs to thaw every job.
    pub fn thaw_paths(&self) -> ThawPaths {
        let (v2_tree, cpu_tree) = (self.v2_dir.clone(), self.cpu_dir.clone());
        ThawPaths { v2_tree, cpu_tree, cpuset_tree: self.cpuset_dir.clone() }
    }

    fn job_dirs(&self, id: u64) -> JobDirs {
        self.dirs_named(&format!("job-{id}"))
    }

    fn dirs_named(&self, name: &str) -> JobDirs {
        JobDirs {
            // Without a mount its whole path.
            relative: if self.has_keepers() { &self.v2_dir } else { &self.relative }.join(name),
            outer: self.v2_dir.join(name),
            cpu: self.cpu_dir.as_ref().map(|dir| dir.join(name)),
            memory: self.memory_dir.as_ref().map(|dir| dir.join(name)),
            pids: self.pids_dir.as_ref().map(|dir| dir.join(name)),
            cpuset: self.cpuset_dir.as_ref().map(|dir| dir.join(name)),
            adopted: None,
            kept: self.has_keepers(),
        }
    }

    /// The directories of a job whose processes are elsewhere.
    pub(crate) fn marker_dirs(&self, id: u64) -> JobDirs {
        self.marker_named(&format!("job-{id}"))
    }

    pub(crate) fn marker_named(&self, name: &str) -> JobDirs {
        JobDirs { cpu: None, memory: None, pids: None, cpuset: None, ..self.dirs_named(name) }
    }

    /// Makes the cgroups of job `id`. Existing ones are kept.
    ///
    /// # Errors
    /// A directory cannot be made or a file cannot be opened; what was made is then removed again.
    pub fn create_job(&self, id: u64) -> Result<JobCgroup, TreeError> {
        let job = JobCgroup::create(id, self.job_dirs(id))?;
        if let Some(most) = self.tasks_max {
            job.bound_tasks(most);
        }
        Ok(job)
    }

    /// Opens the cgroups of a running job, and makes those that are missing because of a crash.
    ///
    /// # Errors
    /// [`TreeError::NoSuchJob`] when its v2 cgroup does not exist; otherwise as [`Tree::create_job`].
    pub fn open_job(&self, id: u64) -> Result<JobCgroup, TreeError> {
        let dirs = self.job_dirs(id);
        if !dirs.outer.is_dir() {
            return Err(TreeError::NoSuchJob(id));
        }
        if self.has_keepers() {
            files::find(&dirs.outer).map_err(TreeError::io("watch the keeper of", &dirs.outer))?;
        }
        let opened = self.open_adopted(id, &self.marker_dirs(id)).unwrap_or_else(|| JobCgroup::create(id, dirs))?;
        self.find_annexes(&opened);
        Ok(opened)
    }

    /// The jobs that have a cgroup in any hierarchy, or a marker, in ascending order.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn jobs(&self) -> Result<Vec<u64>, TreeError> {
        let mut ids = Vec::new();
        for dir in self.dirs() {
            let children = cgfile::children(dir).map_err(TreeError::io("read", dir))?;
            let names = children.iter().filter_map(|child| child.file_name()?.to_str());
            ids.extend(names.filter_map(|name| job_number(name).or_else(|| job_of_marker(name))));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// The job of process `pid`, by its v2 cgroup, or by a keeper above it.
    pub fn job_of(&self, pid: i32) -> Option<u64> {
        if self.has_keepers() {
            let jobs = self.jobs().unwrap_or_default();
            let keepers: Vec<(i32, u64)> =
                jobs.iter().filter_map(|id| Some((files::keeper_of(&self.job_dirs(*id).outer)?, *id))).collect();
            let job = |pid: i32| keepers.iter().find(|(keeper, _)| *keeper == pid).map(|(_, id)| *id);
            return std::iter::once(pid).chain(ancestors(pid)).find_map(job);
        }
        let content = cgfile::read(Path::new(&format!("/proc/{pid}/cgroup"))).ok()?;
        self.job_of_path(&own_v2(&content)?)
    }

    /// The job to which a path of the v2 hierarchy (as in /proc/PID/cgroup) belongs.
    pub fn job_of_path(&self, path: &Path) -> Option<u64> {
        job_number(path.strip_prefix(&self.relative).ok()?.iter().next()?.to_str()?)
    }

    /// Whether a path of the v1 memory hierarchy (as in /proc/PID/cgroup) is that of one of our jobs.
    pub(crate) fn is_job_path(&self, memory: &Path) -> bool {
        is_below(self.layout.memory_mount.as_ref(), self.memory_dir.as_ref(), memory)
    }

    /// The same for the v1 cpu hierarchy.
    pub(crate) fn is_job_cpu(&self, cpu: &Path) -> bool {
        is_below(self.layout.cpu_mount.as_ref(), self.cpu_dir.as_ref(), cpu)
    }

    /// The same for the v1 cpuset hierarchy.
    pub(crate) fn is_job_cpuset(&self, cpuset: &Path) -> bool {
        is_below(self.layout.cpuset_mount.as_ref(), self.cpuset_dir.as_ref(), cpuset)
    }

    /// The same for the v1 pids hierarchy.
    pub(crate) fn is_job_pids(&self, pids: &Path) -> bool {
        is_below(self.layout.pids_mount.as_ref(), self.pids_dir.as_ref(), pids)
    }

    /// Removes the cgroups that a crash left of a job whose processes have all ended, in every hierarchy.
    ///
    /// # Errors
    /// A directory cannot be removed, for example because it has processes.
    pub fn remove_job(&self, id: u64) -> Result<(), TreeError> {
        self.remove_annexes(id)?;
        self.job_dirs(id).remove()
    }

    /// Removes the cgroups that are left in the other hierarchies of a job without a v2 cgroup: its daemon was killed while it made or removed it.
    /// Also removes the marker of an adopted cgroup that no longer exists.
    ///
    /// # Errors
    /// A directory cannot be removed, for example because it has processes.
    pub fn remove_torn(&self, id: u64) -> Result<(), TreeError> {
        let dirs = self.job_dirs(id);
        if dirs.outer.is_dir() && !marker::is_gone(&dirs.outer) { Ok(()) } else { self.remove_job(id) }
    }

    /// Keeps the share `reserve` (0 to 1) of the CPU time for processes that are not registered, by our subtree's own weight against
    /// its siblings (see `reserve.rs`). Returns false where this user may not set it.
    ///
    /// # Errors
    /// The kernel's, other than a missing permission.
    pub fn set_reserve(&self, reserve: f64) -> Result<bool, TreeError> {
        if self.has_keepers() {
            return Ok(false);
        }
        let (path, value) = match &self.cpu_dir {
            Some(dir) => (dir.join("cpu.shares"), reserve::shares(reserve, reserve::opponents(dir))),
            None => (self.v2_dir.join("cpu.weight"), reserve::weight(reserve)),
        };
        match cgfile::write(&path, &value.to_string()) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(e) => Err(TreeError::io("write", &path)(e)),
        }
    }

    /// Opens the files of our subtree's weight for the slot thread; `None` where this user may not set it.
    ///
    /// # Errors
    /// The kernel's, other than a missing permission.
    pub fn open_weight(&self) -> Result<Option<TreeWeight>, TreeError> {
        if self.has_keepers() {
            return Ok(None);
        }
        let (dir, name, least) = match &self.cpu_dir {
            Some(dir) => (dir, "cpu.shares", 2),
            None => (&self.v2_dir, "cpu.weight", 1),
        };
        match TreeWeight::open(dir, name, least) {
            Ok(weight) => Ok(Some(weight)),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            Err(e) => Err(TreeError::io("open", &dir.join(name))(e)),
        }
    }

    /// The weights of our subtree that give neighbours as much as Linux would give them beside `jobs` that take part, `local` of them without slots.
    pub fn fair_weights(&self, jobs: u32, local: u32) -> Weights {
        let (fair, own): (Box<dyn Fn(u32) -> u32>, u32) = match &self.cpu_dir {
            Some(dir) => {
                let opponents = reserve::opponents(dir);
                (Box::new(move |jobs| reserve::fair_shares(jobs, opponents)), reserve::OWN_SHARES)
            }
            None => (Box::new(reserve::fair_weight), reserve::OWN_WEIGHT),
        };
        let held = if local == 0 { Weighs::Idle } else { Weighs::Number(fair(local)) };
        Weights { undivided: fair(jobs), own, held }
    }

    /// Moves the idle probe into a cgroup that yields to every job.
    pub(crate) fn attach_probe(&self, pid: i32) -> Result<(), TreeError> {
        let dirs: Vec<PathBuf> = self.probe_dirs().collect();
        for dir in &dirs {
            cgfile::mkdir(dir).map_err(TreeError::io("create", dir))?;
        }
        // The first directory contains the cpu files. Before Linux 5.15 the least weight is used instead.
        let idle = dirs[0].join("cpu.idle");
        if cgfile::write(&idle, "1").is_err() {
            let (name, least) = if self.cpu_dir.is_some() { ("cpu.shares", "2") } else { ("cpu.weight", "1") };
            let path = dirs[0].join(name);
            cgfile::write(&path, least).map_err(TreeError::io("write", &path))?;
        }
        for dir in &dirs {
            let path = dir.join("cgroup.procs");
            cgfile::write(&path, &pid.to_string()).map_err(TreeError::io("write", &path))?;
        }
        Ok(())
    }

    fn probe_dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.cpu_dir.iter().chain(std::iter::once(&self.v2_dir)).map(|dir| dir.join("probe"))
    }

    /// Removes the whole subtree. Every job must have ended.
    ///
    /// # Errors
    /// A directory cannot be removed, for example because it has processes.
    pub fn remove(&self) -> Result<(), TreeError> {
        self.remove_trials();
        for id in self.jobs()? {
            self.remove_job(id)?;
        }
        if self.has_keepers() {
            return std::fs::remove_dir_all(&self.v2_dir).map_err(TreeError::io("remove", &self.v2_dir));
        }
        for dir in self.probe_dirs().chain(self.dirs().cloned()) {
            cgfile::rmdir_patiently(&dir).map_err(TreeError::io("remove", &dir))?;
        }
        Ok(())
    }

    /// Removes the scratch jobs of processes that were killed while testing them.
    fn remove_trials(&self) {
        let children = self.dirs().flat_map(|dir| cgfile::children(dir).unwrap_or_default());
        let names: Vec<String> = children.filter_map(|child| Some(child.file_name()?.to_str()?.to_owned())).collect();
        for name in names {
            let pid = name.strip_prefix(TRIAL);
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                // It has no processes; if the removal fails, the next probe tries again.
                let _ = self.dirs_named(&name).remove();
            }
        }
    }

    /// Tests the control files of a scratch job. Its name is not a job's: a number would be taken from later jobs.
    pub(crate) fn probe_files(&self) -> ProbeFiles {
        self.remove_trials();
        let dirs = self.dirs_named(&format!("{TRIAL}{}", std::process::id()));
        let lacks = |path: Option<PathBuf>, value: &str, since: &str| match path {
            None => Some(format!("no cpu controller ({since})")),
            Some(path) => cgfile::write(&path, value).err().map(|e| format!("{}: {e} ({since})", path.display())),
        };
        let found = match dirs.make() {
            Err(e) => {
                let why = Some(e.to_string());
                ProbeFiles { freeze: why.clone(), idle: why.clone(), weight: why }
            }
            Ok(()) => ProbeFiles {
                freeze: lacks(Some(dirs.gang().join("cgroup.freeze")), "0", "needs Linux 5.2"),
                idle: lacks(Some(dirs.cpu_files().join("cpu.idle")), "1", "needs Linux 5.15")
                    .or_else(|| lacks(Some(dirs.cpu_files().join("cpu.idle")), "0", "needs Linux 5.15")),
                weight: lacks(Some(dirs.cpu_files().join(dirs.weight_name())), "100", "needs the cpu controller"),
            },
        };
        // If the removal fails, the next probe does it: it has no processes.
        let _ = dirs.remove();
        found
    }
}

/// The prefix of the names of scratch jobs; the number of the testing process follows.
const TRIAL: &str = "trial-";

fn is_below(mount: Option<&PathBuf>, own: Option<&PathBuf>, path: &Path) -> bool {
    let (Some(mount), Some(own)) = (mount, own) else { return false };
    below(mount, path).strip_prefix(own).is_ok_and(|rest| rest.iter().next().is_some())
}

fn job_number(name: &str) -> Option<u64> {
    name.strip_prefix("job-")?.parse().ok()
}

/// The job of an annex whose marker has this name.
pub(crate) fn job_of_marker(name: &str) -> Option<u64> {
    let (job, inode) = name.strip_prefix("annex-")?.split_once('-')?;
    inode.parse::<u64>().ok()?;
    job.parse().ok()
}

/// Enables those of our controllers that are available for the children of `dir`.
fn enable_controllers(dir: &Path) -> Result<(), TreeError> {
    let read = |file: &str| cgfile::read(&dir.join(file)).unwrap_or_default();
    let (available, enabled) = (read("cgroup.controllers"), read("cgroup.subtree_control"));
    let has = |list: &str, name: &str| list.split_whitespace().any(|c| c == name);
    for name in CONTROLLERS {
        if has(&enabled, name) || (name != "cpu" && !has(&available, name)) {
            continue;
        }
        let path = dir.join("cgroup.subtree_control");
        match cgfile::write(&path, &format!("+{name}")) {
            Err(e) if name == "cpu" => return Err(cannot_enable(&path, &e).into()),
            // Memory is only observed, and the limit on processes is optional; without them cosched still schedules.
            _ => {}
        }
    }
    Ok(())
}

fn cannot_enable(path: &Path, error: &io::Error) -> Problem {
    let hint = match error.raw_os_error() {
        Some(libc::EBUSY) => {
            "processes in that cgroup forbid it: move them into a child cgroup (cgroups(7), no internal processes)"
        }
        Some(libc::EINVAL) => {
            "a real-time process outside the root cgroup can forbid it (CONFIG_RT_GROUP_SCHED): find it with ps -eo pid,cls,comm | grep -E 'FF|RR'"
        }
        _ => "run coschedd as root, or in a cgroup with Delegate=yes",
    };
    Problem::new("the cpu controller cannot be enabled", format!("writing +cpu to {}: {error}", path.display()), hint)
}

/// Moves the processes of `dir`, if it has any, into a leaf: v2 allows no processes in a cgroup whose children have controllers.
fn leave_inner_node(dir: &Path) -> Result<(), TreeError> {
    if cgfile::read(&dir.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty()) {
        return Ok(());
    }
    let leaf = dir.join(SUPERVISOR);
    cgfile::mkdir(&leaf).map_err(TreeError::io("create", &leaf))?;
    cgfile::move_all(dir, &leaf).map_err(TreeError::io("move processes into", &leaf))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hybrid(base: &Path) -> Layout {
        Layout {
            cpu_mount: Some(base.join("cpu")),
            memory_mount: Some(base.join("memory")),
            pids_mount: Some(base.join("pids")),
            ..Layout::without_v1(LayoutKind::Hybrid, base.join("unified"))
        }
    }

    #[test]
    fn a_root_tree_stands_in_every_hierarchy() {
        let base = tempfile::tempdir().unwrap();
        for dir in ["unified", "cpu", "memory", "pids"] {
            std::fs::create_dir(base.path().join(dir)).unwrap();
        }
        let tree = Tree::open(&hybrid(base.path()), Place::Root { name: "cosched".into() }).unwrap();
        std::fs::create_dir(base.path().join("unified/cosched/job-12")).unwrap();
        std::fs::create_dir(base.path().join("cpu/cosched/job-3")).unwrap();
        std::fs::create_dir(base.path().join("cpu/cosched/other")).unwrap();
        assert_eq!(tree.jobs().unwrap(), [3, 12]);
        assert!(base.path().join("memory/cosched").is_dir());
        assert!(matches!(tree.open_job(99), Err(TreeError::NoSuchJob(99))));
    }

    #[test]
    fn what_a_killed_daemon_left_is_removed_and_gives_nobody_a_number() {
        let base = tempfile::tempdir().unwrap();
        for dir in ["unified", "cpu", "memory", "pids"] {
            std::fs::create_dir(base.path().join(dir)).unwrap();
        }
        let tree = Tree::open(&hybrid(base.path()), Place::Root { name: "cosched".into() }).unwrap();
        let make = |path: &str| std::fs::create_dir_all(base.path().join(path)).unwrap();
        let is_there = |path: &str| base.path().join(path).exists();
        // The daemon was killed in its probe, while it removed job 3, and while job 4 ran.
        let own = format!("unified/cosched/trial-{}", std::process::id());
        for path in
            ["cpu/cosched/trial-999999999", "memory/cosched/job-3", "unified/cosched/job-4", "cpu/cosched/job-4", &own]
        {
            make(path);
        }
        assert_eq!(tree.jobs().unwrap(), [3, 4]);
        tree.remove_trials();
        assert!(!is_there("cpu/cosched/trial-999999999") && is_there(&own));
        for id in [3, 4] {
            tree.remove_torn(id).unwrap();
        }
        assert!(!is_there("memory/cosched/job-3") && is_there("cpu/cosched/job-4"));
    }

    #[test]
    fn a_delegated_tree_stands_below_its_directories() {
        let layout = hybrid(Path::new("/x"));
        let place = Place::Delegated { dir: "/u/s".into(), cpu_dir: Some("/c".into()), name: "cosched".into() };
        let tree = Tree::at(&layout, &place);
        assert_eq!(tree.v2_dir, Path::new("/x/unified/u/s/cosched"));
        assert_eq!(tree.cpu_dir.as_deref(), Some(Path::new("/x/cpu/c/cosched")));
        assert_eq!(tree.memory_dir, None);
        assert_eq!(tree.job_of_path(Path::new("/u/s/cosched/job-7/gang/inner")), Some(7));
        assert_eq!(tree.job_of_path(Path::new("/u/s/other/job-7")), None);
    }

    #[test]
    fn a_unified_tree_enables_the_controllers_that_are_there() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("cgroup.controllers"), "cpu pids io").unwrap();
        std::fs::write(base.path().join("cgroup.subtree_control"), "pids").unwrap();
        enable_controllers(base.path()).unwrap();
        assert_eq!(std::fs::read_to_string(base.path().join("cgroup.subtree_control")).unwrap(), "+cpu");
    }
}
