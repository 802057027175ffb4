//! A store in memory with etcd's semantics, for tests and simulations.
//!
//! It has no clock: every call passes the time, in nanoseconds since any epoch, by which leases expire.

use super::{
    Compare, Do, Done, Entry, Event, Key, LeaseId, News, Of, Op, OpDone, Range, Revision, StoreError, TXN_BYTES_MAX,
    TXN_OPS_MAX, Txn,
};
use cosched_core::Time;
use std::collections::{BTreeMap, BTreeSet};

/// The shortest lease that etcd gives with its default settings: three half election times of 1 s, rounded up.
const LEASE_TTL_S_MIN: u64 = 2;

#[derive(Clone, Debug)]
struct Lease {
    ttl_s: u64,
    until: Time,
    keys: BTreeSet<Key>,
}

/// The store.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    revision: Revision,
    compacted: Revision,
    entries: BTreeMap<Key, Entry>,
    /// Changes that were not compacted, by revision.
    history: Vec<Event>,
    leases: BTreeMap<LeaseId, Lease>,
    last_lease: i64,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore {
            revision: 1,
            compacted: 0,
            entries: BTreeMap::new(),
            history: Vec::new(),
            leases: BTreeMap::new(),
            last_lease: 0,
        }
    }
}

impl MemoryStore {
    /// An empty store, at revision 1 like etcd's.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// A store with an earlier one's entries, at a revision that must not be below that of any entry. It has no leases and
    /// no history.
    pub fn restored(revision: Revision, entries: Vec<Entry>) -> MemoryStore {
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        MemoryStore { revision, compacted: revision, entries, ..MemoryStore::default() }
    }

    /// Makes sure that new leases get no number that another store has given. etcd's numbers are random, so old ones are not reused.
    pub fn leases_unlike(&mut self, other: &MemoryStore) {
        self.last_lease = self.last_lease.max(other.last_lease);
    }

    /// The revision of the last change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Carries out an operation.
    ///
    /// # Errors
    /// The same as etcd's; nothing is changed then.
    pub fn call(&mut self, now: Time, op: Op) -> Result<OpDone, StoreError> {
        self.expire(now);
        match op {
            Op::Txn(txn) => self.txn(txn),
            Op::Grant { ttl_s } => Ok(self.grant(now, ttl_s)),
            Op::KeepAlive(lease) => Ok(self.keep_alive(now, lease)),
            Op::Revoke(lease) => {
                self.end_lease(lease);
                Ok(OpDone::Revoked)
            }
            Op::Watch { range, from } => self.news(&range, from).map(|_| OpDone::Watching),
        }
    }

    /// All changes of keys from a revision on: what a watch that begins there has reported until now.
    ///
    /// # Errors
    /// Some of them were compacted.
    pub fn news(&self, range: &Range, from: Revision) -> Result<News, StoreError> {
        if from < self.compacted {
            return Err(StoreError::Compacted(self.compacted));
        }
        let first = self.history.partition_point(|event| event.entry.mod_revision < from);
        let events = self.history[first..].iter().filter(|event| range.contains(&event.entry.key)).cloned().collect();
        Ok(News { revision: self.revision, events })
    }

    /// Compacts all changes before a revision.
    ///
    /// # Errors
    /// They are compacted already, or the revision does not exist yet.
    pub fn compact(&mut self, to: Revision) -> Result<(), StoreError> {
        if to <= self.compacted {
            return Err(StoreError::Compacted(self.compacted));
        }
        if to > self.revision {
            return Err(StoreError::FutureRevision);
        }
        self.compacted = to;
        self.history.retain(|event| event.entry.mod_revision >= to);
        Ok(())
    }

    /// Ends the leases that have expired.
    pub fn expire(&mut self, now: Time) {
        let out: Vec<LeaseId> = self.leases.iter().filter(|(_, lease)| lease.until <= now).map(|(id, _)| *id).collect();
        out.into_iter().for_each(|id| self.end_lease(id));
    }

    /// When the next lease expires.
    pub fn next_expiry(&self) -> Option<Time> {
        self.leases.values().map(|lease| lease.until).min()
    }

    /// Restarts every lease with its whole length, as a new leader of etcd does.
    pub fn extend_leases(&mut self, now: Time) {
        for lease in self.leases.values_mut() {
            lease.until = now + lease.ttl_s * 1_000_000_000;
        }
    }

    fn grant(&mut self, now: Time, ttl_s: u64) -> OpDone {
        let ttl_s = ttl_s.max(LEASE_TTL_S_MIN);
        self.last_lease += 1;
        let lease = LeaseId(self.last_lease);
        self.leases.insert(lease, Lease { ttl_s, until: now + ttl_s * 1_000_000_000, keys: BTreeSet::new() });
        OpDone::Granted { lease, ttl_s, revision: self.revision }
    }

    fn keep_alive(&mut self, now: Time, lease: LeaseId) -> OpDone {
        let ttl_s = self.leases.get_mut(&lease).map_or(0, |lease| {
            lease.until = now + lease.ttl_s * 1_000_000_000;
            lease.ttl_s
        });
        OpDone::KeptAlive { ttl_s }
    }

    fn end_lease(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.remove(&id) else { return };
        if !lease.keys.is_empty() {
            self.revision += 1;
            lease.keys.iter().for_each(|key| self.delete_one(key));
        }
    }

