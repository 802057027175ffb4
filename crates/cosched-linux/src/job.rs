//! The cgroups of one job.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cgfile;
use crate::descent::is_below;
use crate::keeper::files;
use crate::marker;
use crate::place::{is_limited, own_v1};
use crate::problem::{Problem, TreeError};
use crate::process::{Held, open_pidfd, signal_pidfd};
use crate::quota::{self, Quota};
use crate::switch::{JobSwitch, SwitchFiles, WeightFile};

/// The directories of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobDirs {
    /// Relative to the v2 mount.
    pub(crate) relative: PathBuf,
    pub(crate) outer: PathBuf,
    pub(crate) cpu: Option<PathBuf>,
    pub(crate) memory: Option<PathBuf>,
    pub(crate) pids: Option<PathBuf>,
    pub(crate) cpuset: Option<PathBuf>,
    /// Set for an adopted cgroup, which existed before its job and is not ours to remove; this descriptor holds it.
    pub(crate) adopted: Option<Arc<OwnedFd>>,
    /// Without cgroups: `outer` is a directory of plain files, and the others do not exist.
    pub(crate) kept: bool,
}

/// Processes of a job that the kernel has killed for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The number of processes.
    pub killed: u64,
    /// The least memory limit of the job's cgroup and those above it; `None` if the machine itself ran out of memory, or a cgroup that the job made
    /// itself.
    pub limit_bytes: Option<u64>,
}

/// Without a limit, v1 shows the largest number of pages, in bytes; this is less.
pub(crate) const V1_UNLIMITED_BYTES: u64 = 1 << 62;

/// The limit on the cgroups that are visited in an adopted one: its owner can make any number, and the daemon does nothing else meanwhile.
pub(crate) const CGROUPS_MAX: usize = 1024;

/// The limit on concurrently open pidfds while a job is signalled.
const SIGNALLED_AT_ONCE: usize = 128;

/// The maximum depth of the cgroups that a job makes in its own one.
const DEPTH_MAX: &str = "12";

impl JobDirs {
    /// The v2 cgroup that contains the processes.
    pub(crate) fn gang(&self) -> PathBuf {
        if self.adopted.is_some() || self.kept { self.outer.clone() } else { self.outer.join("gang") }
    }

    /// The directory of cpu.idle and the weight.
    pub(crate) fn cpu_files(&self) -> &Path {
        self.cpu.as_deref().unwrap_or(&self.outer)
    }

