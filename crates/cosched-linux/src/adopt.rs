//! An existing cgroup that becomes a job as it is: a unit's, a container's, or one made by hand. It stays where it is, with its processes and its
//! limits, and is switched by its own freezer. Our subtree contains only its marker (`marker.rs`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};

use crate::cgfile;
use crate::family::{PROCESSES_MAX, family};
use crate::job::{CGROUPS_MAX, JobCgroup, JobDirs, number};
use crate::marker;
pub use crate::marker::was_released;
use crate::origin::Origin;
use crate::place::below;
use crate::problem::{Problem, TreeError};
use crate::quota::Quota;
use crate::tree::Tree;

/// The maximum depth below the mount.
const LEVELS_MAX: usize = 32;
/// The maximum length of its full path in bytes: guard and agent open it by that, where PATH_MAX (4096) is the limit.
const PATH_BYTES_MAX: usize = 4000;

/// A cgroup that may become a job, held open: a later cgroup at the same path is a different one.
#[derive(Debug, Clone)]
pub struct Adoptee {
    dir: Arc<OwnedFd>,
    full: PathBuf,
    relative: PathBuf,
    inode: u64,
    owner: u32,
}

impl Adoptee {
    /// Its path in the v2 hierarchy, as in /proc/PID/cgroup.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// The owner of its directory (uid).
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Its processes, with those of the cgroups below it.
    ///
    /// # Errors
    /// They cannot be read, there are more than [`PROCESSES_MAX`], or there are more than 1024 cgroups.
    pub fn procs(&self) -> io::Result<Vec<i32>> {
        procs_below(&self.outer())
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        Size::of(&self.outer())
    }

    /// Whether it contains a process.
    pub fn populated(&self) -> bool {
        let events = cgfile::read(&self.outer().join("cgroup.events")).unwrap_or_default();
        cgfile::keyed(&events, "populated") == Some(1)
    }

    /// Whether one of the two cgroups contains the other.
    pub fn overlaps(&self, other: &Path) -> bool {
        self.relative.starts_with(other) || other.starts_with(&self.relative)
    }

    /// Its path by the descriptor. The trailing dot keeps it from being a symbolic link, which nothing here follows.
    fn outer(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/.", self.dir.as_raw_fd()))
    }

    fn dirs(&self) -> JobDirs {
        let (relative, outer) = (self.relative.clone(), self.outer());
        JobDirs { relative, outer, adopted: Some(Arc::clone(&self.dir)), ..JobDirs::default() }
    }
}

impl JobCgroup {
    /// Why an adopted cgroup is larger by now than one that may be adopted: the kernel visits all that is in it at each switch.
    pub fn outgrown(&self, tasks_max: u64) -> Option<String> {
        self.is_adopted().then(|| self.size().excess(tasks_max))?
    }

    /// How large an adopted cgroup is.
    pub fn size(&self) -> Size {
        Size::of(&self.dirs().outer)
    }
}

/// What the kernel visits of adopted cgroups at each switch. Without a pids controller no tasks are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// The cgroups below.
    pub cgroups: u64,
    /// Processes and threads.
    pub tasks: u64,
}

impl Size {
    fn of(dir: &Path) -> Size {
        let stat = cgfile::read(&dir.join("cgroup.stat")).unwrap_or_default();
        let cgroups = cgfile::keyed(&stat, "nr_descendants").unwrap_or(0);
        Size { cgroups, tasks: number(&dir.join("pids.current")).unwrap_or(0) }
    }

    /// Why that is more than a job may have, with at most this number of tasks.
    pub fn excess(self, tasks_max: u64) -> Option<String> {
        let Size { cgroups, tasks } = self;
        match () {
            () if cgroups > CGROUPS_MAX as u64 => {
                Some(format!("it has {cgroups} cgroups below it, more than {CGROUPS_MAX}"))
            }
            () if tasks > tasks_max => Some(format!("it has {tasks} processes and threads, more than {tasks_max}")),
            () => None,
        }
    }
}

