//! An output that appears under its name only when it is complete.
//!
//! Until then it has no name at all (`O_TMPFILE`), so that nothing is left of it however the program ends; where the file system does not support
//! that, it has a name ending in `.part` beside the target. An earlier file of the target's name stays until then.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::error::{Cause, Doing, FileError, directory};
use super::open::{BlockFile, Caching, name_of};

/// Options of an output.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// Whether its bytes bypass the page cache.
    pub caching: Caching,
    /// Files that the output must not be.
    pub inputs: Vec<PathBuf>,
    /// Give it a name from the start ([`Output::temporary`]), so that other processes can write into it, too.
    pub named: bool,
    /// Wait until it is on the disk before it gets its name.
    pub sync: bool,
}

/// A file that is being written. If it is dropped before [`Output::publish`], it is removed.
#[derive(Debug)]
pub struct Output {
    file: Arc<BlockFile>,
    target: PathBuf,
    temporary: Option<PathBuf>,
    sync: bool,
    /// The length for which room on the disk is reserved, in bytes.
    reserved: u64,
}

/// Where the length is unknown, room on the disk is reserved in steps of this many bytes: a write behind the end of a file waits for all others, one
/// into reserved room does not.
const STEP: u64 = 64 << 20;

impl Output {
    /// Starts the output that will be `target`.
    ///
    /// # Errors
    /// The location is not writable, or the output is one of the inputs.
    pub fn create(target: &Path, options: &OutputOptions) -> Result<Output, FileError> {
        // If the target is a link, the file that it names is replaced, not the link.
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.into());
        let old = check_target(&target, &options.inputs)?;
        let (file, temporary) = if options.named {
            let (file, name) = named(&target)?;
            (file, Some(name))
        } else {
            unnamed(directory(&target), &target)?
        };
        let made = old.map_or(Ok(()), |mode| rustix::fs::fchmod(&file, mode));
        let opened = made
            .map_err(|e| FileError::from_io(Doing::Open, &target, 0, e))
            .and_then(|()| BlockFile::from_fd(file, &target, OFlags::RDWR, options.caching));
        match opened {
            Ok(file) => Ok(Output { file: Arc::new(file), target, temporary, sync: options.sync, reserved: 0 }),
            Err(error) => {
                temporary.iter().for_each(|name| remove(name));
                Err(error)
            }
        }
    }

    /// The file to write into.
    pub fn file(&self) -> &Arc<BlockFile> {
        &self.file
    }

    /// The name under which it will appear.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Its name until then, if it has one.
    pub fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Reserves room for `len` bytes at once, so that a disk that is too small is detected before the work.
    ///
    /// # Errors
    /// [`Cause::DiskFull`] if there is no room.
    pub fn reserve(&mut self, len: u64) -> Result<(), FileError> {
        self.file.reserve(self.reserved, len)?;
        self.reserved = self.reserved.max(len);
        Ok(())
    }

    /// Reserves room up to `end`, and some more if available.
    ///
    /// # Errors
    /// [`Cause::DiskFull`] if there is no room up to `end`.
    pub fn ensure(&mut self, end: u64) -> Result<(), FileError> {
        if end <= self.reserved {
            return Ok(());
        }
        match self.reserve(end.max(self.reserved.saturating_add(STEP))) {
            Err(FileError { cause: Cause::DiskFull { .. } | Cause::QuotaExceeded, .. }) => self.reserve(end),
            result => result,
        }
    }

    /// Sets its length to `len` bytes and gives it its name. An earlier file of that name is replaced.
    ///
    /// # Errors
    /// The kernel refuses; then the output is removed, and an earlier file stays.
    pub fn publish(mut self, len: u64) -> Result<(), FileError> {
        self.file.set_len(len)?;
        if self.sync {
            self.file.sync()?;
        }
        let failed = |e: Errno| FileError::from_io(Doing::Publish, &self.target, 0, e);
        if self.temporary.is_none() {
            self.temporary = Some(link(&self.file, &self.target)?);
        }
        if let Some(name) = &self.temporary {
            rustix::fs::rename(name, &self.target).map_err(failed)?;
        }
        // From here on the name is the target's, and must not be removed.
        self.temporary = None;
        if self.sync {
            let opened = rustix::fs::open(directory(&self.target), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            opened.and_then(rustix::fs::fsync).map_err(|e| FileError::from_io(Doing::Sync, &self.target, 0, e))?;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.temporary.iter().for_each(|name| remove(name));
    }
}

/// Checks whether the target may be replaced; returns its mode, if it exists.
fn check_target(target: &Path, inputs: &[PathBuf]) -> Result<Option<Mode>, FileError> {
    let failed = |e: Errno| FileError::from_io(Doing::Open, target, 0, e);
    let old = match rustix::fs::stat(target) {
        Ok(old) => old,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let kind = FileType::from_raw_mode(old.st_mode);
    if kind != FileType::RegularFile {
        return Err(FileError::new(Doing::Open, target, Cause::NotAFile(name_of(kind))));
    }
    for input in inputs {
        if rustix::fs::stat(input).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (old.st_dev, old.st_ino)) {
            return Err(FileError::new(Doing::Open, target, Cause::SameFile(input.clone())));
        }
    }
    rustix::fs::accessat(CWD, target, Access::WRITE_OK, AtFlags::EACCESS).map_err(failed)?;
    Ok(Some(Mode::from_raw_mode(old.st_mode)))
}

/// A file without a name, or with a name where the file system does not support that.
pub(super) fn unnamed(directory: &Path, target: &Path) -> Result<(OwnedFd, Option<PathBuf>), FileError> {
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        // It later gets its name through the link in /proc.
        Ok(file) if proc_path(&file).exists() => Ok((file, None)),
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            named(target).map(|(file, name)| (file, Some(name)))
        }
        Err(error) => Err(FileError::from_io(Doing::Open, target, 0, error)),
    }
}

fn named(target: &Path) -> Result<(OwnedFd, PathBuf), FileError> {
    loop {
        let name = part_name(target);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(&name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((file, name)),
            Err(Errno::EXIST | Errno::INTR) => continue,
            Err(error) => return Err(FileError::from_io(Doing::Open, target, 0, error)),
        }
    }
}

/// Gives the unnamed file a name beside the target: only a rename can replace an existing target.
fn link(file: &BlockFile, target: &Path) -> Result<PathBuf, FileError> {
    loop {
        let name = part_name(target);
        match rustix::fs::linkat(CWD, proc_path(file), CWD, &name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST | Errno::INTR) => continue,
            Err(error) => return Err(FileError::from_io(Doing::Publish, target, 0, error)),
        }
    }
}

fn proc_path(file: &impl std::os::fd::AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// A unique name beside the target. A long name is cut: the file system allows 255 bytes.
fn part_name(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name: String = target.file_name().unwrap_or_default().to_string_lossy().chars().take(50).collect();
    let number = COUNT.fetch_add(1, Relaxed);
    directory(target).join(format!(".{name}.{}-{number}.part", std::process::id()))
}

/// Removes a name; an error is ignored, as nothing can be done about it.
fn remove(name: &Path) {
    let _ = rustix::fs::unlink(name);
}
