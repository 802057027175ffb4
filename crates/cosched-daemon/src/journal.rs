//! A journal on disk: lines with a checksum each, of which the last may be torn.
//!
//! A line is `CRC32 in hex, space, JSON`. A change is one appended line, on the disk before it is acknowledged. A crash
//! at any byte leaves a prefix of complete lines and at most one torn one at the end, which was never acknowledged and
//! is cut off at the next start. Anything else that does not check is damage: the file is set aside under another name
//! and every line that still checks is told. From time to time the owner writes the journal anew with only the present
//! state, beside the old one, and it is renamed over it.
//!
//! A line that does not get to the disk whole, because that is full, is taken back: the file is as it was before.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Written anew when it is longer than this and more than twice as long as it has to be.
const COMPACT_BYTES: u64 = 1 << 20;

/// Records hold environments, and with them passwords.
const MODE: u32 = 0o600;

/// After a write that failed, at least so much room is waited for.
const ROOM_BYTES: u64 = 64 << 10;

/// A file of changes, open for more of them.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// The length of what counts.
    bytes: u64,
    /// Written anew beyond this length.
    compact_bytes: u64,
    compact_bytes_min: u64,
    /// Beyond what counts there may be the rest of a write that failed.
    has_rest: bool,
    /// The disk has not confirmed something: only a new file can be relied on.
    unsure: bool,
    /// A write failed that wanted so much room.
    short_of: Option<u64>,
}

/// What a journal had in it.
#[derive(Debug)]
pub(crate) struct Found<C> {
    /// The changes, in their order.
    pub(crate) changes: Vec<C>,
    /// The damaged file was set aside here; so many lines could not be read. The journal is to be written anew.
    pub(crate) damaged: Option<(PathBuf, usize)>,
}

impl Journal {
    /// Opens or makes the journal at `path`.
    ///
    /// # Errors
    /// Of the file system; `InvalidData` when another version of the daemon has written what this one would lose. Nothing
    /// was changed then.
    pub(crate) fn open<C: DeserializeOwned>(path: &Path) -> io::Result<(Journal, Found<C>)> {
        let old = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e),
        };
        if unknown::<C>(&old) > 0 {
            let what = "some of its lines are whole, and not of this version of coschedd";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(MODE).open(path)?;
        let (changes, damaged) = read(&old);
        let bytes = old.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) as u64;
        let damaged = match damaged {
            0 => None,
            lines => Some((set_aside(path)?, lines)),
        };
        // What is damaged has two names now, and is written anew.
        if damaged.is_none() && bytes < old.len() as u64 {
            file.set_len(bytes)?;
        }
        file.sync_all()?;
        sync_dir(path)?;
        let journal = Journal {
            path: path.to_owned(),
            file,
            bytes,
            compact_bytes: COMPACT_BYTES,
            compact_bytes_min: COMPACT_BYTES,
            has_rest: false,
            unsure: damaged.is_some(),
            short_of: None,
        };
        Ok((journal, Found { changes, damaged }))
    }

    /// Adds changes; they are on the disk when this returns.
    ///
    /// # Errors
    /// Of the file system; the journal is what it was before.
    pub(crate) fn append(&mut self, changes: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
        let line = lines(changes)?;
        self.make_room()?;
        if self.has_rest {
            self.file.set_len(self.bytes)?;
            self.has_rest = false;
        }
        let length = line.len() as u64;
        if let Err(e) = self.file.write_all_at(&line, self.bytes) {
            (self.has_rest, self.short_of) = (self.file.set_len(self.bytes).is_err(), Some(length.max(ROOM_BYTES)));
            return Err(e);
        }
        if let Err(e) = self.file.sync_data() {
            // The kernel may have dropped what it could not write, and not say so again.
            self.unsure = true;
            self.short_of = Some(length.max(ROOM_BYTES));
            return Err(e);
        }
        self.short_of = None;
        self.bytes += length;
        Ok(())
    }

    /// After a write that failed: whether there is room for it now.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn make_room(&mut self) -> io::Result<()> {
        let Some(bytes) = self.short_of else { return Ok(()) };
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.bytes, bytes) {
            // Where room cannot be kept, the next write tells.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether a new file is due: the old one is long, or cannot be relied on.
    pub(crate) fn is_stale(&self) -> bool {
        self.unsure || self.bytes > self.compact_bytes
    }

    /// Whether nothing may be added before it is written anew.
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// The directory that the journal is in.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Writes a new file with these changes alone and puts it in the journal's place; the old one stays until that is done.
    ///
    /// # Errors
    /// Of the file system; the old file counts on.
    pub(crate) fn rewrite(&mut self, changes: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
        // If it cannot be done now, not again with every change.
        self.compact_bytes = self.compact_bytes_min.max(2 * self.bytes);
        let new = self.path.with_extension("new");
        let written = write_new(&new, &self.path, changes);
        if written.is_err() {
            // What there is of it takes the room that others wait for.
            let _ = std::fs::remove_file(&new);
        }
        (self.file, self.bytes) = written?;
        (self.has_rest, self.unsure, self.short_of) = (false, false, None);
        self.compact_bytes = self.compact_bytes_min.max(2 * self.bytes);
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[cfg(test)]
    pub(crate) fn compact_beyond(&mut self, bytes: u64) {
        (self.compact_bytes, self.compact_bytes_min) = (bytes, bytes);
    }
}

/// What a journal has in it, without changing anything: the changes, and how many lines are damaged.
///
/// # Errors
/// Of the file system.
pub(crate) fn look<C: DeserializeOwned>(path: &Path) -> io::Result<(Vec<C>, usize)> {
    std::fs::read(path).map(|bytes| read(&bytes))
}

/// The changes, and the number of lines that are damaged. A torn last line is not damage.
pub(crate) fn read<C: DeserializeOwned>(bytes: &[u8]) -> (Vec<C>, usize) {
    let mut changes = Vec::new();
    let mut damaged = 0;
    for text in bytes.split_inclusive(|b| *b == b'\n') {
        let Some((end, line)) = text.split_last() else { continue };
        match parse(line) {
            Some(change) => {
                changes.push(change);
                damaged += usize::from(*end != b'\n');
            }
            None if *end != b'\n' && is_torn(text) => (),
            None => damaged += 1,
        }
    }
    (changes, damaged)
}

/// Whether these bytes without an end can be the beginning of a line of ours.
fn is_torn(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        0..8 => byte.is_ascii_hexdigit(),
        8 => *byte == b' ',
        9 => *byte == b'{',
        _ => *byte >= b' ',
    };
    text.iter().enumerate().all(fits)
}

