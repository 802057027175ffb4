//! The state on disk: records of jobs, settings, and the keys of a single machine (`cluster/own/`), in one journal (`journal.rs`).
//!
//! In one file, a job's record and the plan get to the disk with one sync. Facts that hold although the disk did not take them are owed: they are
//! written as soon as there is room.
//!
//! Earlier versions had the keys in a separate file. They are taken over at the first start: the journal is rewritten with them before that file is
//! removed, so that after a crash in between one of the two is complete.

use crate::cluster::own::{self, Before, OwnStore};
use crate::journal::{self, Found, Journal};
pub(crate) use crate::record::Settings;

use crate::record::Record;
use cosched_cluster::store::{News, Op, OpDone, Range, Revision, StoreError};
use cosched_linux::private::{self, DirectoryLock};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of the journal.
const FILE: &str = "journal";

/// The file of the keys of a machine with queues, in earlier versions.
const OLD_KEYS: &str = "keys";

/// The beginnings of the names of our files; some are earlier versions'.
const FILES: [&str; 5] = ["cluster-state", "journal", "keys", "lives", "lock"];

/// How often the write of owed records is tried again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The persistent state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Jobs by id, ended ones included.
    pub(crate) jobs: BTreeMap<u64, Record>,
    /// The highest id given so far.
    pub(crate) last_id: u64,
    /// The settings that were changed while a daemon ran.
    pub(crate) settings: Settings,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Put(Box<Record>),
    Forget(u64),
    LastId(u64),
    Settings(Settings),
    #[serde(untagged)]
    Own(own::Change),
}

impl Change {
    /// The job number in a change.
    fn id(&self) -> u64 {
        match self {
            Change::Put(record) => record.id,
            Change::Forget(id) | Change::LastId(id) => *id,
            Change::Settings(_) | Change::Own(_) => 0,
        }
    }
}

/// Parses a journal's bytes into a state.
pub(crate) fn read_for_fuzzer(bytes: &[u8], mark: u64) {
    let (_, keys) = divided(journal::read(bytes, mark).changes);
    own::fuzz::of(keys);
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
            // These belong to the store (`divided`).
            Change::Own(_) => (),
        }
    }

    /// The changes that lead from an empty state to this one.
    fn changes(&self) -> impl Iterator<Item = Change> {
        let first = [Change::LastId(self.last_id), Change::Settings(self.settings.clone())];
        first.into_iter().chain(self.jobs.values().map(|record| Change::Put(Box::new(record.clone()))))
    }
}

/// The result of a journal's changes: the state, and the changes of the keys.
fn divided(changes: Vec<Change>) -> (State, Vec<own::Change>) {
    let (mut state, mut keys) = (State::default(), Vec::new());
    for change in changes {
        match change {
            Change::Own(change) => keys.push(change),
            change => state.apply(change),
        }
    }
    (state, keys)
}

/// The file store of one machine.
#[derive(Debug)]
pub(crate) struct Store {
    journal: Journal,
    /// The keys of a single machine.
    own: OwnStore,
    /// Jobs whose records in memory are newer than those on the disk.
    owed: BTreeSet<u64>,
    /// When the write is tried again.
    retry_at: Option<Instant>,
    /// Why the last write failed.
    problem: Option<String>,
    /// Held for the life of the daemon, so that two of them never write the same journal.
    _lock: DirectoryLock,
}

/// The result of opening the state.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The store, ready for changes.
    pub(crate) store: Store,
    /// The state that was read.
    pub(crate) state: State,
    /// The new names of damaged files that were set aside, and the numbers of damaged or missing lines.
    pub(crate) damaged: Vec<(PathBuf, usize)>,
}

