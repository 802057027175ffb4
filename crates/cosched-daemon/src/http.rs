//! HTTP + JSON on the Unix socket: a thin layer that turns requests into calls to the driver.

use crate::accounting::{self, Period};
use crate::audit::{Act, Audit, Who};
use crate::bounds::{BACKUP_BYTES_MAX, Bounds, STREAM_PATH, bounded};
use crate::call::{Call, Op, Reply};
use crate::events::EventLog;
use crate::guest::Caller;
use crate::privacy::Privacy;
use crate::refuse::{Answer, failure, internal, invalid, not_found, unsupported};
use crate::rights::{Peer, Rights};
use crate::sizes;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, get, on, post, put};
use axum::{Json, Router};
use cosched_api::{API_VERSION, ApiVersion, Job, JobRequest, VERSION_HEADER};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The longest that `GET …/wait` waits before it answers with the job as it is.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The description of the API.
const DOCUMENT: &str = include_str!("../../../docs/schema/openapi.json");

/// A job's id in a path.
struct Id(u64);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Id, Response> {
        let text =
            Path::<String>::from_request_parts(parts, state).await.map_or_else(|_| String::new(), |Path(text)| text);
        text.parse().map(Id).map_err(|_| {
            failure(invalid(
                format!("`{text}` is not a job's id"),
                "an id is a number",
                "GET /v1/jobs lists the jobs with their ids.",
            ))
        })
    }
}

/// The query of the URL.
struct Asked<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Response> {
        Query::<T>::from_request_parts(parts, state).await.map(|Query(query)| Asked(query)).map_err(|e| {
            failure(invalid(
                "the part after `?` is not valid for this path",
                e.body_text(),
                "GET /v1/openapi.json shows each parameter.",
            ))
        })
    }
}

/// What every request needs.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    /// The channel to the driver.
    pub(crate) calls: mpsc::Sender<Call>,
    /// Decides what a user may see.
    pub(crate) privacy: Privacy,
    /// The audit log.
    pub(crate) audit: Audit,
    /// Distinguishes administrators from other users.
    pub(crate) rights: Rights,
    /// The recent events.
    pub(crate) events: EventLog,
    /// The accounting log of ended jobs.
    pub(crate) ended: Arc<EndedLog>,
}

/// The accounting log, for readers.
#[derive(Debug)]
pub(crate) struct EndedLog {
    path: PathBuf,
    /// One reader at a time.
    turn: Arc<Semaphore>,
}

impl EndedLog {
    /// The log of a daemon with this state directory.
    pub(crate) fn new(state_dir: &std::path::Path) -> Arc<EndedLog> {
        Arc::new(EndedLog { path: accounting::path(state_dir), turn: Arc::new(Semaphore::new(1)) })
    }
}

type Calls = State<Desk>;
type From = ConnectInfo<Caller>;

/// All the paths of the API, which [`DOCUMENT`] describes.
pub(crate) fn router(desk: Desk, bounds: Bounds) -> Router {
    Router::new()
        .route("/v1/status", plain(|| Op::Status))
        .route("/v1/version", plain(|| Op::Version))
        .route("/v1/openapi.json", get(document))
        .route("/v1/load", get(load))
        .route("/v1/loads", plain(|| Op::Loads))
        .route("/v1/queues", body(MethodFilter::PUT, Op::Queues))
        .route("/v1/cluster/repair", body(MethodFilter::POST, Op::Repair))
        .route("/v1/cluster/export", plain(|| Op::Export))
        .route("/v1/cluster/import", post(import))
        .route("/v1/policy", body(MethodFilter::PUT, Op::MachinePolicy))
        .route("/v1/nodes/{name}", put(node))
        .route("/v1/jobs", get(list).post(register))
        .route("/v1/ended", get(ended))
        .route("/v1/jobs/{id}", of_job(MethodFilter::GET, Op::Show))
        .route("/v1/jobs/{id}/exit", job_body(MethodFilter::POST, Op::Exit))
        .route("/v1/jobs/{id}/suspend", of_job(MethodFilter::POST, Op::Suspend))
        .route("/v1/jobs/{id}/resume", of_job(MethodFilter::POST, Op::Resume))
        .route("/v1/jobs/{id}/kill", job_body(MethodFilter::POST, Op::Kill))
        .route("/v1/jobs/{id}/class", job_body(MethodFilter::POST, Op::Class))
        .route("/v1/jobs/{id}/share", job_body(MethodFilter::POST, Op::Share))
        .route("/v1/jobs/{id}/release", of_job(MethodFilter::POST, Op::Release))
        .route("/v1/jobs/{id}/resources", job_body(MethodFilter::POST, Op::Resources))
        .route(
            "/v1/jobs/{id}/processes",
            job_body(MethodFilter::POST, Op::AddProcess).merge(job_body(MethodFilter::DELETE, Op::RemoveProcess)),
        )
        .route(
            "/v1/jobs/{id}/cgroups",
            job_body(MethodFilter::POST, Op::AddCgroup).merge(job_body(MethodFilter::DELETE, Op::RemoveCgroup)),
        )
        .route("/v1/jobs/{id}/policy", job_body(MethodFilter::POST, Op::Policy))
        .route("/v1/jobs/{id}/wait", get(wait))
        .route("/v1/jobs/{id}/events", of_job(MethodFilter::GET, Op::Events))
        .route(STREAM_PATH, get(stream))
        .route("/v1/samples", plain(|| Op::Samples))
        .route("/v1/limits", plain(|| Op::Limits))
        .route("/metrics", plain(|| Op::Metrics))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_path)
        .with_state(desk)
        .layer(axum::middleware::from_fn_with_state(bounds, bounded))
        .layer(axum::middleware::from_fn(check_version))
}

