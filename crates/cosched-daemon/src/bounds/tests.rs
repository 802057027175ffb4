//! Requests pass the bounds to a handler that reports the bytes held for their user meanwhile.

use super::*;
use axum::Router;
use axum::body::to_bytes;
use axum::routing::get;
use hyper::body::Frame;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

const USER: u32 = 1000;
const LONG: usize = 64 << 10;

/// A body that never arrives.
struct Never;

impl HttpBody for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Time limits are zero: a future that is not ready at once is too late.
fn bounds() -> Bounds {
    Bounds { budget: Budget::new(1 << 20, 2 << 20), rights: Rights::new(0, []), time: Duration::ZERO }
}

/// POST answers with the bytes that are held for the user meanwhile, GET with a long or a short text.
async fn send(bounds: &Bounds, uid: u32, request: Request) -> Response {
    let budget = bounds.budget.clone();
    let held = move |_: Bytes| async move { budget.of_user(uid).0.to_string() };
    let app = Router::new()
        .route("/v1/jobs", get(|| async { "x".repeat(LONG) }).post(held.clone()))
        .route("/v1/version", get(|| async { "x".repeat(LONG) }))
        .route("/v1/limits", get(|| async { "short" }))
        .route("/v1/cluster/import", axum::routing::post(|| async { "read" }))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(bounds.clone(), bounded));
    let mut request = request;
    request.extensions_mut().insert(ConnectInfo(Caller { peer: Peer { uid, pid: None }, gid: uid }));
    TowerToHyperService::new(app).call(request).await.unwrap()
}

async fn text(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn post(path: &str, length: Option<usize>, body: Body) -> Request {
    let request = Request::builder().method(Method::POST).uri(path);
    match length {
        Some(length) => request.header(header::CONTENT_LENGTH, length).body(body).unwrap(),
        None => request.header(header::TRANSFER_ENCODING, "chunked").body(body).unwrap(),
    }
}

fn look(path: &str) -> Request {
    Request::builder().uri(path).body(Body::empty()).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_longer_than_it_may_be_or_says_is_refused() {
    let bounds = bounds();
    for uid in [0, USER] {
        for (length, body) in [
            (Some(BODY_BYTES_MAX + 1), Body::new(Never)),
            (Some(3), Body::from("four")),
            (None, Body::from(vec![0; BODY_BYTES_MAX + 1])),
        ] {
            let (status, answer) = text(send(&bounds, uid, post("/v1/jobs", length, body)).await).await;
            assert!(status == 400 && answer.contains("too long"), "{uid} {length:?}: {answer}");
        }
    }
    let most = send(&bounds, 0, post("/v1/jobs", None, Body::from(vec![0; BODY_BYTES_MAX]))).await;
    assert_eq!(most.status(), 200);
}

#[tokio::test(flavor = "current_thread")]
async fn an_administrator_alone_brings_back_a_backup() {
    let bounds = bounds();
    for (uid, path, status) in [(0, "/v1/cluster/import", 200), (USER, "/v1/cluster/import", 400), (0, "/v1/jobs", 400)]
    {
        let long = Body::from(vec![0; BODY_BYTES_MAX + 1]);
        let response = send(&bounds, uid, post(path, Some(BODY_BYTES_MAX + 1), long)).await;
        assert_eq!(response.status(), status, "{uid} {path}");
    }
    let response = send(&bounds, 0, post("/v1/cluster/import", Some(BACKUP_BYTES_MAX + 1), Body::new(Never))).await;
    assert_eq!(response.status(), 400);
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_user_sends_is_held_until_it_is_done() {
    let bounds = bounds();
    let body = || Body::from("x".repeat(2 << 10));
    let (_, held) = text(send(&bounds, USER, post("/v1/jobs", Some(2 << 10), body())).await).await;
    assert_eq!(held, (READ_FACTOR * (2 << 10)).to_string());
    let (_, held) = text(send(&bounds, USER, post("/v1/jobs", None, body())).await).await;
    assert_eq!(held, (1 << 20).to_string(), "of one without a length the longest counts, or all of his budget");
    assert_eq!(bounds.budget.of_user(USER).0, 0);
    let (_, held) = text(send(&bounds, 0, post("/v1/jobs", Some(2 << 10), body())).await).await;
    assert_eq!(held, "0", "administrators are not counted");
}

#[tokio::test(flavor = "current_thread")]
async fn who_sends_too_slowly_or_holds_too_much_is_refused() {
    let bounds = bounds();
    let (status, answer) = text(send(&bounds, USER, post("/v1/jobs", Some(9), Body::new(Never))).await).await;
    assert!(status == 400 && answer.contains("did not arrive in time"), "{answer}");
    let all = bounds.budget.hold(USER, 1 << 20).await;
    let (status, answer) = text(send(&bounds, USER, post("/v1/jobs", Some(9), Body::from("012345678"))).await).await;
    assert!(status == 429 && answer.contains("buffers for you are full"), "{answer}");
    let (status, _) = text(send(&bounds, USER, post("/v1/jobs", Some(0), Body::empty())).await).await;
    assert_eq!(status, 200, "what has no body needs no room");
    drop(all);
    let (status, _) = text(send(&bounds, USER, post("/v1/jobs", Some(9), Body::from("012345678"))).await).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_answer_is_held_until_it_is_read() {
    let bounds = bounds();
    let answer = send(&bounds, USER, look("/v1/version")).await;
    assert_eq!(bounds.budget.of_user(USER).0, LONG as u64);
    assert_eq!(text(answer).await.1.len(), LONG);
    assert_eq!(bounds.budget.of_user(USER).0, 0);
    let _short = send(&bounds, USER, look("/v1/limits")).await;
    let _admin = send(&bounds, 0, look("/v1/version")).await;
    assert_eq!(bounds.budget.of_all(), 0, "short ones and administrators' are not counted");
    let _all = bounds.budget.hold(USER, 1 << 20).await;
    assert_eq!(send(&bounds, USER, look("/v1/version")).await.status(), 429);
    assert_eq!(send(&bounds, USER, look("/v1/limits")).await.status(), 200);
}

#[tokio::test(flavor = "current_thread")]
async fn answers_that_grow_with_the_jobs_are_made_one_at_a_time() {
    let bounds = bounds();
    let turn = bounds.budget.turn(USER).await;
    assert_eq!(send(&bounds, USER, look("/v1/jobs")).await.status(), 429);
    assert_eq!(send(&bounds, USER, look("/v1/version")).await.status(), 200, "this one does not grow");
    assert_eq!(send(&bounds, USER + 1, look("/v1/jobs")).await.status(), 200);
    drop(turn);
    let first = send(&bounds, USER, look("/v1/jobs")).await;
    assert_eq!(send(&bounds, USER, look("/v1/jobs")).await.status(), 200, "the next one while the first is read");
    drop(first);
    for path in ["/v1/status", "/metrics", "/v1/jobs/7/events"] {
        assert!(is_long(path), "{path}");
    }
}
