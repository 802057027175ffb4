//! An ended job as spans: one for its life, below it one for each stretch of it.

use super::proto::{AnyValue, Event, KeyValue, List, Span, Status, Value};
use cosched_api as api;

const INTERNAL: i32 = 1;
const ERROR: i32 = 2;
const NS_PER_MS: u64 = 1_000_000;

/// The kinds of spans of a job.
#[derive(Clone, Copy)]
enum Kind {
    Job = 1,
    Waiting = 2,
    Running = 3,
}

/// The spans of a job that has ended on this node. What spans nodes is one trace: each node has its own `running`, and the first of its nodes the
/// rest. A job that was started again has a span `job` for each of its lives.
pub(super) fn spans(cluster: &str, node: &str, job: &api::Job, events: &[api::Event]) -> Vec<Span> {
    let Some(ended) = job.ended_unix_ms else { return Vec::new() };
    let trace_id = trace_id(cluster, job);
    let span = |kind: Kind, name: &str, from: u64, to: u64| Span {
        trace_id: trace_id.clone(),
        span_id: span_id(kind, job.restarts, node),
        parent_span_id: match kind {
            Kind::Job => Vec::new(),
            _ => span_id(Kind::Job, job.restarts, ""),
        },
        name: name.to_owned(),
        kind: INTERNAL,
        start_time_unix_nano: from * NS_PER_MS,
        end_time_unix_nano: to.max(from) * NS_PER_MS,
        ..Span::default()
    };
    // The clock may have been set back meanwhile.
    let started = job.started_unix_ms.map(|started| started.min(ended));
    let mut spans = Vec::new();
    let is_first = job.nodes.first().is_none_or(|first| first.name.is_empty() || first.name == node);
    if is_first {
        let mut whole = span(Kind::Job, "job", job.submitted_unix_ms.min(ended), ended);
        whole.span_id = span_id(Kind::Job, job.restarts, "");
        (whole.attributes, whole.status, whole.events) =
            (attributes(job), status(job), events.iter().map(event).collect());
        spans.push(whole);
        spans.push(span(Kind::Waiting, "waiting", job.submitted_unix_ms.min(ended), started.unwrap_or(ended)));
    }
    if let Some(started) = started {
        let mut running = span(Kind::Running, "running", started, ended);
        running.attributes =
            vec![text("cosched.node", node), double("cosched.cpu_time_s", job.cpu_time_ms as f64 / 1e3)];
        running.attributes.extend(job.memory_peak_bytes.map(|bytes| int("cosched.memory_peak_bytes", bytes)));
        spans.push(running);
    }
    spans
}

/// The same on all nodes: when it was submitted, its cluster, and its number.
fn trace_id(cluster: &str, job: &api::Job) -> Vec<u8> {
    let parts = [
        &job.submitted_unix_ms.to_be_bytes()[2..],
        &crc32fast::hash(cluster.as_bytes()).to_be_bytes(),
        &job.id.to_be_bytes()[2..],
    ];
    parts.concat()
}

fn span_id(kind: Kind, life: u32, node: &str) -> Vec<u8> {
    let of_life = (life << 2) | kind as u32;
    [of_life.to_be_bytes(), crc32fast::hash(node.as_bytes()).to_be_bytes()].concat()
}

fn attributes(job: &api::Job) -> Vec<KeyValue> {
    let names = job.nodes.iter().map(|node| AnyValue { value: Some(Value::Text(node.name.clone())) });
    let nodes = Value::List(List { values: names.collect() });
    let mut all = vec![
        int("cosched.job.id", job.id),
        text("cosched.job.name", &job.name),
        text("user.name", &job.user),
        text("cosched.class", job.class.name()),
        text("cosched.policy", job.policy.name()),
        int("cosched.cpus", job.cpus.into()),
        int("cosched.restarts", job.restarts.into()),
        of("cosched.nodes", nodes),
    ];
    all.extend(job.queue.as_deref().map(|queue| text("cosched.queue", queue)));
    let (code, signal) = exit(job);
    all.extend(code.map(|code| of("process.exit.code", Value::Int(code.into()))));
    all.extend(signal.map(|signal| of("cosched.signal", Value::Int(signal.into()))));
    all
}

fn exit(job: &api::Job) -> (Option<i32>, Option<i32>) {
    job.exit.map_or((None, None), |exit| (exit.code, exit.signal))
}

/// An error where it did not end by itself and with success.
fn status(job: &api::Job) -> Option<Status> {
    let how = match exit(job) {
        _ if job.state == api::JobState::Lost => Some("it was lost".to_owned()),
        (_, Some(signal)) => Some(format!("signal {signal}")),
        (Some(code), _) if code != 0 => Some(format!("exit code {code}")),
        _ => None,
    };
    let message = job.ended_why.clone().or(how)?;
    Some(Status { message, code: ERROR })
}