/// The paths for any client on the network, where the operator has opened a port: the metrics alone.
pub(crate) fn metrics_router(desk: Desk) -> Router {
    Router::new()
        .route("/metrics", get(|calls: Calls| ask(calls, ConnectInfo(Caller::UNKNOWN), Op::Metrics)))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_path)
        .with_state(desk)
}

/// `GET`, without parameters.
fn plain(op: fn() -> Op) -> MethodRouter<Desk> {
    get(move |calls: Calls, from: From| ask(calls, from, op()))
}

/// A request that is all in its body.
fn body<T: DeserializeOwned + Send + 'static>(method: MethodFilter, op: fn(T) -> Op) -> MethodRouter<Desk> {
    on(method, async move |calls: Calls, from: From, body: Bytes| with_body(calls, from, &body, op).await)
}

/// A request about the job of the path.
fn of_job(method: MethodFilter, op: fn(u64) -> Op) -> MethodRouter<Desk> {
    on(method, move |calls: Calls, from: From, Id(id): Id| ask(calls, from, op(id)))
}

/// The same with a body.
fn job_body<T: DeserializeOwned + Send + 'static>(method: MethodFilter, op: fn(u64, T) -> Op) -> MethodRouter<Desk> {
    on(method, async move |calls: Calls, from: From, Id(id): Id, body: Bytes| {
        with_body(calls, from, &body, |request| op(id, request)).await
    })
}

#[derive(Deserialize)]
pub(crate) struct StreamQuery {
    after: Option<String>,
    #[serde(default = "yes")]
    follow: bool,
}

fn yes() -> bool {
    true
}

/// Answered without the driver.
async fn stream(
    State(desk): Calls,
    ConnectInfo(caller): From,
    headers: HeaderMap,
    Asked(query): Asked<StreamQuery>,
) -> Response {
    let last = headers.get("last-event-id").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match desk.events.place(last.or(query.after).as_deref()) {
        Ok(place) => desk.events.stream(place, query.follow, desk.privacy, caller.peer),
        Err(e) => failure(e),
    }
}

#[derive(Deserialize)]
pub(crate) struct LoadQuery {
    node: Option<String>,
}

async fn load(calls: Calls, from: From, Asked(query): Asked<LoadQuery>) -> Response {
    ask(calls, from, Op::Load { node: query.node }).await
}

/// A backup is long, and its body has been read by now; for users who may not import one the limit was that of any other request.
async fn import(calls: Calls, from: From, request: Request) -> Response {
    let body = axum::body::to_bytes(request.into_body(), BACKUP_BYTES_MAX).await.unwrap_or_default();
    with_body(calls, from, &body, |request| Op::Import(Box::new(request))).await
}

async fn node(calls: Calls, from: From, Path(name): Path<String>, body: Bytes) -> Response {
    with_body(calls, from, &body, |request| Op::Node(name, request)).await
}

#[derive(Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    all: bool,
}

async fn list(calls: Calls, from: From, Asked(query): Asked<ListQuery>) -> Response {
    ask(calls, from, Op::List { all: query.all }).await
}

#[derive(Deserialize)]
pub(crate) struct EndedQuery {
    #[serde(default)]
    since_unix_ms: u64,
    until_unix_ms: Option<u64>,
}

