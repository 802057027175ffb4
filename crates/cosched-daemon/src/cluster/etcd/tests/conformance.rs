//! The same tests for the store in memory and for etcd: the properties on which the control plane relies hold for both.

use super::super::proto;
use super::{Client, FromStore, Server, with_etcd};
use cosched_cluster::store::{
    Compare, Do, Done, Event, LeaseId, MemoryStore, Op, OpDone, Range, Revision, StoreError, Txn,
};
use cosched_core::Time;
use prost::Message;
use std::time::Duration;

/// A store under test.
trait Arm {
    async fn call(&mut self, op: Op) -> Result<OpDone, StoreError>;
    async fn wait(&mut self, ms: u64);
    /// The first `many` changes since a revision.
    async fn news(&mut self, range: Range, from: Revision, many: usize) -> Result<Vec<Event>, StoreError>;
    async fn compact(&mut self, to: Revision);
}

struct Memory {
    store: MemoryStore,
    now: Time,
}

impl Arm for Memory {
    async fn call(&mut self, op: Op) -> Result<OpDone, StoreError> {
        self.store.call(self.now, op)
    }

    async fn wait(&mut self, ms: u64) {
        self.now = self.now + ms * 1_000_000;
        self.store.expire(self.now);
    }

    async fn news(&mut self, range: Range, from: Revision, many: usize) -> Result<Vec<Event>, StoreError> {
        let news = self.store.news(&range, from)?;
        assert_eq!(news.events.len(), many);
        Ok(news.events)
    }

    async fn compact(&mut self, to: Revision) {
        self.store.compact(to).unwrap();
    }
}

#[derive(Clone, PartialEq, Message)]
struct CompactionRequest {
    #[prost(int64, tag = "1")]
    revision: i64,
}

impl Arm for Client {
    async fn call(&mut self, op: Op) -> Result<OpDone, StoreError> {
        Client::call(self, op).await
    }

    async fn wait(&mut self, ms: u64) {
        // etcd checks for expired leases every half second.
        tokio::time::sleep(Duration::from_millis(ms + 1000)).await;
    }

    async fn news(&mut self, range: Range, from: Revision, many: usize) -> Result<Vec<Event>, StoreError> {
        let watch = self.begin(Op::Watch { range, from });
        let mut events = Vec::new();
        while events.len() < many || many == 0 {
            match self.told().await {
                FromStore::Done(id, Ok(OpDone::Watching)) if id == watch => (),
                FromStore::News(id, news) if id == watch => {
                    assert_eq!(news.events.last().map(|event| event.entry.mod_revision), Some(news.revision));
                    events.extend(news.events);
                }
                FromStore::Done(id, Err(e)) | FromStore::WatchLost(id, e) if id == watch => return Err(e),
                other => panic!("{other:?}"),
            }
        }
        self.etcd.drop_watch(watch);
        assert_eq!(events.len(), many);
        Ok(events)
    }

    async fn compact(&mut self, to: Revision) {
        let request = CompactionRequest { revision: to as i64 };
        let done: Result<proto::LeaseRevokeResponse, _> =
            self.etcd.wire.unary("/etcdserverpb.KV/Compact", request).await;
        assert!(done.is_ok());
    }
}

fn put(key: &str, value: &str, lease: Option<LeaseId>) -> Do {
    Do::Put { key: key.to_owned(), value: value.as_bytes().to_vec(), lease }
}

async fn txn(
    arm: &mut impl Arm,
    compare: Vec<Compare>,
    then: Vec<Do>,
) -> Result<(Revision, bool, Vec<Done>), StoreError> {
    let or_else = vec![Do::Get(Range::one("k/a"))];
    match arm.call(Op::Txn(Txn { compare, then, or_else })).await? {
        OpDone::Txn { revision, succeeded, done } => Ok((revision, succeeded, done)),
        other => panic!("{other:?}"),
    }
}

/// Value, revision of its creation and of its last change, lease.
type Seen = Option<(String, Revision, Revision, Option<LeaseId>)>;

