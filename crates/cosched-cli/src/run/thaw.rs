//! The third safety net: when daemon and guard have died, the launcher thaws its own job if permitted.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Lets the job's processes run, silently: without permission, other processes have to do it.
pub(crate) fn thaw(cgroup: &str) {
    let cgroup = cgroup.trim_start_matches('/');
    // The path came from a daemon; it must not lead out of the hierarchy, nor to its root.
    if cgroup.is_empty() || cgroup.split('/').any(|part| part == "..") {
        return;
    }
    let Some(job) = cgroup2().map(|mount| mount.join(cgroup)) else { return };
    // A job's processes are frozen in its `gang`, which thawing the cgroup above does not thaw; an adopted cgroup is frozen itself.
    for frozen in [job.join("gang"), job] {
        let _ = fs::write(frozen.join("cgroup.freeze"), "0");
    }
}

/// Where cgroup v2 is mounted.
pub(crate) fn cgroup2() -> Option<PathBuf> {
    cgroup2_mount(&fs::read("/proc/self/mountinfo").ok()?)
}

/// The mount point of cgroup v2 in a table of mounts (`proc_pid_mountinfo(5)`: the type follows the separator ` - `).
fn cgroup2_mount(table: &[u8]) -> Option<PathBuf> {
    table.split(|byte| *byte == b'\n').find_map(|line| {
        let separator = line.windows(3).position(|window| window == b" - ")?;
        let is_cgroup2 = line[separator + 3..].starts_with(b"cgroup2 ");
        let place = line[..separator].split(|byte| *byte == b' ').nth(4)?;
        is_cgroup2.then(|| unescape(place))
    })
}

/// Blanks and backslashes are octal in the table.
fn unescape(place: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(place.len());
    let mut rest = place;
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) if first == b'\\' => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    Path::new(OsStr::from_bytes(&bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_mount_in_hybrid_and_pure_layouts() {
        let hybrid = b"36 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroup2_mount(hybrid), Some("/sys/fs/cgroup/unified".into()));
        let pure = b"25 24 0:22 / /sys/fs/c\\040group rw - cgroup2 cgroup rw,nsdelegate\n";
        assert_eq!(cgroup2_mount(pure), Some("/sys/fs/c group".into()));
        assert_eq!(cgroup2_mount(b"25 24 0:22 / /cgroup2 rw - tmpfs tmpfs rw\n"), None);
    }
}
