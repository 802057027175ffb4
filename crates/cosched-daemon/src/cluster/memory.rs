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

    /// A request that nobody waits for any more.
    pub(super) fn withdraw(&mut self, key: &str) {
        if let Kind::Own(store) = &mut self.store {
            store.withdraw(key);
            self.tell_watches();
        }
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
