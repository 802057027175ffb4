//! Export of a cluster's keys from its store, and import.
//!
//! Nodes' records and acknowledgements end with leases, requests and answers with their daemons: none of these is exported.
//! All members handle an import like a store that was restored from a copy. The state is deleted
//! first and written last, so that no member plans in between; an interrupted import is repeated.

use crate::keys::{Keys, Place, check_name};
use crate::repair::{CannotRepair, Known, Repair};
use crate::store::{Compare, Do, Entry, Op, Range, Revision, TXN_BYTES_MAX, TXN_OPS_MAX, Txn};
use crate::wire::{Job, Name, Node, Tree, decode, encode, packed, text_of};
use cosched_core::cluster::{NUMBERS_END, Planner, State};
use std::collections::BTreeMap;

/// The part of the maximum transaction that is used, in bytes.
const BYTES_MAX: usize = TXN_BYTES_MAX / 2;

/// The keys of a cluster, without their common prefix, and their values as text.
pub type Texts = BTreeMap<String, String>;

/// The exported keys and texts, and the keys that are left out because they cannot be read.
pub fn export(keys: &Keys, entries: &[Entry]) -> (Texts, Vec<String>) {
    let (mut texts, mut damaged) = (Texts::new(), Vec::new());
    for entry in entries.iter().filter(|entry| is_kept(keys, entry)) {
        match text_of(&entry.value) {
            Ok(text) if is_sound(keys, &entry.key, text.as_bytes()) => {
                texts.insert(short(keys, &entry.key).to_owned(), text);
            }
            Ok(_) | Err(_) => damaged.push(entry.key.clone()),
        }
    }
    (texts, damaged)
}

fn short<'a>(keys: &Keys, key: &'a str) -> &'a str {
    key.strip_prefix(keys.prefix()).unwrap_or(key)
}

fn is_kept(keys: &Keys, entry: &Entry) -> bool {
    let place = keys.place(&entry.key);
    entry.lease.is_none()
        && matches!(place, Place::Tree | Place::Begun | Place::State | Place::Name(_) | Place::Id(_) | Place::Job(_))
}

fn is_sound(keys: &Keys, key: &str, value: &[u8]) -> bool {
    match keys.place(key) {
        Place::Tree | Place::Begun => decode::<Tree>(value).is_ok(),
        Place::State => decode::<State>(value).is_ok_and(|state| Planner::new(state).is_ok()),
        Place::Name(_) => decode::<Name>(value).is_ok(),
        Place::Job(id) => decode::<Job>(value).is_ok_and(|job| job.id == id),
        Place::Id(_) => std::str::from_utf8(value).is_ok_and(|name| check_name(name).is_ok()),
        Place::Node(_) | Place::Request(_) | Place::Reply(_) | Place::Other => false,
    }
}