    pub(crate) fn weight_name(&self) -> &'static str {
        if self.cpu.is_some() { "cpu.shares" } else { "cpu.weight" }
    }

    fn pids_file(&self, name: &str) -> PathBuf {
        self.pids.as_ref().unwrap_or(&self.outer).join(format!("pids.{name}"))
    }

    pub(crate) fn make(&self) -> Result<(), TreeError> {
        if self.kept {
            return files::make(&self.outer).map_err(TreeError::io("make", &self.outer));
        }
        let gang = self.gang();
        for dir in self.v1().chain([&self.outer, &gang]) {
            cgfile::mkdir(dir).map_err(TreeError::io("create", dir))?;
        }
        if let Some(dir) = &self.cpuset {
            JobDirs::fill_cpuset(dir)?;
        }
        // With deeper levels a path of the longest names could be too long to be removed by any process. Before Linux 4.14 there is no limit.
        let _ = cgfile::write(&self.outer.join("cgroup.max.depth"), DEPTH_MAX);
        Ok(())
    }

    /// Initialises a v1 cpuset with the CPUs and memory of its parent: before that it takes no process.
    pub(crate) fn fill_cpuset(dir: &Path) -> Result<(), TreeError> {
        for name in ["cpuset.cpus", "cpuset.mems"] {
            let (file, above) = (dir.join(name), dir.parent().unwrap_or(dir).join(name));
            let has = |path: &Path| cgfile::read(path).map(|text| text.trim().to_owned()).unwrap_or_default();
            if has(&file).is_empty() {
                cgfile::write(&file, &has(&above)).map_err(TreeError::io("write", &file))?;
            }
        }
        Ok(())
    }

    fn v1(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.cpu, &self.memory, &self.pids, &self.cpuset].into_iter().flatten()
    }

    /// Removes the job's cgroups and those that the job made in them, the deepest first.
    pub(crate) fn remove(&self) -> Result<(), TreeError> {
        if self.kept {
            files::continue_job(&self.outer);
            let removed = match files::keeper_of(&self.outer) {
                Some(_) => Err(io::Error::from_raw_os_error(libc::EBUSY)),
                None => std::fs::remove_dir_all(&self.outer),
            };
            return removed
                .or_else(|e| if cgfile::is_gone(&e) { Ok(()) } else { Err(TreeError::io("remove", &self.outer)(e)) });
        }
        // A marker is removed after the last thaw: without it the frozen cgroup could not be found.
        marker::thaw(&self.outer);
        quota::put_back(&self.outer);
        for top in std::iter::once(&self.outer).chain(self.v1()) {
            cgfile::remove_tree(top).map_err(TreeError::io("remove", top))?;
        }
        Ok(())
    }

    fn switch_files(&self) -> SwitchFiles {
        let idle = self.cpu_files().join("cpu.idle");
        let kind = if self.cpu.is_some() { WeightFile::Shares } else { WeightFile::Weight };
        // An adopted cgroup competes with its own siblings, not with jobs: its marks and weights belong to its owner.
        let weighs = self.adopted.is_none() && !self.kept;
        SwitchFiles {
            adopted: self.adopted.is_some(),
            freeze: self.gang().join(files::FREEZE),
            idle: (weighs && idle.exists()).then_some(idle),
            weight: weighs.then(|| (self.cpu_files().join(self.weight_name()), kind)),
            procs: (!self.kept).then(|| self.gang().join("cgroup.procs")),
            // A keeper's processes would have to be visited.
            usage: (!self.kept).then(|| self.outer.join("cpu.stat")),
            tasks: Some(self.pids_file("current")).filter(|path| path.exists()),
        }
    }
}

/// The cgroups of one job; cheap to clone.
#[derive(Debug, Clone)]
pub struct JobCgroup(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    dirs: JobDirs,
    /// The marker in our subtree of an adopted cgroup.
    marker: Option<JobDirs>,
    /// Of its own cgroup alone; the files of `switch` come from here.
    own_switch: JobSwitch,
    switch: Mutex<Arc<JobSwitch>>,
    /// See `annex.rs`.
    annexes: Mutex<Vec<Annex>>,
    /// The CPU time that annexes had used in the job when they left it, in nanoseconds.
    parted_ns: AtomicU64,
}

/// An adopted cgroup that a job has beside its own.
#[derive(Debug)]
pub(crate) struct Annex {
    pub(crate) cgroup: JobCgroup,
    /// Its CPU time when it became a part of the job, in nanoseconds.
    pub(crate) base_ns: u64,
    /// The last reading: its cgroup may no longer exist.
    pub(crate) seen_ns: AtomicU64,
}

impl JobCgroup {
    pub(crate) fn create(id: u64, dirs: JobDirs) -> Result<JobCgroup, TreeError> {
        let existed = dirs.outer.is_dir();
        let opened = dirs
            .make()
            .and_then(|()| JobSwitch::open(id, &dirs.switch_files()).map_err(TreeError::io("open", &dirs.outer)));
        match opened {
            Ok(switch) => Ok(JobCgroup::of(id, dirs, None, switch)),
            Err(e) => {
                if !existed {
                    // The first error is the one to report.
                    let _ = dirs.remove();
                }
                Err(e)
            }
        }
    }

    pub(crate) fn with_marker(id: u64, dirs: JobDirs, marker: JobDirs) -> Result<JobCgroup, TreeError> {
        let switch = JobSwitch::open(id, &dirs.switch_files()).map_err(TreeError::io("open", &dirs.relative))?;
        Ok(JobCgroup::of(id, dirs, Some(marker), switch))
    }

    fn of(id: u64, dirs: JobDirs, marker: Option<JobDirs>, own_switch: JobSwitch) -> JobCgroup {
        let switch = Mutex::new(Arc::new(own_switch.with(std::iter::empty())));
        let (annexes, parted_ns) = Default::default();
        JobCgroup(Arc::new(Inner { id, dirs, marker, own_switch, switch, annexes, parted_ns }))
    }

