//! The cgroup hierarchies of this machine.
//!
//! Two layouts work: **unified** (v2 with all controllers, today's distributions) and **hybrid** (controllers in v1, freezer and
//! kill in a v2 mount, usually /sys/fs/cgroup/unified). Everything else gets an error that names what is missing.
//! Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst; proc_pid_mountinfo(5).

use std::fmt;
use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::observe::kernel_release;
use crate::problem::Problem;

/// The hierarchy of the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutKind {
    /// All controllers in v2.
    Unified,
    /// Controllers in v1, freezer and kill in v2.
    Hybrid,
    /// No cgroups: jobs are directories of plain files, read by their keepers (see `keeper/`).
    Signals,
}

/// The mounts that cosched uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Unified or hybrid.
    pub kind: LayoutKind,
    /// The mount of v2.
    pub v2_mount: PathBuf,
    /// The v1 cpu controller (hybrid only).
    pub cpu_mount: Option<PathBuf>,
    /// The v1 memory controller (hybrid only, where there is one).
    pub memory_mount: Option<PathBuf>,
    /// The v1 pids controller (hybrid only, where there is one).
    pub pids_mount: Option<PathBuf>,
    /// The v1 cpuset controller (hybrid only, where there is one).
    pub cpuset_mount: Option<PathBuf>,
    /// The v1 cpuacct controller, for status only: CPU time is read from v2, which counts it in every layout.
    pub cpuacct_mount: Option<PathBuf>,
}

/// The facts about the v2 mount that `detect_from` needs besides the mount table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct V2Facts {
    /// Content of cgroup.controllers at the v2 mount.
    pub controllers: String,
    /// The kernel release, such as "6.1.0-18-amd64".
    pub kernel_release: String,
}

/// The first kernel with a v2 freezer.
const FREEZER_KERNEL: (u32, u32) = (5, 2);
const WHAT: &str = "the cgroups of this machine cannot be used";

impl Layout {
    /// A layout without any v1 controller.
    pub(crate) fn without_v1(kind: LayoutKind, v2_mount: PathBuf) -> Layout {
        Layout {
            kind,
            v2_mount,
            cpu_mount: None,
            memory_mount: None,
            pids_mount: None,
            cpuset_mount: None,
            cpuacct_mount: None,
        }
    }

    /// The layout without cgroups: jobs are below the directory `base`.
    pub fn signals(base: &Path) -> Layout {
        Layout::without_v1(LayoutKind::Signals, base.into())
    }

    /// Detects the layout of the running machine.
    ///
    /// # Errors
    /// No v2 hierarchy is mounted, the kernel has no v2 freezer, or no cpu controller is mounted anywhere.
    pub fn detect() -> Result<Layout, Problem> {
        let path = "/proc/self/mountinfo";
        let mountinfo = cgfile::read(Path::new(path)).map_err(|e| {
            Problem::new(WHAT, format!("{path} cannot be read: {e}"), "mount /proc: mount -t proc proc /proc")
        })?;
        Layout::detect_from(&mountinfo, |v2_mount| V2Facts {
            controllers: cgfile::read(&v2_mount.join("cgroup.controllers")).unwrap_or_default(),
            kernel_release: kernel_release(),
        })
    }

    /// The same from the content of mountinfo; `facts` is called with the v2 mount that was found.
    ///
    /// # Errors
    /// As [`Layout::detect`].
    pub fn detect_from(mountinfo: &str, facts: impl FnOnce(&Path) -> V2Facts) -> Result<Layout, Problem> {
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let v1 = |name: &str| mounts.iter().find(|m| m.v1_has(name)).map(|m| m.dir.clone());
        let (cpu_mount, memory_mount, cpuacct_mount) = (v1("cpu"), v1("memory"), v1("cpuacct"));
        let (pids_mount, cpuset_mount) = (v1("pids"), v1("cpuset"));
        let Some(v2) = mounts.iter().find(|m| m.fs == "cgroup2") else {
            return Err(no_v2(mounts.iter().any(|m| m.fs == "cgroup")));
        };
        let facts = facts(&v2.dir);
        check_kernel(&facts.kernel_release)?;
        let v2_mount = v2.dir.clone();
        if facts.controllers.split_whitespace().any(|c| c == "cpu") {
            return Ok(Layout::without_v1(LayoutKind::Unified, v2_mount));
        }
        if cpu_mount.is_none() {
            return Err(no_cpu(&v2_mount));
        }
        let kind = LayoutKind::Hybrid;
        Ok(Layout { kind, v2_mount, cpu_mount, memory_mount, pids_mount, cpuset_mount, cpuacct_mount })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LayoutKind::Unified => write!(f, "unified (v2 at {})", self.v2_mount.display()),
            LayoutKind::Signals => write!(f, "none: jobs are stopped and continued by signals"),
            LayoutKind::Hybrid => {
                write!(f, "hybrid (v2 at {}", self.v2_mount.display())?;
                for (name, mount) in [("cpu", &self.cpu_mount), ("memory", &self.memory_mount)] {
                    match mount {
                        Some(dir) => write!(f, ", v1 {name} at {}", dir.display())?,
                        None => write!(f, ", no {name} controller")?,
                    }
                }
                write!(f, ")")
            }
        }
    }
}