/// The JSON in a line without its end, if its sum is right.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = (line.get(..8)?, line.get(8..)?.strip_prefix(b" ")?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (sum == crc32fast::hash(json)).then_some(json)
}

/// A line without its end.
fn parse<C: DeserializeOwned>(line: &[u8]) -> Option<C> {
    serde_json::from_slice(checked(line)?).ok()
}

/// The number of lines that are not damaged, and say what this program does not know.
fn unknown<C: DeserializeOwned>(bytes: &[u8]) -> usize {
    bytes.split(|b| *b == b'\n').filter(|line| checked(line).is_some() && parse::<C>(line).is_none()).count()
}

fn lines(changes: impl Iterator<Item = impl Serialize>) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for change in changes {
        let json = serde_json::to_string(&change)?;
        lines.extend(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes());
    }
    Ok(lines)
}

/// Gives the file a second name; that takes no room.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut n = 1;
    loop {
        let to = path.with_extension(format!("corrupt-{n}"));
        match std::fs::hard_link(path, &to) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => n += 1,
            Ok(()) => return Ok(to),
            // Not every file system has links.
            Err(_) => {
                std::fs::copy(path, &to).inspect_err(|_| drop(std::fs::remove_file(&to)))?;
                return Ok(to);
            }
        }
    }
}

fn write_new(new: &Path, path: &Path, changes: impl Iterator<Item = impl Serialize>) -> io::Result<(File, u64)> {
    let lines = lines(changes)?;
    match std::fs::remove_file(new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => (),
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(MODE).open(new)?;
    file.write_all(&lines)?;
    file.sync_all()?;
    std::fs::rename(new, path)?;
    sync_dir(path)?;
    Ok((file, lines.len() as u64))
}

fn sync_dir(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use std::iter::once;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct N(BTreeMap<String, u32>);

    fn n(n: u32) -> N {
        N(BTreeMap::from([("n".to_owned(), n)]))
    }

    #[test]
    fn a_torn_end_is_cut_off_and_what_comes_then_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, found) = Journal::open::<N>(&path).unwrap();
        assert!(found.changes.is_empty());
        for k in 0..3 {
            journal.append(once(n(k))).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, found) = Journal::open::<N>(&path).unwrap();
            assert!(found.damaged.is_none(), "cut at {cut}");
            journal.append(once(n(9))).unwrap();
            let (changes, damaged) = look::<N>(&path).unwrap();
            assert_eq!((changes, damaged), ([found.changes, vec![n(9)]].concat(), 0), "cut at {cut}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_anew_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, _) = Journal::open::<N>(&path).unwrap();
        journal.append(once(n(1))).unwrap();
        // A directory is in the way of the new file.
        std::fs::create_dir(path.with_extension("new")).unwrap();
        journal.rewrite(once(n(7))).unwrap_err();
        journal.append(once(n(2))).unwrap();
        assert_eq!(look::<N>(&path).unwrap(), (vec![n(1), n(2)], 0));
    }
}
