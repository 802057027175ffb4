//! Requests to a router with a driver that only records them.

use super::*;
use crate::budget::Budget;
use crate::privacy::PrivateData;
use crate::refuse::refuse;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use cosched_api::{ErrorCode, Job, JobList};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::sync::{Arc, Mutex};

const OWNER: u32 = 1000;
const OTHER: u32 = 1001;

/// A job that belongs to OWNER.
fn job(id: u64) -> Job {
    serde_json::from_value(serde_json::json!({
        "id": id, "name": "a", "uid": OWNER, "user": "ann", "class": "batch", "policy": "gang", "cpus": 2, "state": "running",
        "command": ["secret"], "pid": 5, "submitted_unix_ms": 1, "cpu_time_ms": 1, "detached": true, "cgroup": "",
    }))
    .unwrap()
}

/// The router and its state without a daemon.
struct House {
    desk: Desk,
    bounds: Bounds,
    asked: Arc<Mutex<Vec<String>>>,
    audit_dir: tempfile::TempDir,
}

impl House {
    /// The driver never answers `wait`, and answers any other request with fixed jobs or numbers.
    fn new(data: PrivateData) -> House {
        let (calls, mut to_driver) = mpsc::channel::<Call>(8);
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let notes = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut waiting = Vec::new();
            while let Some(call) = to_driver.recv().await {
                notes.lock().unwrap().push(format!("{:?}", call.op));
                let answer = match call.op {
                    Op::Wait(_) => {
                        waiting.push(call.reply);
                        continue;
                    }
                    Op::List { .. } => Reply::Jobs(JobList { jobs: vec![job(1), job(2)] }),
                    Op::Samples => Reply::Samples(cosched_api::Samples { period_ms: 1, samples: Vec::new() }),
                    Op::Metrics => Reply::Metrics("cosched_jobs 1\n".to_owned()),
                    op => Reply::Job(Box::new(job(op.job().unwrap_or(9)))),
                };
                let _ = call.reply.send(Ok(answer));
            }
        });
        let audit = tempfile::tempdir().unwrap();
        let rights = Rights::new(0, []);
        let desk = Desk {
            calls,
            privacy: Privacy::new(data, rights.clone()),
            audit: Audit::start(audit.path()).unwrap(),
            rights: rights.clone(),
            events: EventLog::new(5),
            ended: EndedLog::new(audit.path()),
        };
        let bounds = Bounds { budget: Budget::new(32 << 20, 64 << 20), rights, time: Duration::from_secs(60) };
        House { desk, bounds, asked, audit_dir: audit }
    }

    fn open() -> House {
        House::new(PrivateData { commands: true, jobs: false })
    }

    /// Sends a request; returns status, body, and the version in the answer's header.
    async fn send(&self, uid: u32, request: Request<Body>) -> (u16, String, String) {
        self.send_to(router(self.desk.clone(), self.bounds.clone()), uid, request).await
    }

    async fn send_to(&self, app: Router, uid: u32, mut request: Request<Body>) -> (u16, String, String) {
        request.extensions_mut().insert(ConnectInfo(Caller { peer: Peer { uid, pid: None }, gid: uid }));
        let response = TowerToHyperService::new(app).call(request).await.unwrap();
        let version = response.headers().get(VERSION_HEADER).map_or("", |value| value.to_str().unwrap()).to_owned();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap(), version)
    }

    async fn ask(&self, uid: u32, method: Method, path: &str, body: &str) -> (u16, String) {
        let (status, body, _) = self.send(uid, request(method, path, body)).await;
        (status, body)
    }

    /// The driver's requests since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn request(method: Method, path: &str, body: &str) -> Request<Body> {
    let body = body.to_owned();
    let length = body.len();
    Request::builder().method(method).uri(path).header(header::CONTENT_LENGTH, length).body(Body::from(body)).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn a_change_whose_client_hangs_up_is_in_the_audit_log() {
    let house = House::open();
    let (calls, mut taken) = mpsc::channel(1);
    let desk = Desk { calls, ..house.desk.clone() };
    let caller = Caller { peer: Peer { uid: OWNER, pid: None }, gid: OWNER };
    let asked = tokio::time::timeout(Duration::from_millis(5), desk.ask(caller, Op::Suspend(7))).await;
    assert!(asked.is_err() && taken.try_recv().is_ok());
    let lines = || std::fs::read_to_string(house.audit_dir.path().join("audit.log")).unwrap_or_default();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !lines().contains("suspend") && std::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(lines().lines().any(|line| line.contains("suspend") && line.contains("\"unanswered\"")), "{}", lines());
}

