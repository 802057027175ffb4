//! An open file whose blocks are read and written at offsets, bypassing the page cache where its file system allows that.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{Advice, AtFlags, FallocateFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::error::{Cause, Doing, FileError};
use super::extent::Alignment;

/// Whether the bytes bypass the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching {
    /// O_DIRECT where the file system supports it, otherwise through the page cache.
    #[default]
    Direct,
    /// Through the page cache.
    Buffered,
}

/// The alignment where the file system does not report one: all present implementations of O_DIRECT accept pages.
const PAGE: u64 = 4096;
/// The file is in memory: O_DIRECT may be accepted, but there is no cache to bypass.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// An open file of blocks. It has no position: reads and writes name their offset.
#[derive(Debug)]
pub struct BlockFile {
    path: PathBuf,
    buffered: OwnedFd,
    direct: Option<(OwnedFd, Alignment)>,
    why_buffered: Option<String>,
    /// The kernel refused a request with the alignment that it had reported.
    refused: AtomicBool,
    len: u64,
    /// The times of the last change of content and of any change, at the time of opening: seconds and nanoseconds.
    changed: Times,
    regular: bool,
}

type Times = [(i64, i64); 2];

impl BlockFile {
    /// Opens `path` for reading: a regular file or a block device. Its content is never changed.
    ///
    /// # Errors
    /// It cannot be opened, or has no offsets, such as a pipe.
    pub fn open(path: &Path, caching: Caching) -> Result<BlockFile, FileError> {
        BlockFile::open_as(path, OFlags::RDONLY, &[FileType::RegularFile, FileType::BlockDevice], caching)
    }

    /// Opens the existing regular file `path` for reading and writing in place.
    ///
    /// # Errors
    /// As in [`BlockFile::open`].
    pub fn open_update(path: &Path, caching: Caching) -> Result<BlockFile, FileError> {
        BlockFile::open_as(path, OFlags::RDWR, &[FileType::RegularFile], caching)
    }

    fn open_as(path: &Path, access: OFlags, kinds: &[FileType], caching: Caching) -> Result<BlockFile, FileError> {
        // Without NONBLOCK, a pipe without a writer would block in open; it is refused below.
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|e| FileError::from_io(Doing::Open, path, 0, e))?;
        let kind = kind_of(&file, path)?;
        if !kinds.contains(&kind) {
            return Err(FileError::new(Doing::Open, path, Cause::NotAFile(name_of(kind))));
        }
        BlockFile::from_fd(file, path, access, caching)
    }

    /// A working file in `directory`, for reading and writing. It has no name, and is deleted when it is closed, however the program ends.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn scratch(directory: &Path, caching: Caching) -> Result<BlockFile, FileError> {
        let (file, named) = super::output::unnamed(directory, &directory.join("scratch"))?;
        if let Some(name) = named {
            rustix::fs::unlink(&name).map_err(|e| FileError::from_io(Doing::Open, &name, 0, e))?;
        }
        BlockFile::from_fd(file, &directory.join("(working file)"), OFlags::RDWR, caching)
    }

    pub(super) fn from_fd(
        file: OwnedFd,
        path: &Path,
        access: OFlags,
        caching: Caching,
    ) -> Result<BlockFile, FileError> {
        let failed = |e: Errno| FileError::from_io(Doing::Open, path, 0, e);
        // With the flag, io_uring would answer "try again" where it should wait.
        rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(failed)?;
        let regular = kind_of(&file, path)? == FileType::RegularFile;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        let len = if regular {
            stat.st_size as u64
        } else {
            rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(failed)?
        };
        let (direct, why_buffered) = match caching {
            Caching::Buffered => (None, Some("asked for".into())),
            Caching::Direct => match reopen_direct(&file, access) {
                Ok(direct) => (Some(direct), None),
                Err(why) => (None, Some(why)),
            },
        };
        if direct.is_some() {
            // Only the unaligned ends are buffered: reading ahead would only fill the cache. A refusal has no other consequence.
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
        }
        Ok(BlockFile {
            path: path.into(),
            buffered: file,
            direct,
            why_buffered,
            refused: AtomicBool::new(false),
            len,
            changed: times(&stat),
            regular,
        })
    }

    /// Its path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length when it was opened, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when it was empty when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether its aligned bytes bypass the page cache.
    pub fn caching(&self) -> Caching {
        if self.alignment().is_some() { Caching::Direct } else { Caching::Buffered }
    }

    /// Why its bytes go through the page cache, where they do.
    pub fn why_buffered(&self) -> Option<&str> {
        let refused = self.refused.load(Relaxed).then_some("the file system refused an aligned request");
        self.why_buffered.as_deref().or(refused)
    }

    /// The alignment for O_DIRECT; `None` where all bytes go through the page cache.
    pub fn alignment(&self) -> Option<Alignment> {
        if self.refused.load(Relaxed) { None } else { self.direct.as_ref().map(|(_, alignment)| *alignment) }
    }

    /// Whether this is the same file as `other`, whatever its name.
    pub fn is_same(&self, other: &BlockFile) -> bool {
        self.identity().is_some_and(|mine| other.identity() == Some(mine))
    }

    fn identity(&self) -> Option<(u64, u64)> {
        rustix::fs::fstat(&self.buffered).ok().map(|stat| (stat.st_dev, stat.st_ino))
    }

    /// Its present length in bytes. That of a device does not change.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn len_now(&self) -> Result<u64, FileError> {
        if !self.regular {
            return Ok(self.len);
        }
        let stat = rustix::fs::fstat(&self.buffered).map_err(|e| FileError::from_io(Doing::Read, &self.path, 0, e))?;
        Ok(stat.st_size as u64)
    }

    /// Checks that it is unchanged since it was opened, for files that are only read: its length and the times of its last changes. Those of a device
    /// are not meaningful.
    ///
    /// # Errors
    /// [`Cause::Shrank`], [`Cause::Grew`] or [`Cause::Changed`] if it has changed.
    pub fn check_unchanged(&self) -> Result<(), FileError> {
        if !self.regular {
            return Ok(());
        }
        let stat = rustix::fs::fstat(&self.buffered).map_err(|e| FileError::from_io(Doing::Read, &self.path, 0, e))?;
        let (expected, now) = (self.len, stat.st_size as u64);
        match now.cmp(&expected) {
            std::cmp::Ordering::Equal if times(&stat) != self.changed => {
                Err(FileError::new(Doing::Read, &self.path, Cause::Changed))
            }
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => {
                Err(FileError::new(Doing::Read, &self.path, Cause::Shrank { expected, now }).at(now))
            }
            std::cmp::Ordering::Greater => {
                Err(FileError::new(Doing::Read, &self.path, Cause::Grew { expected, now }).at(expected))
            }
        }
    }

    /// Reserves room on the disk for the bytes from `from` to `to`, and extends the file to that length. A file system that cannot reserve gets only
    /// the length.
    ///
    /// # Errors
    /// [`Cause::DiskFull`] if there is no room.
    pub fn reserve(&self, from: u64, to: u64) -> Result<(), FileError> {
        let failed = |e: Errno| FileError::from_io(Doing::Reserve, &self.path, to.saturating_sub(from), e).at(from);
        if to <= from {
            return Ok(());
        }
        loop {
            return match rustix::fs::fallocate(&self.buffered, FallocateFlags::empty(), from, to - from) {
                Err(Errno::INTR) => continue,
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::fs::ftruncate(&self.buffered, to).map_err(failed),
                result => result.map_err(failed),
            };
        }
    }

    /// Makes the file exactly `len` bytes long.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_len(&self, len: u64) -> Result<(), FileError> {
        rustix::fs::ftruncate(&self.buffered, len)
            .map_err(|e| FileError::from_io(Doing::Write, &self.path, len, e).at(len))
    }

    /// Waits until its bytes are on the disk.
    ///
    /// # Errors
    /// A failed write, also one of earlier buffered writes.
    pub fn sync(&self) -> Result<(), FileError> {
        rustix::fs::fdatasync(&self.buffered).map_err(|e| FileError::from_io(Doing::Sync, &self.path, 0, e))
    }

    /// Drops its clean pages from the page cache. For measurements.
    pub fn drop_cache(&self) {
        let _ = rustix::fs::fadvise(&self.buffered, 0, None, Advice::DontNeed);
    }

    /// The descriptor for a request.
    pub(super) fn borrow(&self, direct: bool) -> BorrowedFd<'_> {
        match &self.direct {
            Some((file, _)) if direct => file.as_fd(),
            _ => self.buffered.as_fd(),
        }
    }

    /// Records that O_DIRECT does not work here after all.
    pub(super) fn refuse_direct(&self) {
        self.refused.store(true, Relaxed);
    }
}

