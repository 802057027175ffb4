//! The location of our subtree: at the root of each hierarchy (a daemon as root), or below a cgroup that is delegated to a user.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::cgfile;
use crate::layout::{Layout, LayoutKind};
use crate::problem::Problem;

/// The leaf cgroup that a rootless daemon moves itself into: v2 allows no processes in a cgroup whose children have controllers.
pub const SUPERVISOR: &str = "supervisor";

/// The location of our subtree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `<mount>/<name>` in each hierarchy; needs root.
    Root {
        /// The directory's name, such as "cosched".
        name: String,
    },
    /// `<dir>/<name>` in a subtree that this user may write.
    Delegated {
        /// The delegated cgroup, relative to the v2 mount.
        dir: PathBuf,
        /// In the hybrid layout, the delegated cgroup of the v1 cpu hierarchy, relative to its mount.
        cpu_dir: Option<PathBuf>,
        /// The directory's name, such as "cosched".
        name: String,
    },
    /// `<mount>/<name>`, a directory of jobs without cgroups.
    Signals {
        /// The directory's name.
        name: String,
    },
}

impl Place {
    /// The cgroup of the calling process, when this user may create cgroups in it.
    ///
    /// # Errors
    /// It is not delegated: the message says what is missing and how to start a delegated one.
    pub fn own_delegated(layout: &Layout, name: &str) -> Result<Place, Problem> {
        let content = cgfile::read(Path::new("/proc/self/cgroup")).map_err(|e| {
            Problem::new("no place for a daemon of one user", format!("/proc/self/cgroup: {e}"), "mount /proc")
        })?;
        Place::delegated_from(layout, &content, name)
    }

    fn delegated_from(layout: &Layout, own: &str, name: &str) -> Result<Place, Problem> {
        let dir = own_v2(own).ok_or_else(|| not_delegated("this process has no v2 cgroup".into()))?;
        let dir = match dir.file_name() {
            Some(last) if last == SUPERVISOR => dir.parent().unwrap_or(Path::new("/")).to_path_buf(),
            _ => dir,
        };
        let dir = beside_service(layout, &dir).unwrap_or(dir);
        let full = below(&layout.v2_mount, &dir);
        check_writable(&full, &DELEGATED)?;
        let cpu_dir = match layout.kind {
            LayoutKind::Unified => {
                check_cpu_controller(&full)?;
                None
            }
            LayoutKind::Hybrid | LayoutKind::Signals => Some(own_writable_cpu(layout, own)?),
        };
        Ok(Place::Delegated { dir, cpu_dir, name: name.into() })
    }
}

/// The files that whoever has been given a cgroup may write.
const DELEGATED: [&str; 2] = ["cgroup.procs", "cgroup.subtree_control"];

/// The slice of a service of the user's own systemd. Below the service jobs would keep it from being started again: its cgroup would have
/// children with controllers, and the kernel takes no process into such a one (decision 0071).
fn beside_service(layout: &Layout, dir: &Path) -> Option<PathBuf> {
    let slice = dir.parent().filter(|_| dir.extension().is_some_and(|word| word == "service"))?;
    let full = below(&layout.v2_mount, slice);
    let is_ours = layout.kind == LayoutKind::Unified && check_writable(&full, &DELEGATED).is_ok();
    (is_ours && check_cpu_controller(&full).is_ok()).then(|| slice.to_owned())
}

/// `mount` joined with a path of /proc/PID/cgroup, which starts with a slash.
pub(crate) fn below(mount: &Path, relative: &Path) -> PathBuf {
    mount.join(relative.strip_prefix("/").unwrap_or(relative))
}

/// The v2 cgroup in the content of a /proc/PID/cgroup.
pub(crate) fn own_v2(content: &str) -> Option<PathBuf> {
    content.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
}

/// The cgroup of a v1 controller in the content of a /proc/PID/cgroup; "" is the unified hierarchy.
pub(crate) fn own_v1(content: &str, controller: &str) -> Option<PathBuf> {
    content.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|c| c == controller).then(|| PathBuf::from(path))
    })
}

fn not_delegated(why: String) -> Problem {
    let delegated = match Path::new("/run/systemd/system").exists() {
        true => "start inside a delegated cgroup: systemd-run --user --scope -p Delegate=yes cosched …",
        false => "ask the administrator for a cgroup of your own (its directory and its cgroup.procs)",
    };
    let hint = format!("{delegated}; or ask the administrator to run coschedd as a service");
    Problem::new("no place for a daemon of one user", why, hint)
}

fn check_writable(dir: &Path, files: &[&str]) -> Result<(), Problem> {
    for path in std::iter::once(dir.to_path_buf()).chain(files.iter().map(|f| dir.join(f))) {
        if let Err(e) = access(&path, Access::WRITE_OK) {
            return Err(not_delegated(format!("this user may not write {} ({e})", path.display())));
        }
    }
    Ok(())
}

fn check_cpu_controller(dir: &Path) -> Result<(), Problem> {
    let controllers = cgfile::read(&dir.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|c| c == "cpu") {
        return Ok(());
    }
    Err(Problem::new(
        "no place for a daemon of one user",
        format!("the cpu controller is not delegated to {}", dir.display()),
        "ask the administrator for it: systemctl edit user@.service, then [Service] Delegate=cpu memory pids, \
         and log in again",
    ))
}

