//! What this daemon's users and the node itself ask for, in order, each exactly once.
//!
//! Problem: a write whose answer is lost may have been done, may be done later, or never. Rule. Every write of requests
//! also moves `asked/<node>` on, and is done only if that key has not moved since it was last read. So a write that was
//! delayed comes to nothing when another one was done in between, and reading the key tells whether it was done.

use super::Member;
use super::session::Flight;
use super::types::{Action, AskId, Moment, NotTaken, Settings};
use crate::keys::{request_id, request_parts};
use crate::store::{Compare, Do, Done, Entry, Op, Range, Revision, Txn};
use crate::wire::{Answer, Ask, By, Request, Written, decode, encode};
use std::collections::{BTreeSet, VecDeque};

/// So many requests go into one transaction, and so many replies are cleared away by it.
const BATCH: usize = 50;

/// The longest request, in bytes: an environment may be long.
const REQUEST_BYTES_MAX: usize = 256 << 10;

/// The bytes of a transaction's requests.
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Waiting {
    sequence: u64,
    bytes: Vec<u8>,
    /// Whether somebody waits for an answer.
    by_user: bool,
}

/// Requests on their way.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    last: u64,
    /// Not written yet, as far as is known.
    queue: VecDeque<Waiting>,
    /// Written, without an answer.
    written: BTreeSet<u64>,
    /// When `asked/<node>` was last changed.
    revision: Revision,
    /// Replies that were read.
    read: BTreeSet<String>,
}

impl Outbox {
    pub(super) fn ask(&mut self, settings: &Settings, now: Moment, by: By, ask: Ask) -> Result<AskId, NotTaken> {
        if self.unanswered() >= settings.asks_max {
            return Err(NotTaken::TooManyWait(self.unanswered()));
        }
        let request = Request { origin: settings.name.clone(), by: Some(by), at_ns: now.wall.0, ask };
        let bytes = encode(&request);
        if bytes.len() > REQUEST_BYTES_MAX {
            return Err(NotTaken::TooLarge { bytes: bytes.len(), most: REQUEST_BYTES_MAX });
        }
        Ok(AskId(self.push(bytes, true)))
    }

    /// The node itself says something; nobody waits for an answer.
    pub(super) fn report(&mut self, settings: &Settings, now: Moment, ask: Ask) {
        let request = Request { origin: settings.name.clone(), by: None, at_ns: now.wall.0, ask };
        self.push(encode(&request), false);
    }

    fn push(&mut self, bytes: Vec<u8>, by_user: bool) -> u64 {
        self.last += 1;
        self.queue.push_back(Waiting { sequence: self.last, bytes, by_user });
        self.last
    }

    pub(super) fn unanswered(&self) -> usize {
        self.written.len() + self.queue.iter().filter(|waiting| waiting.by_user).count()
    }

    /// `asked/<node>` was read: tells what was written.
    pub(super) fn found_written(&mut self, settings: &Settings, entry: Option<&Entry>) {
        self.revision = entry.map_or(0, |entry| entry.mod_revision);
        let Some(Ok(written)) = entry.map(|entry| decode::<Written>(&entry.value)) else { return };
        if written.instance == settings.instance {
            self.has_written(written.sequence);
        }
    }

    fn has_written(&mut self, upto: u64) {
        let done = self.queue.partition_point(|waiting| waiting.sequence <= upto);
        let done = self.queue.drain(..done).filter(|waiting| waiting.by_user);
        self.written.extend(done.map(|waiting| waiting.sequence));
    }
}

impl Member {
    /// A user's request is not to be carried out any more: its key, if it is in the store already and may be deleted there. Only where
    /// nobody else plans: others may be about to carry it out.
    pub fn withdraw(&mut self, AskId(sequence): AskId) -> Option<crate::store::Key> {
        self.outbox.queue.retain(|waiting| waiting.sequence != sequence);
        let Settings { keys, name, instance, .. } = &self.settings;
        let written = self.outbox.written.remove(&sequence);
        written.then(|| keys.request(&request_id(name, *instance, sequence)))
    }

