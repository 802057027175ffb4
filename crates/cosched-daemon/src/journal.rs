//! A journal on disk: numbered lines with a checksum each (`lines.rs`), of which the last may be torn.
//!
//! A change is one appended line, on the disk before it is acknowledged. A crash at any byte leaves a prefix of complete lines and at most one torn
//! line at the end, which was never acknowledged and is cut off at the next start. Any other failed check is damage: a line that is unreadable,
//! missing, doubled or out of order. The file is then set aside under another name, and every line with a correct checksum is returned. From time to
//! time the owner writes a new journal with only the present state beside the old one, and renames it over the old one. Missing lines at the end, or
//! a missing journal, are detected by the mark beside it (`mark.rs`).
//!
//! A line that could not be written completely, because the disk is full, is taken back: the file is as it was before. The wait for a disk that hangs
//! is bounded (`disk.rs`).

mod disk;
mod file;
mod lines;
mod mark;

use disk::Disk;
use file::JournalFile;
pub(crate) use lines::read;
use mark::Mark;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file of changes, open for appending.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    disk: Disk,
    /// The highest job number used so far.
    job: u64,
}

/// The content of a journal.
#[derive(Debug)]
pub(crate) struct Found<C> {
    /// The changes, in order.
    pub(crate) changes: Vec<C>,
    /// The new name of a damaged file that was set aside, and the number of damaged or missing lines. The journal has to be rewritten.
    pub(crate) damaged: Option<(PathBuf, usize)>,
    /// A lower bound of the highest job number used, whatever is missing.
    pub(crate) last_job: u64,
}

impl Journal {
    /// Opens or makes the journal at `path`.
    ///
    /// # Errors
    /// Of the file system; `InvalidData` when another version of the daemon has written content that this one would lose. Nothing is changed then.
    pub(crate) fn open<C: DeserializeOwned>(path: &Path) -> io::Result<(Journal, Found<C>)> {
        let (file, found) = JournalFile::open(path)?;
        Ok((Journal { path: path.to_owned(), disk: Disk::new(file)?, job: found.last_job }, found))
    }

    /// Limits the wait for the disk to this time, if it is shorter than the usual limit.
    pub(crate) fn wait_at_most(&mut self, patience: Duration) {
        self.disk.wait_at_most(patience);
    }

    /// Records with the next change that job numbers up to this one were used.
    pub(crate) fn number(&mut self, job: u64) {
        self.job = self.job.max(job);
    }

    /// Appends changes; they are on the disk when this returns.
    ///
    /// # Errors
    /// Of the file system; the journal is as it was before. `TimedOut`: the disk does not answer, and the journal has to be rewritten when it does.
    pub(crate) fn append(&mut self, changes: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
        let (text, next) = lines::text(self.disk.fetch()?.next, changes)?;
        let job = self.job;
        self.disk.run(move |file| {
            file.mark.job = job;
            file.put(&text, next)
        })
    }

    /// Appends a change that has to survive the daemon but need not be on the disk at once: a crash of the machine may lose it, until the next change
    /// is appended. If the write fails, the journal has to be rewritten.
    ///
    /// # Errors
    /// The disk does not answer.
    pub(crate) fn append_soon(&mut self, change: impl Serialize) -> io::Result<()> {
        let (text, next) = lines::text(self.disk.fetch()?.next, std::iter::once(change))?;
        self.disk.begin(move |file| file.write(&text, next).map(drop))
    }

    /// After a failed write: reserves the room that it needed.
    ///
    /// # Errors
    /// There is still no room.
    pub(crate) fn make_room(&mut self) -> io::Result<()> {
        match self.disk.fetch()?.is_short() {
            true => self.disk.run(|file| file.make_room()),
            false => Ok(()),
        }
    }

    /// Whether a new file is due: the old one is long, or unreliable.
    pub(crate) fn is_stale(&mut self) -> bool {
        self.disk.fetch().is_ok_and(|file| file.unsure || file.bytes > file.compact_bytes)
    }

    /// Whether nothing may be appended before it is rewritten.
    pub(crate) fn is_unsure(&mut self) -> bool {
        self.disk.fetch().map_or(true, |file| file.unsure)
    }

    /// The directory that the journal is in.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Writes a new file with these changes alone and renames it over the journal; the old file stays until then.
    ///
    /// # Errors
    /// Of the file system; the old file stays in force.
    pub(crate) fn rewrite(&mut self, changes: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
        let (text, next) = lines::file(self.disk.fetch()?.next, changes)?;
        let job = self.job;
        self.disk.run(move |file| {
            file.mark.job = job;
            file.replace(&text, next)
        })
    }

    #[cfg(test)]
    pub(crate) fn bytes(&mut self) -> u64 {
        self.disk.fetch().unwrap().bytes
    }

    #[cfg(test)]
    pub(crate) fn compact_beyond(&mut self, bytes: u64) {
        let file = self.disk.fetch().unwrap();
        (file.compact_bytes, file.compact_bytes_min) = (bytes, bytes);
    }
}

/// Whether a journal exists or existed at `path`.
pub(crate) fn was_begun(path: &Path) -> bool {
    path.exists() || mark::path(path).exists()
}

/// Removes a journal whose lines were taken over by another one.
///
/// # Errors
/// Of the file system.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    [path.to_owned(), mark::path(path)].iter().try_for_each(|path| unless_gone(std::fs::remove_file(path)))
}