impl std::ops::Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size { cgroups: self.cgroups + other.cgroups, tasks: self.tasks + other.tasks }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), |sum, size| sum + size)
    }
}

/// The processes of a cgroup and of those below it.
///
/// # Errors
/// As of [`Adoptee::procs`].
pub fn procs_below(dir: &Path) -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    let all = cgfile::visit(dir, CGROUPS_MAX, &mut |dir| {
        match cgfile::procs_at(dir) {
            Ok(found) => pids.extend(found),
            Err(e) if cgfile::is_gone(&e) || e.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Err(e) => return Err(e),
        }
        if pids.len() > PROCESSES_MAX {
            return Err(io::Error::other(format!("it has more than {PROCESSES_MAX} processes")));
        }
        Ok(())
    })?;
    let too_many = || io::Error::other(format!("it has more than {CGROUPS_MAX} cgroups, itself and those below it"));
    all.then_some(pids).ok_or_else(too_many)
}

impl Tree {
    /// A path as in /proc/PID/cgroup, of one that is given so or below the v2 mount.
    pub fn path_of(&self, path: &Path) -> PathBuf {
        let mount = &self.layout().v2_mount;
        Path::new("/").join(path.strip_prefix(mount).or_else(|_| path.strip_prefix("/")).unwrap_or(path))
    }

    /// Opens an existing cgroup that may become a job: `path` is one of /proc/PID/cgroup, or one below the v2 mount. The caller checks to whom it and
    /// its processes belong.
    ///
    /// # Errors
    /// It does not exist, contains this daemon or the machine's first process, overlaps with our subtree, has no process, or is already frozen.
    pub fn adoptee(&self, path: &Path) -> Result<Adoptee, Problem> {
        let mount = &self.layout().v2_mount;
        let shown = path.display();
        let refused = |why: &str, hint: &str| Problem::new(format!("{shown} cannot become a job"), why, hint);
        let relative = self.path_of(path);
        let path = relative.strip_prefix("/").unwrap_or(&relative);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let levels = path.components().count();
        if !is_plain || levels == 0 || levels > LEVELS_MAX {
            let why = format!("it is the root of all cgroups, more than {LEVELS_MAX} levels deep, or not a plain path");
            return Err(refused(
                &why,
                "Name one cgroup, as in /proc/PID/cgroup: `cosched adopt --cgroup /system.slice/x.service`.",
            ));
        }
        let full = mount.join(path);
        if full.as_os_str().len() > PATH_BYTES_MAX {
            let why = format!(
                "its full path is longer than {PATH_BYTES_MAX} bytes, and the program that thaws it at the end might \
                 not reach it"
            );
            return Err(refused(&why, "Name a cgroup above it, or give the cgroups shorter names."));
        }
        let dir = self.open_below(path).map_err(|e| {
            let hint = "`cat /proc/PID/cgroup` shows the cgroup of a process after `0::`.";
            refused(&format!("there is no such cgroup below {}: {e}", mount.display()), hint)
        })?;
        let facts = fstat(&dir).map_err(|e| refused(&e.to_string(), "Try again."))?;
        let adoptee = Adoptee { dir: Arc::new(dir), full, relative, inode: facts.st_ino, owner: facts.st_uid };
        self.check(&adoptee).map_err(|(why, hint)| refused(why, hint))?;
        Ok(adoptee)
    }

    fn open_below(&self, path: &Path) -> io::Result<OwnedFd> {
        let mount = File::open(&self.layout().v2_mount)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        Ok(openat2(&mount, path, flags, Mode::empty(), resolve)?)
    }