/// The changes after which a store with these entries has the keys of a backup.
///
/// # Errors
/// It is not a backup of a cluster of this version.
pub fn import(known: &Known, texts: &Texts, entries: &[Entry]) -> Result<Repair, CannotRepair> {
    let keys = &known.keys;
    let key = |short: &str| format!("{}{short}", keys.prefix());
    if let Some(bad) = texts.iter().find(|(short, text)| !is_sound(keys, &key(short), text.as_bytes())) {
        return Err(cannot(format!("its key `{}` is damaged, of another version, or not a cluster's key", bad.0)));
    }
    let state = texts.get("state").and_then(|text| decode::<State>(text.as_bytes()).ok());
    let Some(mut state) = state.filter(|_| texts.contains_key("format")) else {
        return Err(cannot("it has no key `state` or no key `format`".to_owned()));
    };
    let numbers = entries.iter().filter_map(|entry| number(keys, entry)).filter(|number| *number < NUMBERS_END);
    let given = numbers.fold(known.jobs_known, u64::max);
    let numbers = texts.keys().filter_map(|short| match keys.place(&key(short)) {
        Place::Job(id) => Some(id),
        _ => None,
    });
    state.next_order = numbers.fold(state.next_order.max(given), u64::max);
    let says = vec![
        format!(
            "the backup has {} keys: plan {}, {} jobs that have not ended",
            texts.len(),
            state.generation,
            state.jobs.len()
        ),
        format!(
            "jobs that are not in it keep running, scheduled by Linux; new jobs are numbered from {}",
            state.next_order + 1
        ),
    ];
    let mut changes: Vec<Do> = Vec::new();
    let is_new = |id: u32| !texts.contains_key(&format!("ids/{id}"));
    let goes = |entry: &&Entry| {
        (is_kept(keys, entry) || is_request(keys, entry)) && !texts.contains_key(short(keys, &entry.key))
    };
    for entry in entries.iter().filter(goes) {
        let key = entry.key.clone();
        match keys.place(&entry.key) {
            Place::State | Place::Begun | Place::Tree => (),
            // A node that has joined since keeps its number, if no other node has it; its tree is the backup's now.
            Place::Id(id) if is_new(id) => (),
            Place::Name(_) => changes.push(match decode::<Name>(&entry.value) {
                Ok(name) if is_new(name.id) => {
                    Do::Put { key, value: encode(&Name { tree: None, ..name }), lease: None }
                }
                _ => Do::Delete(Range::one(key)),
            }),
            _ => changes.push(Do::Delete(Range::one(key))),
        }
    }
    for (short, text) in texts.iter().filter(|(short, _)| !["state", "begun"].contains(&short.as_str())) {
        changes.push(Do::Put { key: key(short), value: packed(text.clone().into_bytes()), lease: None });
    }
    let revision = entries.iter().find(|entry| entry.key == keys.state()).map_or(0, |entry| entry.mod_revision);
    // A member that starts in the middle of the import must not take it for a new cluster.
    let mark = texts.get("begun").or(texts.get("format")).cloned().unwrap_or_default();
    let mark = Do::Put { key: keys.begun(), value: packed(mark.into_bytes()), lease: None };
    Ok(Repair { says, ops: ops(keys, (revision, mark), changes, &state) })
}

fn cannot(why: String) -> CannotRepair {
    CannotRepair { why, hint: "Give a file that `cosched cluster export` of this version wrote.".to_owned() }
}

/// Users' earlier requests must not be carried out on the imported state.
fn is_request(keys: &Keys, entry: &Entry) -> bool {
    matches!(keys.place(&entry.key), Place::Request(_) | Place::Reply(_))
}

fn number(keys: &Keys, entry: &Entry) -> Option<u64> {
    match keys.place(&entry.key) {
        Place::Job(id) => Some(id),
        Place::Node(_) => decode::<Node>(&entry.value).ok().map(|node| node.jobs_known),
        Place::State => decode::<State>(&entry.value).ok().map(|state| state.next_order),
        _ => None,
    }
}

fn ops(keys: &Keys, (revision, mark): (Revision, Do), changes: Vec<Do>, state: &State) -> Vec<Op> {
    let key = keys.state();
    let txn = |is: Revision, then: Vec<Do>| {
        Op::Txn(Txn { compare: vec![Compare::unchanged(key.clone(), is)], then, or_else: vec![] })
    };
    let mut ops = vec![txn(revision, vec![mark, Do::Delete(Range::one(key.clone()))])];
    let (mut then, mut bytes) = (Vec::new(), 0);
    for change in changes {
        let size = match &change {
            Do::Put { key, value, .. } => key.len() + value.len(),
            Do::Delete(range) | Do::Get(range) => range.first.len(),
        };
        if then.len() + 1 >= TXN_OPS_MAX || bytes + size > BYTES_MAX {
            ops.push(txn(0, std::mem::take(&mut then)));
            bytes = 0;
        }
        bytes += size;
        then.push(change);
    }
    ops.push(txn(0, then));
    ops.push(txn(0, vec![Do::Put { key: key.clone(), value: encode(state), lease: None }]));
    ops
}
