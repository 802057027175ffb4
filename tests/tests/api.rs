//! The document of the API and the daemon agree: the daemon answers every path that the document names.

use cosched_api::schema::{ROUTES, STREAM, TEXT};
use cosched_api::{EventKind, KillRequest, StreamRequest};
use cosched_tests::{Daemon, needs_root};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// The body of the answer to a request, as JSON.
fn ask(d: &Daemon, method: &str, path: &str) -> serde_json::Value {
    let mut stream = UnixStream::connect(d.socket()).unwrap();
    let method = method.to_uppercase();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").expect("a head and a body").1;
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{method} {path}: {e}: {answer}"))
}

#[test]
fn every_documented_path_is_answered() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let unknown = |method: &str, path: &str| {
        let what = ask(&d, method, path)["what"].as_str().unwrap_or_default().to_owned();
        what == format!("there is no {} {path}", method.to_uppercase())
    };
    for route in ROUTES.iter().filter(|route| ![TEXT, STREAM].contains(&route.response)) {
        let path = route.path.replace("{id}", "999999");
        assert!(!unknown(route.method, &path), "{} {} is documented and not answered", route.method, route.path);
    }
    assert!(unknown("get", "/v1/nothing"));
    assert!(unknown("delete", "/v1/status"));
}

#[test]
fn a_status_has_what_the_document_says() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    assert!(d.cosched(&["run", "--", "true"]).status.success());
    let document = ask(&d, "get", "/v1/openapi.json");
    assert_eq!(document, cosched_api::schema::openapi(), "what is served is what the types say");
    for (path, name) in [("/v1/status", "Status"), ("/v1/jobs/1", "Job"), ("/v1/jobs?all=true", "JobList")] {
        let answer = ask(&d, "get", path);
        for field in document["components"]["schemas"][name]["required"].as_array().expect("required fields") {
            assert!(!answer[field.as_str().unwrap()].is_null(), "{path} has no {field}");
        }
    }
}

/// The slots of a job that runs alone follow each other without a gap.
fn check_trace(output: &std::process::Output, id: u64) {
    let trace: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a trace");
    let all = trace["traceEvents"].as_array().unwrap().iter();
    let of = all.filter(|e| e["cat"] == "slot" && e["tid"] == 1 && e["args"]["job"] == id);
    let first: Vec<_> = of.map(|e| (e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap())).collect();
    assert!(first.len() >= 600 / 20, "{first:?}");
    assert!(first.windows(2).all(|pair| (pair[0].0 + pair[0].1 - pair[1].0).abs() < 1.0), "{first:?}");
    let state = |e: &serde_json::Value| e["cat"] == "state" && e["tid"] == id && e["name"] == "running";
    assert!(trace["traceEvents"].as_array().unwrap().iter().any(state), "{trace}");
}

/// The events of job `id` so far, over all streams, in words.
fn words(events: &[cosched_api::StreamEvent], id: u64) -> Vec<String> {
    events
        .iter()
        .filter_map(|event| event.job.as_ref())
        .filter(|job| job.id == id)
        .map(|job| job.what.clone())
        .collect()
}

#[test]
fn events_tell_what_happens_to_jobs_and_the_plan_and_resume_over_a_restart() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("policy = \"gang\"\nslot_length = \"20ms\"");
    let stream = |d: &Daemon, after: Option<&str>| {
        let request = StreamRequest { after: after.map(str::to_owned), follow: true };
        d.client().stream(&request).unwrap().map(Result::unwrap)
    };
    let mut events: Vec<cosched_api::StreamEvent> = Vec::new();
    let mut live = stream(&d, None);
    let id = d.detach(&["--name", "<b>\u{1b}[2J", "--", "sh", "-c", "while :; do :; done"]);
    let mut until = |live: &mut dyn Iterator<Item = cosched_api::StreamEvent>, word: &str| {
        while words(&events, id).last().is_none_or(|last| last != word) {
            events.push(live.next().expect("the stream goes on"));
        }
        events.last().unwrap().id.clone()
    };
    until(&mut live, "began");
    check_trace(&d.cosched(&["trace", "--for", "600ms"]), id);
    d.client().suspend(id).unwrap();
    let suspended = until(&mut live, "suspended");
    d.client().resume(id).unwrap();
    until(&mut live, "resumed");
    d.client().kill(id, &KillRequest { signal: 9, grace_ms: None, here: false }).unwrap();
    let last = until(&mut live, "ended");
    assert_eq!(words(&events, id), ["registered", "began", "suspended", "resumed", "ended"]);
    let plans: Vec<_> = events.iter().filter_map(|event| event.plan.as_ref()).collect();
    let has_job = |plan: &&&cosched_api::PlanEvent| plan.matrix.rows.iter().any(|row| row.cells.contains(&Some(id)));
    let with = plans.iter().find(has_job).expect("a plan with the job");
    assert!(with.slot_length_ns == 20_000_000 && !with.matrix.turns.is_empty(), "{with:?}");
    let again: Vec<_> = stream(&d, Some(&suspended)).take(20).take_while(|event| event.id != last).collect();
    assert_eq!(words(&again, id), ["resumed"], "what came after that event, and before the end");
    d.stop();
    d.launch();
    let first = stream(&d, Some(&last)).next().unwrap();
    assert!(first.kind == EventKind::Gap && first.gap.as_deref() == Some("the daemon was restarted"), "{first:?}");
    let printed = d.cosched(&["events", "--json"]);
    assert!(printed.status.success() && !printed.stdout.is_empty(), "{printed:?}");
    // The driver does not wait for a client that does not read.
    let deaf: Vec<_> =
        (0..20).map(|_| d.client().stream(&StreamRequest { after: None, follow: true }).unwrap()).collect();
    for _ in 0..20 {
        assert!(d.cosched(&["run", "--", "true"]).status.success());
    }
    drop(deaf);
}
