//! The last resort: the kernel itself has the jobs thawed when daemon and guard are killed at the same moment.
//!
//! A named v1 hierarchy without controllers has a `release_agent`: a program that the kernel runs as root when the last process of one of its cgroups
//! has ended (cgroups(7), "Cgroups v1 release notification"). The daemon, and the guard as its child, are in such a cgroup; jobs are not, since they
//! are started by other processes. The program is the guard's binary under the name of a link in the run directory, where it finds what to thaw.
//! Whether the kernel really runs it is tested at start: in a container it may not, and without CAP_SYS_ADMIN it cannot be set up.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cgfile;
use crate::confine::widen_all;
use crate::private;
use crate::problem::Problem;
use crate::realtime::ordinarily;
use crate::thaw::{ThawPaths, thaw_all};
use crate::tree::Tree;

/// The link's name, by which the binary knows its role.
const LINK: &str = "cosched-agent";
const CONFIG: &str = "agent.conf";
const MOUNT: &str = "agent";
const WHAT: &str = "the kernel cannot be the last guard";
/// How long the self-test waits for the kernel.
const TEST_TIME_MAX: Duration = Duration::from_secs(5);

/// The armed last resort. Dropping it leaves it armed, as a killed daemon would; see [`KernelAgent::disarm`].
#[derive(Debug)]
pub struct KernelAgent {
    run_dir: PathBuf,
    instance: String,
    live: String,
    paths: ThawPaths,
}