/// Every request about job 7, and the driver's request for it.
const OF_A_JOB: [(Method, &str, &str, &str); 14] = [
    (Method::GET, "", "", "Show(7)"),
    (Method::GET, "/events", "", "Events(7)"),
    (Method::POST, "/exit", r#"{"exit":{"code":3}}"#, "Exit(7, ExitReport { exit: ExitStatus { code: Some(3)"),
    (Method::POST, "/suspend", "", "Suspend(7)"),
    (Method::POST, "/resume", "", "Resume(7)"),
    (Method::POST, "/kill", r#"{"signal":9}"#, "Kill(7, KillRequest { signal: 9"),
    (Method::POST, "/class", r#"{"class":"standby"}"#, "Class(7, ClassRequest { class: Standby"),
    (Method::POST, "/resources", r#"{"cpus":3}"#, "Resources(7, "),
    (Method::POST, "/processes", r#"{"pid":5}"#, "AddProcess(7, "),
    (Method::DELETE, "/processes", r#"{"pid":5}"#, "RemoveProcess(7, "),
    (Method::POST, "/cgroups", r#"{"cgroup":"/pod"}"#, "AddCgroup(7, "),
    (Method::DELETE, "/cgroups", r#"{"cgroup":"/pod"}"#, "RemoveCgroup(7, "),
    (Method::POST, "/policy", r#"{"policy":"local"}"#, "Policy(7, "),
    (Method::GET, "/wait?timeout_ms=0", "", "Wait(7)"),
];

#[tokio::test(flavor = "current_thread")]
async fn every_path_asks_for_what_it_says() {
    let house = House::open();
    for (method, path, body, asks) in OF_A_JOB {
        let path = format!("/v1/jobs/7{path}");
        let (status, answer) = house.ask(OWNER, method, &path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert!(house.asked()[0].starts_with(asks), "{path}");
    }
    for (method, path, body, asks) in [
        (Method::GET, "/v1/status", "", "Status"),
        (Method::GET, "/v1/version", "", "Version"),
        (Method::GET, "/v1/load", "", "Load { node: None }"),
        (Method::GET, "/v1/load?node=n2", "", "Load { node: Some(\"n2\") }"),
        (Method::GET, "/v1/loads", "", "Loads"),
        (Method::GET, "/v1/samples", "", "Samples"),
        (Method::GET, "/v1/limits", "", "Limits"),
        (Method::GET, "/v1/jobs", "", "List { all: false }"),
        (Method::GET, "/v1/jobs?all=true", "", "List { all: true }"),
        (Method::POST, "/v1/jobs", r#"{"command":["x"],"pid":5}"#, "Register("),
        (Method::PUT, "/v1/policy", r#"{"policy":"local"}"#, "MachinePolicy("),
        (Method::PUT, "/v1/nodes/n3", r#"{"drains":true}"#, "Node(\"n3\", "),
        (Method::PUT, "/v1/queues", r#"{"queues":[]}"#, "Queues("),
        (Method::POST, "/v1/cluster/repair", "", "Repair(RepairRequest { carry_out: false"),
        (Method::GET, "/v1/cluster/export", "", "Export"),
        (Method::GET, "/metrics", "", "Metrics"),
    ] {
        let (status, answer) = house.ask(OWNER, method, path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert!(house.asked()[0].starts_with(asks), "{path}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_no_request_is_refused_without_the_driver() {
    let house = House::open();
    let long = format!(r#"{{"command":["x"],"pid":5,"name":"{}"}}"#, "n".repeat(300));
    for (method, path, body, status, word) in [
        (Method::GET, "/v1/jobs/seven", "", 400, "is not a job's id"),
        (Method::GET, "/v1/jobs/-1", "", 400, "is not a job's id"),
        (Method::GET, "/v1/nothing", "", 404, "there is no GET /v1/nothing"),
        (Method::DELETE, "/v1/jobs/7", "", 404, "there is no DELETE"),
        (Method::POST, "/v1/jobs/7/kill", "{", 400, "the request's body"),
        (Method::POST, "/v1/jobs/7/class", "", 400, "missing field `class`"),
        (Method::POST, "/v1/jobs/7/kill", r#"{"signl":9}"#, 400, "unknown field `signl`"),
        (Method::GET, "/v1/jobs?all=perhaps", "", 400, "after `?`"),
        (Method::GET, "/v1/events?after=x", "", 400, "`x` is not the id of an event"),
        (Method::POST, "/v1/jobs", &long, 400, "`name` is too long"),
    ] {
        let (got, answer) = house.ask(OWNER, method, path, body).await;
        assert!(got == status && answer.contains(word), "{path}: {got} {answer}");
        assert_eq!(house.asked(), Vec::<String>::new(), "{path}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_of_another_version_is_told_so_and_nothing_is_done() {
    let house = House::open();
    let other = format!("{}.0", API_VERSION.major + 1);
    let own = API_VERSION.to_string();
    let later = format!("{}.{}", API_VERSION.major, API_VERSION.minor + 7);
    for (named, status) in [(own.as_str(), 200), (&later, 200), (&other, 422), ("new", 400), ("", 400)] {
        let mut request = request(Method::POST, "/v1/jobs/7/suspend", "");
        request.headers_mut().insert(VERSION_HEADER, HeaderValue::from_str(named).unwrap());
        let (got, answer, version) = house.send(OWNER, request).await;
        assert_eq!((got, version.as_str()), (status, own.as_str()), "{named}: {answer}");
        assert_eq!(house.asked().len(), usize::from(status == 200), "{named}");
    }
    let (.., version) = house.send(OWNER, request(Method::GET, "/v1/nothing", "")).await;
    assert_eq!(version, own, "refusals name it, too");
}

#[tokio::test(flavor = "current_thread")]
async fn of_jobs_that_are_hidden_nobody_else_hears_or_does_anything() {
    let house = House::new(PrivateData { commands: true, jobs: true });
    for (method, path, body, asks) in OF_A_JOB {
        let path = format!("/v1/jobs/7{path}");
        let (status, answer) = house.ask(OTHER, method.clone(), &path, body).await;
        assert_eq!(status, 404, "{path}: {answer}");
        assert!(answer.contains("there is no job 7"), "{path}: {answer}");
        assert_eq!(house.asked(), ["Show(7)"], "{path}");
        assert_eq!(house.ask(OWNER, method.clone(), &path, body).await.0, 200, "{path}");
        assert_eq!(house.asked()[0], "Show(7)");
        assert_eq!(house.ask(0, method, &path, body).await.0, 200, "{path}");
        assert!(house.asked()[0].starts_with(asks), "{path}");
    }
    let (_, list) = house.ask(OTHER, Method::GET, "/v1/jobs", "").await;
    assert_eq!(list, r#"{"jobs":[]}"#);
}

#[tokio::test(flavor = "current_thread")]
async fn commands_that_are_hidden_are_in_no_answer() {
    let house = House::open();
    for (method, path, body, _) in OF_A_JOB {
        let path = format!("/v1/jobs/7{path}");
        let (_, answer) = house.ask(OTHER, method.clone(), &path, body).await;
        assert!(!answer.contains("secret"), "{path}: {answer}");
        let (_, answer) = house.ask(OWNER, method, &path, body).await;
        assert!(answer.contains("secret"), "{path}: {answer}");
    }
    let (_, answer) = house.ask(OTHER, Method::GET, "/v1/jobs", "").await;
    assert!(answer.contains("\"id\":2") && !answer.contains("secret"), "{answer}");
}

/// Without `follow=false` the answer would not end.
#[tokio::test(flavor = "current_thread")]
async fn events_of_hidden_jobs_are_their_owners_and_a_stream_is_counted_while_it_lasts() {
    let house = House::new(PrivateData { commands: true, jobs: true });
    let of = serde_json::json!({
        "what": "began", "detail": "", "id": 7, "name": "a", "uid": OWNER, "user": "ann", "class": "batch", "cpus": 1,
        "state": "running",
    });
    house.desk.events.job(serde_json::from_value(of).unwrap());
    house.desk.events.problems(Vec::new());
    for (uid, jobs) in [(OWNER, 1), (OTHER, 0), (0, 1)] {
        let (status, text) = house.ask(uid, Method::GET, "/v1/events?after=0&follow=false", "").await;
        assert_eq!((status, text.matches("event: job").count()), (200, jobs), "{uid}: {text}");
        assert!(text.contains("id: 5-1\nevent: problems\ndata: {"), "{text}");
    }
    let mut resume = request(Method::GET, "/v1/events?follow=false&after=0", "");
    resume.headers_mut().insert("last-event-id", HeaderValue::from_static("5-0"));
    let (_, text, _) = house.send(OWNER, resume).await;
    assert!(!text.contains("event: job") && text.contains("event: problems"), "{text}");
    let mut endless = request(Method::GET, "/v1/events", "");
    endless.extensions_mut().insert(ConnectInfo(Caller { peer: Peer { uid: OTHER, pid: None }, gid: OTHER }));
    let app = router(house.desk.clone(), house.bounds.clone());
    let stream = TowerToHyperService::new(app).call(endless).await.unwrap();
    assert_eq!(house.bounds.budget.of_user(OTHER).0, 1 << 20);
    drop(stream);
    assert_eq!(house.bounds.budget.of_user(OTHER).0, 0);
    assert_eq!(house.asked(), Vec::<String>::new(), "the driver has nothing to do with it");
}

#[tokio::test(flavor = "current_thread")]
async fn a_wait_that_is_over_answers_with_the_job_as_it_is() {
    let house = House::open();
    let (status, answer) = house.ask(OWNER, Method::GET, "/v1/jobs/7/wait?timeout_ms=0", "").await;
    assert!(status == 200 && answer.contains("\"state\":\"running\""), "{answer}");
    assert_eq!(house.asked(), ["Wait(7)", "Show(7)"]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_daemon_that_ends_says_so() {
    let house = House::open();
    let desk = Desk { calls: mpsc::channel(1).0, ..house.desk.clone() };
    let app = router(desk, house.bounds.clone());
    let (status, answer, _) = house.send_to(app, OWNER, request(Method::GET, "/v1/status", "")).await;
    assert!(status == 500 && answer.contains("the daemon is ending"), "{answer}");
}

#[tokio::test(flavor = "current_thread")]
async fn the_port_for_metrics_has_nothing_else() {
    let house = House::open();
    for (path, status) in [("/metrics", 200), ("/v1/jobs", 404), ("/v1/status", 404), ("/v1/jobs/7", 404)] {
        let app = metrics_router(house.desk.clone());
        let (got, answer, _) = house.send_to(app, OWNER, request(Method::GET, path, "")).await;
        assert_eq!(got, status, "{path}: {answer}");
    }
    assert_eq!(house.asked(), ["Metrics"]);
}

#[test]
fn changes_are_written_down_and_looks_are_not() {
    let text = |op: &Op| act(op).map(|act| format!("{act:?}"));
    for op in [Op::Status, Op::Show(7), Op::Wait(7), Op::Events(7), Op::List { all: true }, Op::Limits, Op::Loads] {
        assert_eq!(text(&op), None, "{op:?}");
    }
    let policy = cosched_api::PolicyRequest::default();
    let register =
        JobRequest { command: vec!["secret".to_owned()], name: Some("n".to_owned()), ..JobRequest::default() };
    for (op, words) in [
        (Op::Suspend(7), "verb: \"suspend\", job: Some(7)"),
        (Op::Resume(7), "verb: \"resume\", job: Some(7)"),
        (Op::Policy(7, policy.clone()), "verb: \"policy\", job: Some(7)"),
        (Op::MachinePolicy(policy), "verb: \"machine-policy\", job: None"),
        (Op::Export, "verb: \"cluster-export\""),
        (Op::Register(Box::new(register)), "verb: \"register\", job: None"),
    ] {
        let written = text(&op).unwrap();
        assert!(written.contains(words) && !written.contains("secret"), "{written}");
    }
}

#[test]
fn each_refusal_has_its_status() {
    for (code, status) in [
        (ErrorCode::Invalid, 400),
        (ErrorCode::Forbidden, 403),
        (ErrorCode::NotFound, 404),
        (ErrorCode::Conflict, 409),
        (ErrorCode::Unsupported, 422),
        (ErrorCode::Limit, 429),
        (ErrorCode::Internal, 500),
    ] {
        assert_eq!(failure(refuse(code, "a", "b", "c")).status().as_u16(), status);
    }
}