/// What was to be removed and was not there is gone, too.
///
/// # Errors
/// The others.
pub(crate) fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// Reads a journal without changing anything: the changes, and the number of damaged lines.
///
/// # Errors
/// Of the file system.
pub(crate) fn look<C: DeserializeOwned>(path: &Path) -> io::Result<(Vec<C>, usize)> {
    let read = lines::read(&std::fs::read(path)?, Mark::look(path).line);
    Ok((read.changes, read.damaged))
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

    fn some(path: &Path) -> Vec<u8> {
        let (mut journal, found) = Journal::open::<N>(path).unwrap();
        assert!(found.changes.is_empty());
        for k in 0..5 {
            journal.number(10 + u64::from(k));
            journal.append(once(n(k))).unwrap();
        }
        std::fs::read(path).unwrap()
    }

    #[test]
    fn a_torn_end_is_cut_off_and_what_comes_then_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let whole = some(&path);
        for cut in 0..whole.len() {
            // The lines that are cut off were never acknowledged.
            std::fs::remove_file(path.with_extension("mark")).unwrap();
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, found) = Journal::open::<N>(&path).unwrap();
            assert!(found.damaged.is_none(), "cut at {cut}");
            journal.append(once(n(9))).unwrap();
            let (changes, damaged) = look::<N>(&path).unwrap();
            assert_eq!((changes, damaged), ([found.changes, vec![n(9)]].concat(), 0), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_added_soon_outlives_the_daemon_and_is_not_missed_when_the_machine_loses_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        some(&path);
        let (mut journal, _) = Journal::open::<N>(&path).unwrap();
        let synced = std::fs::read(&path).unwrap();
        journal.append_soon(n(8)).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let (mut journal, found) = Journal::open::<N>(&path).unwrap();
        assert_eq!((found.changes.last(), found.damaged.is_none()), (Some(&n(8)), true));
        drop(journal);
        std::fs::write(&path, &synced).unwrap();
        assert!(Journal::open::<N>(&path).unwrap().1.damaged.is_none(), "the machine has lost it");
        std::fs::write(&path, &whole).unwrap();
        (journal, _) = Journal::open::<N>(&path).unwrap();
        journal.append(once(n(9))).unwrap();
        drop(journal);
        std::fs::write(&path, &whole).unwrap();
        assert!(Journal::open::<N>(&path).unwrap().1.damaged.is_some(), "what was added after it had been promised");
    }

    #[test]
    fn lines_that_are_missing_at_the_end_are_missed_and_numbers_not_given_again() {
        for kept in 0..6 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("j");
            let whole = some(&path);
            let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
            std::fs::write(&path, lines[..kept].concat()).unwrap();
            let (mut journal, found) = Journal::open::<N>(&path).unwrap();
            // If the file is empty, its former length is unknown.
            assert_eq!(found.damaged.unwrap().1, if kept == 0 { 1 } else { 6 - kept });
            assert_eq!(found.last_job, 14);
            journal.rewrite(found.changes.iter()).unwrap();
            let (_, again) = Journal::open::<N>(&path).unwrap();
            assert!(again.damaged.is_none() && again.last_job == 14 && again.changes == found.changes);
        }
    }

    #[test]
    fn a_line_that_is_missing_doubled_or_swapped_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let whole = some(&dir.path().join("j"));
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let read = |lines: &[&[u8]]| {
            let read = read::<N>(&lines.concat(), 6);
            (read.changes, read.damaged)
        };
        let all: Vec<N> = (0..5).map(n).collect();
        assert_eq!(read(&lines), (all.clone(), 0));
        for at in 0..lines.len() {
            let mut without = lines.clone();
            without.remove(at);
            let rest: Vec<N> = (0..5).filter(|k| *k as usize + 1 != at).map(n).collect();
            assert_eq!(read(&without), (rest, 1), "without line {at}");
            for to in 0..=lines.len() {
                let mut doubled = lines.clone();
                doubled.insert(to, lines[at]);
                let (changes, damaged) = read(&doubled);
                assert!(changes == all && damaged > 0, "line {at} again at {to}");
            }
            for other in 0..at {
                let mut swapped = lines.clone();
                swapped.swap(at, other);
                let (changes, damaged) = read(&swapped);
                assert!(changes == all && damaged > 0, "lines {at} and {other} swapped");
            }
        }
    }

    #[test]
    fn lines_of_earlier_versions_are_read_and_written_with_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let old = |k| {
            let json = serde_json::to_string(&n(k)).unwrap();
            format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
        };
        std::fs::write(&path, [old(1), old(1), old(2)].concat()).unwrap();
        let (mut journal, found) = Journal::open::<N>(&path).unwrap();
        assert_eq!((found.changes.clone(), found.damaged), (vec![n(1), n(1), n(2)], None));
        assert!(journal.is_unsure(), "it is rewritten before anything is added");
        journal.rewrite(found.changes.iter()).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().lines().next().unwrap().ends_with(" 1 begin"));
        assert_eq!(look::<N>(&path).unwrap(), (found.changes, 0));
    }

    #[test]
    fn a_file_that_cannot_be_written_anew_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, _) = Journal::open::<N>(&path).unwrap();
        journal.append(once(n(1))).unwrap();
        // A directory has the name of the new file.
        std::fs::create_dir(path.with_extension("new")).unwrap();
        journal.rewrite(once(n(7))).unwrap_err();
        journal.append(once(n(2))).unwrap();
        assert_eq!(look::<N>(&path).unwrap(), (vec![n(1), n(2)], 0));
    }
}
