//! The store of one machine, which is a cluster of one: a store in memory, and a journal of what has to outlive the daemon.
//!
//! Each transaction that changes a key without a lease is one line of the file `keys`, on the disk before anybody hears
//! that it was done. Leases are as long as the daemon's life: nobody else could take the node's place, because the
//! directory is locked. Keys with a lease are not written; with the daemon they are gone, and the next one claims its
//! name anew before anybody plans. So nothing is written while nothing happens. Nor are answers, and requests that only their
//! asker misses: who asked a daemon that dies hears that it died, and what was carried out is in the state.
//!
//! Revisions rise over restarts: a block of them is promised on the disk ahead, and a new life begins behind it.
//!
//! A full disk is a store that does not answer: nothing is done until there is room for what could not be written.

pub(crate) mod fuzz;
mod kept;
mod mend;
#[cfg(test)]
mod tests;

use crate::journal::{self, Found, Journal};
use cosched_cluster::store::{Do, Entry, Event, MemoryStore, News, Op, OpDone, Range, Revision, StoreError, Txn};
use cosched_cluster::wire::{Job, decode};
use cosched_cluster::{Keys, store};
use cosched_core::Time;
use cosched_core::cluster::State;
use kept::Change;
use std::collections::BTreeMap;
use std::io;
use std::iter::once;
use std::path::{Path, PathBuf};

/// The name of the file in the state's directory.
const FILE: &str = "keys";

/// The name of the cluster that a machine alone is.
pub(crate) const NAME: &str = "machine";

/// So many revisions are promised at a time.
const REVISIONS: u64 = 1024;

/// So many revisions back a watch may begin.
const HISTORY: u64 = 16;

/// The store of a machine alone.
#[derive(Debug)]
pub(crate) struct OwnStore {
    path: PathBuf,
    store: MemoryStore,
    journal: Journal,
    /// Revisions below this one may be told.
    promised: Revision,
    /// Jobs had numbers up to this one.
    last_job: u64,
}

/// What opening found.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The store.
    pub(crate) store: OwnStore,
    /// A damaged file was set aside here; so many lines are damaged or missing.
    pub(crate) damaged: Option<(PathBuf, usize)>,
}

impl OwnStore {
    /// Opens or makes the store in `dir`, which this daemon has locked.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn open(dir: &Path) -> io::Result<Opened> {
        let path = dir.join(FILE);
        let (journal, Found { changes, damaged, mut last_job }) = Journal::open(&path)?;
        let (promised, mut entries) = folded(changes);
        if damaged.is_some() {
            last_job = last_job.max(mend::agree(&mut entries, &keys()));
        }
        let store = MemoryStore::restored(promised.max(1), entries.into_values().collect());
        let mut own = OwnStore { path, store, journal, promised, last_job };
        if damaged.is_some() || own.journal.is_stale() {
            own.rewrite()?;
        }
        Ok(Opened { store: own, damaged })
    }

    /// Does an operation; what it changes for good is on the disk when this returns.
    ///
    /// # Errors
    /// As etcd would refuse it, or the disk does: nothing is changed then.
    pub(crate) fn call(&mut self, op: Op) -> Result<OpDone, StoreError> {
        self.write(&op).map_err(|e| match e {
            Refused::Store(e) => e,
            Refused::Disk(e) => StoreError::Unavailable(format!("{} cannot be written: {e}", self.path.display())),
        })?;
        // No lease runs out.
        let done = self.store.call(Time(0), op)?;
        let oldest = self.store.revision().saturating_sub(HISTORY);
        // What is forgotten already stays so.
        let _ = self.store.compact(oldest);
        if self.journal.is_stale()
            && let Err(e) = self.rewrite()
        {
            tracing::warn!("{} could not be written anew: {e}", self.path.display());
        }
        Ok(done)
    }

    /// Takes a request out that is not on the disk, as if this daemon had died before it was carried out.
    pub(crate) fn withdraw(&mut self, key: &str) {
        let range = Range::one(key);
        if !self.store.read(&range).iter().any(kept::outlives) {
            let _ = self.store.call(Time(0), Op::Txn(Txn { then: vec![Do::Delete(range)], ..Txn::default() }));
        }
    }

    /// What a watch is to be told.
    ///
    /// # Errors
    /// It begins too far back.
    pub(crate) fn news(&self, range: &Range, from: Revision) -> Result<News, StoreError> {
        self.store.news(range, from)
    }

    fn write(&mut self, op: &Op) -> Result<(), Refused> {
        if self.journal.is_unsure() {
            self.rewrite()?;
        }
        // Also for what writes nothing: a store that answers half of what it is asked helps nobody.
        self.journal.make_room()?;
        if self.store.revision() + 1 >= self.promised {
            let promised = self.store.revision() + REVISIONS;
            self.journal.append(once(Change::Revisions(promised)))?;
            self.promised = promised;
        }
        let Op::Txn(txn) = op else { return Ok(()) };
        let changes = self.store.preview(txn).map_err(Refused::Store)?;
        let is_kept = |key: &str| self.store.read(&Range::one(key)).iter().any(kept::outlives);
        match Change::lasting(&changes, is_kept) {
            Some(change) => {
                self.journal.number(highest_job(&changes));
                Ok(self.journal.append(once(change))?)
            }
            None => Ok(()),
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let all = Range { first: String::new(), end: Some(char::MAX.to_string()) };
        let lasting = self.store.read(&all).into_iter().filter(kept::outlives);
        let put = lasting.map(|entry| Change::Keys { put: vec![(&entry).into()], deleted: Vec::new() });
        self.journal.rewrite(once(Change::Revisions(self.promised)).chain(put))
    }

    /// The name that the node has in it.
    pub(crate) fn node_name(&self) -> Option<String> {
        let names = Range::prefix(&format!("{}names/", keys().prefix()));
        self.store.read(&names).first().and_then(|entry| Some(entry.key.rsplit_once('/')?.1.to_owned()))
    }

    /// Jobs that are forgotten, or whose lines are missing, had numbers up to this one.
    pub(crate) fn last_job(&self) -> u64 {
        self.last_job
    }

    /// The planner's state, if there is one.
    ///
    /// # Errors
    /// It is another version's, in words.
    pub(crate) fn state(&self) -> Result<Option<State>, String> {
        let found = self.store.read(&Range::one(keys().state()));
        found.first().map(|entry| decode::<State>(&entry.value).map_err(|e| e.to_string())).transpose()
    }

    /// The jobs, ended ones included; those that cannot be read are left out.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        jobs_of(self.store.read(&jobs_range(&keys())).iter())
    }
}

