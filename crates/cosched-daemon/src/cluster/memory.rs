//! A store that is not shared: a cluster of one node. Either it ends with the daemon, for trials and for tests, or its keys are in the machine's
//! state.

use super::FromStore;
use crate::store::{State, Store};
use cosched_cluster::OpId;
use cosched_cluster::store::{MemoryStore, News, Op, OpDone, Range, Revision, StoreError};
use cosched_core::Time;
use std::collections::BTreeMap;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// The error when a machine's store is used without its state being open, as by `--check`.
fn not_open() -> StoreError {
    StoreError::Unavailable("the state of this machine is not open".to_owned())
}

/// The state of the machine, which contains the keys of a single machine.
pub(crate) type Disk<'a> = (&'a mut Store, &'a State);

/// The store and its watches.
#[derive(Debug)]
pub(super) struct Memory {
    /// A store that ends with the daemon; `None`: the machine's own.
    forgetful: Option<(MemoryStore, Instant)>,
    watches: BTreeMap<OpId, (Range, Revision)>,
    to: UnboundedSender<FromStore>,
}

impl Memory {
    pub(super) fn new(to: UnboundedSender<FromStore>) -> Memory {
        let forgetful = Some((MemoryStore::new(), Instant::now()));
        Memory { forgetful, ..Memory::own(to) }
    }

    pub(super) fn own(to: UnboundedSender<FromStore>) -> Memory {
        Memory { forgetful: None, watches: BTreeMap::new(), to }
    }

    /// Carries out an operation and sends its result, then the news of the watches.
    pub(super) fn call(&mut self, id: OpId, op: Op, disk: Option<Disk<'_>>) {
        let watch = match &op {
            Op::Watch { range, from } => Some((range.clone(), *from)),
            _ => None,
        };
        let (mut disk, state) = disk.unzip();
        let done = match (&mut self.forgetful, &mut disk, state) {
            (Some((store, begin)), ..) => store.call(Time(begin.elapsed().as_nanos() as u64), op),
            (None, Some(disk), Some(state)) => disk.call(state, op),
            (None, ..) => Err(not_open()),
        };
        if let (Some(watch), Ok(OpDone::Watching)) = (watch, &done) {
            self.watches.insert(id, watch);
        }
        self.tell(FromStore::Done(id, done));
        self.tell_watches(disk.as_deref());
    }

    /// Removes a request that has no reply; returns whether it has none.
    pub(super) fn withdraw(&mut self, request: &str, reply: &str, disk: &mut Store) -> bool {
        let is_open = self.forgetful.is_none() && disk.withdraw(request, reply);
        if is_open {
            self.tell_watches(Some(disk));
        }
        is_open
    }

    pub(super) fn drop_watch(&mut self, id: OpId) {
        self.watches.remove(&id);
    }

    fn tell_watches(&mut self, disk: Option<&Store>) {
        let news = |range: &Range, from: Revision| -> Result<News, StoreError> {
            match (&self.forgetful, disk) {
                (Some((store, _)), _) => store.news(range, from),
                (None, disk) => disk.ok_or_else(not_open)?.news(range, from),
            }
        };
        let mut lost = Vec::new();
        for (id, (range, next)) in &mut self.watches {
            match news(range, *next) {
                Ok(news) => {
                    *next = news.revision + 1;
                    if !news.events.is_empty() {
                        let _ = self.to.send(FromStore::News(*id, news));
                    }
                }
                Err(why) => lost.push((*id, why)),
            }
        }
        for (id, why) in lost {
            self.watches.remove(&id);
            self.tell(FromStore::WatchLost(id, why));
        }
    }

    fn tell(&self, what: FromStore) {
        // The receiver may have been dropped; then the message is not needed.
        let _ = self.to.send(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_cluster::store::{Do, Txn};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    fn put(key: &str) -> Op {
        let then = vec![Do::Put { key: key.to_owned(), value: Vec::new(), lease: None }];
        Op::Txn(Txn { then, ..Txn::default() })
    }

    /// The messages received so far, in short.
    fn told(from: &mut UnboundedReceiver<FromStore>) -> Vec<String> {
        let short = |told| match told {
            FromStore::Done(id, done) => format!("{} {}", id.0, if done.is_ok() { "done" } else { "refused" }),
            FromStore::News(id, news) => {
                let keys: Vec<&str> = news.events.iter().map(|event| event.entry.key.as_str()).collect();
                format!("{} {}", id.0, keys.join(","))
            }
            FromStore::WatchLost(id, _) => format!("{} lost", id.0),
        };
        std::iter::from_fn(|| from.try_recv().ok()).map(short).collect()
    }

    #[test]
    fn a_watch_tells_of_its_keys_until_it_is_dropped() {
        let (to, mut from) = unbounded_channel();
        let mut memory = Memory::new(to);
        memory.call(OpId(1), put("a/1"), None);
        memory.call(OpId(2), Op::Watch { range: Range::prefix("a/"), from: 2 }, None);
        assert_eq!(told(&mut from), ["1 done", "2 done", "2 a/1"], "what was before it began, too");
        memory.call(OpId(3), put("b/1"), None);
        memory.call(OpId(4), put("a/2"), None);
        assert_eq!(told(&mut from), ["3 done", "4 done", "2 a/2"], "the answer comes first");
        memory.drop_watch(OpId(2));
        memory.call(OpId(5), put("a/3"), None);
        assert_eq!(told(&mut from), ["5 done"]);
    }

    #[test]
    fn what_a_watch_can_no_more_be_told_ends_it() {
        let (to, mut from) = unbounded_channel();
        let mut memory = Memory::new(to);
        memory.call(OpId(1), Op::Watch { range: Range::prefix("a/"), from: 2 }, None);
        memory.call(OpId(2), put("b/1"), None);
        let (store, _) = memory.forgetful.as_mut().unwrap();
        for _ in 0..3 {
            store.call(Time(0), put("b/2")).unwrap();
        }
        store.compact(store.revision()).unwrap();
        memory.call(OpId(3), put("a/1"), None);
        assert_eq!(told(&mut from), ["1 done", "2 done", "3 done", "1 lost"]);
        memory.call(OpId(4), put("a/2"), None);
        assert_eq!(told(&mut from), ["4 done"], "once");
    }
}
