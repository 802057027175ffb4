//! The connection to a scheduler that listens: at tcp:// or ipc://, with a limit for each wait.

use super::zmtp;
use crate::out::{EXIT_REFUSED, Failure, say};
use crate::timely::{Timely, left};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How often it is tried whether a scheduler listens already.
const RETRY: Duration = Duration::from_millis(50);

/// Where a scheduler listens, as ZeroMQ writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// Host and port.
    Tcp(String),
    /// A path, or `@` and an abstract name.
    Ipc(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => write!(f, "tcp://{address}"),
            Endpoint::Ipc(path) => write!(f, "ipc://{path}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Endpoint::Ipc(path.to_owned()));
        }
        let (host, port) = text
            .strip_prefix("tcp://")
            .and_then(|address| address.rsplit_once(':'))
            .ok_or("an endpoint is tcp://HOST:PORT or ipc://PATH, as tcp://localhost:28000")?;
        match (host, port.parse::<u16>()) {
            ("*", _) => Err("`*` is what the scheduler binds to; give its host, as tcp://localhost:28000".to_owned()),
            ("", _) => Err("the host is missing, as in tcp://localhost:28000".to_owned()),
            (_, Ok(1..)) => Ok(Endpoint::Tcp(format!("{host}:{port}"))),
            _ => Err(format!("`{port}` is not a port, as in tcp://localhost:28000")),
        }
    }
}

trait Wire: Read + Write + AsFd {}

impl<S: Read + Write + AsFd> Wire for S {}

/// A scheduler that has been greeted.
pub(super) struct Scheduler {
    stream: Timely<Box<dyn Wire>>,
    endpoint: Endpoint,
    patience: Duration,
}

impl Scheduler {
    /// Connects, as soon as it listens.
    pub(super) fn connect(endpoint: &Endpoint, patience: Duration) -> Result<Scheduler, Failure> {
        let until = Instant::now() + patience;
        let wire = wire(endpoint, until).map_err(|error| failure(endpoint, patience, &error, true))?;
        let mut stream = Timely::new(wire, until);
        zmtp::greet(&mut stream).map_err(|error| failure(endpoint, patience, &error, true))?;
        Ok(Scheduler { stream, endpoint: endpoint.clone(), patience })
    }

    /// Sends a message and returns the answer.
    pub(super) fn ask(&mut self, message: &str) -> Result<Vec<u8>, Failure> {
        self.stream.set_deadline(Instant::now() + self.patience);
        let answer = zmtp::request(&mut self.stream, message.as_bytes());
        answer.map_err(|error| failure(&self.endpoint, self.patience, &error, false))
    }
}

/// A connection; it is tried until the scheduler listens.
fn wire(endpoint: &Endpoint, until: Instant) -> io::Result<Box<dyn Wire>> {
    let mut is_told = false;
    loop {
        let limit = left(until)?;
        let result: io::Result<Box<dyn Wire>> = match endpoint {
            Endpoint::Tcp(address) => tcp(address, until).map(|stream| Box::new(stream) as Box<dyn Wire>),
            Endpoint::Ipc(path) => ipc(path, limit).map(|stream| Box::new(stream) as Box<dyn Wire>),
        };
        match result {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::NotFound | ErrorKind::WouldBlock
                ) =>
            {
                if !std::mem::replace(&mut is_told, true) {
                    say(&format!("waiting until a scheduler listens at {endpoint}"));
                }
                std::thread::sleep(RETRY.min(left(until)?));
            }
            result => return result,
        }
    }
}

/// The first of the host's addresses that answers.
fn tcp(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut last = Error::other("the host has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(stream) => return stream.set_nodelay(true).map(|()| stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Without the limit a listener that accepts no more would be waited for without end.
fn ipc(path: &str, limit: Duration) -> io::Result<UnixStream> {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
        None => SocketAddrUnix::new(path)?,
    };
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    rustix::net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

fn failure(endpoint: &Endpoint, patience: Duration, error: &Error, at_first: bool) -> Failure {
    let again = "its own messages may say why; start both again";
    let (code, what, why, hint) = match error.kind() {
        ErrorKind::TimedOut if at_first => (
            1,
            "cannot be reached",
            format!("no ZeroMQ socket has answered within {patience:?}"),
            "start it so that it binds there, as pybatsim --socket-endpoint does; --patience 5min waits longer",
        ),
        ErrorKind::TimedOut => (
            1,
            "does not answer",
            format!("nothing came within {patience:?}"),
            "--patience 5min waits longer; its own messages may say what it does",
        ),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            (1, "is gone", "it has ended or closed the connection".to_owned(), again)
        }
        ErrorKind::InvalidData => {
            (EXIT_REFUSED, "cannot be understood", error.to_string(), "a scheduler binds a REP socket")
        }
        _ => (1, "cannot be reached", error.to_string(), "check the endpoint"),
    };
    Failure::explained(code, &format!("the scheduler at {endpoint} {what}"), &why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        for text in ["tcp://localhost:28000", "tcp://[::1]:1", "ipc:///run/s.sock", "ipc://@name"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        let cases = [
            ("localhost:28000", "tcp://HOST:PORT or ipc://PATH"),
            ("tcp://localhost", "tcp://HOST:PORT"),
            ("tcp://*:28000", "give its host"),
            ("tcp://:1", "the host is missing"),
            ("tcp://a:0", "`0` is not a port"),
            ("tcp://a:66000", "is not a port"),
            ("ipc://", "ipc://PATH"),
        ];
        for (text, part) in cases {
            assert!(text.parse::<Endpoint>().unwrap_err().contains(part), "{text}");
        }
    }
}
