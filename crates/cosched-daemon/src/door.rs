//! Who may come in: the Unix socket's connections, counted by user.
//!
//! Anybody may connect, and each connection takes a descriptor and memory. So one user may have so many at a time that
//! the others, and the daemon's own work, have enough left. Administrators are not counted.

use crate::rights::{Peer, Rights};
use cosched_api::{ErrorBody, ErrorCode};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};

/// Connections of one user at a time, whatever the limit of open files is.
const USER_MAX: usize = 512;

/// After a failure that is not the connection's own, as when there is no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

type Counts = Arc<Mutex<BTreeMap<u32, usize>>>;

/// The listening socket.
pub(crate) struct Door {
    listener: UnixListener,
    rights: Rights,
    user_max: usize,
    inside: Counts,
}

/// A connection, counted while it lasts.
pub(crate) struct Guest {
    stream: UnixStream,
    peer: Peer,
    inside: Option<Counts>,
}

impl Door {
    /// One user gets an eighth of the files that the process may open, and no more than `USER_MAX`.
    pub(crate) fn new(listener: UnixListener, rights: Rights, open_files_max: u64) -> Door {
        let user_max = USER_MAX.min((open_files_max / 8) as usize).max(1);
        Door { listener, rights, user_max, inside: Counts::default() }
    }

    /// None when this user has too many.
    fn let_in(&self, stream: UnixStream) -> Option<Guest> {
        let peer = Peer::of(&stream);
        if self.rights.is_admin(peer) {
            return Some(Guest { stream, peer, inside: None });
        }
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let count = inside.entry(peer.uid).or_default();
        if *count >= self.user_max {
            drop(inside);
            self.turn_away(&stream, peer);
            return None;
        }
        *count += 1;
        drop(inside);
        Some(Guest { stream, peer, inside: Some(Arc::clone(&self.inside)) })
    }

    /// Says why, if that can be said at once; who reads it or not is no matter.
    fn turn_away(&self, stream: &UnixStream, peer: Peer) {
        tracing::debug!(uid = peer.uid, "a user has too many connections");
        let body = ErrorBody {
            code: ErrorCode::Conflict,
            what: "the daemon takes no more connections of yours".to_owned(),
            why: format!("you have {} at a time", self.user_max),
            hint: "End programs that wait for jobs, or close connections that are not in use.".to_owned(),
        };
        let body = serde_json::to_string(&body).unwrap_or_default();
        let head = "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ";
        let _ = stream.try_write(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
    }
}

impl axum::serve::Listener for Door {
    type Io = Guest;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guest, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    if let Some(guest) = self.let_in(stream) {
                        return (guest, address);
                    }
                }
                Err(e) => {
                    tracing::warn!("a connection could not be taken: {e}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Guest {
    /// Who it is.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let Some(inside) = &self.inside else { return };
        let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = inside.get_mut(&self.peer.uid) {
            *count -= 1;
            if *count == 0 {
                inside.remove(&self.peer.uid);
            }
        }
    }
}

impl AsyncRead for Guest {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