impl Store {
    /// Opens or makes the journal in `dir`.
    ///
    /// # Errors
    /// Of the file system; `WouldBlock` when another daemon holds the directory; `InvalidData` when another version of the daemon has written content
    /// that this one would lose. Nothing is changed then.
    pub(crate) fn open(dir: &Path) -> io::Result<Opened> {
        let dir = private::keep_directory(dir, &FILES)?;
        let lock = private::lock_directory(&dir)?;
        let (mut journal, Found { changes, damaged, mut last_job }) = Journal::open(&dir.join(FILE))?;
        let (mut state, mut keys) = divided(changes);
        let mut damaged: Vec<(PathBuf, usize)> = damaged.into_iter().collect();
        let old = dir.join(OLD_KEYS);
        if keys.is_empty() && journal::was_begun(&old) {
            let (_, found) = Journal::open(&old)?;
            last_job = last_job.max(found.last_job);
            keys = found.changes;
            damaged.extend(found.damaged);
        }
        let own = OwnStore::of(keys, !damaged.is_empty());
        state.last_id = state.last_id.max(last_job).max(own.last_job());
        journal.number(state.last_id);
        let mut store = Store { journal, own, owed: BTreeSet::new(), retry_at: None, problem: None, _lock: lock };
        // Also to see that there is room: a daemon that cannot save its state does not start.
        store.rewrite(&state).inspect_err(|_| {
            // The damaged files still have their own names: the next start finds them there.
            damaged.iter().for_each(|(aside, _)| drop(std::fs::remove_file(aside)));
        })?;
        journal::remove(&old)?;
        Ok(Opened { store, state, damaged })
    }

    /// Limits the wait for a disk that hangs; after it, the disk is treated as a full one.
    pub(crate) fn wait_at_most(&mut self, patience: Duration) {
        self.journal.wait_at_most(patience);
    }

    /// The keys of a single machine.
    pub(crate) fn own(&self) -> &OwnStore {
        &self.own
    }

    /// Carries out an operation on these keys; its persistent changes are on the disk when this returns.
    ///
    /// # Errors
    /// As etcd would refuse it, or the disk does: nothing is changed then.
    pub(crate) fn call(&mut self, state: &State, op: Op) -> Result<OpDone, StoreError> {
        let before = self.own.before(&op)?;
        let written = self.write_before(state, &before);
        written.map_err(|e| StoreError::Unavailable(format!("{} cannot be written: {e}", self.dir().display())))?;
        let done = self.own.call(op, &before);
        self.shorten(state);
        done
    }

    fn write_before(&mut self, state: &State, before: &Before) -> io::Result<()> {
        if before.changes.is_empty() && !self.journal.is_unsure() {
            // Also for operations that write nothing: a store that answers only some requests is of no use.
            return self.journal.make_room();
        }
        self.journal.number(before.last_job.max(state.last_id));
        let changes: Vec<Change> = before.changes.iter().cloned().map(Change::Own).collect();
        self.write(state, &changes)
    }

    /// Removes a request that is not on the disk and has no reply; returns whether it has none.
    pub(crate) fn withdraw(&mut self, request: &str, reply: &str) -> bool {
        self.own.withdraw(request, reply)
    }

    /// Ends the leases by which keys are held: their holder no longer exists.
    pub(crate) fn end_leases(&mut self) {
        self.own.end_leases();
    }

    /// The news for a watch of these keys.
    ///
    /// # Errors
    /// The watch begins too far in the past.
    pub(crate) fn news(&self, range: &Range, from: Revision) -> Result<News, StoreError> {
        self.own.news(range, from)
    }

    #[cfg(test)]
    pub(crate) fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Saves a job's record; it is on the disk when this returns.
    pub(crate) fn put(&mut self, state: &mut State, record: &Record) -> io::Result<()> {
        self.change(state, Change::Put(Box::new(record.clone())))
    }

    /// Saves a job's record; it gets to the disk with the next write. A crash of the machine may lose it before.
    pub(crate) fn put_soon(&mut self, state: &mut State, record: &Record) -> io::Result<()> {
        self.change_soon(state, Change::Put(Box::new(record.clone())))
    }

    /// Removes an ended job; after a crash of the machine it may be back.
    pub(crate) fn forget(&mut self, state: &mut State, id: u64) -> io::Result<()> {
        self.change_soon(state, Change::Forget(id))
    }

    /// Saves settings; they are on the disk when this returns.
    pub(crate) fn settings(&mut self, state: &mut State, settings: Settings) -> io::Result<()> {
        self.change(state, Change::Settings(settings))
    }

    /// The directory of the journal, with symbolic links resolved.
    pub(crate) fn dir(&self) -> &Path {
        self.journal.dir()
    }

    /// Why the last write failed, if it did.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Marks a job's record in memory that could not be saved but holds all the same: it is written as soon as that is possible.
    pub(crate) fn owe(&mut self, id: u64) {
        self.owed.insert(id);
        self.retry_at.get_or_insert_with(|| Instant::now() + RETRY_PERIOD);
    }

