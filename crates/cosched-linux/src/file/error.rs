//! Errors of a file, as types for programs and as messages with a remedy for people.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::problem::Problem;

/// The operation on the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Opening or creating it.
    Open,
    /// Reading a block.
    Read,
    /// Writing a block.
    Write,
    /// Reserving its space on the disk.
    Reserve,
    /// Waiting until its data are on the disk.
    Sync,
    /// Giving it its name.
    Publish,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Open => "open",
            Doing::Read => "read",
            Doing::Write => "write",
            Doing::Reserve => "reserve space for",
            Doing::Sync => "write to the disk",
            Doing::Publish => "give its name to",
        })
    }
}

/// Why it failed. Lengths and offsets are in bytes.
#[derive(Debug)]
pub enum Cause {
    /// The file system has no room.
    DiskFull {
        /// The number of bytes to be stored.
        wanted: u64,
        /// The free space for this user according to the file system, if it reports that.
        free: Option<u64>,
    },
    /// The user's quota is used up.
    QuotaExceeded,
    /// The requested bytes end behind the end of the file.
    ShortRead {
        /// The end of the requested bytes.
        end: u64,
        /// The length of the file.
        len: u64,
    },
    /// The file became shorter after it was opened.
    Shrank {
        /// Its length when it was opened.
        expected: u64,
        /// Its length now.
        now: u64,
    },
    /// The file became longer after it was opened.
    Grew {
        /// Its length when it was opened.
        expected: u64,
        /// Its length now.
        now: u64,
    },
    /// The file was written to, renamed or given other permissions after it was opened; its length is the same.
    Changed,
    /// A pipe, a directory, a terminal: it has no offsets.
    NotAFile(&'static str),
    /// The output is one of the inputs.
    SameFile(PathBuf),
    /// Permission denied.
    Permission,
    /// It does not exist.
    Missing,
    /// The device failed (EIO).
    Device,
    /// The caller requested something impossible, such as bytes beyond the buffer.
    Invalid(String),
    /// Any other error of the kernel.
    Other(io::Error),
}

/// A failure with one file: the operation, the file, the position, and the cause.
#[derive(Debug)]
pub struct FileError {
    /// The operation.
    pub doing: Doing,
    /// The file.
    pub path: PathBuf,
    /// The position in the file, in bytes, where it matters.
    pub offset: Option<u64>,
    /// The cause.
    pub cause: Cause,
}

impl FileError {
    pub(super) fn new(doing: Doing, path: &Path, cause: Cause) -> FileError {
        FileError { doing, path: path.into(), offset: None, cause }
    }

    pub(super) fn at(mut self, offset: u64) -> FileError {
        self.offset = Some(offset);
        self
    }

    /// Converts the kernel's error. `wanted` is the number of bytes to be stored.
    pub(super) fn from_io(doing: Doing, path: &Path, wanted: u64, error: impl Into<io::Error>) -> FileError {
        let error = error.into();
        let cause = match Errno::from_io_error(&error) {
            Some(Errno::NOSPC) => Cause::DiskFull { wanted, free: free_bytes(path) },
            Some(Errno::DQUOT) => Cause::QuotaExceeded,
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Cause::Permission,
            Some(Errno::NOENT) => Cause::Missing,
            Some(Errno::IO) => Cause::Device,
            Some(Errno::ISDIR) => Cause::NotAFile("directory"),
            _ => Cause::Other(error),
        };
        FileError::new(doing, path, cause)
    }

    /// The message in its three parts.
    pub fn problem(&self) -> Problem {
        let place = self.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
        let (why, hint) = self.cause.explained();
        Problem::new(format!("cannot {} {}{place}", self.doing, self.path.display()), why, hint)
    }
}

impl Cause {
    fn explained(&self) -> (String, String) {
        let (why, hint) = match self {
            Cause::DiskFull { wanted, free } => {
                let free = free.map(|free| format!(", {free} are free")).unwrap_or_default();
                return (
                    format!("the disk is full: {wanted} bytes are needed{free}"),
                    "make room, or write elsewhere".into(),
                );
            }
            Cause::ShortRead { end, len } => {
                return (
                    format!("the file ends at byte {len}, and the requested range ends at byte {end}"),
                    "check the range and the size of the records".into(),
                );
            }
            Cause::Shrank { expected, now } => {
                return (
                    format!("the file shrank from {expected} to {now} bytes while it was read"),
                    "another program is writing it; start again when it is complete".into(),
                );
            }
            Cause::Grew { expected, now } => {
                return (
                    format!("the file grew from {expected} to {now} bytes while it was read"),
                    "another program is writing it; start again when it is complete, or name the range to read".into(),
                );
            }
            Cause::Changed => (
                "the file was changed while it was read (by its times; its length is the same)",
                "start again when no other program writes, renames or changes it",
            ),
            Cause::NotAFile(kind) => {
                return (
                    format!("it is a {kind}, and blocks are read and written at offsets"),
                    "name a regular file".into(),
                );
            }
            Cause::SameFile(input) => {
                return (format!("it is the same file as the input {}", input.display()), "name another output".into());
            }
            Cause::Other(error) => return (error.to_string(), "see the kernel's message".into()),
            Cause::Invalid(why) => return (why.clone(), "this is a mistake in the calling program".into()),
            Cause::QuotaExceeded => ("the disk quota is used up", "make room, or ask the administrator for more"),
            Cause::Permission => ("permission denied", "check the owner and the mode of the file and its directory"),
            Cause::Missing => ("there is no such file or directory", "check the path"),
            Cause::Device => ("the device failed (EIO)", "see the kernel's log (dmesg); the disk may be broken"),
        };
        (why.into(), hint.into())
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem().fmt(f)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Other(error) => Some(error),
            _ => None,
        }
    }
}

/// The space for this user beside the file, in bytes. For a file that has no name yet it is that of its directory.
fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).or_else(|_| rustix::fs::statvfs(directory(path))).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The directory part of a file's path.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
