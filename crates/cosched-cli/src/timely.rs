//! A stream that fails when its time is over, however little each read or write waits.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

pub(crate) struct Timely<S> {
    stream: S,
    deadline: Instant,
}

impl<S: AsFd> Timely<S> {
    pub(crate) fn new(stream: S, deadline: Instant) -> Timely<S> {
        Timely { stream, deadline }
    }

    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    fn within<T>(&mut self, kind: Timeout, call: impl FnOnce(&mut S) -> io::Result<T>) -> io::Result<T> {
        set_socket_timeout(&self.stream, kind, Some(left(self.deadline)?))?;
        call(&mut self.stream).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl<S: Read + AsFd> Read for Timely<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.within(Timeout::Recv, |stream| stream.read(bytes))
    }
}

impl<S: Write + AsFd> Write for Timely<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.within(Timeout::Send, |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time that is left, above zero.
pub(crate) fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_arrives_slowly_is_read_until_its_time_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        sender.write_all(b"GET").unwrap();
        let mut timely = Timely::new(&mut stream, Instant::now() + Duration::from_secs(60));
        let mut bytes = [0; 8];
        assert_eq!(timely.read(&mut bytes).unwrap(), 3);
        timely.set_deadline(Instant::now());
        sender.write_all(b" /").unwrap();
        assert!(timely.read(&mut bytes).is_err(), "though there is something to read");
    }
}