    /// When to try again to write the owed records.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Tries to write the owed records, if that is due.
    pub(crate) fn pay(&mut self, state: &State) {
        if self.retry_at.is_some_and(|at| at <= Instant::now()) {
            self.retry_at = Some(Instant::now() + RETRY_PERIOD);
            if self.write(state, &[]).is_ok() {
                tracing::info!("the state is written again");
            }
        }
    }

    /// Writes all owed records at once; if that fails, they stay owed.
    pub(crate) fn pay_all(&mut self, state: &State) {
        if !self.owed.is_empty()
            && let Err(e) = self.write(state, &[])
        {
            tracing::error!("the state could not be written, and will be written again: {e}");
        }
    }

    fn change(&mut self, state: &mut State, change: Change) -> io::Result<()> {
        self.journal.number(change.id().max(state.last_id));
        self.write(state, std::slice::from_ref(&change))?;
        state.apply(change);
        self.shorten(state);
        Ok(())
    }

    fn change_soon(&mut self, state: &mut State, change: Change) -> io::Result<()> {
        if self.journal.is_unsure() || !self.owed.is_empty() {
            return self.change(state, change);
        }
        self.journal.number(change.id().max(state.last_id));
        self.journal.append_soon(&change)?;
        state.apply(change);
        Ok(())
    }

    fn rewrite(&mut self, state: &State) -> io::Result<()> {
        self.journal.rewrite(state.changes().chain(self.own.changes().map(Change::Own)))
    }

    fn shorten(&mut self, state: &State) {
        if self.journal.is_stale()
            && let Err(e) = self.rewrite(state)
        {
            // The change is on the disk: a failure to shorten the journal does not make it fail.
            tracing::warn!("the journal could not be shortened: {e}");
        }
    }

    /// Appends the owed records, and these changes.
    fn write(&mut self, state: &State, changes: &[Change]) -> io::Result<()> {
        let written = self.append(state, changes);
        self.problem = written.as_ref().err().map(io::Error::to_string);
        if written.is_ok() {
            self.owed.clear();
            self.retry_at = None;
        }
        written
    }

    fn append(&mut self, state: &State, changes: &[Change]) -> io::Result<()> {
        if self.journal.is_unsure() {
            self.rewrite(state)?;
            self.owed.clear();
        }
        let owed = self.owed.iter().filter_map(|id| state.jobs.get(id)).cloned();
        let owed: Vec<Change> = owed.map(|record| Change::Put(Box::new(record))).collect();
        self.journal.append(owed.iter().chain(changes))
    }
}

/// The report of `coschedd --check` about the state in `dir`; nothing is changed.
///
/// # Errors
/// Of the file system.
pub(crate) fn look(dir: &Path) -> io::Result<String> {
    let is_new = !dir.join(FILE).exists();
    if is_new {
        return Ok("new".to_owned());
    }
    let (changes, mut damaged) = journal::look(&dir.join(FILE))?;
    let (state, mut keys) = divided(changes);
    if keys.is_empty() && dir.join(OLD_KEYS).exists() {
        let (old, damaged_too) = journal::look(&dir.join(OLD_KEYS))?;
        (keys, damaged) = (old, damaged + damaged_too);
    }
    let records = state.jobs.values().filter(|record| !record.ended()).count();
    let live = own::count_live(keys).max(records);
    let damage = if damaged == 0 { String::new() } else { format!(", and {damaged} damaged lines") };
    Ok(format!("{live} jobs{damage}"))
}