    fn txn(&mut self, txn: Txn) -> Result<OpDone, StoreError> {
        self.check(&txn)?;
        let succeeded = txn.compare.iter().all(|compare| self.holds(compare));
        let ops = if succeeded { txn.then } else { txn.or_else };
        let next = self.revision + 1;
        let mut changed = false;
        let mut done = Vec::new();
        for op in ops {
            done.push(match op {
                Do::Get(range) => Done::Got(self.read(&range)),
                Do::Put { key, value, lease } => {
                    self.put(key, value, lease, next);
                    changed = true;
                    Done::Put
                }
                Do::Delete(range) => {
                    let keys: Vec<Key> = self.read(&range).into_iter().map(|entry| entry.key).collect();
                    if !keys.is_empty() {
                        (self.revision, changed) = (next, true);
                        keys.iter().for_each(|key| self.delete_one(key));
                    }
                    Done::Deleted(keys.len() as u64)
                }
            });
        }
        if changed {
            self.revision = next;
        }
        Ok(OpDone::Txn { revision: self.revision, succeeded, done })
    }

    /// The changes that a transaction would make now, each key once.
    ///
    /// # Errors
    /// The same as etcd's.
    pub fn preview(&self, txn: &Txn) -> Result<Vec<Event>, StoreError> {
        self.check(txn)?;
        let revision = self.revision + 1;
        let succeeds = txn.compare.iter().all(|compare| self.holds(compare));
        let ops = if succeeds { &txn.then } else { &txn.or_else };
        // No key is put twice, or both put and deleted, so each operation sees the entries from before the transaction.
        let changes = ops.iter().flat_map(|op| match op {
            Do::Get(_) => Vec::new(),
            Do::Put { key, value, lease } => {
                vec![Event { entry: self.put_entry(key, value.clone(), *lease, revision), deleted: false }]
            }
            Do::Delete(range) => self
                .read(range)
                .into_iter()
                .map(|old| Event { entry: gone(old.key, revision), deleted: true })
                .collect(),
        });
        Ok(changes.collect())
    }

    /// The checks that etcd makes before it changes anything. Leases are only checked in the branch that is taken.
    fn check(&self, txn: &Txn) -> Result<(), StoreError> {
        if [txn.compare.len(), txn.then.len(), txn.or_else.len()].into_iter().any(|many| many > TXN_OPS_MAX) {
            return Err(StoreError::TooManyOps);
        }
        let all = || txn.then.iter().chain(&txn.or_else);
        let bytes: usize = all()
            .map(|op| match op {
                Do::Put { key, value, .. } => key.len() + value.len(),
                Do::Delete(range) | Do::Get(range) => range.first.len() + range.end.as_ref().map_or(0, String::len),
            })
            .sum();
        if bytes + txn.compare.iter().map(|compare| compare.key.len()).sum::<usize>() > TXN_BYTES_MAX {
            return Err(StoreError::TooLarge);
        }
        for ops in [&txn.then, &txn.or_else] {
            let mut keys = BTreeSet::new();
            let put = |op: &Do| matches!(op, Do::Put { key, .. } if !keys.insert(key.clone()));
            if ops.iter().any(put) {
                return Err(StoreError::DuplicateKey);
            }
            let deleted = |op: &Do| matches!(op, Do::Delete(range) if keys.iter().any(|key| range.contains(key)));
            if ops.iter().any(deleted) {
                return Err(StoreError::DuplicateKey);
            }
        }
        let taken = if txn.compare.iter().all(|compare| self.holds(compare)) { &txn.then } else { &txn.or_else };
        let gone = |op: &Do| matches!(op, Do::Put { lease: Some(lease), .. } if !self.leases.contains_key(lease));
        if taken.iter().any(gone) { Err(StoreError::LeaseNotFound) } else { Ok(()) }
    }

    fn holds(&self, compare: &Compare) -> bool {
        let entry = self.entries.get(&compare.key);
        let is = match compare.of {
            Of::Mod => entry.map(|entry| entry.mod_revision),
            Of::Create => entry.map(|entry| entry.create_revision),
        };
        is.unwrap_or(0) == compare.is
    }

    /// The present entries of a range, for tests and checks.
    pub fn read(&self, range: &Range) -> Vec<Entry> {
        match &range.end {
            None => self.entries.get(&range.first).into_iter().cloned().collect(),
            Some(end) if *end <= range.first => Vec::new(),
            Some(end) => self.entries.range(range.first.clone()..end.clone()).map(|(_, entry)| entry.clone()).collect(),
        }
    }

    fn put(&mut self, key: Key, value: Vec<u8>, lease: Option<LeaseId>, revision: Revision) {
        let entry = self.put_entry(&key, value, lease, revision);
        if let Some(old) = self.entries.get(&key).and_then(|old| old.lease)
            && let Some(old) = self.leases.get_mut(&old)
        {
            old.keys.remove(&key);
        }
        if let Some(lease) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            lease.keys.insert(key.clone());
        }
        self.history.push(Event { entry: entry.clone(), deleted: false });
        self.entries.insert(key, entry);
    }

    fn put_entry(&self, key: &str, value: Vec<u8>, lease: Option<LeaseId>, revision: Revision) -> Entry {
        let create_revision = self.entries.get(key).map_or(revision, |old| old.create_revision);
        Entry { key: key.to_owned(), value, create_revision, mod_revision: revision, lease }
    }

    /// Deletes an existing key, at the present revision.
    fn delete_one(&mut self, key: &str) {
        let Some(old) = self.entries.remove(key) else { return };
        if let Some(lease) = old.lease.and_then(|lease| self.leases.get_mut(&lease)) {
            lease.keys.remove(key);
        }
        self.history.push(Event { entry: gone(old.key, self.revision), deleted: true });
    }
}

/// The entry that is reported for a deleted key.
fn gone(key: Key, revision: Revision) -> Entry {
    Entry { key, value: Vec::new(), create_revision: 0, mod_revision: revision, lease: None }
}