impl AsFd for BlockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.buffered.as_fd()
    }
}

/// The times of the content, and of any change: setting the first back, as `cp -p` does, changes the second.
fn times(stat: &rustix::fs::Stat) -> Times {
    [(stat.st_mtime, stat.st_mtime_nsec as i64), (stat.st_ctime, stat.st_ctime_nsec as i64)]
}

fn kind_of(file: &OwnedFd, path: &Path) -> Result<FileType, FileError> {
    let stat = rustix::fs::fstat(file).map_err(|e| FileError::from_io(Doing::Open, path, 0, e))?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

pub(super) fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::Fifo => "pipe",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Socket => "socket",
        _ => "special file",
    }
}

/// Opens the same file again for O_DIRECT; or the reason why that fails.
fn reopen_direct(file: &OwnedFd, access: OFlags) -> Result<(OwnedFd, Alignment), String> {
    if rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type as u64 == TMPFS_MAGIC) {
        return Err("it lives in memory (tmpfs)".into());
    }
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = rustix::fs::open(again, access | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).map_err(|e| {
        if e == Errno::INVAL { "its file system has no O_DIRECT".into() } else { format!("O_DIRECT: {e}") }
    })?;
    Ok((direct, alignment_of(file)?))
}

/// The alignment that the file system requires for O_DIRECT (`STATX_DIOALIGN`, Linux 6.1), or pages if it does not report one.
fn alignment_of(file: &OwnedFd) -> Result<Alignment, String> {
    let fallback = Alignment { memory: PAGE as usize, offset: PAGE };
    let Ok(stat) = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else { return Ok(fallback) };
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(fallback);
    }
    match (stat.stx_dio_mem_align, stat.stx_dio_offset_align) {
        (0, _) | (_, 0) => Err("its file system has no O_DIRECT for this file".into()),
        (memory, offset) => Ok(Alignment { memory: memory as usize, offset: u64::from(offset).max(page_size()) }),
    }
}

fn page_size() -> u64 {
    (rustix::param::page_size() as u64).max(PAGE)
}
