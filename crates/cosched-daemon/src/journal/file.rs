//! The file of a journal: how it is written, and how a failed write is handled.

use super::Found;
use super::lines::{self, Read};
use super::mark::{MODE, Mark};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file is rewritten when it is longer than this and more than twice as long as necessary.
const COMPACT_BYTES: u64 = 1 << 20;

/// After a failed write, the least room in bytes that is reserved before the next one.
const ROOM_BYTES: u64 = 64 << 10;

/// A file of changes, open for appending.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) path: PathBuf,
    file: File,
    /// The length of the valid part, in bytes.
    pub(super) bytes: u64,
    /// The file is rewritten beyond this length.
    pub(super) compact_bytes: u64,
    pub(super) compact_bytes_min: u64,
    /// The valid part may be followed by remains of a failed write.
    has_rest: bool,
    /// The disk did not confirm a write: the file has to be rewritten.
    pub(super) unsure: bool,
    /// The room in bytes that a failed write needed.
    short_of: Option<u64>,
    /// The number of the next line.
    pub(super) next: u64,
    /// The last line and the highest job number that were acknowledged.
    pub(super) mark: Mark,
}

impl JournalFile {
    /// Opens or makes the journal at `path`.
    ///
    /// # Errors
    /// Of the file system; `InvalidData` when another version of the daemon has written content that this one would lose. Nothing is changed then.
    pub(super) fn open<C: DeserializeOwned>(path: &Path) -> io::Result<(JournalFile, Found<C>)> {
        let old = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e),
        };
        if lines::unknown::<C>(&old) > 0 {
            let what = "some of its lines are intact, but not of this version of coschedd";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(MODE).open(path)?;
        let mark = Mark::open(path)?;
        let Read { changes, damaged, last, is_numbered } = lines::read(&old, mark.line);
        let bytes = old.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) as u64;
        let damaged = match damaged {
            0 => None,
            lines => Some((set_aside(path)?, lines)),
        };
        // A damaged file has two names now, and is rewritten.
        if damaged.is_none() && bytes < old.len() as u64 {
            file.set_len(bytes)?;
        }
        file.sync_all()?;
        sync_dir(path)?;
        let mut journal = JournalFile {
            path: path.to_owned(),
            file,
            bytes,
            compact_bytes: COMPACT_BYTES,
            compact_bytes_min: COMPACT_BYTES,
            has_rest: false,
            // Lines without numbers are an earlier version's, and are not mixed with lines of this one.
            unsure: damaged.is_some() || !is_numbered,
            short_of: None,
            next: last.max(mark.line) + 1,
            mark,
        };
        let last_job = journal.mark.job;
        if journal.bytes == 0 && !journal.unsure {
            journal.begin()?;
        }
        Ok((journal, Found { changes, damaged, last_job }))
    }

    /// Writes the first line of an empty file.
    fn begin(&mut self) -> io::Result<()> {
        let (text, next) = lines::file(self.next, std::iter::empty::<()>())?;
        self.put(&text, next)
    }

    /// Appends these lines and waits for the disk; `next` is the number of the line after them.
    pub(super) fn put(&mut self, text: &[u8], next: u64) -> io::Result<()> {
        let length = self.write(text, next)?;
        if let Err(e) = self.file.sync_data() {
            // The kernel may have dropped the data that it could not write, and does not report that again.
            self.unsure = true;
            self.short_of = Some(length.max(ROOM_BYTES));
            return Err(e);
        }
        self.mark.write(next - 1);
        Ok(())
    }

    /// Appends without waiting: the lines reach the disk with the next `put`. The mark does not include them before.
    pub(super) fn write(&mut self, text: &[u8], next: u64) -> io::Result<u64> {
        self.make_room()?;
        if self.has_rest {
            self.file.set_len(self.bytes)?;
            self.has_rest = false;
        }
        let length = text.len() as u64;
        if let Err(e) = self.file.write_all_at(text, self.bytes) {
            (self.has_rest, self.short_of) = (self.file.set_len(self.bytes).is_err(), Some(length.max(ROOM_BYTES)));
            return Err(e);
        }
        self.short_of = None;
        self.bytes += length;
        self.next = next;
        Ok(length)
    }

    pub(super) fn is_short(&self) -> bool {
        self.short_of.is_some()
    }

    /// After a failed write: reserves the room that it needed.
    ///
    /// # Errors
    /// There is still no room.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        let Some(bytes) = self.short_of else { return Ok(()) };
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.bytes, bytes) {
            // Where room cannot be reserved, the next write shows whether there is some.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Writes a new file with these lines alone and renames it over the journal; the old file stays until then.
    ///
    /// # Errors
    /// Of the file system: the old file stays in force, unless only the new one's name is not known to be on the disk.
    pub(super) fn replace(&mut self, text: &[u8], next: u64) -> io::Result<()> {
        // After a failure, not again with every change.
        self.compact_bytes = self.compact_bytes_min.max(2 * self.bytes);
        let new = self.path.with_extension("new");
        let written = write_new(&new, &self.path, text);
        if written.is_err() {
            // An incomplete file would only take up room.
            let _ = std::fs::remove_file(&new);
        }
        self.file = written?;
        (self.bytes, self.next) = (text.len() as u64, next);
        (self.has_rest, self.short_of) = (false, None);
        // The old file has no name any more, whether the disk knows that or not.
        let synced = sync_dir(&self.path);
        self.unsure = synced.is_err();
        if !self.unsure {
            self.mark.write(next - 1);
            self.compact_bytes = self.compact_bytes_min.max(2 * self.bytes);
        }
        synced
    }
}

/// Gives the file a second name, which takes no room.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut n = 1;
    loop {
        let to = path.with_extension(format!("corrupt-{n}"));
        match std::fs::hard_link(path, &to) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => n += 1,
            Ok(()) => return Ok(to),
            // Some file systems have no hard links.
            Err(_) => {
                std::fs::copy(path, &to).inspect_err(|_| drop(std::fs::remove_file(&to)))?;
                return Ok(to);
            }
        }
    }
}

fn write_new(new: &Path, path: &Path, text: &[u8]) -> io::Result<File> {
    super::unless_gone(std::fs::remove_file(new))?;
    let mut file = OpenOptions::new().create_new(true).write(true).mode(MODE).open(new)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(new, path)?;
    Ok(file)
}

fn sync_dir(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}