async fn get(arm: &mut impl Arm, key: &str) -> Seen {
    let (_, _, done) = txn(arm, vec![], vec![Do::Get(Range::one(key))]).await.unwrap();
    let [Done::Got(entries)] = &done[..] else { panic!("{done:?}") };
    let seen = |entry: &cosched_cluster::store::Entry| {
        let value = String::from_utf8(entry.value.clone()).unwrap();
        (value, entry.create_revision, entry.mod_revision, entry.lease)
    };
    entries.first().map(seen)
}

async fn revisions_and_conditions(arm: &mut impl Arm) {
    let absent = || vec![Compare::absent("k/a".to_owned())];
    assert_eq!(txn(arm, absent(), vec![put("k/a", "1", None)]).await, Ok((2, true, vec![Done::Put])), "begins at 1");
    let (revision, succeeded, done) = txn(arm, absent(), vec![put("k/a", "2", None)]).await.unwrap();
    assert_eq!((revision, succeeded), (2, false));
    assert!(matches!(&done[..], [Done::Got(got)] if got[0].value == b"1" && got[0].key == "k/a"), "{done:?}");
    let read = |at| vec![Compare::unchanged("k/a".to_owned(), at)];
    assert_eq!(txn(arm, read(2), vec![put("k/a", "3", None)]).await, Ok((3, true, vec![Done::Put])));
    let (_, succeeded, _) = txn(arm, read(2), vec![put("k/a", "4", None)]).await.unwrap();
    assert!(!succeeded, "somebody else was first");
    assert_eq!(get(arm, "k/a").await, Some(("3".to_owned(), 2, 3, None)));

    // In one transaction: one revision, and keys deleted earlier in it are not seen.
    let many =
        vec![put("k/b", "b", None), Do::Delete(Range::one("k/a")), put("k/c", "", None), Do::Get(Range::prefix("k/"))];
    let (revision, _, done) = txn(arm, vec![], many).await.unwrap();
    assert_eq!((revision, &done[..3]), (4, &[Done::Put, Done::Deleted(1), Done::Put][..]));
    let Done::Got(got) = &done[3] else { panic!() };
    assert_eq!(
        got.iter().map(|entry| (&entry.key[..], entry.mod_revision)).collect::<Vec<_>>(),
        [("k/b", 4), ("k/c", 4)]
    );
    // Reading, and deleting a missing key, is no change; putting the same value is one.
    assert_eq!(txn(arm, vec![], vec![Do::Delete(Range::prefix("x/"))]).await, Ok((4, true, vec![Done::Deleted(0)])));
    assert_eq!(txn(arm, vec![], vec![put("k/c", "", None)]).await, Ok((5, true, vec![Done::Put])));
    assert_eq!(txn(arm, vec![], vec![put("k/a", "5", None)]).await, Ok((6, true, vec![Done::Put])));
    assert_eq!(get(arm, "k/a").await, Some(("5".to_owned(), 6, 6, None)), "made anew");
}

async fn limits(arm: &mut impl Arm) {
    let before = get(arm, "k/a").await;
    let refused = |op: Vec<Do>| (vec![], op);
    let many = (0..129).map(|n| put(&format!("m/{n}"), "", None)).collect();
    let large = put("k/a", &"x".repeat(1_600_000), None);
    for ((compare, then), expected) in [
        (refused(vec![put("k/a", "1", None), put("k/a", "2", None)]), StoreError::DuplicateKey),
        (refused(vec![put("k/a", "1", None), Do::Delete(Range::prefix("k/"))]), StoreError::DuplicateKey),
        (refused(many), StoreError::TooManyOps),
        (refused(vec![large]), StoreError::TooLarge),
        (refused(vec![put("k/a", "1", Some(LeaseId(77)))]), StoreError::LeaseNotFound),
    ] {
        assert_eq!(txn(arm, compare, then).await, Err(expected));
    }
    assert_eq!(get(arm, "k/a").await, before, "nothing was changed");
    let most = (0..128).map(|n| put(&format!("m/{n}"), "", None)).collect();
    assert!(txn(arm, vec![], most).await.is_ok());
    assert_eq!(txn(arm, vec![], vec![Do::Delete(Range::prefix("m/"))]).await.unwrap().2, [Done::Deleted(128)]);
}

