//! Conversions between the control plane's operations and etcd's messages.

use super::proto::{self, AnyRequest, AnyResponse, CompareWith};
use cosched_cluster::store::{Compare, Do, Done, Entry, Event, LeaseId, News, Of, OpDone, Range, StoreError, Txn};
use tonic::{Code, Status};

/// A key and, for a range, its end.
pub(super) fn range(range: Range) -> (Vec<u8>, Vec<u8>) {
    (range.first.into_bytes(), range.end.unwrap_or_default().into_bytes())
}

pub(super) fn txn(txn: Txn) -> proto::TxnRequest {
    proto::TxnRequest {
        compare: txn.compare.into_iter().map(compare).collect(),
        success: txn.then.into_iter().map(request).collect(),
        failure: txn.or_else.into_iter().map(request).collect(),
    }
}

fn compare(compare: Compare) -> proto::Compare {
    let is = compare.is as i64;
    let (target, with) = match compare.of {
        Of::Create => (proto::TARGET_CREATE, CompareWith::CreateRevision(is)),
        Of::Mod => (proto::TARGET_MOD, CompareWith::ModRevision(is)),
    };
    proto::Compare { result: proto::EQUAL, target, key: compare.key.into_bytes(), with: Some(with) }
}

fn request(op: Do) -> proto::RequestOp {
    let request = match op {
        Do::Put { key, value, lease } => {
            let lease = lease.map_or(0, |lease| lease.0);
            AnyRequest::Put(proto::PutRequest { key: key.into_bytes(), value, lease })
        }
        Do::Delete(of) => {
            let (key, range_end) = range(of);
            AnyRequest::DeleteRange(proto::DeleteRangeRequest { key, range_end })
        }
        Do::Get(of) => {
            let (key, range_end) = range(of);
            AnyRequest::Range(proto::RangeRequest { key, range_end })
        }
    };
    proto::RequestOp { request: Some(request) }
}

pub(super) fn txn_done(response: proto::TxnResponse) -> OpDone {
    let done = |op: proto::ResponseOp| match op.response {
        Some(AnyResponse::Range(range)) => Done::Got(range.kvs.into_iter().map(entry).collect()),
        Some(AnyResponse::DeleteRange(deleted)) => Done::Deleted(deleted.deleted as u64),
        Some(AnyResponse::Put(_)) | None => Done::Put,
    };
    OpDone::Txn {
        revision: revision(response.header),
        succeeded: response.succeeded,
        done: response.responses.into_iter().map(done).collect(),
    }
}

pub(super) fn revision(header: Option<proto::Header>) -> u64 {
    header.map_or(0, |header| header.revision as u64)
}

fn entry(kv: proto::KeyValue) -> Entry {
    Entry {
        // Our keys are text; another program's key just does not match any of ours.
        key: String::from_utf8_lossy(&kv.key).into_owned(),
        value: kv.value,
        create_revision: kv.create_revision as u64,
        mod_revision: kv.mod_revision as u64,
        lease: (kv.lease != 0).then_some(LeaseId(kv.lease)),
    }
}

/// The news of a watch. All changes up to the last reported one are included: etcd reports them in order, those of one revision together.
pub(super) fn news(events: Vec<proto::Event>) -> News {
    let event = |event: proto::Event| Some(Event { deleted: event.kind == 1, entry: entry(event.kv?) });
    let events: Vec<Event> = events.into_iter().filter_map(event).collect();
    News { revision: events.last().map_or(0, |event| event.entry.mod_revision), events }
}

/// The meaning of etcd's refusals. They differ only by text; see etcd's `rpctypes/error.go`.
pub(super) fn error(status: &Status) -> StoreError {
    let text = status.message();
    let has = |part: &str| text.contains(part);
    if has("requested lease not found") {
        StoreError::LeaseNotFound
    } else if has("too many operations in txn request") {
        StoreError::TooManyOps
    } else if has("request is too large") || status.code() == Code::ResourceExhausted && has("larger than max") {
        StoreError::TooLarge
    } else if has("duplicate key given in txn request") {
        StoreError::DuplicateKey
    } else if has("required revision is a future revision") {
        StoreError::FutureRevision
    } else if has("required revision has been compacted") {
        StoreError::Compacted(0)
    } else if has("authentication failed") || has("user name is empty") || has("permission denied") || has("auth token")
    {
        StoreError::Denied(denied(text))
    } else if has("database space exceeded") {
        StoreError::Fault(format!(
            "{text} (alarm NOSPACE): let etcd compact and defragment, or raise its quota, then `etcdctl alarm disarm`"
        ))
    } else if has("corrupt") {
        StoreError::Fault(text.to_owned())
    } else {
        unreachable(status)
    }
}

fn denied(text: &str) -> String {
    let text = text.trim_start_matches("etcdserver: ");
    let hint = match text {
        "user name is empty" => "it asks for a user; set `user` and `password_file`",
        "permission denied" => {
            "the user needs read and write rights for the cluster's keys (`etcdctl role grant-permission`)"
        }
        _ => "check `user` and the password",
    };
    format!("{text}: {hint}")
}

/// No answer, or none from etcd: the message with its causes.
fn unreachable(status: &Status) -> StoreError {
    let mut text = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    let lower = text.to_lowercase();
    if lower.contains("certificate") || lower.contains("received fatal alert") || lower.contains("unknownissuer") {
        return StoreError::Denied(format!("{text}: check `ca_file`, `cert_file` and `key_file`"));
    }
    StoreError::Unavailable(text)
}

#[cfg(test)]
mod tests;