/// What `coschedd --check` says of the store in `dir`; nothing is changed.
///
/// # Errors
/// Of the file system.
pub(crate) fn look(dir: &Path) -> io::Result<String> {
    if !dir.join(FILE).exists() {
        return Ok("new".to_owned());
    }
    let (changes, damaged) = journal::look(&dir.join(FILE))?;
    let (_, entries) = folded(changes);
    let live = jobs_of(entries.range(jobs_range(&keys()).first..).map(|(_, entry)| entry));
    let live = live.iter().filter(|job| job.end.is_none()).count();
    let damage = if damaged == 0 { String::new() } else { format!(", and {damaged} damaged lines") };
    Ok(format!("{live} jobs{damage}"))
}

/// The cluster's keys.
pub(crate) fn keys() -> Keys {
    Keys::new(NAME).expect("the name is one")
}

fn jobs_range(keys: &Keys) -> Range {
    Range::prefix(&format!("{}jobs/", keys.prefix()))
}

fn jobs_of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Job> {
    entries.filter_map(|entry| decode(&entry.value).ok()).collect()
}

/// The highest number of a job whose key is changed; 0 is none.
fn highest_job(changes: &[Event]) -> u64 {
    let jobs = jobs_range(&keys()).first;
    changes.iter().filter_map(|change| change.entry.key.strip_prefix(&jobs)?.parse().ok()).max().unwrap_or(0)
}

/// The keys that a journal leads to, and the highest revision that it promises.
fn folded(changes: Vec<Change>) -> (Revision, BTreeMap<store::Key, Entry>) {
    let (mut promised, mut entries) = (0, BTreeMap::new());
    for change in changes {
        match change {
            Change::Revisions(upto) => promised = promised.max(upto),
            Change::Keys { put, deleted } => {
                deleted.iter().for_each(|key| drop(entries.remove(key)));
                for entry in put.into_iter().filter_map(kept::Kept::entry) {
                    promised = promised.max(entry.mod_revision);
                    entries.insert(entry.key.clone(), entry);
                }
            }
        }
    }
    (promised, entries)
}

/// Why nothing was written.
enum Refused {
    Store(StoreError),
    Disk(io::Error),
}

impl From<io::Error> for Refused {
    fn from(e: io::Error) -> Refused {
        Refused::Disk(e)
    }
}