/// Lets a command begin outside of the agent's cgroup, with all that it starts: the agent is run when only the daemon and its guard have ended.
///
/// # Errors
/// The hierarchy is there and cannot be opened.
pub fn begin_outside(run_dir: &Path, command: &mut Command) -> io::Result<()> {
    let procs = match fs::OpenOptions::new().write(true).open(run_dir.join(MOUNT).join("cgroup.procs")) {
        Ok(procs) => procs,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    begin_in(procs, command);
    Ok(())
}

/// Lets a command begin in the cgroup of this open list of processes.
fn begin_in(procs: fs::File, command: &mut Command) {
    // SAFETY: between fork and exec only an async-signal-safe write, to a descriptor that the closure owns.
    unsafe {
        command.pre_exec(move || match libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
}

impl KernelAgent {
    /// Sets it up for this process, with its files in `run_dir` (which, like all directories above it, only root may change) and a hierarchy named
    /// `instance`. Files of a killed daemon are used again.
    ///
    /// # Errors
    /// The process is not root, the kernel has no v1 cgroups, or the self-test shows that the kernel does not run the program.
    pub fn arm(run_dir: &Path, instance: &str, guard_exe: &Path, tree: &Tree) -> Result<KernelAgent, Problem> {
        let run_dir = private_dir(run_dir)?;
        let exe = fs::canonicalize(guard_exe).map_err(|e| failed("find", guard_exe, &e))?;
        let live = format!("live-{}", std::process::id());
        let agent = KernelAgent { run_dir, instance: instance.into(), live, paths: tree.thaw_paths() };
        match agent.set_up(&exe) {
            Ok(()) => Ok(agent),
            Err(problem) => {
                // An unused hierarchy would stay until the machine is rebooted. If the guard of an earlier daemon still uses it, it stays.
                let _ = KernelAgent::remove_leftover(&agent.run_dir, instance);
                Err(problem)
            }
        }
    }

    fn set_up(&self, exe: &Path) -> Result<(), Problem> {
        self.mount()?;
        self.place_link(exe)?;
        self.set_signals(false).map_err(|e| failed("write", &self.file(CONFIG), &e))?;
        self.control("release_agent", self.file(LINK).as_os_str())?;
        self.self_test(exe)?;
        self.enter()
    }

    /// Adds a process (with its threads): the agent is not run while one of them lives.
    ///
    /// # Errors
    /// The kernel's, such as ESRCH.
    pub fn adopt(&self, pid: i32) -> io::Result<()> {
        cgfile::write(&self.mount_dir().join(&self.live).join("cgroup.procs"), &pid.to_string())
    }

    /// Takes a process out again: a helper of the daemon that must not keep the agent from being run (the idle probe).
    ///
    /// # Errors
    /// The kernel's, such as ESRCH.
    pub fn release(&self, pid: i32) -> io::Result<()> {
        cgfile::write(&self.mount_dir().join("cgroup.procs"), &pid.to_string())
    }

    /// Stores whether processes may have been stopped by signals, so that SIGCONT is needed too.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_signals(&self, signals: bool) -> io::Result<()> {
        let config = Config { live: self.live.clone(), signals, paths: self.paths.clone() };
        let (path, fresh) = (self.file(CONFIG), self.file("agent.conf.new"));
        fs::write(&fresh, config.to_bytes())?;
        fs::rename(&fresh, &path)
    }

    /// Takes it down at a clean end: the processes leave, the hierarchy is unmounted, the files are removed.
    ///
    /// # Errors
    /// When the hierarchy cannot be unmounted.
    pub fn disarm(self) -> io::Result<()> {
        let live = self.mount_dir().join(&self.live);
        cgfile::write(&live.join("notify_on_release"), "0")?;
        cgfile::move_all(&live, &self.mount_dir())?;
        KernelAgent::remove_leftover(&self.run_dir, &self.instance)
    }

    /// Removes what a killed daemon left in `run_dir`, if anything. Its processes must have ended.
    ///
    /// # Errors
    /// The hierarchy cannot be unmounted, or still has cgroups with processes.
    pub fn remove_leftover(run_dir: &Path, instance: &str) -> io::Result<()> {
        let mount = run_dir.join(MOUNT);
        if mount.join("release_agent").exists() {
            remove_hierarchy(&mount, instance)?;
        }
        cgfile::rmdir(&mount)?;
        for name in [CONFIG, LINK] {
            match fs::remove_file(run_dir.join(name)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.run_dir.join(name)
    }

    fn mount_dir(&self) -> PathBuf {
        self.file(MOUNT)
    }

    fn mount(&self) -> Result<(), Problem> {
        let dir = self.mount_dir();
        if dir.join("release_agent").exists() {
            return Ok(());
        }
        cgfile::mkdir(&dir).map_err(|e| failed("create", &dir, &e))?;
        mount_hierarchy(&dir, &self.instance).map_err(|e| {
            let _ = fs::remove_dir(&dir);
            failed("mount a v1 hierarchy at", &dir, &e)
        })
    }

    fn place_link(&self, exe: &Path) -> Result<(), Problem> {
        let link = self.file(LINK);
        let fresh = self.file("cosched-agent.new");
        let _ = fs::remove_file(&fresh);
        symlink(exe, &fresh).and_then(|()| fs::rename(&fresh, &link)).map_err(|e| failed("create", &link, &e))
    }

    fn control(&self, file: &str, value: &OsStr) -> Result<(), Problem> {
        let path = self.mount_dir().join(file);
        let value = value.to_str().ok_or_else(|| {
            Problem::new(WHAT, format!("{} is not UTF-8", Path::new(value).display()), "choose another run directory")
        })?;
        cgfile::write(&path, value).map_err(|e| failed("write", &path, &e))
    }

    /// Lets a process start and end in a cgroup of its own, and waits for the mark that the kernel's agent leaves.
    fn self_test(&self, exe: &Path) -> Result<(), Problem> {
        let name = format!("probe-{}", std::process::id());
        let (dir, mark) = (self.mount_dir().join(&name), self.file(&format!("agent.{name}")));
        let outcome = self.probe(exe, &dir, &mark);
        let _ = fs::remove_file(&mark);
        let _ = fs::remove_dir(&dir);
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::new(
                WHAT,
                format!("it did not run {} within {} s", self.file(LINK).display(), TEST_TIME_MAX.as_secs()),
                "in a container the kernel looks for the program outside; then only the guard process keeps watch",
            )),
            Err(e) => Err(failed("try", &dir, &e)),
        }
    }

    fn probe(&self, exe: &Path, dir: &Path, mark: &Path) -> io::Result<bool> {
        let _ = fs::remove_file(mark);
        cgfile::mkdir(dir)?;
        cgfile::write(&dir.join("notify_on_release"), "1")?;
        let procs = fs::OpenOptions::new().write(true).open(dir.join("cgroup.procs"))?;
        let mut command = Command::new(exe);
        command.arg("nothing").stdin(Stdio::null()).stdout(Stdio::null());
        begin_in(procs, &mut command);
        let mut child = command.spawn()?;
        ordinarily(|| child.wait())?;
        let start = Instant::now();
        while !mark.exists() {
            if start.elapsed() > TEST_TIME_MAX {
                return Ok(false);
            }
            sleep(Duration::from_millis(1));
        }
        Ok(true)
    }

    /// Moves this process into a new cgroup; empty ones of an earlier daemon are removed.
    fn enter(&self) -> Result<(), Problem> {
        let mount = self.mount_dir();
        let live = mount.join(&self.live);
        cgfile::mkdir(&live).map_err(|e| failed("create", &live, &e))?;
        let entered =
            cgfile::write(&live.join("notify_on_release"), "1").and_then(|()| self.adopt(std::process::id() as i32));
        entered.map_err(|e| failed("enter", &live, &e))?;
        for old in cgfile::children(&mount).unwrap_or_default() {
            if old != live {
                // One that still has processes (a guard that is about to end) stays until the next start.
                let _ = fs::remove_dir(&old);
            }
        }
        Ok(())
    }
}

/// Mounts the named hierarchy, an existing one or a new one. `favordynmods` (Linux 6.0) makes moving a process into a cgroup take 0.2 ms instead of
/// 15 ms on the whole machine, and the freezer waits for such moves.
fn mount_hierarchy(dir: &Path, instance: &str) -> io::Result<()> {
    use rustix::mount::{MountFlags, mount};
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mount_with = |options: String| -> io::Result<()> {
        Ok(mount("cgroup", dir, "cgroup", flags, CString::new(options)?.as_c_str())?)
    };
    let options = format!("none,name={instance}");
    mount_with(format!("{options},favordynmods")).or_else(|_| mount_with(options))
}

/// Unmounts the hierarchy so that the kernel removes it. The kernel does so only when no cgroup is left in it at that moment, and a removed cgroup
/// takes a while to disappear; so it is mounted and unmounted again until /proc/self/cgroup no longer shows it.
fn remove_hierarchy(mount: &Path, instance: &str) -> io::Result<()> {
    let listed = || {
        let content = cgfile::read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        content.lines().any(|line| line.split(':').nth(1) == Some(&format!("name={instance}")))
    };
    for dir in cgfile::children(mount)? {
        // The guard of a killed daemon may be about to end.
        cgfile::rmdir_patiently(&dir)?;
    }
    for _ in 0..5 {
        sleep(Duration::from_millis(20));
        rustix::mount::unmount(mount, rustix::mount::UnmountFlags::empty())?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(500) {
            if !listed() {
                return Ok(());
            }
            sleep(Duration::from_millis(5));
        }
        mount_hierarchy(mount, instance)?;
    }
    rustix::mount::unmount(mount, rustix::mount::UnmountFlags::empty())?;
    Ok(())
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Problem {
    let hint = "this needs root and a kernel with v1 cgroups; without it only the guard process keeps watch";
    Problem::new(WHAT, format!("cannot {action} {}: {error}", path.display()), hint)
}

/// The kernel runs the link as root, so no other user may be able to replace it.
fn private_dir(dir: &Path) -> Result<PathBuf, Problem> {
    private::check_path(dir).map_err(|e| {
        let hint = "choose a run directory (--runtime-dir, --socket) that is root's, below directories that are, such as /run/cosched";
        Problem::new(WHAT, e.to_string(), hint)
    })
}

/// True for the path by which the kernel runs the guard's binary.
pub(crate) fn is_agent_link(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(LINK)) && path.is_absolute()
}

/// The kernel agent's program: `cgroup` is the one that became empty, relative to the hierarchy's mount.
pub(crate) fn agent_main(link: &Path, cgroup: &OsStr) -> ExitCode {
    let Some(run_dir) = link.parent() else { return ExitCode::from(2) };
    let name = cgroup.to_string_lossy();
    let name = name.trim_start_matches('/');
    if name.starts_with("probe-") && !name.contains('/') {
        let marked = fs::write(run_dir.join(format!("agent.{name}")), "");
        return if marked.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let Some(config) = fs::read(run_dir.join(CONFIG)).ok().and_then(|bytes| Config::from_bytes(&bytes)) else {
        return ExitCode::FAILURE;
    };
    // Any other cgroup belongs to an earlier daemon; the present daemon is alive and takes care of its jobs.
    if config.live == name {
        thaw_all(&config.paths, config.signals);
        widen_all(&config.paths);
    }
    ExitCode::SUCCESS
}

/// The agent's configuration, one field per zero-terminated string, since paths may contain any other byte.
#[derive(Debug, PartialEq, Eq)]
struct Config {
    live: String,
    signals: bool,
    paths: ThawPaths,
}

impl Config {
    fn to_bytes(&self) -> Vec<u8> {
        let of = |tree: &Option<PathBuf>| tree.as_ref().map(|path| path.clone().into_os_string()).unwrap_or_default();
        let (cpu_tree, cpuset_tree) = (of(&self.paths.cpu_tree), of(&self.paths.cpuset_tree));
        let signals = if self.signals { "1" } else { "0" };
        [
            OsStr::new(&self.live),
            OsStr::new(signals),
            self.paths.v2_tree.as_os_str(),
            cpu_tree.as_os_str(),
            cpuset_tree.as_os_str(),
        ]
        .iter()
        .flat_map(|field| field.as_bytes().iter().copied().chain([0]))
        .collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Config> {
        let mut fields = bytes.strip_suffix(&[0])?.split(|&b| b == 0).map(|f| OsString::from_vec(f.to_vec()));
        let live = fields.next()?.into_string().ok()?;
        let signals = fields.next()? == "1";
        let v2_tree = PathBuf::from(fields.next()?);
        // An earlier version's file has fewer fields.
        let mut tree = || fields.next().filter(|f| !f.is_empty()).map(PathBuf::from);
        let (cpu_tree, cpuset_tree) = (tree(), tree());
        Some(Config { live, signals, paths: ThawPaths { v2_tree, cpu_tree, cpuset_tree } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_survives_its_file() {
        for (signals, cpu_tree) in [(true, Some(PathBuf::from("/a b/\n=c"))), (false, None)] {
            let paths = ThawPaths { v2_tree: "/x/cosched".into(), cpu_tree, cpuset_tree: Some("/s".into()) };
            let config = Config { live: "live-7".into(), signals, paths };
            assert_eq!(Config::from_bytes(&config.to_bytes()), Some(config));
        }
        assert_eq!(Config::from_bytes(b""), None);
        assert_eq!(Config::from_bytes(b"live-7\x00"), None);
    }

    #[test]
    fn the_agent_marks_probes_and_thaws_only_for_the_daemon_of_now() {
        let dir = tempfile::tempdir().unwrap();
        let (link, freeze) = (dir.path().join(LINK), dir.path().join("tree/cgroup.freeze"));
        fs::create_dir(dir.path().join("tree")).unwrap();
        let paths = ThawPaths { v2_tree: dir.path().join("tree"), cpu_tree: None, cpuset_tree: None };
        let config = Config { live: "live-7".into(), signals: false, paths };
        fs::write(dir.path().join(CONFIG), config.to_bytes()).unwrap();
        fs::write(&freeze, "1").unwrap();

        assert_eq!(agent_main(&link, OsStr::new("/probe-9")), ExitCode::SUCCESS);
        assert!(dir.path().join("agent.probe-9").exists());
        assert_eq!(agent_main(&link, OsStr::new("/live-6")), ExitCode::SUCCESS);
        assert_eq!(fs::read_to_string(&freeze).unwrap(), "1");
        assert_eq!(agent_main(&link, OsStr::new("/live-7")), ExitCode::SUCCESS);
        assert_eq!(fs::read_to_string(&freeze).unwrap(), "0");
    }

    #[test]
    fn the_role_is_told_by_the_absolute_link() {
        assert!(is_agent_link(Path::new("/run/cosched/cosched-agent")));
        assert!(!is_agent_link(Path::new("cosched-agent")));
        assert!(!is_agent_link(Path::new("/usr/libexec/cosched-guard")));
    }

    #[test]
    fn a_run_directory_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        if rustix::process::geteuid().is_root() {
            assert!(private_dir(dir.path()).unwrap_err().why.contains("not root's alone"));
        }
    }
}