    /// Writes what waits, and clears away replies that were read.
    pub(super) fn pump_outbox(&mut self) {
        let idle = self.outbox.queue.is_empty() && self.outbox.read.is_empty();
        if idle || self.is_under_way(|flight| matches!(flight, Flight::Asks(..))) {
            return;
        }
        let Settings { keys, name, instance, .. } = &self.settings;
        let asked = keys.asked(name);
        let mut txn = Txn::default();
        let (mut upto, mut bytes) = (0, 0);
        for waiting in self.outbox.queue.iter().take(BATCH) {
            if upto > 0 && bytes + waiting.bytes.len() > BATCH_BYTES {
                break;
            }
            (upto, bytes) = (waiting.sequence, bytes + waiting.bytes.len());
            let key = keys.request(&request_id(name, *instance, waiting.sequence));
            txn.then.push(Do::Put { key, value: waiting.bytes.clone(), lease: None });
        }
        if upto > 0 {
            let value = encode(&Written { instance: *instance, sequence: upto });
            txn.then.push(Do::Put { key: asked.clone(), value, lease: None });
            txn.compare.push(Compare::unchanged(asked.clone(), self.outbox.revision));
            txn.or_else.push(Do::Get(Range::one(asked)));
        }
        let read: Vec<String> = self.outbox.read.iter().take(BATCH).cloned().collect();
        for id in &read {
            txn.then.push(Do::Delete(Range::one(keys.reply(id))));
        }
        self.send(Flight::Asks(upto, read), Op::Txn(txn));
    }

    /// A transaction of the outbox is done, or was not because `asked/<node>` had moved.
    pub(super) fn asks_written(
        &mut self,
        (upto, read): (u64, Vec<String>),
        revision: Revision,
        succeeded: bool,
        done: Vec<Done>,
    ) {
        if !succeeded {
            let entries = done.into_iter().find_map(|done| match done {
                Done::Got(entries) => Some(entries),
                _ => None,
            });
            let entry = entries.unwrap_or_default().pop();
            return self.outbox.found_written(&self.settings, entry.as_ref());
        }
        if upto > 0 {
            self.outbox.revision = revision;
            self.outbox.has_written(upto);
        }
        // The watch tells of their deletion; until then they are not to be read again.
        for id in read {
            self.outbox.read.remove(&id);
            self.replica.replies.remove(&id);
        }
    }

    /// Takes the replies that are there for this node.
    pub(super) fn take_replies(&mut self) {
        let mut answers = Vec::new();
        for (id, reply) in &self.replica.replies {
            let Some((node, instance, sequence)) = request_parts(id) else { continue };
            if node != self.settings.name || self.outbox.read.contains(id) {
                continue;
            }
            // One for an earlier life of this daemon is only cleared away.
            if instance == self.settings.instance {
                // The reply may be there before it is known that the request was written.
                self.outbox.has_written(sequence);
                if self.outbox.written.remove(&sequence) {
                    answers.push((sequence, reply.answer.clone()));
                }
            }
            self.outbox.read.insert(id.clone());
        }
        self.lost_replies(&mut answers);
        answers.sort_unstable_by_key(|(sequence, _)| *sequence);
        let reply = |(sequence, answer)| Action::Reply(AskId(sequence), answer);
        self.actions.extend(answers.into_iter().map(reply));
    }

    /// The daemon takes no part any more. What came of requests shows in what is.
    pub(super) fn abandon_asks(&mut self) {
        let queue = self.outbox.queue.drain(..).filter(|waiting| waiting.by_user).map(|waiting| waiting.sequence);
        let all = std::mem::take(&mut self.outbox.written).into_iter().chain(queue);
        self.actions.extend(all.map(|sequence| Action::Reply(AskId(sequence), Answer::Unknown)));
    }

    /// Requests that are neither there nor answered: somebody has cleared the answer away.
    fn lost_replies(&mut self, answers: &mut Vec<(u64, Answer)>) {
        if self.outbox.written.is_empty() || self.outbox.revision > self.replica.revision {
            return;
        }
        let own = |(_, id): &(Revision, String)| {
            let (node, instance, sequence) = request_parts(id)?;
            (node == self.settings.name && instance == self.settings.instance).then_some(sequence)
        };
        let there: BTreeSet<u64> = self.replica.requests.keys().filter_map(own).collect();
        let lost: Vec<u64> = self.outbox.written.difference(&there).copied().collect();
        for sequence in lost {
            self.outbox.written.remove(&sequence);
            answers.push((sequence, Answer::Unknown));
        }
    }
}
