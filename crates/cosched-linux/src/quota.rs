//! The quota of CPU time that the owner of an adopted cgroup has set, while its job has a share of the slots instead.
//!
//! The problem: under a quota the kernel stops the threads of a program one by one, in slots all at a time; both together stop it twice. So the
//! quota is lifted while the share holds, and must come back whoever dies. The rule: before it is lifted, the job's marker has an attribute that
//! names the cgroup, by inode number and path, and the owner's value. Whoever lets the adopted cgroup run for good (the guard, the kernel's agent,
//! the next daemon, the release of the job) writes that value back, unless the owner has set another one since.
//! Source: Documentation/scheduler/sched-bwc.rst; Documentation/admin-guide/cgroup-v2.rst (cpu.max).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, stat};

use crate::{cgfile, marker};

const ATTRIBUTE: &str = "user.cosched.quota";

/// A quota, and the cgroup that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    dir: PathBuf,
    inode: u64,
    quota_us: u64,
    period_us: u64,
}

/// What a cgroup's quota is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    Unlimited,
    Us(u64, u64),
}

impl Quota {
    /// That of a cgroup; none where it has none of its own.
    pub(crate) fn of(dir: &Path) -> Option<Quota> {
        let inode = fstat(File::open(dir).ok()?).ok()?.st_ino;
        match now(dir)? {
            Now::Unlimited => None,
            Now::Us(quota_us, period_us) => Some(Quota { dir: dir.to_owned(), inode, quota_us, period_us }),
        }
    }

    /// The time that it gives, in thousandths of a CPU.
    pub fn permille_of_a_cpu(&self) -> u64 {
        self.quota_us.saturating_mul(1000) / self.period_us.max(1)
    }

    /// The user who may set it.
    pub fn owner(&self) -> Option<u32> {
        let file = if is_v1(&self.dir) { "cpu.cfs_quota_us" } else { "cpu.max" };
        stat(self.dir.join(file)).ok().map(|facts| facts.st_uid)
    }

    /// Writes down what is to be put back.
    pub(crate) fn note(&self, marker: &Path) -> io::Result<()> {
        marker::write(marker, ATTRIBUTE, [self.inode, self.quota_us, self.period_us], &self.dir)
    }

    /// What a marker says.
    pub(crate) fn noted(marker: &Path) -> Option<Quota> {
        let ([inode, quota_us, period_us], dir) = marker::read(marker, ATTRIBUTE)?;
        Some(Quota { dir, inode, quota_us, period_us })
    }

    /// Lifts it. One that the owner has changed meanwhile holds.
    ///
    /// # Errors
    /// The kernel's. A cgroup that has gone has none.
    pub fn lift(&self) -> io::Result<()> {
        self.write_if(Now::Us(self.quota_us, self.period_us), true)
    }

    /// Puts it back. One that the owner has set meanwhile holds.
    ///
    /// # Errors
    /// As of [`Quota::lift`].
    pub fn put_back(&self) -> io::Result<()> {
        self.write_if(Now::Unlimited, false)
    }

    fn write_if(&self, expected: Now, lift: bool) -> io::Result<()> {
        let Some(held) = marker::open_same(&self.dir, self.inode) else { return Ok(()) };
        let dir = PathBuf::from(format!("/proc/self/fd/{}/.", held.as_raw_fd()));
        if now(&dir) != Some(expected) {
            return Ok(());
        }
        let Quota { quota_us, period_us, .. } = self;
        match (is_v1(&dir), lift) {
            (true, true) => cgfile::write(&dir.join("cpu.cfs_quota_us"), "-1"),
            (true, false) => cgfile::write(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string()),
            (false, true) => cgfile::write(&dir.join("cpu.max"), &format!("max {period_us}")),
            (false, false) => cgfile::write(&dir.join("cpu.max"), &format!("{quota_us} {period_us}")),
        }
    }
}

