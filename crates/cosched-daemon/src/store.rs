//! The state on disk: a journal of lines, each with its own checksum.
//!
//! A line is `CRC32 in hex, space, JSON`. A change is one appended line, on the disk before it is acknowledged. A crash
//! at any byte leaves a prefix of complete lines and at most one torn one at the end, which was never acknowledged and
//! is cut off at the next start. Anything else that does not check is damage: the file is set aside under another name,
//! every line that still checks is taken over, and the daemon says so. From time to time the journal is written anew
//! with only the present state, beside the old one, and renamed over it.

use crate::record::Record;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Written anew when it is longer than this and more than twice as long as it has to be.
const COMPACT_BYTES: u64 = 1 << 20;

/// What the machine's operator set while the daemon ran; it outlives a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The machine's policy.
    pub(crate) policy: Option<cosched_api::Policy>,
    /// Soft or strict.
    pub(crate) sharing: Option<cosched_api::Sharing>,
    /// The length of a slot.
    pub(crate) slot_length_ms: Option<u64>,
    /// How often a daemon was started on this state.
    #[serde(default)]
    pub(crate) starts: u64,
}

/// All that is remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Jobs by id, ended ones included.
    pub(crate) jobs: BTreeMap<u64, Record>,
    /// The highest id that was ever given.
    pub(crate) last_id: u64,
    /// What was set.
    pub(crate) settings: Settings,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Put(Box<Record>),
    Forget(u64),
    LastId(u64),
    Settings(Settings),
}

impl State {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Put(record) => {
                self.last_id = self.last_id.max(record.id);
                self.jobs.insert(record.id, *record);
            }
            Change::Forget(id) => {
                self.jobs.remove(&id);
            }
            Change::LastId(id) => self.last_id = self.last_id.max(id),
            Change::Settings(settings) => self.settings = settings,
        }
    }

    fn lines(&self) -> io::Result<Vec<u8>> {
        let mut out = line(&Change::LastId(self.last_id))?;
        out.extend(line(&Change::Settings(self.settings.clone()))?);
        for record in self.jobs.values() {
            out.extend(line(&Change::Put(Box::new(record.clone())))?);
        }
        Ok(out)
    }
}

/// The file store of one machine.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Written anew beyond this length.
    compact_bytes: u64,
    compact_bytes_min: u64,
    /// Held for the life of the daemon, so that two of them never write the same journal.
    _lock: File,
}

/// What opening found.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The store, ready for changes.
    pub(crate) store: Store,
    /// What was remembered.
    pub(crate) state: State,
    /// A damaged journal was set aside here; so many lines could not be read.
    pub(crate) damaged: Option<(PathBuf, usize)>,
}

impl Store {
    /// Opens or makes the journal in `dir`.
    ///
    /// # Errors
    /// Of the file system; `WouldBlock` when another daemon holds the directory.
    pub(crate) fn open(dir: &Path) -> io::Result<Opened> {
        std::fs::create_dir_all(dir)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let path = dir.join("journal");
        let old = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e),
        };
        let (state, bad_lines) = read(&old);
        let damaged = match bad_lines {
            0 => None,
            n => Some((set_aside(&path)?, n)),
        };
        let (file, bytes) = write_anew(&path, &state)?;
        let store =
            Store { path, file, bytes, compact_bytes: COMPACT_BYTES, compact_bytes_min: COMPACT_BYTES, _lock: lock };
        Ok(Opened { store, state, damaged })
    }

    /// Remembers a job; on the disk when this returns.
    pub(crate) fn put(&mut self, state: &mut State, record: &Record) -> io::Result<()> {
        self.change(state, Change::Put(Box::new(record.clone())))
    }

    /// Forgets an ended job.
    pub(crate) fn forget(&mut self, state: &mut State, id: u64) -> io::Result<()> {
        self.change(state, Change::Forget(id))
    }

    /// Remembers settings; on the disk when this returns.
    pub(crate) fn settings(&mut self, state: &mut State, settings: Settings) -> io::Result<()> {
        self.change(state, Change::Settings(settings))
    }

    fn change(&mut self, state: &mut State, change: Change) -> io::Result<()> {
        let line = line(&change)?;
        if let Err(e) = self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            // A torn line in the middle of the file would look like damage later: begin with a clean file.
            (self.file, self.bytes) = write_anew(&self.path, state)?;
            return Err(e);
        }
        self.bytes += line.len() as u64;
        state.apply(change);
        if self.bytes > self.compact_bytes {
            (self.file, self.bytes) = write_anew(&self.path, state)?;
            self.compact_bytes = self.compact_bytes_min.max(2 * self.bytes);
        }
        Ok(())
    }
}

fn line(change: &Change) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(change)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes())
}

