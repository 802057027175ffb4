//! The connections, each a task: HTTP/1 with a time limit for every step, so that no client occupies a place without using it.
//!
//! A head, an idle connection and a body each have the configured time, and so has an answer until a part of it is read. The time until an answer is
//! ready (`GET …/wait`) is not limited: a client may wait for a job.

use crate::door::{Door, PAUSE};
use crate::guest::{Caller, Guest};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The limit on the bytes buffered for a connection beyond those that are counted (`budget.rs`); a head has to fit.
const BUFFER_BYTES_MAX: usize = 16 << 10;

/// The limit on concurrent connections for metrics over TCP: their users are unknown.
const METRICS_CONNECTIONS_MAX: usize = 16;

/// Accepts users' connections until the task is aborted.
pub(crate) async fn users(door: Door, app: Router, time: Duration) {
    loop {
        let guest = door.next().await;
        let app = app.clone();
        tokio::spawn(async move {
            let _ = connection(guest, app, time, true).await;
        });
    }
}

/// Answers requests for the metrics over TCP: a limited number of connections at a time, one request each, and each in at most `time`.
pub(crate) async fn metrics(listener: TcpListener, app: Router, time: Duration) {
    let places = Arc::new(Semaphore::new(METRICS_CONNECTIONS_MAX));
    // Without a place, a connection waits in the kernel's queue and takes no descriptor of ours.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                tracing::warn!("a connection for metrics could not be accepted: {e}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let app = app.clone();
        tokio::spawn(async move {
            let guest = Guest::new(stream, Caller::UNKNOWN, time, None);
            let _ = tokio::time::timeout(time, connection(guest, app, time, false)).await;
            drop(place);
        });
    }
}

async fn connection<S>(guest: Guest<S>, app: Router, time: Duration, keep: bool) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = guest.caller;
    let app = TowerToHyperService::new(app);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(caller));
        app.call(request)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(time)
        .max_buf_size(BUFFER_BYTES_MAX)
        .keep_alive(keep)
        .serve_connection(TokioIo::new(guest), service)
        .await
}