/// Puts back what this directory says, if it is the marker of a job whose quota was lifted.
pub(crate) fn put_back(marker: &Path) {
    if let Some(quota) = Quota::noted(marker) {
        // A removed cgroup has nothing to put back, and no caller is left for another error.
        let _ = quota.put_back();
    }
}

fn is_v1(dir: &Path) -> bool {
    dir.join("cpu.cfs_quota_us").exists()
}

pub(crate) fn now(dir: &Path) -> Option<Now> {
    let read = |name: &str| cgfile::read(&dir.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => text.trim().split_once(' ').map(|(quota, period)| (quota.to_owned(), period.to_owned()))?,
        None => (read("cpu.cfs_quota_us")?.trim().to_owned(), read("cpu.cfs_period_us")?.trim().to_owned()),
    };
    match quota.as_str() {
        "max" | "-1" => Some(Now::Unlimited),
        quota => Some(Now::Us(quota.parse().ok()?, period.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Plain files keep what is behind a shorter text, so they are removed first.
    fn set(dir: &Path, files: &[(&str, &str)]) {
        files.iter().for_each(|(name, text)| fs::write(dir.join(name), text).unwrap());
    }

    fn text(dir: &Path, name: &str) -> String {
        fs::read_to_string(dir.join(name)).unwrap().trim().to_owned()
    }

    #[test]
    fn a_quota_is_lifted_and_put_back_in_both_versions() {
        for (file, before, lifted) in [("cpu.max", "50000 100000", "max 100000"), ("cpu.cfs_quota_us", "50000", "-1")] {
            let base = tempfile::tempdir().unwrap();
            let dir = base.path();
            if file != "cpu.max" {
                set(dir, &[("cpu.cfs_period_us", "100000\n")]);
            }
            set(dir, &[(file, before)]);
            let quota = Quota::of(dir).unwrap();
            assert_eq!((quota.permille_of_a_cpu(), quota.owner().is_some()), (500, true));
            quota.put_back().unwrap();
            assert_eq!(text(dir, file), before, "it was not lifted");
            fs::write(dir.join(file), before).unwrap();
            quota.lift().unwrap();
            assert!(text(dir, file).starts_with(lifted), "{}", text(dir, file));
            set(dir, &[(file, lifted)]);
            assert_eq!(Quota::of(dir), None);
            quota.put_back().unwrap();
            assert!(text(dir, file).starts_with(before), "{}", text(dir, file));
        }
    }

    #[test]
    fn what_the_owner_has_set_meanwhile_holds() {
        let base = tempfile::tempdir().unwrap();
        set(base.path(), &[("cpu.max", "50000 100000\n")]);
        let quota = Quota::of(base.path()).unwrap();
        set(base.path(), &[("cpu.max", "70000 100000\n")]);
        quota.lift().unwrap();
        quota.put_back().unwrap();
        assert_eq!(text(base.path(), "cpu.max"), "70000 100000");
        let other = Quota { inode: quota.inode + 1, ..quota };
        set(base.path(), &[("cpu.max", "max 100000\n")]);
        other.put_back().unwrap();
        assert_eq!(text(base.path(), "cpu.max"), "max 100000", "another cgroup has its path");
    }

    #[test]
    fn a_marker_says_what_is_to_be_put_back() {
        let base = tempfile::tempdir().unwrap();
        let (marker, dir) = (base.path().join("job-7"), base.path().join("a b.service"));
        [&marker, &dir].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
        set(&dir, &[("cpu.max", "50000 100000\n")]);
        let quota = Quota::of(&dir).unwrap();
        assert_eq!(Quota::noted(&marker), None);
        match quota.note(&marker) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                return println!("SKIPPED: no user.* attributes in {marker:?}");
            }
            noted => noted.unwrap(),
        }
        assert_eq!(Quota::noted(&marker), Some(quota));
        set(&dir, &[("cpu.max", "max 100000\n")]);
        put_back(&marker);
        assert!(text(&dir, "cpu.max").starts_with("50000 100000"));
    }
}