fn own_writable_cpu(layout: &Layout, own: &str) -> Result<PathBuf, Problem> {
    let dir = own_v1(own, "cpu").unwrap_or_else(|| PathBuf::from("/"));
    let Some(mount) = &layout.cpu_mount else {
        return Err(not_delegated("no v1 cpu hierarchy is mounted".into()));
    };
    let full = below(mount, &dir);
    check_writable(&full, &["cgroup.procs"]).map_err(|problem| {
        let hint = format!(
            "in the hybrid layout the administrator delegates both hierarchies by hand: mkdir {0}/NAME, chown it and its \
             cgroup.procs to the user, and put the user's shell into it (the same below {1}); or boot with \
             systemd.unified_cgroup_hierarchy=1; or run coschedd as a service",
            mount.display(),
            layout.v2_mount.display()
        );
        Problem { hint, ..problem }
    })?;
    Ok(dir)
}

/// Whether a cgroup on the way from `mount` to `path`, without the mount itself, has a limit in this file.
pub(crate) fn is_limited(mount: &Path, path: &Path, file: &str) -> bool {
    let dirs = path.ancestors().filter(|dir| dir.parent().is_some()).map(|dir| below(mount, dir));
    dirs.into_iter().any(|dir| cgfile::read(&dir.join(file)).is_ok_and(|text| text.trim() != "max"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn unified(mount: &Path) -> Layout {
        Layout::without_v1(LayoutKind::Unified, mount.into())
    }

    fn fake_cgroup(dir: &Path, controllers: &str) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("cgroup.procs"), "").unwrap();
        fs::write(dir.join("cgroup.subtree_control"), "").unwrap();
        fs::write(dir.join("cgroup.controllers"), controllers).unwrap();
    }

    #[test]
    fn paths_of_proc_cgroup_are_found() {
        let content = "4:memory:/a\n1:cpu,cpuacct:/b/c\n0::/user.slice/x.scope\n";
        assert_eq!(own_v2(content), Some("/user.slice/x.scope".into()));
        assert_eq!(own_v1(content, "cpu"), Some("/b/c".into()));
        assert_eq!(own_v1(content, "pids"), None);
        assert_eq!(below(Path::new("/m"), Path::new("/")), Path::new("/m"));
    }

    #[test]
    fn a_delegated_scope_is_taken_and_a_supervisor_stands_for_its_parent() {
        let mount = tempfile::tempdir().unwrap();
        fake_cgroup(&mount.path().join("u/s.scope"), "cpu memory");
        let wanted = Place::Delegated { dir: "/u/s.scope".into(), cpu_dir: None, name: "cosched".into() };
        for own in ["0::/u/s.scope\n", "0::/u/s.scope/supervisor\n"] {
            assert_eq!(Place::delegated_from(&unified(mount.path()), own, "cosched"), Ok(wanted.clone()));
        }
    }

    #[test]
    fn jobs_of_a_users_service_are_beside_it() {
        let mount = tempfile::tempdir().unwrap();
        fake_cgroup(&mount.path().join("user@1.service/app.slice"), "cpu memory");
        fake_cgroup(&mount.path().join("user@1.service/app.slice/coschedd.service"), "cpu memory");
        let place =
            Place::delegated_from(&unified(mount.path()), "0::/user@1.service/app.slice/coschedd.service\n", "cosched");
        let dir = "/user@1.service/app.slice".into();
        assert_eq!(place, Ok(Place::Delegated { dir, cpu_dir: None, name: "cosched".into() }));
        // A service of the system's that has been given its own cgroup alone.
        fake_cgroup(&mount.path().join("x.service"), "cpu");
        let place = Place::delegated_from(&unified(mount.path()), "0::/x.service\n", "cosched");
        assert!(matches!(place, Ok(Place::Delegated { dir, .. }) if dir == Path::new("/x.service")));
    }

    #[test]
    fn a_scope_without_the_cpu_controller_is_explained() {
        let mount = tempfile::tempdir().unwrap();
        fake_cgroup(&mount.path().join("u"), "memory");
        let error = Place::delegated_from(&unified(mount.path()), "0::/u\n", "cosched").unwrap_err();
        assert!(error.hint.contains("Delegate=cpu"), "{error}");
    }

    #[test]
    fn a_cgroup_that_cannot_be_written_is_explained() {
        let mount = tempfile::tempdir().unwrap();
        let error = Place::delegated_from(&unified(mount.path()), "0::/gone\n", "cosched").unwrap_err();
        let has_systemd = Path::new("/run/systemd/system").exists();
        let hint = if has_systemd { "Delegate=yes" } else { "a cgroup of your own" };
        assert!(error.hint.contains(hint), "{error}");
    }

    #[test]
    fn a_limit_anywhere_on_the_way_counts_but_that_of_the_root() {
        let dir = tempfile::tempdir().unwrap();
        for (cgroup, limit) in [("", "7"), ("a", "max\n"), ("a/b", "max\n"), ("c", "5\n")] {
            fs::create_dir_all(dir.path().join(cgroup)).unwrap();
            fs::write(dir.path().join(cgroup).join("pids.max"), limit).unwrap();
        }
        let limited = |path: &str| is_limited(dir.path(), Path::new(path), "pids.max");
        assert!(!limited("/") && !limited("/a/b") && limited("/c/d/e"));
    }
}