/// The lines of a file that belong to keys, and the number of damaged lines of any kind.
#[cfg(test)]
pub(crate) fn keys_in(path: &Path) -> (Vec<own::Change>, usize) {
    let (changes, damaged) = journal::look(path).unwrap();
    (divided(changes).1, damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn read(bytes: &[u8]) -> (State, usize) {
        let read = crate::journal::read(bytes, 0);
        let mut state = State::default();
        read.changes.into_iter().for_each(|change| state.apply(change));
        (state, read.damaged)
    }

    fn changes(dir: &Path) -> (Vec<(u64, State)>, Vec<u8>) {
        let Opened { mut store, mut state, .. } = Store::open(dir).unwrap();
        let mut acknowledged = vec![(store.journal.bytes(), state.clone())];
        for id in 1..6 {
            let mut record = example(id);
            store.put(&mut state, &record).unwrap();
            acknowledged.push((store.journal.bytes(), state.clone()));
            record.suspended = true;
            store.put(&mut state, &record).unwrap();
            acknowledged.push((store.journal.bytes(), state.clone()));
        }
        store.forget(&mut state, 2).unwrap();
        acknowledged.push((store.journal.bytes(), state.clone()));
        store.settings(&mut state, Settings { slot_length_ms: Some(20), ..Settings::default() }).unwrap();
        acknowledged.push((store.journal.bytes(), state.clone()));
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
        assert!(opened.damaged.is_empty());
    }

    #[test]
    fn any_damaged_byte_is_set_aside_and_costs_one_line_at_most() {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, bytes) = changes(dir.path());
        let all = &acknowledged.last().unwrap().1;
        // Damages one byte after another, except the newline at the very end, without which the last line is merely torn.
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
        let (aside, lines) = opened.damaged[0].clone();
        assert_eq!((std::fs::read(aside).unwrap(), lines), (bad, 1));
        drop(opened.store);
        assert!(Store::open(dir.path()).unwrap().damaged.is_empty(), "the new journal is whole");
    }

    #[test]
    fn what_cannot_be_the_end_of_a_line_of_ours_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, bytes) = changes(dir.path());
        let all = &acknowledged.last().unwrap().1;
        for garbage in [&b"\0\0\0\0"[..], b"not a journal", b"1234abcd {\"put\xff\0", b"\x7fELF\x02"] {
            assert_eq!(read(garbage), (State::default(), 1), "{garbage:?}");
            assert_eq!(read(&[&bytes, garbage].concat()), (all.clone(), 1), "{garbage:?}");
        }
        let mut last = bytes;
        *last.last_mut().unwrap() = b'x';
        assert_eq!(read(&last), (all.clone(), 1), "the last line is whole but for its end");
    }

    #[test]
    fn a_state_of_another_version_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (_, bytes) = changes(dir.path());
        let json = "{\"move\":{\"id\":1}}";
        let line = format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()));
        let newer = [bytes, line.into_bytes()].concat();
        std::fs::write(dir.path().join("journal"), &newer).unwrap();
        assert_eq!(Store::open(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(std::fs::read(dir.path().join("journal")).unwrap(), newer);
        assert!(!dir.path().join("journal.corrupt-1").exists());
    }

    #[test]
    fn what_is_owed_is_written_with_the_next_change() {
        let dir = tempfile::tempdir().unwrap();
        let Opened { mut store, mut state, .. } = Store::open(dir.path()).unwrap();
        store.put(&mut state, &example(1)).unwrap();
        state.jobs.get_mut(&1).unwrap().suspended = true;
        store.owe(1);
        assert!(store.due().is_some());
        store.put(&mut state, &example(2)).unwrap();
        assert!(store.due().is_none());
        drop(store);
        assert_eq!(Store::open(dir.path()).unwrap().state, state);
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
        store.journal.compact_beyond(10_000);
        let record = example(1);
        for _ in 0..100 {
            store.put(&mut state, &record).unwrap();
        }
        assert!(store.journal.bytes() < 20_000, "{} bytes", store.journal.bytes());
        assert_eq!(read(&std::fs::read(dir.path().join("journal")).unwrap()).0, state);
    }

    #[test]
    fn ids_are_not_given_twice_even_when_the_journal_was_cut_or_deleted() {
        for lines in 0..6 {
            let dir = tempfile::tempdir().unwrap();
            let Opened { mut store, mut state, .. } = Store::open(dir.path()).unwrap();
            for id in 1..5 {
                store.put(&mut state, &example(id)).unwrap();
            }
            drop(store);
            let path = dir.path().join("journal");
            let whole = std::fs::read(&path).unwrap();
            let cut: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').take(lines).collect();
            std::fs::write(&path, cut.concat()).unwrap();
            if lines == 0 {
                std::fs::remove_file(&path).unwrap();
            }
            let opened = Store::open(dir.path()).unwrap();
            assert_eq!(opened.state.last_id, 4, "{lines} lines are left");
            assert!(!opened.damaged.is_empty(), "{lines} lines are left");
        }
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
