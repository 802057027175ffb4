//! Reading and writing the small files of a cgroup.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// The depth to which a tree is visited and removed: each level has a descriptor open meanwhile.
const LEVELS_MAX: usize = 200;

/// Reads a whole small file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Reads a whole file of /proc/PID, in which the program's name may be no UTF-8: its owner chooses it.
pub(crate) fn read_proc(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Writes `value` in one `write` call, as the kernel requires. Never creates the file: a missing control file is an error.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// The value of `key` in a flat keyed file such as cgroup.events or cpu.stat.
pub(crate) fn keyed(content: &str, key: &str) -> Option<u64> {
    content.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The process ids in a cgroup.procs file. A 0 (a process of another pid namespace) is left out.
pub(crate) fn procs(dir: &Path) -> io::Result<Vec<i32>> {
    Ok(pids(&read(&dir.join("cgroup.procs"))?))
}

/// The same for an open directory.
pub(crate) fn procs_at(dir: BorrowedFd<'_>) -> io::Result<Vec<i32>> {
    let file = openat(dir, "cgroup.procs", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut content = String::new();
    fs::File::from(file).read_to_string(&mut content)?;
    Ok(pids(&content))
}

pub(crate) fn pids(content: &str) -> Vec<i32> {
    content.lines().filter_map(|line| line.trim().parse().ok()).filter(|&pid| pid > 0).collect()
}

/// The directories directly below `dir`; none if `dir` does not exist.
pub(crate) fn children(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The number after `key` at the start of an open file. Nothing here allocates: the slot thread calls it.
pub(crate) fn first_number(file: &fs::File, key: &[u8]) -> Option<u64> {
    let mut buffer = [0; 64];
    let count = rustix::io::pread(file, &mut buffer, 0).ok()?;
    let digits = buffer[..count].strip_prefix(key)?.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |sum: u64, byte| sum.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'))))
}

/// `dir` and all directories below it that can be read, the deepest first: one whose path is too long hides no other.
pub(crate) fn reachable(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut stack) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(next) = stack.pop() {
        stack.extend(children(&next).unwrap_or_default());
        found.push(next);
    }
    found.reverse();
    found
}

/// Creates a directory; an existing one is no error.
pub(crate) fn mkdir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Removes a directory; a missing one is no error.
pub(crate) fn rmdir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// The same for a cgroup whose processes have just been killed: it can stay busy until the kernel has released them.
pub(crate) fn rmdir_patiently(dir: &Path) -> io::Result<()> {
    patiently(|| rmdir(dir))
}

fn patiently(remove: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..50 {
        match remove() {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => sleep(Duration::from_millis(2)),
            other => return other,
        }
    }
    remove()
}

/// Visits a directory and all below it, the deepest first, by descriptors: so the length of paths does not matter. Directories that vanish meanwhile,
/// and those below the maximum depth, are left out. Returns false if there are more than `most`: then some were not visited.
pub(crate) fn visit(
    dir: &Path,
    most: usize,
    see: &mut impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<bool> {
    let mut left = most;
    if let Some(opened) = open_dir(CWD, dir)? {
        visit_below(opened.as_fd(), LEVELS_MAX, &mut left, see)?;
    }
    Ok(left > 0)
}

fn visit_below(
    dir: BorrowedFd<'_>,
    levels_left: usize,
    left: &mut usize,
    see: &mut impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let names = match names_of_dirs(dir, *left) {
        Err(e) if is_gone(&e) => return Ok(()),
        names => names?,
    };
    if let Some(levels_left) = levels_left.checked_sub(1) {
        for name in names {
            if *left == 0 {
                break;
            }
            // Counts also those that vanished meanwhile: names can be created faster than they are opened.
            *left -= 1;
            let Some(child) = open_dir(dir, &name)? else { continue };
            visit_below(child.as_fd(), levels_left, left, see)?;
        }
    }
    see(dir)
}

/// Whether the error means that a cgroup, or a file of it, no longer exists.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

/// Removes a directory and those below it, by descriptors: so the length of paths does not matter.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    if let Some(opened) = open_dir(CWD, dir)? {
        remove_below(opened.as_fd(), LEVELS_MAX)?;
    }
    rmdir_patiently(dir)
}

fn remove_below(dir: BorrowedFd<'_>, levels_left: usize) -> io::Result<()> {
    for name in names_of_dirs(dir, usize::MAX)? {
        let Some(child) = open_dir(dir, &name)? else { continue };
        let levels_left = levels_left.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        remove_below(child.as_fd(), levels_left)?;
        patiently(|| match unlinkat(dir, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        })?;
    }
    Ok(())
}

/// `None` for a directory that no longer exists.
fn open_dir(at: impl AsFd, name: impl Arg) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(at, name, flags, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Returns at most `most` names.
fn names_of_dirs(dir: BorrowedFd<'_>, most: usize) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        if names.len() == most {
            break;
        }
        let entry = entry?;
        if entry.file_type() == FileType::Directory && ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Moves all processes of one cgroup into another. A process may fork meanwhile; a few rounds catch the child.
pub(crate) fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for _ in 0..8 {
        let pids = procs(from)?;
        if pids.is_empty() {
            break;
        }
        for pid in pids {
            match write(&to.join("cgroup.procs"), &pid.to_string()) {
                Err(e) if e.raw_os_error() != Some(libc::ESRCH) => return Err(e),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_files_are_read_by_whole_keys() {
        let content = "populated_x 7\npopulated 1\nfrozen 0\n";
        assert_eq!(keyed(content, "populated"), Some(1));
        assert_eq!(keyed(content, "frozen"), Some(0));
        assert_eq!(keyed(content, "pop"), None);
    }

    #[test]
    fn children_come_before_their_parents() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::create_dir_all(dir.path().join("c")).unwrap();
        let found = reachable(dir.path());
        let place = |name: &str| found.iter().position(|p| p == &dir.path().join(name)).unwrap();
        assert!(place("a/b") < place("a"));
        assert_eq!(found.len(), 4);
        assert_eq!(found.last().unwrap(), dir.path());
    }

    #[test]
    fn of_too_many_directories_some_are_visited_and_the_first_too() {
        let base = tempfile::tempdir().unwrap();
        for at in 0..30 {
            fs::create_dir_all(base.path().join(format!("{}/{}", at % 3, at))).unwrap();
        }
        let seen = |most: usize| {
            let mut names = Vec::new();
            let all = visit(base.path(), most, &mut |dir| {
                names.push(rustix::fs::fstat(dir)?.st_ino);
                Ok(())
            });
            (all.unwrap(), names)
        };
        let all = seen(34);
        assert!(all.0 && all.1.len() == 34, "itself, 3 and 30: {all:?}");
        for most in [1, 7, 33] {
            let (is_all, some) = seen(most);
            assert!(!is_all && some.len() == most + 1 && some.last() == all.1.last(), "{most}: {some:?}");
        }
    }

    #[test]
    fn a_path_that_is_too_long_hides_no_other_and_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("job-1");
        fs::create_dir_all(top.join("gang/z")).unwrap();
        let mut deep = open_dir(CWD, top.join("gang")).unwrap().unwrap();
        for _ in 0..30 {
            let name = "d".repeat(250);
            rustix::fs::mkdirat(&deep, &name, Mode::RWXU).unwrap();
            deep = open_dir(&deep, &name).unwrap().unwrap();
        }
        let found = reachable(&top);
        assert!(found.contains(&top.join("gang/z")) && found.len() > 10, "{found:?}");
        let mut seen = 0;
        let all = visit(&top, 40, &mut |_| {
            seen += 1;
            Ok(())
        });
        assert_eq!((all.unwrap(), seen), (true, 33), "job-1, gang, z and the 30");
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        remove_tree(&top).unwrap();
    }
}
