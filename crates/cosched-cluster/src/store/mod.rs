//! What a store can do, as plain data: the part of etcd's vocabulary that a cluster needs.
//!
//! Keys are text, values bytes. Every change gives the whole store a new revision. A transaction compares revisions and
//! then does one of two lists of operations, all at once. A lease takes its keys with it when it runs out. A watch tells
//! every change from a revision on, unless the store has forgotten it (compaction).
//! Source: etcd's API documentation, version 3.

mod memory;

pub use memory::MemoryStore;

/// A key.
pub type Key = String;

/// The number of a change of the whole store.
pub type Revision = u64;

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// Its value; empty when it was deleted.
    pub value: Vec<u8>,
    /// Since when it is there; 0 when it was deleted.
    pub create_revision: Revision,
    /// When it was last changed.
    pub mod_revision: Revision,
    /// The lease with which it goes.
    pub lease: Option<LeaseId>,
}

/// One key or several neighbouring ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: Key,
    /// The first that does not belong to it any more; `None` for `first` alone.
    pub end: Option<Key>,
}

impl Range {
    /// This key alone.
    pub fn one(key: impl Into<Key>) -> Range {
        Range { first: key.into(), end: None }
    }

    /// All keys that begin so; the prefix ends with an ASCII character.
    pub fn prefix(prefix: &str) -> Range {
        let mut end = prefix.to_owned();
        if let Some(last) = end.pop() {
            // The next character; ours end with a slash.
            end.push(char::from_u32(last as u32 + 1).unwrap_or(char::MAX));
        }
        Range { first: prefix.to_owned(), end: Some(end) }
    }

    /// Whether a key belongs to it.
    pub fn contains(&self, key: &str) -> bool {
        match &self.end {
            None => key == self.first,
            Some(end) => self.first.as_str() <= key && key < end.as_str(),
        }
    }
}

/// What of a key is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// When it was last changed; 0 for a key that is not there.
    Mod,
    /// Since when it is there; 0 for a key that is not there.
    Create,
}

/// A condition: the revision is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// Of this key.
    pub key: Key,
    /// Which one.
    pub of: Of,
    /// This one.
    pub is: Revision,
}

impl Compare {
    /// The key is not there.
    pub fn absent(key: Key) -> Compare {
        Compare { key, of: Of::Create, is: 0 }
    }

    /// The key was not changed since.
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
        /// The lease with which it goes.
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
    /// If all of these hold,
    pub compare: Vec<Compare>,
    /// this is done,
    pub then: Vec<Do>,
    /// otherwise that.
    pub or_else: Vec<Do>,
}

/// The most operations, and the most conditions, of a transaction: etcd's default (`--max-txn-ops`).
pub const TXN_OPS_MAX: usize = 128;

/// The longest transaction, in bytes: etcd's default (`--max-request-bytes`).
pub const TXN_BYTES_MAX: usize = 1_572_864;

/// What an operation of a transaction gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was put.
    Put,
    /// So many keys were deleted.
    Deleted(u64),
    /// What was read, ascending by key.
    Got(Vec<Entry>),
}

/// Something that the store shall do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A transaction.
    Txn(Txn),
    /// A new lease of so many seconds; the store may make it longer.
    Grant {
        /// Its length.
        ttl_s: u64,
    },
    /// Renews a lease.
    KeepAlive(LeaseId),
    /// Ends a lease, with all its keys.
    Revoke(LeaseId),
    /// Tells of every change from a revision on, this one included. One answer says that it has begun; changes come as
    /// [`News`] after it.
    Watch {
        /// Of these keys.
        range: Range,
        /// From this revision on.
        from: Revision,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpDone {
    /// Of a transaction.
    Txn {
        /// The store's revision afterwards.
        revision: Revision,
        /// Whether all conditions held.
        succeeded: bool,
        /// What each operation gave.
        done: Vec<Done>,
    },
    /// A lease.
    Granted {
        /// Its name.
        lease: LeaseId,
        /// Its length.
        ttl_s: u64,
        /// The store's revision.
        revision: Revision,
    },
    /// A lease was renewed. What etcd says here of its revision is what the member that was asked knows, which may be behind.
    KeptAlive {
        /// Its length; 0 when there is no such lease any more.
        ttl_s: u64,
    },
    /// A lease was ended, or was not there.
    Revoked,
    /// A watch has begun.
    Watching,
}

/// Why the store did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or did not answer in time. Whether it was done is not known.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// It does not let us: a wrong password, a user without rights, a certificate that it does not know.
    #[error("the store refuses us: {0}")]
    Denied(String),
    /// There is no such lease.
    #[error("the lease is gone")]
    LeaseNotFound,
    /// It has forgotten the revisions up to this one.
    #[error("the store has forgotten what was before revision {0}")]
    Compacted(Revision),
    /// The revision is yet to come.
    #[error("the revision is yet to come")]
    FutureRevision,
    /// More operations than a transaction may have.
    #[error("too many operations in a transaction: at most {TXN_OPS_MAX}")]
    TooManyOps,
    /// Longer than a transaction may be.
    #[error("the transaction is too large: at most {TXN_BYTES_MAX} bytes")]
    TooLarge,
    /// A key is put twice.
    #[error("a key is put twice in a transaction")]
    DuplicateKey,
    /// It is full, or has another fault of its own.
    #[error("the store has a fault: {0}")]
    Fault(String),
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key as it is now; of a deleted one key and revision only.
    pub entry: Entry,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// What a watch tells: all changes of its keys up to a revision, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// All changes up to here were told.
    pub revision: Revision,
    /// The new ones.
    pub events: Vec<Event>,
}
