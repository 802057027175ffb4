//! A store that nobody shares: a cluster of one node. It ends with the daemon, for trying out and for tests, or lies in a
//! file.

use super::FromStore;
use super::own::OwnStore;
use cosched_cluster::OpId;
use cosched_cluster::store::{MemoryStore, News, Op, OpDone, Range, Revision, StoreError};
use cosched_core::Time;
use std::collections::BTreeMap;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// The store and its watches.
#[derive(Debug)]
pub(super) struct Memory {
    store: Kind,
    watches: BTreeMap<OpId, (Range, Revision)>,
    to: UnboundedSender<FromStore>,
}

#[derive(Debug)]
enum Kind {
    Forgetful(MemoryStore, Instant),
    Own(Box<OwnStore>),
}

impl Memory {
    pub(super) fn new(to: UnboundedSender<FromStore>) -> Memory {
        Memory { store: Kind::Forgetful(MemoryStore::new(), Instant::now()), watches: BTreeMap::new(), to }
    }

    pub(super) fn own(store: OwnStore, to: UnboundedSender<FromStore>) -> Memory {
        Memory { store: Kind::Own(Box::new(store)), watches: BTreeMap::new(), to }
    }

    /// Does an operation and tells what came of it, then what the watches see.
    pub(super) fn call(&mut self, id: OpId, op: Op) {
        let watch = match &op {
            Op::Watch { range, from } => Some((range.clone(), *from)),
            _ => None,
        };
        let done = match &mut self.store {
            Kind::Forgetful(store, begin) => store.call(Time(begin.elapsed().as_nanos() as u64), op),
            Kind::Own(store) => store.call(op),
        };
        if let (Some(watch), Ok(OpDone::Watching)) = (watch, &done) {
            self.watches.insert(id, watch);
        }
        self.tell(FromStore::Done(id, done));
        self.tell_watches();
    }

    pub(super) fn drop_watch(&mut self, id: OpId) {
        self.watches.remove(&id);
    }

    fn tell_watches(&mut self) {
        let mut lost = Vec::new();
        for (id, (range, next)) in &mut self.watches {
            match self.store.news(range, *next) {
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
        // Whoever listens may have gone; then nobody wants to know.
        let _ = self.to.send(what);
    }
}

impl Kind {
    fn news(&self, range: &Range, from: Revision) -> Result<News, StoreError> {
        match self {
            Kind::Forgetful(store, _) => store.news(range, from),
            Kind::Own(store) => store.news(range, from),
        }
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

    /// What was told since, in short.
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
        memory.call(OpId(1), put("a/1"));
        memory.call(OpId(2), Op::Watch { range: Range::prefix("a/"), from: 2 });
        assert_eq!(told(&mut from), ["1 done", "2 done", "2 a/1"], "what was before it began, too");
        memory.call(OpId(3), put("b/1"));
        memory.call(OpId(4), put("a/2"));
        assert_eq!(told(&mut from), ["3 done", "4 done", "2 a/2"], "the answer comes first");
        memory.drop_watch(OpId(2));
        memory.call(OpId(5), put("a/3"));
        assert_eq!(told(&mut from), ["5 done"]);
    }

    #[test]
    fn what_a_watch_can_no_more_be_told_ends_it() {
        let (to, mut from) = unbounded_channel();
        let mut memory = Memory::new(to);
        memory.call(OpId(1), Op::Watch { range: Range::prefix("a/"), from: 2 });
        memory.call(OpId(2), put("b/1"));
        let Kind::Forgetful(store, _) = &mut memory.store else { panic!() };
        for _ in 0..3 {
            store.call(Time(0), put("b/2")).unwrap();
        }
        store.compact(store.revision()).unwrap();
        memory.call(OpId(3), put("a/1"));
        assert_eq!(told(&mut from), ["1 done", "2 done", "3 done", "1 lost"]);
        memory.call(OpId(4), put("a/2"));
        assert_eq!(told(&mut from), ["4 done"], "once");
    }
}
