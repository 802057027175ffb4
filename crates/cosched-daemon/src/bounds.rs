//! Limits on requests: a body has to arrive in time and within the budget, and a long answer is made only when there is room for it.

use crate::budget::{Budget, Held};
use crate::events::EVENT_BYTES_MAX;
use crate::guest::Caller;
use crate::refuse::failure;
use crate::refuse::{Answer, invalid, refuse};
use crate::rights::{Peer, Rights};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::Response;
use cosched_api::ErrorCode;
use hyper::body::Frame;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The longest request: a command and an environment may be long.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;

/// The longest backup of a cluster that an administrator can import: as long as a client can read.
pub(crate) const BACKUP_BYTES_MAX: usize = 64 << 20;

/// The memory needed to parse a request, in multiples of its length: the three bytes `{},` in a list of nodes become 72, in a vector that doubles.
const READ_FACTOR: usize = 48;

/// Longer answers count against the budget; shorter ones are bounded by the number of connections.
const SHORT_ANSWER_BYTES: usize = 16 << 10;

/// The path whose answer is a stream without an end.
pub(crate) const STREAM_PATH: &str = "/v1/events";

/// The bytes that such an answer counts as: it holds two events at most, but each event costs time for each stream, too.
const STREAM_BYTES: usize = 16 * EVENT_BYTES_MAX;

/// The limits of all requests.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// The bytes that are held.
    pub(crate) budget: Budget,
    /// Distinguishes administrators, who are not counted.
    pub(crate) rights: Rights,
    /// How long a body may take to arrive, and how long a request waits for its user's budget.
    pub(crate) time: Duration,
}

/// An answer whose bytes are counted until the last of them is written.
struct Counted {
    bytes: Bytes,
    _held: Held,
}

/// An answer without an end, counted while it lasts.
struct Endless {
    body: Body,
    _held: Option<Held>,
}

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a request's body, passes the request on, and returns the answer.
pub(crate) async fn bounded(
    State(bounds): State<Bounds>,
    ConnectInfo(Caller { peer, .. }): ConnectInfo<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let counted = !bounds.rights.is_admin(peer);
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return if counted { bounds.read(peer, request, next).await } else { next.run(request).await };
    }
    let is_backup = !counted && request.uri().path() == "/v1/cluster/import";
    let most = if is_backup { BACKUP_BYTES_MAX } else { BODY_BYTES_MAX };
    let length = match length(&request, most) {
        Ok(length) => length,
        Err(e) => return failure(e),
    };
    let (parts, body) = request.into_parts();
    let read = async {
        let held = if counted { bounds.hold(peer, length * READ_FACTOR).await? } else { None };
        let bytes = bounds.in_time(axum::body::to_bytes(body, length), too_slow).await?;
        Ok((bytes.map_err(|_| too_long(most))?, held))
    };
    match read.await {
        // The budget is held until the request is done.
        Ok((bytes, _held)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(e) => failure(e),
    }
}

impl Bounds {
    /// Answers a request that changes nothing.
    async fn read(&self, peer: Peer, request: Request, next: Next) -> Response {
        if request.uri().path() == STREAM_PATH {
            return match self.hold(peer, STREAM_BYTES).await {
                Ok(_held) => next.run(request).await.map(|body| Body::new(Endless { body, _held })),
                Err(e) => failure(e),
            };
        }
        let turn = if is_long(request.uri().path()) {
            match self.in_time(self.budget.turn(peer.uid), over_budget).await {
                Ok(turn) => turn,
                Err(e) => return failure(e),
            }
        } else {
            None
        };
        let response = next.run(request).await;
        let bytes = response.body().size_hint().exact().unwrap_or(u64::MAX) as usize;
        if bytes <= SHORT_ANSWER_BYTES {
            return response;
        }
        let held = match self.hold(peer, bytes).await {
            Ok(held) => held,
            Err(e) => return failure(e),
        };
        drop(turn);
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let bytes = match held {
            Some(held) => Bytes::from_owner(Counted { bytes, _held: held }),
            None => bytes,
        };
        Response::from_parts(parts, Body::from(bytes))
    }

    async fn hold(&self, peer: Peer, bytes: usize) -> Answer<Option<Held>> {
        if bytes == 0 {
            return Ok(None);
        }
        self.in_time(self.budget.hold(peer.uid, bytes), over_budget).await
    }

    async fn in_time<T>(&self, what: impl Future<Output = T>, late: fn() -> cosched_api::ErrorBody) -> Answer<T> {
        tokio::time::timeout(self.time, what).await.map_err(|_| late())
    }
}

/// Answers whose length grows with the number of jobs, and that the daemon has in memory as a whole.
fn is_long(path: &str) -> bool {
    matches!(path, "/v1/jobs" | "/v1/ended" | "/v1/status" | "/v1/samples" | "/metrics") || path.ends_with("/events")
}

/// The length that a body declares, or the limit if it declares none.
fn length(request: &Request, most: usize) -> Answer<usize> {
    let headers = request.headers();
    match headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok()) {
        Some(length) if length > most => Err(too_long(most)),
        Some(length) => Ok(length),
        None if headers.contains_key(header::TRANSFER_ENCODING) => Ok(most),
        None => Ok(0),
    }
}

fn too_long(most: usize) -> cosched_api::ErrorBody {
    let why = format!("it has more than {} KiB", most >> 10);
    invalid("the request is too long", why, "Put long texts into files, and name the files.")
}

fn too_slow() -> cosched_api::ErrorBody {
    let hint = "Send it in one piece; `request_time` in [limits] says how long it may take.";
    invalid("the request is incomplete", "its body did not arrive in time", hint)
}

fn over_budget() -> cosched_api::ErrorBody {
    refuse(
        ErrorCode::Limit,
        "the daemon's buffers for you are full",
        "your other requests and the answers that you have not read use all the bytes that you, or all users \
         together, may have",
        "Read the answers or close their connections; `cosched limits` shows what you have.",
    )
}

#[cfg(test)]
mod tests;
