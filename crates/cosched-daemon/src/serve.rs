//! The connections, each a task: HTTP/1 with a time for every step, so that nobody keeps a place without using it.
//!
//! A head, an idle connection and a body each have the configured time, and so has an answer until something of it is read. An
//! answer that is still to be found out (`GET …/wait`) has none: who waits for a job waits.

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

/// The most that is read or written of a connection beyond what is counted (`budget.rs`); a head has to fit.
const BUFFER_BYTES_MAX: usize = 16 << 10;

/// So many connections at a time ask for metrics over TCP: nobody knows whose they are.
const METRICS_CONNECTIONS_MAX: usize = 16;

/// Lets users in until the task is aborted.
pub(crate) async fn users(door: Door, app: Router, time: Duration) {
    loop {
        let guest = door.next().await;
        let app = app.clone();
        tokio::spawn(async move {
            let _ = connection(guest, app, time, true).await;
        });
    }
}

/// Answers who asks for the metrics over TCP: so many at a time, one request each, and in all no longer than `time`.
pub(crate) async fn metrics(listener: TcpListener, app: Router, time: Duration) {
    let places = Arc::new(Semaphore::new(METRICS_CONNECTIONS_MAX));
    // Who finds no place waits in the kernel's queue, without a descriptor of ours.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                tracing::warn!("a connection for metrics could not be taken: {e}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let app = app.clone();
        tokio::spawn(async move {
            let guest = Guest::new(stream, Caller::NOBODY, time, None);
            let _ = tokio::time::timeout(time, connection(guest, app, time, false)).await;
            drop(place);
        });
    }
}

async fn connection<S>(guest: Guest<S>, app: Router, time: Duration, keep: bool) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = guest.caller();
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
