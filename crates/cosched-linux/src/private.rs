//! Directories whose path no other user can change, and locks that no other user can hold.
//!
//! A lock by flock(2), or a read lock of fcntl(2), needs a file open for reading: any user can hold one on a file that all may read, and block the
//! daemon. So these are write locks of an open file description (`F_OFD_SETLK`), on files that only their owner can open.

use rustix::fs::Mode;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The lock's file in a private directory.
const LOCK: &str = "daemon.lock";

/// Makes a directory, and its parents, with this mode; returns its path, which no other user can redirect.
///
/// # Errors
/// Of the file system; `PermissionDenied` when this is root and others may change the path.
pub fn make_directory(dir: &Path, mode: u32) -> io::Result<PathBuf> {
    let start = if dir.is_absolute() { PathBuf::from("/") } else { fs::canonicalize(".")? };
    let wanted = start.join(dir);
    if let Some(existing) = wanted.ancestors().find(|dir| dir.exists()) {
        check(existing, existing != wanted)?;
    }
    DirBuilder::new().recursive(true).mode(mode).create(&wanted)?;
    check_path(&wanted)
}

/// The path without links. For root it is only accepted if no other user can put a different directory in its place: each directory above it belongs
/// to root and is not writable by others, or is sticky like /tmp. (sudo and sshd have the same requirement.) In a user's own directories the user is
/// responsible.
///
/// # Errors
/// `PermissionDenied`, with the offending directory; otherwise of the file system.
pub fn check_path(dir: &Path) -> io::Result<PathBuf> {
    check(dir, false)
}

/// The same; `is_above` when more of the path is to be made below `dir`.
fn check(dir: &Path, is_above: bool) -> io::Result<PathBuf> {
    let path = fs::canonicalize(dir)?;
    if !rustix::process::geteuid().is_root() {
        return Ok(path);
    }
    for (depth, above) in path.ancestors().enumerate() {
        let facts = fs::metadata(above)?;
        // In a sticky directory no user can move another's entries; the last directory of the path must not be writable by others at all.
        let may_be_sticky = is_above || depth > 0;
        let others_write = facts.mode() & 0o022 != 0 && !(may_be_sticky && facts.mode() & 0o1000 != 0);
        if facts.uid() != 0 || others_write {
            let (owner, mode) = (facts.uid(), facts.mode() & 0o7777);
            let above = above.display();
            return Err(denied(format!("{above} is not root's alone (owner {owner}, mode {mode:o})")));
        }
    }
    Ok(path)
}

/// Makes a directory that only this user may enter. An existing one that an earlier version made more open is restricted: itself, and its files whose
/// names begin with one of `ours`.
///
/// # Errors
/// Of the file system; `PermissionDenied` when it contains something of another user's.
pub fn keep_directory(dir: &Path, ours: &[&str]) -> io::Result<PathBuf> {
    let fresh = !dir.exists();
    let dir = match fresh {
        true => make_directory(dir, 0o700)?,
        false => fs::canonicalize(dir)?,
    };
    let facts = fs::metadata(&dir)?;
    check_owner(&dir, facts.uid())?;
    let entries: Vec<_> = fs::read_dir(&dir)?.collect::<io::Result<_>>()?;
    if facts.mode() & 0o022 != 0 && !entries.is_empty() {
        return Err(denied(format!("{} may be written by others (mode {:o})", dir.display(), facts.mode() & 0o7777)));
    }
    if facts.mode() & 0o7077 != 0 {
        fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
    }
    let dir = check_path(&dir)?;
    let is_ours = |name: &str| ours.iter().any(|start| name.starts_with(start));
    for entry in entries.iter().filter(|entry| entry.file_name().to_str().is_some_and(is_ours)) {
        let facts = entry.metadata()?;
        check_owner(&entry.path(), facts.uid())?;
        if facts.is_file() && facts.mode() & 0o077 != 0 {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o600))?;
        }
    }
    Ok(dir)
}

fn check_owner(path: &Path, owner: u32) -> io::Result<()> {
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(denied(format!("{} belongs to another user (uid {owner})", path.display())))
}