fn no_v2(has_v1: bool) -> Problem {
    if has_v1 {
        Problem::new(
            WHAT,
            "only cgroup v1 is mounted, and stopping a gang at once needs the v2 freezer",
            "boot with systemd.unified_cgroup_hierarchy=1, or mount v2 beside v1: \
             mkdir /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified",
        )
    } else {
        Problem::new(
            WHAT,
            "no cgroup file system is mounted",
            "mount -t cgroup2 cgroup2 /sys/fs/cgroup; in a container, start it with its cgroups \
             (docker run --privileged --cgroupns=private)",
        )
    }
}

fn no_cpu(v2_mount: &Path) -> Problem {
    Problem::new(
        WHAT,
        format!("the cpu controller is neither in v2 (at {}) nor mounted as v1", v2_mount.display()),
        "mkdir /sys/fs/cgroup/cpu && mount -t cgroup -o cpu cgroup /sys/fs/cgroup/cpu, or remove \
         cgroup_disable=cpu from the kernel's command line",
    )
}

fn check_kernel(release: &str) -> Result<(), Problem> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= FREEZER_KERNEL {
        return Ok(());
    }
    Err(Problem::new(
        WHAT,
        format!("kernel {release} has no v2 freezer (cgroup.freeze came with Linux 5.2)"),
        "install Linux 5.2 or later; 5.15 or later has cpu.idle too, which soft gang scheduling works best with",
    ))
}

/// One cgroup line of mountinfo.
struct Mount {
    dir: PathBuf,
    fs: String,
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let dir = unescape(left.split(' ').nth(4)?);
        let mut right = right.split(' ');
        let fs = right.next()?.to_string();
        if fs != "cgroup" && fs != "cgroup2" {
            return None;
        }
        Some(Mount { dir, fs, options: right.nth(1).unwrap_or("").to_string() })
    }

    fn v1_has(&self, controller: &str) -> bool {
        self.fs == "cgroup" && self.options.split(',').any(|o| o == controller)
    }
}

/// Undoes mountinfo's octal escapes of space, tab, newline and backslash.
fn unescape(field: &str) -> PathBuf {
    let text = field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const UNIFIED: &str = "\
25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";

    fn facts(controllers: &str, release: &str) -> impl FnOnce(&Path) -> V2Facts {
        let facts = V2Facts { controllers: controllers.into(), kernel_release: release.into() };
        move |_| facts
    }

    #[test]
    fn a_hybrid_machine_is_found_with_its_mounts() {
        let layout = Layout::detect_from(HYBRID, facts("", "6.18.44-fc")).unwrap();
        assert_eq!(layout.kind, LayoutKind::Hybrid);
        assert_eq!(layout.v2_mount, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(layout.cpu_mount.as_deref(), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(layout.cpuacct_mount, layout.cpu_mount);
        assert_eq!(
            layout.to_string(),
            "hybrid (v2 at /sys/fs/cgroup/unified, v1 cpu at /sys/fs/cgroup/cpu,cpuacct, v1 memory at /sys/fs/cgroup/memory)"
        );
    }

    #[test]
    fn a_unified_machine_is_found() {
        let layout = Layout::detect_from(UNIFIED, facts("cpuset cpu io memory pids\n", "5.15.0")).unwrap();
        assert_eq!(layout.kind, LayoutKind::Unified);
        assert_eq!(layout.to_string(), "unified (v2 at /sys/fs/cgroup)");
    }

    #[test]
    fn pure_v1_is_told_how_to_mount_v2() {
        let v1: String = HYBRID.lines().filter(|l| !l.contains("cgroup2")).map(|l| format!("{l}\n")).collect();
        let error = Layout::detect_from(&v1, |_| panic!("there is no v2 mount to ask about")).unwrap_err();
        assert!(error.why.contains("only cgroup v1"), "{error}");
        assert!(error.hint.contains("mount -t cgroup2"), "{error}");
    }

    #[test]
    fn no_cgroups_at_all_is_another_message() {
        let error = Layout::detect_from("25 1 8:1 / / rw - ext4 /dev/sda1 rw\n", |_| V2Facts::default()).unwrap_err();
        assert!(error.why.contains("no cgroup file system"), "{error}");
    }

    #[test]
    fn a_missing_cpu_controller_is_named() {
        let error = Layout::detect_from(UNIFIED, facts("memory pids", "6.1.0")).unwrap_err();
        assert!(error.why.contains("cpu controller"), "{error}");
    }

    #[test]
    fn an_old_kernel_is_told_the_first_one_that_works() {
        let error = Layout::detect_from(UNIFIED, facts("cpu", "4.19.0-26")).unwrap_err();
        assert!(error.hint.contains("5.2"), "{error}");
        assert!(Layout::detect_from(UNIFIED, facts("cpu", "5.2.0")).is_ok());
        assert!(Layout::detect_from(UNIFIED, facts("cpu", "5.10.0")).is_ok());
    }

    #[test]
    fn escaped_blanks_in_mount_points_are_undone() {
        let line = "30 25 0:26 / /sys/fs/my\\040cgroup rw - cgroup2 cgroup2 rw\n";
        let layout = Layout::detect_from(line, facts("cpu", "6.1")).unwrap();
        assert_eq!(layout.v2_mount, Path::new("/sys/fs/my cgroup"));
    }
}