async fn grant(arm: &mut impl Arm) -> (LeaseId, u64) {
    match arm.call(Op::Grant { ttl_s: 1 }).await.unwrap() {
        OpDone::Granted { lease, ttl_s, .. } => (lease, ttl_s),
        other => panic!("{other:?}"),
    }
}

async fn leases(arm: &mut impl Arm) {
    let (lease, ttl_s) = grant(arm).await;
    assert_eq!(ttl_s, 2, "no shorter one is given");
    let with = vec![put("l/a", "", Some(lease)), put("l/b", "", Some(lease)), put("l/c", "", Some(lease))];
    let (revision, _, _) = txn(arm, vec![], with).await.unwrap();
    assert_eq!(get(arm, "l/a").await.unwrap().3, Some(lease));
    // A key that is put again without the lease stays.
    txn(arm, vec![], vec![put("l/c", "", None)]).await.unwrap();
    let kept = arm.call(Op::KeepAlive(lease)).await.unwrap();
    assert_eq!(kept, OpDone::KeptAlive { ttl_s: 2 });
    arm.wait(2500).await;
    assert_eq!((get(arm, "l/a").await, get(arm, "l/b").await), (None, None), "run out");
    let stays = get(arm, "l/c").await.unwrap();
    assert_eq!(stays.3, None);
    let events = arm.news(Range::prefix("l/"), revision + 2, 2).await.unwrap();
    assert!(events.iter().all(|event| event.deleted && event.entry.mod_revision == revision + 2), "{events:?}");
    let gone = arm.call(Op::KeepAlive(lease)).await.unwrap();
    assert!(matches!(gone, OpDone::KeptAlive { ttl_s: 0 }), "{gone:?}");
    assert_eq!(arm.call(Op::Revoke(lease)).await, Ok(OpDone::Revoked), "not there: nothing to do");
    let (lease, _) = grant(arm).await;
    txn(arm, vec![], vec![put("l/d", "", Some(lease))]).await.unwrap();
    assert_eq!(arm.call(Op::Revoke(lease)).await, Ok(OpDone::Revoked));
    assert_eq!(get(arm, "l/d").await, None);
}

async fn watches(arm: &mut impl Arm) {
    let (first, _, _) = txn(arm, vec![], vec![put("w/a", "1", None), put("v/a", "1", None)]).await.unwrap();
    txn(arm, vec![], vec![put("w/b", "2", None), Do::Delete(Range::one("w/a"))]).await.unwrap();
    let (last, _, _) = txn(arm, vec![], vec![put("w/a", "3", None)]).await.unwrap();
    let events = arm.news(Range::prefix("w/"), first, 4).await.unwrap();
    let told: Vec<(&str, &[u8], bool, u64)> = events
        .iter()
        .map(|event| (&event.entry.key[..], &event.entry.value[..], event.deleted, event.entry.mod_revision - first))
        .collect();
    let expected: [(&str, &[u8], bool, u64); 4] =
        [("w/a", b"1", false, 0), ("w/b", b"2", false, 1), ("w/a", b"", true, 1), ("w/a", b"3", false, 2)];
    assert_eq!(told, expected);
    assert_eq!(arm.news(Range::one("w/b"), first + 1, 1).await.unwrap().len(), 1, "one key alone");
    arm.compact(last).await;
    assert_eq!(arm.news(Range::prefix("w/"), first, 0).await, Err(StoreError::Compacted(last)));
    txn(arm, vec![], vec![put("w/a", "4", None)]).await.unwrap();
    assert_eq!(arm.news(Range::prefix("w/"), last + 1, 1).await.unwrap().len(), 1);
}

async fn behaves(arm: &mut impl Arm) {
    revisions_and_conditions(arm).await;
    limits(arm).await;
    leases(arm).await;
    watches(arm).await;
}

#[test]
fn the_store_in_memory_behaves() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(behaves(&mut Memory { store: MemoryStore::new(), now: Time(0) }));
}

#[test]
fn etcd_behaves() {
    with_etcd(|| async {
        let server = Server::start();
        behaves(&mut Client::of(&server.config()).await).await;
    });
}
