//! A file system in memory of a few pages, for a file that a user may write: it is full from the beginning, so that the user cannot extend the file.
//!
//! A process that must not block may not unlink, write, or change the length or mode of a file that a user has open for writing: all these take the
//! inode's lock, which the user can hold for any time by a write(2) whose data come from a file system of the user's own (FUSE). So such a file is
//! removed with its file system, which is detached as a whole.

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

/// Room for the files, directories and the root.
const INODES: usize = 4;

/// Mounts it on `dir`, with room for files of these sizes; the directory remains root's.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; otherwise the kernel's.
pub fn attach(dir: &Path, sizes: &[usize]) -> io::Result<()> {
    let page = rustix::param::page_size();
    let bytes: usize = sizes.iter().map(|size| size.next_multiple_of(page)).sum();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let with = |more: &str| -> io::Result<()> {
        let options = CString::new(format!("size={bytes},nr_inodes={INODES},mode=0755{more}"))?;
        Ok(mount("cosched-wait", dir, "tmpfs", flags, options.as_c_str())?)
    };
    // The slot thread reads the pages, and must not wait until one is back from a disk. Before Linux 6.4 there is no such option.
    match with(",noswap") {
        Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => with(""),
        done => done,
    }
}

/// Detaches it, and removes the directory; processes that have one of its files open or mapped keep it. Does nothing if there is none.
///
/// # Errors
/// The kernel's, such as ENOTEMPTY when the directory has files that are not of such a file system.
pub fn detach(dir: &Path) -> io::Result<()> {
    match unmount(dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        // It is not mounted, or does not exist.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => (),
        Err(e) => return Err(e.into()),
    }
    match fs::remove_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