/// Read from the disk by a thread of its own, for one caller at a time, without the driver.
async fn ended(
    State(desk): Calls,
    ConnectInfo(Caller { peer, .. }): From,
    Asked(query): Asked<EndedQuery>,
) -> Response {
    let Ok(turn) = Arc::clone(&desk.ended.turn).acquire_owned().await else {
        return failure(internal("the daemon is ending", "it no longer accepts requests"));
    };
    let (path, privacy) = (desk.ended.path.clone(), desk.privacy.clone());
    let period = Period { since_unix_ms: query.since_unix_ms, until_unix_ms: query.until_unix_ms.unwrap_or(u64::MAX) };
    let seen = privacy.clone();
    let is_seen = move |job: &Job| seen.sees(peer, job);
    // A client that disconnects does not free the turn: the next reader waits until this read has ended.
    let read = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        accounting::read(&path, period, is_seen)
    });
    let read = read.await;
    match read.map_err(std::io::Error::other).and_then(|list| list) {
        Ok(list) => success(Reply::Jobs(privacy.list(peer, list))),
        Err(e) => failure(internal("the accounting log cannot be read", e)),
    }
}

async fn register(calls: Calls, from: From, body: Bytes) -> Response {
    match read::<JobRequest>(&body).and_then(|request| sizes::check(&request).map(|()| request)) {
        Ok(request) => ask(calls, from, Op::Register(Box::new(request))).await,
        Err(e) => failure(e),
    }
}

#[derive(Deserialize)]
pub(crate) struct WaitQuery {
    timeout_ms: Option<u64>,
}

async fn wait(calls: Calls, from: From, Id(id): Id, Asked(query): Asked<WaitQuery>) -> Response {
    let limit = query.timeout_ms.map_or(WAIT_MAX, |ms| WAIT_MAX.min(Duration::from_millis(ms)));
    match tokio::time::timeout(limit, ask(calls.clone(), from, Op::Wait(id))).await {
        Ok(response) => response,
        Err(_) => ask(calls, from, Op::Show(id)).await,
    }
}

async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}

async fn no_such_path(method: axum::http::Method, uri: axum::http::Uri) -> Response {
    let what = format!("there is no {method} {}", uri.path());
    failure(not_found(what, "The API has no such path or method", "GET /v1/openapi.json lists all paths."))
}

/// Every answer contains the version of the interface; a client of another major version is refused with an explanation.
async fn check_version(request: Request, next: Next) -> Response {
    let named = request.headers().get(VERSION_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let mut response = match ApiVersion::of_header(named.as_deref()) {
        Ok(client) if client.major == API_VERSION.major => next.run(request).await,
        Ok(client) => failure(unsupported(
            format!("this program uses version {client} of the API, the daemon version {API_VERSION}"),
            "versions with different major numbers are incompatible",
            "Install program and daemon from the same release, and restart the daemon; jobs keep running meanwhile.",
        )),
        Err(text) => failure(invalid(
            format!("`{text}` is not a version of the API"),
            format!("the header {VERSION_HEADER} says MAJOR.MINOR"),
            format!("Send {API_VERSION}, or leave the header out."),
        )),
    };
    if let Ok(value) = HeaderValue::from_str(&API_VERSION.to_string()) {
        response.headers_mut().insert(VERSION_HEADER, value);
    }
    response
}

async fn with_body<T: DeserializeOwned>(calls: Calls, from: From, body: &[u8], op: impl FnOnce(T) -> Op) -> Response {
    match read(body) {
        Ok(request) => ask(calls, from, op(request)).await,
        Err(e) => failure(e),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Answer<T> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|e| {
        let hint = "GET /v1/openapi.json shows each body.";
        invalid("the request's body is not valid for this path", e.to_string(), hint)
    })
}

async fn ask(State(desk): Calls, ConnectInfo(caller): From, op: Op) -> Response {
    match desk.ask(caller, op).await {
        Ok(reply) => success(reply),
        Err(body) => failure(body),
    }
}

/// A line of the audit log that is still to be written, also if the client hangs up, which drops the request's future.
struct Line<'a> {
    desk: &'a Desk,
    who: Who,
    act: Option<Act>,
}

impl Line<'_> {
    fn write(mut self, answer: &Answer<Reply>) {
        let job = answer.as_ref().ok().and_then(|reply| if let Reply::Job(job) = reply { Some(job.id) } else { None });
        if let Some(act) = self.act.take() {
            self.desk.audit.write(self.who, act, job, Some(answer));
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if let Some(act) = self.act.take() {
            self.desk.audit.write(self.who, act, None, None::<&Answer<Reply>>);
        }
    }
}