    /// Its annexes. The switch is made again when this changes them.
    pub(crate) fn with_annexes<R>(&self, change: impl FnOnce(&mut Vec<Annex>, &AtomicU64) -> R) -> R {
        let mut annexes = self.0.annexes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = annexes.len();
        let result = change(&mut annexes, &self.0.parted_ns);
        if annexes.len() != before {
            let others = annexes.iter().map(|annex| &annex.cgroup.0.own_switch);
            let switch = Arc::new(self.0.own_switch.with(others));
            *self.0.switch.lock().unwrap_or_else(PoisonError::into_inner) = switch;
        }
        result
    }

    pub(crate) fn dirs(&self) -> &JobDirs {
        &self.0.dirs
    }

    /// Whether its cgroup existed before the job, outside our subtree.
    pub fn is_adopted(&self) -> bool {
        self.0.marker.is_some()
    }

    /// Of an adopted cgroup: its user gives it back, and no rule takes it again ([`crate::adopt::was_released`]).
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn note_released(&self) -> io::Result<()> {
        marker::note_released(&self.0.dirs.outer)
    }

    /// Of an adopted cgroup: its owner's quota may be lifted from now on ([`Quota::lift`]), and comes back whoever dies.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn note_quota(&self, quota: &Quota) -> Result<(), TreeError> {
        let at = &self.0.marker.as_ref().unwrap_or(&self.0.dirs).outer;
        quota.note(at).map_err(TreeError::io("note the quota in", at))
    }

    /// The quota that may be lifted.
    pub fn quota(&self) -> Option<Quota> {
        Quota::noted(&self.0.marker.as_ref()?.outer)
    }

    /// Limits its processes and threads, where there is a controller for that.
    pub(crate) fn bound_tasks(&self, most: u64) {
        // If the file is missing there is no controller, which was reported when the tree was made.
        let _ = cgfile::write(&self.0.dirs.pids_file("max"), &most.to_string());
    }

    /// The job's number.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Its v2 cgroup relative to the v2 mount, with a leading slash, as in /proc/PID/cgroup. The processes are in `gang` below it.
    pub fn v2_path_relative(&self) -> &Path {
        &self.0.dirs.relative
    }

    /// Its v2 directory.
    pub fn v2_dir(&self) -> &Path {
        &self.0.dirs.outer
    }

    /// The file that changes when the job's last process has ended (inotify `IN_MODIFY`). Freezing does not change it.
    pub fn events_path(&self) -> PathBuf {
        self.0.dirs.outer.join(files::EVENTS)
    }

    /// The files by which the slot thread switches it. It is another handle after each change of the annexes.
    pub fn switch_handle(&self) -> Arc<JobSwitch> {
        Arc::clone(&self.0.switch.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves a process with all its threads into the job: memory and CPU first, the v2 cgroup (which may be frozen) last. In the hybrid layout a
    /// process whose memory cgroup or cpuset is not the root, or whose pids cgroup is limited, stays in that one: taking it out would lift a limit
    /// that was set on it. If the job has a memory limit, the process enters from any memory cgroup without one.
    ///
    /// # Errors
    /// The process no longer exists or the kernel refuses; the message says what to do.
    pub fn attach(&self, pid: i32) -> Result<(), TreeError> {
        if let Some(dir) = self.kept() {
            return files::keep(dir, pid).map_err(|e| attach_error(pid, dir, e));
        }
        let content = cgfile::read(Path::new(&format!("/proc/{pid}/cgroup"))).unwrap_or_default();
        let memory = in_root_of("memory", &content) || self.limits_memory_of(&content);
        self.attach_with(pid, memory, !self.keeps_pids(&content), in_root_of("cpuset", &content))
    }

    /// Whether a process with these cgroups keeps its v1 pids cgroup. The mount is two levels above the job's directory.
    fn keeps_pids(&self, content: &str) -> bool {
        let mount = self.0.dirs.pids.as_ref().and_then(|dir| dir.parent()?.parent());
        mount.zip(own_v1(content, "pids")).is_some_and(|(mount, path)| is_limited(mount, &path, "pids.max"))
    }

    /// The same for a child of the daemon: the limits on the daemon's memory are not kept.
    ///
    /// # Errors
    /// As [`JobCgroup::attach`].
    pub fn attach_child(&self, pid: i32) -> Result<(), TreeError> {
        self.attach_with(pid, true, true, true)
    }

    fn attach_with(&self, pid: i32, memory: bool, pids: bool, cpuset: bool) -> Result<(), TreeError> {
        let dirs = &self.0.dirs;
        let gang = dirs.gang();
        let memory = dirs.memory.as_ref().filter(|_| memory);
        let (pids, cpuset) = (dirs.pids.as_ref().filter(|_| pids), dirs.cpuset.as_ref().filter(|_| cpuset));
        for dir in memory.into_iter().chain(pids).chain(cpuset).chain(&dirs.cpu).chain([&gang]) {
            let path = dir.join("cgroup.procs");
            cgfile::write(&path, &pid.to_string()).map_err(|e| attach_error(pid, &path, e))?;
        }
        Ok(())
    }

    /// The directory of a job without cgroups.
    pub(crate) fn kept(&self) -> Option<&Path> {
        Some(self.0.dirs.outer.as_path()).filter(|_| self.0.dirs.kept)
    }

    /// True while its cgroup has a process. False for one that no longer exists.
    pub(crate) fn own_populated(&self) -> Result<bool, TreeError> {
        let path = self.events_path();
        match cgfile::read(&path) {
            Ok(content) => {
                let has_keeper = || self.kept().is_none_or(|dir| files::keeper_of(dir).is_some());
                Ok(cgfile::keyed(&content, "populated") == Some(1) && has_keeper())
            }
            Err(e) if cgfile::is_gone(&e) => Ok(false),
            Err(e) => Err(TreeError::io("read", &path)(e)),
        }
    }

    /// Whether its cgroup no longer exists, also where another one has its path now.
    pub fn is_removed(&self) -> bool {
        cgfile::read(&self.events_path()).is_err_and(|e| cgfile::is_gone(&e))
    }

    /// The processes of its cgroup, also those in cgroups that the job made itself. If an adopted cgroup has more than 1024 cgroups below it, only
    /// some are visited. A cgroup that vanishes meanwhile is skipped.
    pub(crate) fn own_procs(&self) -> Result<Vec<i32>, TreeError> {
        let mut pids = self.kept().map(files::members).unwrap_or_default();
        self.visit(|_, found| pids.extend(found))?;
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Threads of the job, without those in cgroups that it made itself: at most as many as one read returns, some hundreds.
    pub(crate) fn some_threads(&self) -> Vec<i32> {
        let mut page = [0; 4096];
        let file = std::fs::File::open(self.0.dirs.gang().join("cgroup.threads"));
        let length = file.and_then(|mut file| file.read(&mut page)).unwrap_or(0);
        let whole = page[..length].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        cgfile::pids(&String::from_utf8_lossy(&page[..whole]))
    }

    /// Visits each of its cgroups with the processes in it. Returns whether those were all.
    fn visit(&self, mut see: impl FnMut(BorrowedFd<'_>, Vec<i32>)) -> Result<bool, TreeError> {
        let outer = &self.0.dirs.outer;
        let most = if self.is_adopted() { CGROUPS_MAX } else { usize::MAX };
        let looked = cgfile::visit(outer, most, &mut |dir| {
            match cgfile::procs_at(dir) {
                Ok(found) => see(dir, found),
                // A threaded cgroup that the job made has no list of its own: its processes are in the parent's list.
                Err(e) if cgfile::is_gone(&e) || e.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                Err(e) => return Err(e),
            }
            Ok(())
        });
        looked.map_err(TreeError::io("read", outer))
    }

    /// The number of the job's processes.
    ///
    /// # Errors
    /// As [`JobCgroup::procs`].
    pub fn count(&self) -> Result<usize, TreeError> {
        Ok(self.procs()?.len())
    }

    /// Sends a signal to every process of its cgroup, once to each, until no new one appears.
    pub(crate) fn own_signal_all(&self, signal: i32) -> Result<usize, TreeError> {
        let mut done = BTreeSet::new();
        let mut all = true;
        // A job that forks faster than this loop reads can only be stopped by kill().
        for _ in 0..16 {
            let before = done.len();
            if let Some(dir) = self.kept() {
                let new: Vec<i32> = files::members(dir).into_iter().filter(|pid| !done.contains(pid)).collect();
                done.extend(new.into_iter().filter(|pid| signal_below(dir, *pid, signal)));
            }
            all &= self.visit(|dir, found| {
                let new: Vec<i32> = found.into_iter().filter(|pid| !done.contains(pid)).collect();
                new.chunks(SIGNALLED_AT_ONCE).for_each(|pids| done.extend(signal_in(dir, pids, signal)));
            })?;
            if done.len() == before {
                break;
            }
        }
        if !all {
            let what = format!("only {} processes of job {} got signal {signal}", done.len(), self.id());
            let why = format!("its adopted cgroup has grown to more than {CGROUPS_MAX} cgroups");
            return Err(Problem::new(what, why, "`cosched kill -9` ends all of them at once.").into());
        }
        Ok(done.len())
    }

    /// Kills every process of its cgroup, frozen or not, by cgroup.kill (Linux 5.14), else by SIGKILL to each.
    pub(crate) fn own_kill(&self) -> Result<(), TreeError> {
        // Frozen processes with the idle mark would die only with the CPU time that the others leave. The slot thread sets the mark again, if needed.
        let _ = self.switch_handle().set_idle(false);
        let path = self.0.dirs.outer.join("cgroup.kill");
        match cgfile::write(&path, "1") {
            Ok(()) => Ok(()),
            Err(_) if !self.0.dirs.outer.is_dir() => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.own_signal_all(libc::SIGKILL).map(drop),
            Err(e) => Err(TreeError::io("write", &path)(e)),
        }
    }

    /// The CPU time that its cgroup has used, in nanoseconds (the kernel counts microseconds).
    pub(crate) fn own_cpu_time_ns(&self) -> Result<u64, TreeError> {
        if let Some(dir) = self.kept() {
            return Ok(files::cpu_time_ns(dir).unwrap_or(0));
        }
        let path = self.0.dirs.outer.join("cpu.stat");
        let content = cgfile::read(&path).map_err(TreeError::io("read", &path))?;
        Ok(cgfile::keyed(&content, "usage_usec").unwrap_or(0) * 1000)
    }

    /// The memory that its cgroup uses now, in bytes; otherwise the sum of the resident sets of its processes.
    pub(crate) fn own_memory_current(&self) -> Option<u64> {
        let dirs = &self.0.dirs;
        let v2 = number(&dirs.outer.join("memory.current"));
        v2.or_else(|| number(&self.used_memory_dir()?.join("memory.usage_in_bytes"))).or_else(|| {
            let pids = self.own_procs().ok()?;
            Some(pids.iter().filter_map(|&pid| crate::process::resident_bytes(pid)).sum())
        })
    }

    /// The peak of its cgroup's memory, in bytes; `None` without a memory controller.
    pub(crate) fn own_memory_peak(&self) -> Option<u64> {
        let v2 = number(&self.0.dirs.outer.join("memory.peak"));
        v2.or_else(|| number(&self.used_memory_dir()?.join("memory.max_usage_in_bytes")))
    }

    /// The processes that the kernel has killed for lack of memory; `None` if there are none, or no memory controller. Not for an adopted cgroup,
    /// whose counter includes the time before it was a job.
    pub fn out_of_memory(&self) -> Option<OutOfMemory> {
        let dirs = Some(&self.0.dirs).filter(|_| !self.is_adopted())?;
        let count = |file: &Path| cgfile::keyed(&cgfile::read(file).ok()?, "oom_kill").filter(|killed| *killed > 0);
        if let Some(killed) = count(&dirs.outer.join("memory.events")) {
            return Some(OutOfMemory { killed, limit_bytes: least_limit(&dirs.outer, "memory.max") });
        }
        let memory = dirs.memory.as_ref()?;
        let killed = count(&memory.join("memory.oom_control"))?;
        let limit_bytes = least_limit(memory, "memory.limit_in_bytes").filter(|bytes| *bytes < V1_UNLIMITED_BYTES);
        Some(OutOfMemory { killed, limit_bytes })
    }

    /// The v1 memory cgroup, when the job's processes really are in it.
    fn used_memory_dir(&self) -> Option<&PathBuf> {
        self.0.dirs.memory.as_ref().filter(|dir| cgfile::procs(dir).is_ok_and(|pids| !pids.is_empty()))
    }

    /// The present number of its processes and threads, as the kernel counts them for its limit; `None` without a pids controller.
    pub fn tasks(&self) -> Option<u64> {
        self.switch_handle().tasks()
    }

    /// True when the gang was told to freeze. It does not mean that each process is frozen already.
    pub fn frozen(&self) -> bool {
        number(&self.0.dirs.gang().join(files::FREEZE)) == Some(1)
    }

    /// Removes its cgroups in all hierarchies, with those that the job made itself. An adopted cgroup is thawed, and stays.
    pub(crate) fn own_remove(&self) -> Result<(), TreeError> {
        self.0.marker.as_ref().unwrap_or(&self.0.dirs).remove()
    }
}

/// The least number in this file of a cgroup and those above it.
fn least_limit(dir: &Path, file: &str) -> Option<u64> {
    dir.ancestors().take_while(|dir| dir.join("cgroup.procs").exists()).filter_map(|dir| number(&dir.join(file))).min()
}

pub(crate) fn number(path: &Path) -> Option<u64> {
    cgfile::read(path).ok()?.trim().parse().ok()
}

/// Signals those of these processes that are still in the cgroup, and returns their numbers: a number may have been reused by now.
fn signal_in(dir: BorrowedFd<'_>, pids: &[i32], signal: i32) -> Vec<i32> {
    let held: Vec<(i32, OwnedFd)> = pids.iter().filter_map(|pid| Some((*pid, open_pidfd(*pid).ok()?))).collect();
    // Read with the pidfds open, and not from /proc, where a path can be too long to be reported.
    let still: BTreeSet<i32> = cgfile::procs_at(dir).unwrap_or_default().into_iter().collect();
    let own = held.into_iter().filter(|(pid, _)| still.contains(pid));
    own.map(|(pid, pidfd)| {
        let _ = signal_pidfd(&pidfd, signal);
        pid
    })
    .collect()
}

/// Signals this process if it is still below the job's keeper.
fn signal_below(dir: &Path, pid: i32, signal: i32) -> bool {
    let (held, keeper) = (Held::open(pid), files::keeper_of(dir));
    // Asked with the pidfd open: the number may have been reused.
    held.is_ok_and(|held| keeper.is_some_and(|keeper| pid == keeper || is_below(pid, keeper)) && held.signal(signal))
}

/// Whether this process is in the root cgroup of a v1 controller: taking it out of another one would lift a limit.
fn in_root_of(controller: &str, content: &str) -> bool {
    own_v1(content, controller).is_none_or(|path| path == Path::new("/"))
}

fn attach_error(pid: i32, path: &Path, error: io::Error) -> TreeError {
    let what = format!("process {pid} cannot be moved into its job");
    let why = format!("writing {}: {error}", path.display());
    let hint = match error.raw_os_error() {
        Some(libc::ESRCH) => "it has ended already",
        Some(libc::EINVAL) => {
            "a process with real-time threads cannot enter a cpu cgroup on a kernel with CONFIG_RT_GROUP_SCHED: \
             start it without real-time priority"
        }
        Some(libc::EBUSY) => {
            "the job has cgroups with controllers of its own, beside which the kernel takes no process: start it from a process \
             of the job"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "it is outside the cgroups that are delegated to you, as a login session is: start it in the same scope as the \
             daemon or, for a daemon of `systemctl --user`, by `systemd-run --user --scope cosched run …`; or ask the \
             administrator to run coschedd as a service"
        }
        _ => return TreeError::io("write", path)(error),
    };
    Problem::new(what, why, hint).into()
}
