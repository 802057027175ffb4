//! Conversions of messages, without an etcd.

use super::*;

fn kv(key: &str, revision: i64, lease: i64) -> proto::KeyValue {
    let (key, value) = (key.as_bytes().to_vec(), b"v".to_vec());
    proto::KeyValue { key, create_revision: revision - 1, mod_revision: revision, value, lease }
}

/// The member's next step depends on it: wait and try again, request another lease, or report a problem.
#[test]
fn each_refusal_of_etcd_has_its_meaning() {
    let means = |code, text: &str| error(&Status::new(code, text));
    assert_eq!(means(Code::NotFound, "etcdserver: requested lease not found"), StoreError::LeaseNotFound);
    let many = "etcdserver: too many operations in txn request";
    assert_eq!(means(Code::InvalidArgument, many), StoreError::TooManyOps);
    assert_eq!(means(Code::InvalidArgument, "etcdserver: request is too large"), StoreError::TooLarge);
    let large = "grpc: received message larger than max (2097169 vs. 2097152)";
    assert_eq!(means(Code::ResourceExhausted, large), StoreError::TooLarge);
    let twice = "etcdserver: duplicate key given in txn request";
    assert_eq!(means(Code::InvalidArgument, twice), StoreError::DuplicateKey);
    let old = "etcdserver: mvcc: required revision has been compacted";
    assert_eq!(means(Code::OutOfRange, old), StoreError::Compacted(0));
    let future = "etcdserver: mvcc: required revision is a future revision";
    assert_eq!(means(Code::OutOfRange, future), StoreError::FutureRevision);
}

#[test]
fn who_is_refused_hears_what_to_do() {
    for (text, hint) in [
        ("etcdserver: authentication failed, invalid user ID or password", "check `user` and the password"),
        ("etcdserver: user name is empty", "set `user` and `password_file`"),
        ("etcdserver: permission denied", "grant-permission"),
    ] {
        let told = error(&Status::permission_denied(text));
        assert!(matches!(&told, StoreError::Denied(why) if why.contains(hint)), "{text}: {told:?}");
    }
    let full = error(&Status::resource_exhausted("etcdserver: mvcc: database space exceeded"));
    assert!(matches!(&full, StoreError::Fault(why) if why.contains("etcdctl alarm disarm")), "{full:?}");
    let corrupt = error(&Status::data_loss("etcdserver: corrupt cluster"));
    assert!(matches!(corrupt, StoreError::Fault(_)), "{corrupt:?}");
}

/// It is unknown whether the operation was carried out: it is tried again, and no user is told to change anything.
#[test]
fn what_is_no_answer_of_etcd_is_a_store_that_cannot_be_reached() {
    for status in [
        Status::unavailable("etcdserver: leader changed"),
        Status::unavailable("tcp connect error"),
        Status::deadline_exceeded("etcdserver: request timed out"),
        Status::unknown("something new"),
    ] {
        assert!(matches!(error(&status), StoreError::Unavailable(_)), "{status:?}");
    }
    for text in ["invalid peer certificate: UnknownIssuer", "received fatal alert: BadCertificate"] {
        let told = error(&Status::unavailable(text));
        assert!(matches!(&told, StoreError::Denied(why) if why.contains("`ca_file`")), "{told:?}");
    }
}

#[test]
fn conditions_and_operations_are_those_that_were_meant() {
    let asked = txn(Txn {
        compare: vec![Compare::absent("a".to_owned()), Compare::unchanged("b".to_owned(), 7)],
        then: vec![
            Do::Put { key: "k".to_owned(), value: vec![1], lease: Some(LeaseId(9)) },
            Do::Delete(Range::prefix("p/")),
        ],
        or_else: vec![Do::Get(Range::one("k"))],
    });
    let told: Vec<_> = asked.compare.iter().map(|c| (c.result, c.target, c.key.clone(), c.with.clone())).collect();
    let equal = proto::EQUAL;
    let created = (equal, proto::TARGET_CREATE, b"a".to_vec(), Some(CompareWith::CreateRevision(0)));
    let changed = (equal, proto::TARGET_MOD, b"b".to_vec(), Some(CompareWith::ModRevision(7)));
    assert_eq!(told, [created, changed]);
    let puts = AnyRequest::Put(proto::PutRequest { key: b"k".to_vec(), value: vec![1], lease: 9 });
    assert_eq!(asked.success[0].request, Some(puts));
    let deletes = proto::DeleteRangeRequest { key: b"p/".to_vec(), range_end: b"p0".to_vec() };
    assert_eq!(asked.success[1].request, Some(AnyRequest::DeleteRange(deletes)));
    let gets = proto::RangeRequest { key: b"k".to_vec(), range_end: Vec::new() };
    assert_eq!(asked.failure[0].request, Some(AnyRequest::Range(gets)));
}

#[test]
fn what_was_done_is_told_as_it_was() {
    let response = |any| proto::ResponseOp { response: Some(any) };
    let done = txn_done(proto::TxnResponse {
        header: Some(proto::Header { revision: 42 }),
        succeeded: true,
        responses: vec![
            response(AnyResponse::Put(proto::PutResponse {})),
            response(AnyResponse::DeleteRange(proto::DeleteRangeResponse { deleted: 3 })),
            response(AnyResponse::Range(proto::RangeResponse { kvs: vec![kv("k", 5, 0)] })),
        ],
    });
    let OpDone::Txn { revision: 42, succeeded: true, done } = done else { panic!("{done:?}") };
    let [Done::Put, Done::Deleted(3), Done::Got(got)] = &done[..] else { panic!("{done:?}") };
    let entry = Entry { key: "k".to_owned(), value: b"v".to_vec(), create_revision: 4, mod_revision: 5, lease: None };
    assert_eq!(*got, [entry]);
}

#[test]
fn news_are_told_up_to_the_last_change_and_deletions_are_deletions() {
    let event = |kind, kv| proto::Event { kind, kv };
    let told = news(vec![event(0, Some(kv("a", 7, 3))), event(1, Some(kv("b", 9, 0))), event(0, None)]);
    assert_eq!(told.revision, 9);
    let seen: Vec<_> = told.events.iter().map(|e| (e.entry.key.as_str(), e.deleted, e.entry.lease)).collect();
    assert_eq!(seen, [("a", false, Some(LeaseId(3))), ("b", true, None)]);
    assert_eq!(news(Vec::new()).revision, 0);
}
