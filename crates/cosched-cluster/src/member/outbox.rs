//! The requests of this daemon's users and of the node itself, written in order, each exactly once.
//!
//! Problem: a write whose answer is lost may have been carried out, may be carried out later, or never. Rule. Every write of requests
//! also changes `asked/<node>`, and is carried out only if that key is unchanged since it was last read. So a delayed write
//! has no effect when another one was carried out in between, and reading the key shows whether a write was.

use super::Member;
use super::session::Flight;
use super::types::{Action, AskId, Moment, NotTaken, Settings};
use crate::keys::{request_id, request_parts};
use crate::store::{Compare, Do, Done, Entry, Key, Op, Range, Revision, Txn};
use crate::wire::{Answer, Ask, By, Request, Written, decode, encode};
use std::collections::{BTreeSet, VecDeque};

/// The maximum number of requests, and of deleted replies, in one transaction.
const BATCH: usize = 50;

/// The maximum length of a request, in bytes; an environment may be long.
const REQUEST_BYTES_MAX: usize = 256 << 10;

/// The maximum size of a transaction's requests, in bytes.
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Waiting {
    sequence: u64,
    bytes: Vec<u8>,
    /// Whether a user waits for the answer.
    by_user: bool,
    about: Option<About>,
}

/// What a report of the node itself is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sleep,
    Dropped,
    Processes,
    Memory,
    Choice,
}

/// A state of a job on this node of which only the newest report counts.
type About = (State, u64);

fn about(ask: &Ask) -> Option<About> {
    match ask {
        Ask::Asleep { job, .. } | Ask::Awake { job, .. } => Some((State::Sleep, *job)),
        Ask::Dropped { job, .. } => Some((State::Dropped, *job)),
        Ask::Empty { job, .. } | Ask::Occupied { job, .. } => Some((State::Processes, *job)),
        Ask::Memory { job, .. } => Some((State::Memory, *job)),
        Ask::Choice { job, .. } => Some((State::Choice, *job)),
        _ => None,
    }
}