    fn check(&self, adoptee: &Adoptee) -> Result<(), (&'static str, &'static str)> {
        let holds = |pid: &str| {
            let content = cgfile::read(&Path::new("/proc").join(pid).join("cgroup")).unwrap_or_default();
            crate::place::own_v2(&content).is_some_and(|own| own.starts_with(&adoptee.relative))
        };
        let file = |name: &str| cgfile::read(&adoptee.outer().join(name)).unwrap_or_default();
        if adoptee.full.starts_with(self.v2_dir()) || self.v2_dir().starts_with(&adoptee.full) {
            return Err((
                "it is part of this daemon's subtree, or contains that",
                "It contains jobs already; name another cgroup.",
            ));
        }
        if holds("self") {
            return Err(("this daemon is in it", "Name a cgroup below it that has only the service's processes."));
        }
        if holds("1") {
            return Err((
                "the machine's first process is in it",
                "Name a cgroup below it that has only the service's processes.",
            ));
        }
        if file("cgroup.type").trim() == "threaded" {
            return Err((
                "it is a threaded cgroup, which holds threads of processes elsewhere",
                "Name the cgroup above it.",
            ));
        }
        if !adoptee.outer().join("cgroup.freeze").exists() {
            return Err(("it has no cgroup.freeze", "This needs Linux 5.2 and a cgroup of the v2 hierarchy."));
        }
        if file("cgroup.freeze").trim() != "0" {
            let hint = "Let it run first: `systemctl thaw UNIT`, `podman unpause CONTAINER`, or echo 0 into its cgroup.freeze.";
            return Err(("it is frozen by another program", hint));
        }
        if !adoptee.populated() {
            return Err(("it has no process", "Start the service, then adopt it."));
        }
        Ok(())
    }

    /// The quota of CPU time that the owner has set, where lifting it lifts it for the processes of this cgroup and no others.
    ///
    /// # Errors
    /// There is none, or one that others share.
    pub fn quota_of(&self, adoptee: &Adoptee) -> Result<Quota, Problem> {
        let refused = |why: String, hint: &str| {
            let what = format!("the quota of {} cannot be turned into a share", adoptee.relative.display());
            Problem::new(what, why, hint)
        };
        let give = "Give the share yourself, as `--share 50%`.";
        let dir = match &self.layout().cpu_mount {
            None => adoptee.full.clone(),
            Some(mount) => {
                let pids = adoptee.procs().map_err(|e| refused(e.to_string(), give))?;
                let path = pids.first().and_then(|pid| Origin::of(*pid)?.cpu).unwrap_or_default();
                let dir = below(mount, &path);
                let inside: BTreeSet<i32> = procs_below(&dir).unwrap_or_default().into_iter().collect();
                if inside != pids.into_iter().collect() {
                    let why =
                        format!("its processes are in the v1 cpu cgroup {}, and others are there too", path.display());
                    return Err(refused(why, give));
                }
                dir
            }
        };
        let none =
            "it has none of its own (cpu.max, or cpu.cfs_quota_us in v1); one of a cgroup above it is for others, too";
        Quota::of(&dir).ok_or_else(|| refused(none.to_owned(), give))
    }

    /// Makes job `id` of an existing cgroup.
    ///
    /// # Errors
    /// As [`Tree::adoptee`], because the state may have changed while the job waited. Also when the marker cannot be made or a file cannot be opened;
    /// then nothing is left behind.
    pub fn adopt(&self, id: u64, adoptee: &Adoptee) -> Result<JobCgroup, TreeError> {
        self.adopt_by(id, self.marker_dirs(id), adoptee)
    }

    pub(crate) fn adopt_by(&self, id: u64, marker: JobDirs, adoptee: &Adoptee) -> Result<JobCgroup, TreeError> {
        let what = || format!("{} cannot become a job", adoptee.relative.display());
        self.check(adoptee).map_err(|(why, hint)| Problem::new(what(), why, hint))?;
        let at = &marker.outer;
        let made = cgfile::mkdir(at)
            .and_then(|()| marker::mark(at, adoptee.inode, &adoptee.full))
            .map_err(TreeError::io("mark the adopted cgroup in", at));
        marker::forget_released(&adoptee.outer());
        let job = made.and_then(|()| JobCgroup::with_marker(id, adoptee.dirs(), marker.clone()));
        job.inspect_err(|_| drop(marker.remove()))
    }