fn event(event: &api::Event) -> Event {
    let attributes = if event.detail.is_empty() { Vec::new() } else { vec![text("cosched.detail", &event.detail)] };
    Event { time_unix_nano: event.unix_ms * NS_PER_MS, name: event.what.clone(), attributes }
}

fn of(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

pub(super) fn text(key: &str, value: &str) -> KeyValue {
    of(key, Value::Text(value.to_owned()))
}

fn int(key: &str, value: u64) -> KeyValue {
    of(key, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn double(key: &str, value: f64) -> KeyValue {
    of(key, Value::Double(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(more: serde_json::Value) -> api::Job {
        let mut job = serde_json::json!({
            "id": 7, "name": "lu", "uid": 1000, "user": "ann", "class": "batch", "policy": "gang", "cpus": 2, "state": "ended",
            "command": ["lu"], "pid": 7, "submitted_unix_ms": 1000, "started_unix_ms": 1500, "ended_unix_ms": 4000,
            "exit": {"code": 0}, "cpu_time_ms": 900, "detached": false, "cgroup": "",
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    fn times(span: &Span) -> (&str, u64, u64) {
        (&span.name, span.start_time_unix_nano / NS_PER_MS, span.end_time_unix_nano / NS_PER_MS)
    }

    #[test]
    fn a_job_is_a_span_with_two_stretches_below_it() {
        let all = spans("c", "a", &job(serde_json::json!({})), &[]);
        let told: Vec<_> = all.iter().map(times).collect();
        assert_eq!(told, [("job", 1000, 4000), ("waiting", 1000, 1500), ("running", 1500, 4000)]);
        assert!(
            all.iter()
                .all(|span| span.trace_id == all[0].trace_id && span.trace_id.len() == 16 && span.span_id.len() == 8)
        );
        assert!(all[0].parent_span_id.is_empty() && all[1..].iter().all(|span| span.parent_span_id == all[0].span_id));
        assert_eq!(all[0].status, None);
    }

    #[test]
    fn what_spans_nodes_is_one_trace_with_one_root() {
        let nodes = serde_json::json!({"nodes": [{"name": "a", "cpus": 1}, {"name": "b", "cpus": 1}]});
        let (first, second) = (spans("c", "a", &job(nodes.clone()), &[]), spans("c", "b", &job(nodes), &[]));
        assert_eq!((first.len(), second.len()), (3, 1));
        assert_eq!(second[0].trace_id, first[0].trace_id);
        assert_eq!(second[0].parent_span_id, first[0].span_id);
        assert_ne!(second[0].span_id, first[2].span_id);
        assert_ne!(
            spans("d", "a", &job(serde_json::json!({})), &[])[0].trace_id,
            first[0].trace_id,
            "another cluster's job 7"
        );
    }

    #[test]
    fn a_later_life_has_a_span_of_its_own_and_failures_are_errors() {
        let of = |more| spans("c", "a", &job(more), &[]).swap_remove(0);
        let (first, second) = (of(serde_json::json!({})), of(serde_json::json!({"restarts": 1})));
        assert!(first.trace_id == second.trace_id && first.span_id != second.span_id);
        let message = |more| of(more).status.map(|status| (status.code, status.message));
        assert_eq!(message(serde_json::json!({"exit": {"code": 3}})), Some((ERROR, "exit code 3".to_owned())));
        assert_eq!(message(serde_json::json!({"exit": {"signal": 9}})), Some((ERROR, "signal 9".to_owned())));
        assert_eq!(
            message(serde_json::json!({"state": "lost", "exit": null})),
            Some((ERROR, "it was lost".to_owned()))
        );
        let killed = serde_json::json!({"exit": {"signal": 15}, "ended_why": "killed by root"});
        assert_eq!(message(killed), Some((ERROR, "killed by root".to_owned())));
    }

    #[test]
    fn no_time_is_before_another_after_the_clock_was_set_back() {
        let back = job(serde_json::json!({"submitted_unix_ms": 9000, "started_unix_ms": 9500, "ended_unix_ms": 4000}));
        assert!(spans("c", "a", &back, &[]).iter().all(|span| span.start_time_unix_nano <= span.end_time_unix_nano));
        assert!(spans("c", "a", &job(serde_json::json!({"ended_unix_ms": null})), &[]).is_empty());
        let cancelled = job(serde_json::json!({"started_unix_ms": null}));
        assert_eq!(
            spans("c", "a", &cancelled, &[]).iter().map(times).collect::<Vec<_>>(),
            [("job", 1000, 4000), ("waiting", 1000, 4000)]
        );
    }
}
