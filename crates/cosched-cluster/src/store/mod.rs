//! The operations of a store as plain data: the part of etcd's vocabulary that a cluster needs.
//!
//! Keys are text, values bytes. Every change gives the whole store a new revision. A transaction compares revisions and
//! then carries out one of two lists of operations atomically. When a lease expires, its keys are deleted. A watch reports
//! every change from a revision on, unless that revision was compacted.
//! Source: etcd's API documentation, version 3.

mod memory;

pub use memory::MemoryStore;

/// A key.
pub type Key = String;

/// The number of a change of the whole store.
pub type Revision = u64;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// Its value; empty when it was deleted.
    pub value: Vec<u8>,
    /// The revision at which it was created; 0 when it was deleted.
    pub create_revision: Revision,
    /// The revision of its last change.
    pub mod_revision: Revision,
    /// The lease with which it expires, if it has one.
    pub lease: Option<LeaseId>,
}

/// One key, or a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub first: Key,
    /// The first key after the range; `None` for `first` alone.
    pub end: Option<Key>,
}

impl Range {
    /// This key alone.
    pub fn one(key: impl Into<Key>) -> Range {
        Range { first: key.into(), end: None }
    }

    /// All keys with this prefix, which must end with an ASCII character.
    pub fn prefix(prefix: &str) -> Range {
        let mut end = prefix.to_owned();
        if let Some(last) = end.pop() {
            // The next character; ours end with a slash.
            end.push(char::from_u32(last as u32 + 1).unwrap_or(char::MAX));
        }
        Range { first: prefix.to_owned(), end: Some(end) }
    }

    /// Whether a key is in the range.
    pub fn contains(&self, key: &str) -> bool {
        match &self.end {
            None => key == self.first,
            Some(end) => self.first.as_str() <= key && key < end.as_str(),
        }
    }
}

/// Which revision of a key is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// That of its last change; 0 for a key that does not exist.
    Mod,
    /// That of its creation; 0 for a key that does not exist.
    Create,
}

/// A condition: a revision of a key has this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The key.
    pub key: Key,
    /// Which of its revisions.
    pub of: Of,
    /// The value.
    pub is: Revision,
}

impl Compare {
    /// The key does not exist.
    pub fn absent(key: Key) -> Compare {
        Compare { key, of: Of::Create, is: 0 }
    }

    /// The key's last change was at this revision.
    pub fn unchanged(key: Key, since: Revision) -> Compare {
        Compare { key, of: Of::Mod, is: since }
    }
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Do {
    /// Puts a value.
    Put {
        /// The key.
        key: Key,
        /// Its value.
        value: Vec<u8>,
        /// The lease with which it expires, if it has one.
        lease: Option<LeaseId>,
    },
    /// Deletes keys.
    Delete(Range),
    /// Reads keys.
    Get(Range),
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// The conditions.
    pub compare: Vec<Compare>,
    /// Carried out if all conditions hold.
    pub then: Vec<Do>,
    /// Carried out otherwise.
    pub or_else: Vec<Do>,
}

/// The maximum number of operations, and of conditions, in a transaction: etcd's default (`--max-txn-ops`).
pub const TXN_OPS_MAX: usize = 128;

/// The maximum length of a transaction, in bytes: etcd's default (`--max-request-bytes`).
pub const TXN_BYTES_MAX: usize = 1_572_864;

/// The result of one operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was put.
    Put,
    /// This number of keys was deleted.
    Deleted(u64),
    /// The entries that were read, ascending by key.
    Got(Vec<Entry>),
}

impl Done {
    /// The entries that were read, if it was a read.
    pub fn entries(self) -> Vec<Entry> {
        if let Done::Got(entries) = self { entries } else { Vec::new() }
    }
}