/// Reads a journal: the state, and the number of lines that are damaged. A torn last line is not damage.
fn read(bytes: &[u8]) -> (State, usize) {
    let mut state = State::default();
    let mut damaged = 0;
    for text in bytes.split_inclusive(|b| *b == b'\n') {
        match parse(text) {
            Some(change) => state.apply(change),
            None if text.last() != Some(&b'\n') => (),
            None => damaged += 1,
        }
    }
    (state, damaged)
}

fn parse(line: &[u8]) -> Option<Change> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = (line.get(..8)?, line.get(8..)?.strip_prefix(b" ")?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (sum == crc32fast::hash(json)).then(|| serde_json::from_slice(json).ok())?
}

fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut n = 1;
    loop {
        let to = path.with_extension(format!("corrupt-{n}"));
        if !to.exists() {
            std::fs::copy(path, &to)?;
            return Ok(to);
        }
        n += 1;
    }
}

/// Writes the state to a new file and puts it in the journal's place; the old one stays until that is done.
fn write_anew(path: &Path, state: &State) -> io::Result<(File, u64)> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&new)?;
    let lines = state.lines()?;
    file.write_all(&lines)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    if let Some(dir) = path.parent() {
        File::open(dir)?.sync_all()?;
    }
    Ok((file, lines.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn changes(dir: &Path) -> (Vec<(u64, State)>, Vec<u8>) {
        let Opened { mut store, mut state, .. } = Store::open(dir).unwrap();
        let mut acknowledged = vec![(store.bytes, state.clone())];
        for id in 1..6 {
            let mut record = example(id);
            store.put(&mut state, &record).unwrap();
            acknowledged.push((store.bytes, state.clone()));
            record.suspended = true;
            store.put(&mut state, &record).unwrap();
            acknowledged.push((store.bytes, state.clone()));
        }
        store.forget(&mut state, 2).unwrap();
        acknowledged.push((store.bytes, state.clone()));
        store.settings(&mut state, Settings { slot_length_ms: Some(20), ..Settings::default() }).unwrap();
        acknowledged.push((store.bytes, state.clone()));
        (acknowledged, std::fs::read(dir.join("journal")).unwrap())
    }

    #[test]
    fn a_crash_at_any_byte_loses_nothing_that_was_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, bytes) = changes(dir.path());
        for cut in 0..=bytes.len() {
            let (state, damaged) = read(&bytes[..cut]);
            assert_eq!(damaged, 0, "cut at {cut}: a torn end is not damage");
            if let Some((_, expected)) = acknowledged.iter().rev().find(|(at, _)| *at <= cut as u64) {
                assert_eq!(state, *expected, "cut at {cut}");
            }
        }
    }

    #[test]
    fn it_comes_back_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, _) = changes(dir.path());
        let opened = Store::open(dir.path()).unwrap();
        assert_eq!(opened.state, acknowledged.last().unwrap().1);
        assert!(opened.damaged.is_none());
    }

    #[test]
    fn any_damaged_byte_is_set_aside_and_costs_one_line_at_most() {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, bytes) = changes(dir.path());
        let all = &acknowledged.last().unwrap().1;
        // Every byte is hit in turn, but the newline at the very end, without which the last line is merely torn.
        for at in (0..bytes.len() - 1).step_by(7) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x15;
            let (state, damaged) = read(&bad);
            assert!((1..=2).contains(&damaged), "byte {at}: {damaged} lines");
            assert!(state.jobs.len() + 2 >= all.jobs.len(), "byte {at}");
        }
        let mut bad = bytes;
        bad[200] ^= 0x15;
        std::fs::write(dir.path().join("journal"), &bad).unwrap();
        let opened = Store::open(dir.path()).unwrap();
        let (aside, lines) = opened.damaged.unwrap();
        assert_eq!((std::fs::read(aside).unwrap(), lines), (bad, 1));
        drop(opened.store);
        assert!(Store::open(dir.path()).unwrap().damaged.is_none(), "the new journal is whole");
    }

    #[test]
    fn two_daemons_cannot_have_the_same_directory() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Store::open(dir.path()).unwrap();
        assert_eq!(Store::open(dir.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_journal_does_not_grow_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let Opened { mut store, mut state, .. } = Store::open(dir.path()).unwrap();
        (store.compact_bytes, store.compact_bytes_min) = (10_000, 10_000);
        let record = example(1);
        for _ in 0..100 {
            store.put(&mut state, &record).unwrap();
        }
        assert!(store.bytes < 20_000, "{} bytes", store.bytes);
        assert_eq!(read(&std::fs::read(dir.path().join("journal")).unwrap()).0, state);
    }

    #[test]
    fn ids_are_not_given_twice_even_when_jobs_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let Opened { mut store, mut state, .. } = Store::open(dir.path()).unwrap();
        store.put(&mut state, &example(9)).unwrap();
        store.forget(&mut state, 9).unwrap();
        drop(store);
        assert_eq!(Store::open(dir.path()).unwrap().state.last_id, 9);
    }
}
