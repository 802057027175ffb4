//! The name of the adopted cgroup that a job of our subtree stands for: an extended attribute of the job's empty cgroup there, its *marker*.
//!
//! The problem: an adopted cgroup is outside our subtree, but a thaw of the subtree must include it, also when the kernel's agent does it because
//! daemon and guard were killed at the same moment. The rule: the marker is made before the first freeze and removed after the last thaw, and like a
//! freeze it does not outlive the kernel (cgroup2 has `user.*` since Linux 5.7). It contains an inode number and a path: a later cgroup at the same
//! path is a different one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, fstat, getxattr, removexattr, setxattr};

use crate::cgfile;

const ATTRIBUTE: &str = "user.cosched.adopted";
/// Of an adopted cgroup itself: it was released.
const RELEASED: &str = "user.cosched.released";
/// A path (PATH_MAX) and some numbers before it.
const ATTRIBUTE_BYTES_MAX: usize = 4096 + 96;

/// Makes `marker` the marker of the cgroup `full`, which has this inode number.
pub(crate) fn mark(marker: &Path, inode: u64, full: &Path) -> io::Result<()> {
    write(marker, ATTRIBUTE, [inode], full)
}

/// The cgroup that a marker names.
pub(crate) fn marked(marker: &Path) -> Option<(u64, PathBuf)> {
    read(marker, ATTRIBUTE).map(|([inode], path)| (inode, path))
}

/// An attribute of numbers and a path.
pub(crate) fn write<const N: usize>(marker: &Path, attribute: &str, numbers: [u64; N], path: &Path) -> io::Result<()> {
    let mut value = numbers.map(|number| format!("{number} ")).concat().into_bytes();
    value.extend_from_slice(path.as_os_str().as_bytes());
    Ok(setxattr(marker, attribute, &value, XattrFlags::empty())?)
}

/// What `write` wrote.
pub(crate) fn read<const N: usize>(marker: &Path, attribute: &str) -> Option<([u64; N], PathBuf)> {
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = getxattr(marker, attribute, &mut value[..]).ok()?;
    let mut parts = value[..length].splitn(N + 1, |byte| *byte == b' ');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    }
    Some((numbers, PathBuf::from(OsString::from_vec(parts.next()?.to_vec()))))
}

/// Whether a cgroup was released and not adopted since. What comes later at its path was not.
pub fn was_released(cgroup: &Path) -> bool {
    getxattr(cgroup, RELEASED, &mut [0; 1]).is_ok()
}

pub(crate) fn note_released(cgroup: &Path) -> io::Result<()> {
    Ok(setxattr(cgroup, RELEASED, b"1", XattrFlags::empty())?)
}

pub(crate) fn forget_released(cgroup: &Path) {
    // There is seldom one.
    let _ = removexattr(cgroup, RELEASED);
}

/// Opens the cgroup with this path, if it still has this inode number: whatever has the path later is another one.
pub(crate) fn open_same(path: &Path, inode: u64) -> Option<File> {
    let dir = File::open(path).ok()?;
    (fstat(&dir).ok()?.st_ino == inode).then_some(dir)
}

/// Opens the cgroup that a marker names, if it is still the same one.
pub(crate) fn open_marked(marker: &Path) -> Option<(File, PathBuf)> {
    let (inode, path) = marked(marker)?;
    Some((open_same(&path, inode)?, path))
}

/// Whether this is the marker of a job whose cgroup no longer exists.
pub(crate) fn is_gone(marker: &Path) -> bool {
    marked(marker).is_some() && open_marked(marker).is_none()
}

/// Thaws the adopted cgroup of this marker. Returns false if this is no marker, or the thaw failed.
pub(crate) fn thaw(marker: &Path) -> bool {
    let Some((dir, _)) = open_marked(marker) else { return false };
    cgfile::write(&PathBuf::from(format!("/proc/self/fd/{}/cgroup.freeze", dir.as_raw_fd())), "0").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_names_one_cgroup_and_none_that_has_its_path_later() {
        let base = tempfile::tempdir().unwrap();
        let (marker, service) = (base.path().join("job-7"), base.path().join("a b.service"));
        for dir in [&marker, &service] {
            std::fs::create_dir(dir).unwrap();
        }
        std::fs::write(service.join("cgroup.freeze"), "1").unwrap();
        assert!(!thaw(&marker) && !is_gone(&marker), "it marks nothing");
        // Held open, so that its inode number is not reused.
        let held = File::open(&service).unwrap();
        match mark(&marker, fstat(&held).unwrap().st_ino, &service) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                return println!("SKIPPED: no user.* attributes in {marker:?}");
            }
            marked => marked.unwrap(),
        }
        assert!(thaw(&marker));
        assert_eq!(std::fs::read_to_string(service.join("cgroup.freeze")).unwrap(), "0");
        std::fs::rename(&service, base.path().join("old")).unwrap();
        std::fs::create_dir(&service).unwrap();
        std::fs::write(service.join("cgroup.freeze"), "1").unwrap();
        assert!(!thaw(&marker) && is_gone(&marker));
        assert_eq!(std::fs::read_to_string(service.join("cgroup.freeze")).unwrap(), "1");
    }
}
