//! The stored form of a key.

use cosched_cluster::store::{Entry, Event, Key, Revision};
use serde::{Deserialize, Serialize};

/// A line of the journal: a transaction, or a promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Change {
    /// These keys were put, and those deleted, in one transaction.
    Keys { put: Vec<Kept>, deleted: Vec<Key> },
    /// Revisions up to this one may have been reported to a client.
    Revisions(Revision),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    key: Key,
    #[serde(flatten)]
    value: Value,
    created: Revision,
    changed: Revision,
}

/// Text is stored as it is, so that the file is readable; packed values as bytes in hex.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Value {
    Text(String),
    Hex(String),
}

impl From<&Entry> for Kept {
    fn from(entry: &Entry) -> Kept {
        let value = match std::str::from_utf8(&entry.value) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Hex(hex(&entry.value)),
        };
        Kept { key: entry.key.clone(), value, created: entry.create_revision, changed: entry.mod_revision }
    }
}

/// Two digits for each byte: the state is packed, and written with every change.
fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

impl Kept {
    /// The entry; `None` if the stored form is invalid.
    pub(super) fn entry(self) -> Option<Entry> {
        let value = match self.value {
            Value::Text(text) => text.into_bytes(),
            Value::Hex(text) => {
                let digits = text.as_bytes().chunks(2);
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
                digits.map(byte).collect::<Option<_>>()?
            }
        };
        let (create_revision, mod_revision) = (self.created, self.changed);
        Some(Entry { key: self.key, value, create_revision, mod_revision, lease: None })
    }
}

impl Change {
    /// The part of a transaction's changes that outlives the daemon; `None` if there is none.
    pub(super) fn lasting(changes: &[Event], is_kept: impl Fn(&str) -> bool) -> Option<Change> {
        let stays = |change: &&Event| !change.deleted && outlives(&change.entry);
        let put: Vec<Kept> = changes.iter().filter(stays).map(|change| Kept::from(&change.entry)).collect();
        let goes = |change: &&Event| !stays(change) && is_kept(&change.entry.key);
        let deleted: Vec<Key> = changes.iter().filter(goes).map(|change| change.entry.key.clone()).collect();
        (!put.is_empty() || !deleted.is_empty()).then_some(Change::Keys { put, deleted })
    }
}

/// Keys with a lease end with the daemon, and so do those that may be lost: a sync for each request and each answer would cost as much as the rest of
/// a launch.
pub(super) fn outlives(entry: &Entry) -> bool {
    entry.lease.is_none() && !super::keys().may_be_lost(entry)
}