/// Requests that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    last: u64,
    /// Not known to be written yet.
    queue: VecDeque<Waiting>,
    /// Written, without an answer.
    written: BTreeSet<u64>,
    /// The revision of the last change of `asked/<node>`.
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
        Ok(AskId(self.push(bytes, true, None)))
    }

    /// A report of the node itself; it gets no answer. It replaces an older one about the same, so that those of a store that is away
    /// for long need no more memory than the jobs that they are about.
    pub(super) fn report(&mut self, settings: &Settings, now: Moment, ask: Ask) {
        let about = about(&ask);
        // A job that was dropped sleeps on when it wakes: that it slept before counts.
        let dropped = about.filter(|(state, _)| *state == State::Sleep).map(|(_, job)| (State::Dropped, job));
        let dropped = self.queue.iter().rev().find(|waiting| dropped.is_some() && waiting.about == dropped);
        let kept = dropped.map_or(0, |waiting| waiting.sequence);
        // Also one that is being written goes: what was written shows in the store, and no user waits for its answer.
        self.queue.retain(|waiting| about.is_none() || waiting.about != about || waiting.sequence < kept);
        let request = Request { origin: settings.name.clone(), by: None, at_ns: now.wall.0, ask };
        self.push(encode(&request), false, about);
    }

    fn push(&mut self, bytes: Vec<u8>, by_user: bool, about: Option<About>) -> u64 {
        self.last += 1;
        self.queue.push_back(Waiting { sequence: self.last, bytes, by_user, about });
        self.last
    }

    pub(super) fn unanswered(&self) -> usize {
        self.written.len() + self.queue.iter().filter(|waiting| waiting.by_user).count()
    }

    /// `asked/<node>` was read: it shows which requests were written.
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
    /// The keys of a user's request and of the reply to it, in the store.
    pub fn keys_of(&self, AskId(sequence): AskId) -> (Key, Key) {
        let Settings { keys, name, instance, .. } = &self.settings;
        let id = request_id(name, *instance, sequence);
        (keys.request(&id), keys.reply(&id))
    }

    /// A user's request that has no reply was removed from the store, if it was there. Only for a store without other planners, which
    /// might be about to carry it out.
    pub fn withdrawn(&mut self, AskId(sequence): AskId) {
        self.outbox.queue.retain(|waiting| waiting.sequence != sequence);
        self.outbox.written.remove(&sequence);
    }

    /// Writes waiting requests, and deletes replies that were read.
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

    /// A transaction of the outbox was carried out, or was not because `asked/<node>` had changed.
    pub(super) fn asks_written(
        &mut self,
        (upto, read): (u64, Vec<String>),
        revision: Revision,
        succeeded: bool,
        done: Vec<Done>,
    ) {
        if !succeeded {
            let entry = done.into_iter().flat_map(Done::entries).next();
            return self.outbox.found_written(&self.settings, entry.as_ref());
        }
        if upto > 0 {
            self.outbox.revision = revision;
            self.outbox.has_written(upto);
        }
        // The watch reports their deletion later; until then they must not be taken again.
        for id in read {
            self.outbox.read.remove(&id);
            self.replica.replies.remove(&id);
        }
    }

    /// Takes this node's replies from the copy of the store.
    pub(super) fn take_replies(&mut self) {
        let mut answers = Vec::new();
        for (id, reply) in &self.replica.replies {
            let Some((node, instance, sequence)) = request_parts(id) else { continue };
            if node != self.settings.name || self.outbox.read.contains(id) {
                continue;
            }
            // A reply to an earlier instance of this daemon is only deleted.
            if instance == self.settings.instance {
                // The reply may arrive before it is known that the request was written.
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

    /// The daemon no longer takes part. Which requests were carried out shows in the state.
    pub(super) fn abandon_asks(&mut self) {
        let queue = self.outbox.queue.drain(..).filter(|waiting| waiting.by_user).map(|waiting| waiting.sequence);
        let all = std::mem::take(&mut self.outbox.written).into_iter().chain(queue);
        self.actions.extend(all.map(|sequence| Action::Reply(AskId(sequence), Answer::Unknown)));
    }

    /// Requests that are neither in the store nor answered: the answer was deleted.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::tests::{Lab, S, USER, settings, submit};
    use crate::store::Revision;

    impl Outbox {
        /// The number of requests that wait to be written, or are written and not answered.
        pub(in crate::member) fn len(&self) -> usize {
            self.queue.len()
        }

        /// The newest request that waits to be written.
        pub(in crate::member) fn newest(&self) -> Option<Ask> {
            decode::<Request>(&self.queue.back()?.bytes).ok().map(|request| request.ask)
        }
    }

    fn asked(instance: u64, sequence: u64, mod_revision: Revision) -> Entry {
        let value = encode(&Written { instance, sequence });
        Entry { key: "asked".to_owned(), value, create_revision: 1, mod_revision, lease: None }
    }

    /// Three requests in progress: a user's, the node's own, a user's.
    fn three() -> Outbox {
        let (settings, now) = (settings("n0", 7), Moment::default());
        let mut outbox = Outbox::default();
        outbox.ask(&settings, now, USER, submit("a", 1)).unwrap();
        outbox.report(&settings, now, Ask::PartLost { job: 1, attempt: 0 });
        outbox.ask(&settings, now, USER, submit("b", 1)).unwrap();
        outbox
    }

    #[test]
    fn what_the_store_has_is_not_written_again_and_what_another_daemon_wrote_does_not_count() {
        let settings = settings("n0", 7);
        let mut outbox = three();
        outbox.found_written(&settings, Some(&asked(6, 9, 20)));
        assert_eq!((outbox.queue.len(), outbox.written.len(), outbox.revision), (3, 0, 20));
        outbox.found_written(&settings, Some(&asked(7, 2, 21)));
        assert_eq!((outbox.queue.len(), outbox.written.len(), outbox.revision), (1, 1, 21), "one of two was a user's");
        assert_eq!(outbox.unanswered(), 2);
        outbox.found_written(&settings, None);
        assert_eq!((outbox.queue.len(), outbox.revision), (1, 0));
    }

    #[test]
    fn so_many_requests_of_users_wait_and_the_nodes_own_are_not_counted() {
        let now = Moment::default();
        let settings = Settings { asks_max: 2, ..settings("n0", 7) };
        let mut outbox = three();
        assert_eq!(outbox.ask(&settings, now, USER, submit("c", 1)), Err(NotTaken::TooManyWait(2)));
        outbox.report(&settings, now, Ask::PartLost { job: 2, attempt: 0 });
        assert_eq!(outbox.queue.len(), 4);
    }

    #[test]
    fn of_reports_about_the_same_the_newest_waits() {
        let (settings, now) = (settings("n0", 7), Moment::default());
        let mut outbox = three();
        for bytes in 0..1000 {
            outbox.report(&settings, now, Ask::Memory { job: 1, attempt: 0, bytes });
            outbox.report(&settings, now, Ask::Memory { job: 2, attempt: 0, bytes });
            outbox.report(&settings, now, Ask::Asleep { job: 1, attempt: 0 });
            outbox.report(&settings, now, Ask::Awake { job: 1, attempt: 0 });
        }
        assert_eq!((outbox.queue.len(), outbox.newest()), (6, Some(Ask::Awake { job: 1, attempt: 0 })));
        let last = outbox.last;
        outbox.found_written(&settings, Some(&asked(7, last - 1, 20)));
        assert_eq!(outbox.queue.len(), 1, "what was written is not written again");
    }

    #[test]
    fn that_a_dropped_job_slept_is_reported_although_it_wakes() {
        let (settings, now) = (settings("n0", 7), Moment::default());
        let mut outbox = Outbox::default();
        let [asleep, dropped, awake] = [
            Ask::Asleep { job: 1, attempt: 0 },
            Ask::Dropped { job: 1, attempt: 0 },
            Ask::Awake { job: 1, attempt: 0 },
        ];
        for ask in [&awake, &asleep, &dropped, &awake, &asleep, &awake] {
            outbox.report(&settings, now, ask.clone());
        }
        let asks = outbox.queue.iter().map(|waiting| decode::<Request>(&waiting.bytes).unwrap().ask);
        assert_eq!(asks.collect::<Vec<_>>(), [asleep, dropped, awake]);
    }

    #[test]
    fn what_would_not_fit_into_the_store_is_refused_at_once() {
        let mut long = crate::member::tests::job("a", 1);
        // Random bytes, which cannot be compressed.
        let mut seed = 1_u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'#' + (seed >> 40) as u8 % 57)
        };
        long.environment = vec![("A".to_owned(), (0..2 * REQUEST_BYTES_MAX).map(|_| noise()).collect())];
        let ask = Ask::Submit(Box::new(long));
        let refused = Outbox::default().ask(&settings("n0", 7), Moment::default(), USER, ask);
        assert!(matches!(refused, Err(NotTaken::TooLarge { .. })), "{refused:?}");
    }

    #[test]
    fn requests_are_written_on_the_condition_that_no_others_were_since() {
        let mut lab = Lab::new(1);
        for name in ["a", "b"] {
            let known = lab.seats[0].member.outbox.revision;
            lab.seats[0].ops.clear();
            lab.asks(0, USER, submit(name, 1));
            let key = lab.seats[0].member.settings.keys.asked("n0");
            let written =
                crate::member::tests::txns(&lab.seats[0]).find(|txn| crate::member::tests::puts(txn, "/asked/n0"));
            let written = written.unwrap();
            assert_eq!(written.compare, [Compare::unchanged(key.clone(), known)]);
            assert_eq!(written.or_else, [Do::Get(Range::one(key))]);
        }
    }

    /// The answer to the write is lost, and the request is carried out once.
    #[test]
    fn a_request_whose_writing_was_not_answered_is_not_made_twice() {
        let mut lab = Lab::new(1);
        let now = lab.moment();
        lab.seats[0].member.ask(now, USER, submit("a", 1)).unwrap();
        lab.pass_until(0, |op| matches!(op, Op::Txn(txn) if crate::member::tests::puts(txn, "/asked/n0")));
        lab.does_unseen(0);
        lab.pass(3 * S);
        lab.let_through(0);
        lab.pass(3 * S);
        assert!(lab.seats[0].member.is_joined());
        assert_eq!(lab.seats[0].member.jobs().count(), 1);
        assert_eq!(lab.seats[0].member.unanswered(), 0);
    }

    /// A user who made a request gets an answer, even if the reply was deleted.
    #[test]
    fn a_request_that_is_neither_there_nor_answered_has_an_unknown_end() {
        let mut lab = Lab::new(1);
        let member = &mut lab.seats[0].member;
        member.outbox.written.insert(77);
        member.changed();
        assert_eq!(member.poll_action(), Some(Action::Reply(AskId(77), Answer::Unknown)));
        assert_eq!(member.unanswered(), 0);
    }

    #[test]
    fn answers_of_an_earlier_life_are_cleared_away_and_given_to_nobody() {
        let mut lab = Lab::new(1);
        let keys = lab.seats[0].member.settings.keys.clone();
        let reply = crate::wire::Reply { at_ns: 0, answer: Answer::Done };
        for id in [request_id("n0", 99, 1), request_id("n1", 1, 1)] {
            let put = Do::Put { key: keys.reply(&id), value: encode(&reply), lease: None };
            lab.store.call(lab.now, Op::Txn(Txn { then: vec![put], ..Txn::default() })).unwrap();
        }
        lab.seats[0].said.clear();
        lab.settle();
        let left = lab.store.read(&Range::prefix(&format!("{}replies/", keys.prefix())));
        assert_eq!(left.len(), 1, "another node's is another's: {left:?}");
        assert!(!lab.seats[0].said.iter().any(|action| matches!(action, Action::Reply(..))));
    }
}
