//! The store of a single machine, which is a cluster of this node alone.
//!
//! Problem: a single machine needs queues, too, and its jobs must be found again after a crash, without a service to maintain. Rule: the member's
//! store is in memory, and its changes are lines of the machine's journal (`store.rs`), beside the records of its jobs: every transaction that
//! changes keys permanently is one line, on the disk before the answer, so that a crash at any byte leaves whole transactions. Leases last as long as
//! the daemon: no other daemon could take the node's place, because the directory is locked. Keys with a lease are not written; they end with the
//! daemon, and the next one claims its name again before any planning. So nothing is written while nothing happens. Answers are not written either,
//! nor requests that only their client would miss: the client of a daemon that dies notices that, and what was carried out is in the state.
//!
//! Revisions rise over restarts: a block of them is reserved on the disk in advance, and a new daemon begins after it.
//!
//! A full disk is treated as a store that does not answer: nothing is done until there is room for what could not be written.

pub(crate) mod fuzz;
mod kept;
mod repair;
#[cfg(test)]
mod tests;

pub(crate) use kept::Change;

use cosched_cluster::Keys;
use cosched_cluster::store::{Do, Entry, Event, Key, MemoryStore, News, Op, OpDone, Range, Revision, StoreError, Txn};
use cosched_cluster::wire::{Job, decode};
use cosched_core::Time;
use cosched_core::cluster::State;
use std::collections::BTreeMap;
use std::iter::once;

/// The cluster name of a single machine.
pub(crate) const NAME: &str = "machine";

/// The number of revisions that are reserved at a time.
const REVISIONS: u64 = 1024;

/// The number of past revisions from which a watch may begin.
const HISTORY: u64 = 16;

/// The keys of a single machine.
#[derive(Debug)]
pub(crate) struct OwnStore {
    store: MemoryStore,
    /// Revisions below this one may be used.
    promised: Revision,
    /// After damage: a lower bound of the highest job number used; otherwise 0.
    last_job: u64,
}

/// The changes that have to be on the disk before an operation is carried out.
#[derive(Debug, Default)]
pub(crate) struct Before {
    pub(crate) changes: Vec<Change>,
    /// The highest job number in them; 0: none.
    pub(crate) last_job: u64,
}

impl OwnStore {
    /// The store from the changes in a journal; after damage, the remaining keys are made consistent.
    pub(crate) fn of(changes: impl IntoIterator<Item = Change>, damaged: bool) -> OwnStore {
        let (promised, mut entries) = folded(changes);
        let last_job = if damaged { repair::reconcile(&mut entries, &keys()) } else { 0 };
        let store = MemoryStore::restored(promised.max(1), entries.into_values().collect());
        OwnStore { store, promised, last_job }
    }

    /// The changes that lead to the present keys.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> {
        let all = Range { first: String::new(), end: Some(char::MAX.to_string()) };
        let lasting = self.store.read(&all).into_iter().filter(kept::outlives);
        let put = lasting.map(|entry| Change::Keys { put: vec![(&entry).into()], deleted: Vec::new() });
        once(Change::Revisions(self.promised)).chain(put)
    }

    /// The changes that have to be on the disk before this operation.
    ///
    /// # Errors
    /// As etcd would refuse it.
    pub(crate) fn before(&self, op: &Op) -> Result<Before, StoreError> {
        let mut before = Before::default();
        if self.store.revision() + 1 >= self.promised {
            before.changes.push(Change::Revisions(self.store.revision() + REVISIONS));
        }
        let Op::Txn(txn) = op else { return Ok(before) };
        let changes = self.store.preview(txn)?;
        let is_kept = |key: &str| self.store.read(&Range::one(key)).iter().any(kept::outlives);
        if let Some(change) = Change::lasting(&changes, is_kept) {
            before.changes.push(change);
            before.last_job = highest_job(&changes);
        }
        Ok(before)
    }

    /// Carries out an operation; the changes of `before` are on the disk.
    ///
    /// # Errors
    /// As etcd would refuse it; nothing is changed then.
    pub(crate) fn call(&mut self, op: Op, before: &Before) -> Result<OpDone, StoreError> {
        if let Some(Change::Revisions(promised)) = before.changes.first() {
            self.promised = *promised;
        }
        // At a constant time, so that no lease expires.
        let done = self.store.call(Time(0), op)?;
        let oldest = self.store.revision().saturating_sub(HISTORY);
        // An error means that this is compacted already.
        let _ = self.store.compact(oldest);
        Ok(done)
    }

    /// Removes a request that is not on the disk and has no reply, as if this daemon had died before carrying it out; returns whether it has
    /// no reply.
    pub(crate) fn withdraw(&mut self, request: &str, reply: &str) -> bool {
        let range = Range::one(request);
        let is_open =
            self.store.read(&Range::one(reply)).is_empty() && !self.store.read(&range).iter().any(kept::outlives);
        if is_open {
            let _ = self.store.call(Time(0), Op::Txn(Txn { then: vec![Do::Delete(range)], ..Txn::default() }));
        }
        is_open
    }

    /// The news for a watch.
    ///
    /// # Errors
    /// It begins too far in the past.
    pub(crate) fn news(&self, range: &Range, from: Revision) -> Result<News, StoreError> {
        self.store.news(range, from)
    }

    /// Removes the keys that are held by leases, as at the end of a daemon.
    pub(crate) fn end_leases(&mut self) {
        let entries = std::mem::take(&mut self.store);
        let all = Range { first: String::new(), end: Some(char::MAX.to_string()) };
        let lasting = entries.read(&all).into_iter().filter(kept::outlives).collect();
        self.store = MemoryStore::restored(entries.revision(), lasting);
    }

    /// The node's name in the store.
    pub(crate) fn node_name(&self) -> Option<String> {
        let names = Range::prefix(&format!("{}names/", keys().prefix()));
        self.store.read(&names).first().and_then(|entry| Some(entry.key.rsplit_once('/')?.1.to_owned()))
    }

    /// A lower bound of the highest job number in missing lines.
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

    /// The jobs, ended ones included; unreadable ones are left out.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        jobs_of(self.store.read(&jobs_range(&keys())).iter())
    }
}

/// The number of live jobs in these changes, for `coschedd --check`.
pub(crate) fn count_live(changes: impl IntoIterator<Item = Change>) -> usize {
    let (_, entries) = folded(changes);
    let jobs = jobs_of(entries.range(jobs_range(&keys()).first..).map(|(_, entry)| entry));
    jobs.iter().filter(|job| job.end.is_none()).count()
}

/// The cluster's keys.
pub(crate) fn keys() -> Keys {
    Keys::new(NAME).expect("the name is valid")
}

fn jobs_range(keys: &Keys) -> Range {
    Range::prefix(&format!("{}jobs/", keys.prefix()))
}

fn jobs_of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Job> {
    entries.filter_map(|entry| decode(&entry.value).ok()).collect()
}

/// The highest number of a job whose key is changed; 0: none.
fn highest_job(changes: &[Event]) -> u64 {
    let jobs = jobs_range(&keys()).first;
    changes.iter().filter_map(|change| change.entry.key.strip_prefix(&jobs)?.parse().ok()).max().unwrap_or(0)
}

/// The keys that result from a journal's changes, and the highest revision that is reserved in it.
fn folded(changes: impl IntoIterator<Item = Change>) -> (Revision, BTreeMap<Key, Entry>) {
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
