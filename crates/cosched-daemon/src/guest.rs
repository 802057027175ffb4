//! A connection, counted while it lasts, that is closed when nobody reads what is written to it.

use crate::door::Place;
use crate::rights::Peer;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The user and the process: they decide what is allowed.
    pub(crate) peer: Peer,
    /// The group, for the audit log.
    pub(crate) gid: u32,
}

impl Caller {
    /// Somebody whom the kernel does not name.
    pub(crate) const NOBODY: Caller = Caller { peer: Peer::NOBODY, gid: u32::MAX };

    /// Who is at the other end of this connection.
    pub(crate) fn of(stream: &UnixStream) -> Caller {
        let gid = stream.peer_cred().map_or(u32::MAX, |cred| cred.gid());
        Caller { peer: Peer::of(stream), gid }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Guest<S> {
    stream: S,
    caller: Caller,
    /// So long it may take until something is read of what waits to be.
    patience: Duration,
    /// Until when, while something waits.
    stuck: Option<Pin<Box<Sleep>>>,
    _place: Option<Place>,
}

impl<S> Guest<S> {
    /// Somebody who has a place.
    pub(crate) fn new(stream: S, caller: Caller, patience: Duration, place: Option<Place>) -> Guest<S> {
        Guest { stream, caller, patience, stuck: None, _place: place }
    }

    /// Who it is.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// Ends the patience of a write that goes on, or begins it.
    fn watched<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let deadline = Instant::now() + self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guest<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guest<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watched(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watched(cx, written)
    }

    /// So that long answers are written from where they are, without a copy.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(flavor = "current_thread")]
    async fn who_does_not_read_is_given_up_and_who_reads_slowly_is_not() {
        let patience = Duration::from_millis(300);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut guest = Guest::new(ours, Caller::NOBODY, patience, None);
        let much = vec![7; 8 << 20];
        assert_eq!(guest.write_all(&much).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(theirs);

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut guest = Guest::new(ours, Caller::NOBODY, patience, None);
        let reader = tokio::spawn(async move {
            let (mut piece, mut all) = (vec![0; 1 << 20], 0);
            while all < 8 << 20 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                all += theirs.read(&mut piece).await.unwrap();
            }
            all
        });
        guest.write_all(&much).await.unwrap();
        assert_eq!(reader.await.unwrap(), 8 << 20);
    }
}