impl Desk {
    /// Sends the request to the driver; parts of the answer that the caller may not see are removed, and a change is written to the audit log.
    async fn ask(&self, Caller { peer, gid }: Caller, op: Op) -> Answer<Reply> {
        let line = Line { desk: self, who: Who { peer, gid, admin: self.rights.is_admin(peer) }, act: act(&op) };
        let hidden = op.job().filter(|_| self.privacy.hides_jobs(peer));
        let known = match hidden {
            Some(id) => self.call(peer, Op::Show(id)).await.and_then(|reply| self.seen(peer, reply)).map(drop),
            None => Ok(()),
        };
        let answer = match known {
            Ok(()) => self.call(peer, op).await,
            Err(e) => Err(e),
        };
        line.write(&answer);
        answer.and_then(|reply| self.seen(peer, reply))
    }

    async fn call(&self, peer: Peer, op: Op) -> Answer<Reply> {
        let (reply, answer) = oneshot::channel();
        if self.calls.send(Call { peer, op, reply }).await.is_err() {
            return Err(internal("the daemon is ending", "it no longer accepts requests"));
        }
        answer.await.unwrap_or_else(|_| Err(internal("the daemon is ending", "it ended before it answered")))
    }

    fn seen(&self, peer: Peer, reply: Reply) -> Answer<Reply> {
        Ok(match reply {
            Reply::Job(job) => Reply::Job(Box::new(self.privacy.job(peer, *job)?)),
            Reply::Jobs(list) => Reply::Jobs(self.privacy.list(peer, list)),
            Reply::Samples(samples) => Reply::Samples(self.privacy.samples(peer, samples)),
            other => other,
        })
    }
}

/// The change that a request makes, for the audit log; `None` for requests that only read.
fn act(op: &Op) -> Option<Act> {
    let id = op.job();
    Some(match op {
        Op::Register(request) if request.adopt.is_some() => Act::new("adopt", None, &(&request.adopt, request.class)),
        Op::Register(request) => {
            let of = (&request.name, request.class, request.cpus, request.mem_bytes, request.owner_uid);
            Act::new("register", None, &of)
        }
        Op::Suspend(_) => Act::new("suspend", id, &()),
        Op::Release(_) => Act::new("release", id, &()),
        Op::Resume(_) => Act::new("resume", id, &()),
        Op::Kill(_, request) => Act::new("kill", id, request),
        Op::Share(_, request) => Act::new("share", id, request),
        Op::Class(_, request) => Act::new("class", id, request),
        Op::Resources(_, request) => Act::new("resources", id, request),
        Op::AddProcess(_, request) => Act::new("add-process", id, request),
        Op::RemoveProcess(_, request) => Act::new("remove-process", id, request),
        Op::AddCgroup(_, request) => Act::new("add-cgroup", id, request),
        Op::RemoveCgroup(_, request) => Act::new("remove-cgroup", id, request),
        Op::Policy(_, request) => Act::new("policy", id, request),
        Op::Node(name, request) => Act::new("node", None, &(name, request)),
        Op::Queues(request) => Act::new("queues", None, request),
        Op::Repair(request) => Act::new("cluster-repair", None, request),
        Op::Export => Act::new("cluster-export", None, &()),
        Op::Import(request) => {
            let backup = &request.backup;
            Act::new("cluster-import", None, &(&backup.cluster, backup.made_unix_ms, request.carry_out))
        }
        Op::MachinePolicy(request) => Act::new("machine-policy", None, request),
        _ => return None,
    })
}

fn success(reply: Reply) -> Response {
    match reply {
        Reply::Job(job) => Json(job).into_response(),
        Reply::Jobs(jobs) => Json(jobs).into_response(),
        Reply::Events(events) => Json(events).into_response(),
        Reply::Samples(samples) => Json(samples).into_response(),
        Reply::Limits(limits) => Json(limits).into_response(),
        Reply::Status(status) => Json(status).into_response(),
        Reply::Version(version) => Json(version).into_response(),
        Reply::Loads(loads) => Json(loads).into_response(),
        Reply::Load(load) => Json(load).into_response(),
        Reply::Repair(report) => Json(report).into_response(),
        Reply::Backup(backup) => Json(backup).into_response(),
        Reply::Metrics(text) => ([(header::CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], text).into_response(),
    }
}

#[cfg(test)]
mod tests;