fn denied(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

/// The lock of a private directory.
#[derive(Debug)]
pub struct DirectoryLock(File);

/// Unlocks explicitly: otherwise the lock ends with the last descriptor of the file, and a child has one until it executes its program.
impl Drop for DirectoryLock {
    fn drop(&mut self) {
        let _ = set_lock(&self.0, libc::F_UNLCK);
    }
}

/// Locks a private directory for as long as the lock lives, however this process ends.
///
/// # Errors
/// `WouldBlock` when another daemon holds it; otherwise of the file system.
pub fn lock_directory(dir: &Path) -> io::Result<DirectoryLock> {
    lock_file(dir).map(DirectoryLock)
}

/// The same as a plain file.
pub(crate) fn lock_file(dir: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(dir.join(LOCK))?;
    lock(&file)?;
    Ok(file)
}

/// Locks a cgroup of the v2 hierarchy, in all mounts of it: by its `cgroup.kill`, which only its owner can open; before Linux 5.14 by another file
/// with the same mode.
pub(crate) fn lock_cgroup(dir: &Path) -> io::Result<File> {
    let open = |name: &str| OpenOptions::new().write(true).open(dir.join(name));
    let file = match open("cgroup.kill") {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let file = open("cgroup.max.depth")?;
            rustix::fs::fchmod(&file, Mode::WUSR)?;
            file
        }
        other => other?,
    };
    lock(&file)?;
    Ok(file)
}

/// A write lock on a file that is open for writing.
fn lock(file: &impl AsFd) -> io::Result<()> {
    set_lock(file, libc::F_WRLCK)
}

fn set_lock(file: &impl AsFd, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeroes is a valid value of this plain structure: the whole file, and no process.
    let mut wanted: libc::flock = unsafe { std::mem::zeroed() };
    (wanted.l_type, wanted.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    // SAFETY: the descriptor is open, and the structure lives during the call.
    match unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn who_can_only_read_the_file_cannot_take_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock_directory(dir.path()).unwrap();
        assert_eq!(lock_directory(dir.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(mode(&dir.path().join(LOCK)), 0o600);
        // Like a child that was forked and has not executed its program yet.
        let _inherited = held.0.try_clone().unwrap();
        drop(held);
        let reader = File::open(dir.path().join(LOCK)).unwrap();
        lock(&reader).unwrap_err();
        rustix::fs::flock(&reader, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        lock_directory(dir.path()).unwrap();
    }

    #[test]
    fn a_cgroup_is_locked_by_what_only_its_owner_opens() {
        for name in ["cgroup.kill", "cgroup.max.depth"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(name), "").unwrap();
            chmod(&dir.path().join(name), if name == "cgroup.kill" { 0o200 } else { 0o644 });
            let _held = lock_cgroup(dir.path()).unwrap();
            assert_eq!(lock_cgroup(dir.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert_eq!(mode(&dir.path().join(name)), 0o200);
        }
    }

    #[test]
    fn what_an_earlier_version_left_open_is_tightened() {
        let dir = tempfile::tempdir().unwrap();
        chmod(dir.path(), 0o755);
        for name in ["journal", "journal.corrupt-1", "other"] {
            fs::write(dir.path().join(name), "x").unwrap();
            chmod(&dir.path().join(name), 0o644);
        }
        keep_directory(dir.path(), &["journal"]).unwrap();
        let modes = ["", "journal", "journal.corrupt-1", "other"].map(|name| mode(&dir.path().join(name)));
        assert_eq!(modes, [0o700, 0o600, 0o600, 0o644]);
    }

    #[test]
    fn a_new_one_is_private_from_the_beginning_and_one_that_others_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("a/b");
        assert_eq!(mode(&keep_directory(&new, &[]).unwrap()), 0o700);
        chmod(&new, 0o777);
        keep_directory(&new, &[]).unwrap();
        assert_eq!(mode(&new), 0o700, "it was empty");
        fs::write(new.join("x"), "").unwrap();
        chmod(&new, 0o1777);
        assert_eq!(keep_directory(&new, &[]).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_path_below_another_users_directory_is_refused_to_root() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (users, run) = (dir.path().join("user"), dir.path().join("user/sub/run"));
        assert!(make_directory(&run, 0o755).is_ok());
        std::os::unix::fs::chown(&users, Some(65534), None).unwrap();
        for path in [&run, &users.join("new")] {
            let refused = make_directory(path, 0o755).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            assert!(refused.to_string().contains("owner 65534"), "{refused}");
        }
        assert!(!users.join("new").exists());
        std::os::unix::fs::symlink(&run, dir.path().join("link")).unwrap();
        assert!(check_path(&dir.path().join("link")).is_err(), "a link leads to what it leads to");
        std::os::unix::fs::chown(&users, Some(0), None).unwrap();
        chmod(&users, 0o775);
        assert!(check_path(&run).is_err());
        chmod(&users, 0o1777);
        assert!(check_path(&run).is_ok(), "nobody moves root's directory out of a sticky one");
        assert!(check_path(&users).is_err(), "but adds to it");
        assert!(make_directory(&users.join("new/run"), 0o755).is_ok(), "root makes its own there, as in /tmp");
        assert!(make_directory(&users, 0o755).is_err());
    }
}
