//! A connection that is counted while it lasts, and closed when the client does not read what is written to it.

use crate::door::Place;
use crate::pace;
use crate::rights::Peer;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// The process at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The user and the process: they decide what is allowed.
    pub(crate) peer: Peer,
    /// The group, for the audit log.
    pub(crate) gid: u32,
}

impl Caller {
    /// A peer that the kernel does not name.
    pub(crate) const UNKNOWN: Caller = Caller { peer: Peer::UNKNOWN, gid: u32::MAX };

    /// The peer of this connection.
    pub(crate) fn of(stream: &UnixStream) -> Caller {
        let gid = stream.peer_cred().map_or(u32::MAX, |cred| cred.gid());
        Caller { peer: Peer::of(stream), gid }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Guest<S> {
    stream: S,
    /// The process at the other end.
    pub(crate) caller: Caller,
    /// The time limit until the client reads a part of the pending data.
    patience: Duration,
    /// The deadline, while data are pending.
    stuck: Option<Pin<Box<Sleep>>>,
    _place: Option<Place>,
}

impl<S> Guest<S> {
    /// A connection with its place among the counted ones.
    pub(crate) fn new(stream: S, caller: Caller, patience: Duration, place: Option<Place>) -> Guest<S> {
        Guest { stream, caller, patience, stuck: None, _place: place }
    }

    /// Stops the timer when a write made progress, and starts it when the write is pending.
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
        pace::heed();
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

    /// Lets long answers be written from their buffers without a copy.
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
    use std::task::Waker;
    use tokio::io::AsyncWriteExt;

    /// A connection whose client reads when the test says so.
    struct Reader {
        reads: bool,
    }

    impl AsyncWrite for Reader {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            if self.reads { Poll::Ready(Ok(buf.len().min(1))) } else { Poll::Pending }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(guest: &mut Guest<Reader>) -> Poll<io::Result<usize>> {
        Pin::new(guest).poll_write(&mut Context::from_waker(Waker::noop()), b"answer")
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_does_not_read_is_given_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut guest = Guest::new(ours, Caller::UNKNOWN, Duration::from_millis(20), None);
        let much = vec![7; 8 << 20];
        assert_eq!(guest.write_all(&much).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// Each piece that is read restarts the time limit.
    #[tokio::test(flavor = "current_thread")]
    async fn who_reads_slowly_is_waited_for() {
        let mut guest = Guest::new(Reader { reads: false }, Caller::UNKNOWN, Duration::from_secs(3600), None);
        assert!(write(&mut guest).is_pending());
        let since = guest.stuck.as_ref().map(|stuck| stuck.deadline());
        assert!(write(&mut guest).is_pending());
        assert_eq!(guest.stuck.as_ref().map(|stuck| stuck.deadline()), since, "asking again gives no more time");
        guest.stream.reads = true;
        assert!(matches!(write(&mut guest), Poll::Ready(Ok(1))));
        assert!(guest.stuck.is_none());
        guest.stream.reads = false;
        guest.patience = Duration::ZERO;
        let late = std::future::poll_fn(|cx| Pin::new(&mut guest).poll_write(cx, b"answer")).await;
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
