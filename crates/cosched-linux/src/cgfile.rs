//! Reading and writing the small files of a cgroup.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Reads a whole small file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Writes `value` in one `write` call, as the kernel wants it. Never creates the file: a missing control file is an error.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// The value of `key` in a flat keyed file such as cgroup.events or cpu.stat.
pub(crate) fn keyed(content: &str, key: &str) -> Option<u64> {
    content.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The process ids in a cgroup.procs file. A 0 (a process of another pid namespace) is left out.
pub(crate) fn procs(dir: &Path) -> io::Result<Vec<i32>> {
    let content = read(&dir.join("cgroup.procs"))?;
    Ok(content.lines().filter_map(|line| line.trim().parse().ok()).filter(|&pid| pid > 0).collect())
}

/// The directories directly below `dir`; a directory that has gone has none.
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

/// `dir` and all directories below it, the deepest first.
pub(crate) fn deepest_first(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut stack = vec![dir.to_path_buf()];
    while let Some(next) = stack.pop() {
        stack.extend(children(&next)?);
        found.push(next);
    }
    found.reverse();
    Ok(found)
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

/// Creates a directory; one that is there already is fine.
pub(crate) fn mkdir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Removes a directory; one that has gone already is fine.
pub(crate) fn rmdir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
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
        let found = deepest_first(dir.path()).unwrap();
        let place = |name: &str| found.iter().position(|p| p == &dir.path().join(name)).unwrap();
        assert!(place("a/b") < place("a"));
        assert_eq!(found.len(), 4);
        assert_eq!(found.last().unwrap(), dir.path());
    }
}