/// An operation of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A transaction.
    Txn(Txn),
    /// A new lease; the store may make it longer than requested.
    Grant {
        /// The requested length, in seconds.
        ttl_s: u64,
    },
    /// Renews a lease.
    KeepAlive(LeaseId),
    /// Ends a lease, with all its keys.
    Revoke(LeaseId),
    /// Reports every change from a revision on, including that one. The operation's result says that the watch has begun; changes
    /// follow as [`News`].
    Watch {
        /// Of these keys.
        range: Range,
        /// From this revision on.
        from: Revision,
    },
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpDone {
    /// Of a transaction.
    Txn {
        /// The store's revision afterwards.
        revision: Revision,
        /// Whether all conditions held.
        succeeded: bool,
        /// The result of each operation.
        done: Vec<Done>,
    },
    /// A lease.
    Granted {
        /// Its number.
        lease: LeaseId,
        /// Its length, in seconds.
        ttl_s: u64,
        /// The store's revision.
        revision: Revision,
    },
    /// A lease was renewed. etcd's answer also has a revision, but only that of the member that answered, which may be behind.
    KeptAlive {
        /// Its length, in seconds; 0 when the lease no longer exists.
        ttl_s: u64,
    },
    /// A lease was ended, or did not exist.
    Revoked,
    /// A watch has begun.
    Watching,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached, or did not answer in time. It is unknown whether the operation was carried out.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// Permission denied: a wrong password, a user without rights, an unknown certificate.
    #[error("the store denies access: {0}")]
    Denied(String),
    /// There is no such lease.
    #[error("the lease no longer exists")]
    LeaseNotFound,
    /// The revisions before this one were compacted.
    #[error("the store has compacted everything before revision {0}")]
    Compacted(Revision),
    /// The revision does not exist yet.
    #[error("the revision is in the future")]
    FutureRevision,
    /// More than [`TXN_OPS_MAX`] operations.
    #[error("too many operations in a transaction: at most {TXN_OPS_MAX}")]
    TooManyOps,
    /// More than [`TXN_BYTES_MAX`] bytes.
    #[error("the transaction is too large: at most {TXN_BYTES_MAX} bytes")]
    TooLarge,
    /// A transaction puts the same key twice.
    #[error("a key is written twice in a transaction")]
    DuplicateKey,
    /// The store is full, or has another fault of its own.
    #[error("the store has a fault: {0}")]
    Fault(String),
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key as it is now; for a deleted key only its name and revision.
    pub entry: Entry,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// A watch's report: all changes of its keys up to a revision, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The last revision that the report includes.
    pub revision: Revision,
    /// The changes since the last report.
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Time;

    fn put(key: &str, lease: Option<LeaseId>) -> Do {
        Do::Put { key: key.to_owned(), value: key.as_bytes().to_vec(), lease }
    }

    fn txn(store: &mut MemoryStore, compare: Vec<Compare>, then: Vec<Do>) -> Result<bool, StoreError> {
        match store.call(Time(0), Op::Txn(Txn { compare, then, or_else: Vec::new() }))? {
            OpDone::Txn { succeeded, .. } => Ok(succeeded),
            other => panic!("{other:?}"),
        }
    }

    fn keys(store: &MemoryStore) -> Vec<String> {
        store
            .read(&Range { first: String::new(), end: Some("z".to_owned()) })
            .into_iter()
            .map(|entry| entry.key)
            .collect()
    }

    #[test]
    fn a_range_has_what_begins_so_and_nothing_beside_it() {
        let range = Range::prefix("a/");
        assert!(range.contains("a/") && range.contains("a/b/c") && range.contains("a/\u{e9}"));
        assert!(!range.contains("a") && !range.contains("a0") && !range.contains("b/"));
        assert!(Range::one("a").contains("a") && !Range::one("a").contains("a/"));
    }

    #[test]
    fn all_of_a_transaction_is_done_or_nothing() {
        let mut store = MemoryStore::new();
        assert_eq!(
            txn(&mut store, vec![Compare::absent("a".to_owned())], vec![put("a", None), put("b", None)]),
            Ok(true)
        );
        let revision = store.revision();
        assert_eq!(txn(&mut store, vec![Compare::absent("a".to_owned())], vec![put("c", None)]), Ok(false));
        assert_eq!((keys(&store), store.revision()), (vec!["a".to_owned(), "b".to_owned()], revision));
        let unchanged = |revision| vec![Compare::unchanged("a".to_owned(), revision)];
        assert_eq!(txn(&mut store, unchanged(revision), vec![put("a", None)]), Ok(true));
        assert_eq!(txn(&mut store, unchanged(revision), vec![put("a", None)]), Ok(false), "it was changed since");
        let both = vec![put("d", None), put("d", None)];
        assert_eq!(txn(&mut store, Vec::new(), both), Err(StoreError::DuplicateKey));
        let many = (0..=TXN_OPS_MAX).map(|n| put(&n.to_string(), None)).collect();
        assert_eq!(txn(&mut store, Vec::new(), many), Err(StoreError::TooManyOps));
        let large = Do::Put { key: "e".to_owned(), value: vec![0; TXN_BYTES_MAX], lease: None };
        assert_eq!(txn(&mut store, Vec::new(), vec![large]), Err(StoreError::TooLarge));
        assert_eq!(keys(&store), ["a", "b"]);
    }

    #[test]
    fn a_lease_takes_its_keys_with_it_and_lives_as_long_as_it_is_renewed() {
        let mut store = MemoryStore::new();
        let granted = store.call(Time(0), Op::Grant { ttl_s: 5 });
        let Ok(OpDone::Granted { lease, ttl_s: 5, .. }) = granted else { panic!("{granted:?}") };
        txn(&mut store, Vec::new(), vec![put("a", Some(lease)), put("b", None)]).unwrap();
        let renewed = store.call(Time(4_000_000_000), Op::KeepAlive(lease));
        assert_eq!(renewed, Ok(OpDone::KeptAlive { ttl_s: 5 }));
        store.expire(Time(8_999_999_999));
        assert_eq!(keys(&store), ["a", "b"]);
        store.expire(Time(9_000_000_000));
        assert_eq!(keys(&store), ["b"]);
        assert_eq!(store.call(Time(9_000_000_000), Op::KeepAlive(lease)), Ok(OpDone::KeptAlive { ttl_s: 0 }));
        assert_eq!(txn(&mut store, Vec::new(), vec![put("c", Some(lease))]), Err(StoreError::LeaseNotFound));
    }

    #[test]
    fn a_watch_tells_each_change_from_its_revision_on_until_it_is_forgotten() {
        let mut store = MemoryStore::new();
        for key in ["a/1", "b/1", "a/2"] {
            txn(&mut store, Vec::new(), vec![put(key, None)]).unwrap();
        }
        txn(&mut store, Vec::new(), vec![Do::Delete(Range::one("a/1"))]).unwrap();
        let told = |store: &MemoryStore, from| {
            let news = store.news(&Range::prefix("a/"), from)?;
            Ok(news.events.into_iter().map(|event| (event.entry.key, event.deleted)).collect::<Vec<_>>())
        };
        let [first, second, gone] =
            [("a/1", false), ("a/2", false), ("a/1", true)].map(|(key, gone)| (key.to_owned(), gone));
        assert_eq!(told(&store, 2), Ok(vec![first, second.clone(), gone.clone()]));
        assert_eq!(told(&store, 3), Ok(vec![second, gone.clone()]));
        store.compact(4).unwrap();
        assert_eq!(told(&store, 3), Err(StoreError::Compacted(4)));
        assert_eq!(told(&store, 5), Ok(vec![gone]));
        assert_eq!(store.compact(99), Err(StoreError::FutureRevision));
    }
}