    /// Reopens the cgroup that an earlier daemon had adopted for job `id` by this marker; `None` if it is none.
    pub(crate) fn open_adopted(&self, id: u64, marker: &JobDirs) -> Option<Result<JobCgroup, TreeError>> {
        let (_, full) = marker::marked(&marker.outer)?;
        let Some((dir, _)) = marker::open_marked(&marker.outer) else {
            let why = format!("{} no longer exists, or another cgroup has its path", full.display());
            return Some(Err(Problem::new(format!("job {id} has no cgroup"), why, "Nothing was changed.").into()));
        };
        let relative = Path::new("/").join(full.strip_prefix(&self.layout().v2_mount).unwrap_or(&full));
        let facts = match fstat(&dir) {
            Ok(facts) => facts,
            Err(e) => return Some(Err(TreeError::io("read", &full)(e.into()))),
        };
        let adoptee = Adoptee { dir: Arc::new(dir.into()), full, relative, inode: facts.st_ino, owner: facts.st_uid };
        Some(JobCgroup::with_marker(id, adoptee.dirs(), marker.clone()))
    }

    /// The cgroups of jobs outside our subtree.
    pub(crate) fn adopted(&self) -> Vec<PathBuf> {
        let markers = cgfile::children(self.v2_dir()).unwrap_or_default();
        markers.iter().filter_map(|marker| Some(marker::marked(marker)?.1)).collect()
    }

    /// The cgroup of a process, if only the process and its descendants are in it; otherwise the process has to be moved.
    pub fn own_cgroup_of(&self, pid: i32) -> Option<PathBuf> {
        let relative = Origin::of(pid)?.v2;
        if relative == Path::new("/") || self.job_of_path(&relative).is_some() {
            return None;
        }
        let dir = below(&self.layout().v2_mount, &relative);
        let pids = procs_below(&dir).ok()?;
        let family: BTreeSet<i32> = family(pid)?.into_iter().collect();
        (family == pids.into_iter().collect()).then_some(relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, LayoutKind};
    use crate::place::Place;
    use std::fs;

    /// Plain directories are used instead of cgroups.
    fn tree(mount: &Path) -> Tree {
        let layout = Layout::without_v1(LayoutKind::Hybrid, mount.into());
        Tree::open(&layout, Place::Root { name: "cosched".into() }).unwrap()
    }

    fn service(mount: &Path) -> PathBuf {
        let dir = mount.join("a.service");
        fs::create_dir(&dir).unwrap();
        for (name, content) in [("cgroup.freeze", "0"), ("cgroup.events", "populated 1\n"), ("cgroup.procs", "7\n")] {
            fs::write(dir.join(name), content).unwrap();
        }
        dir
    }

    #[test]
    fn what_was_frozen_while_its_job_waited_is_not_begun() {
        let base = tempfile::tempdir().unwrap();
        let (tree, dir) = (tree(base.path()), service(base.path()));
        let adoptee = tree.adoptee(Path::new("/a.service")).unwrap();
        fs::write(dir.join("cgroup.freeze"), "1").unwrap();
        let refused = tree.adopt(3, &adoptee).unwrap_err().to_string();
        assert!(refused.contains("it is frozen by another program"), "{refused}");
        assert!(tree.jobs().unwrap().is_empty());
        assert_eq!(fs::read_to_string(dir.join("cgroup.freeze")).unwrap(), "1");
    }

    #[test]
    fn one_with_too_many_cgroups_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let (tree, dir) = (tree(base.path()), service(base.path()));
        let adoptee = tree.adoptee(Path::new("/a.service")).unwrap();
        (1..CGROUPS_MAX).for_each(|at| fs::create_dir(dir.join(at.to_string())).unwrap());
        assert_eq!(adoptee.procs().unwrap(), [7]);
        fs::create_dir(dir.join("more")).unwrap();
        let refused = adoptee.procs().unwrap_err().to_string();
        assert!(refused.contains("more than 1024 cgroups"), "{refused}");
    }

    #[test]
    fn a_path_that_cannot_be_opened_whole_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let path: PathBuf = (0..20).map(|_| "d".repeat(200)).collect();
        let refused = tree(base.path()).adoptee(&path).unwrap_err();
        assert!(refused.why.contains("longer than 4000 bytes"), "{refused}");
    }
}
