//! A program with sockets, controlled by commands on its input; each is answered by a line.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;

use cosched_linux::{Arrivals, BpfArrivals};

/// The two ends of a connection.
enum Pair {
    Tcp(TcpStream, TcpStream),
    Unix(UnixStream, UnixStream),
    Datagram(UnixDatagram, UnixDatagram),
    Udp(UdpSocket, UdpSocket),
    /// A listening socket, and one that waits to be accepted.
    Listener {
        _listener: TcpListener,
        _caller: TcpStream,
    },
    Closed,
}

/// `pair KIND`, then `send`, `recv`, `shut` (no more will be sent) and `close` (both ends) of the last pair. `apart`: in a network namespace of its
/// own.
pub(crate) fn talk(apart: bool) -> Result<(), Box<dyn Error>> {
    if apart {
        // SAFETY: this process has one thread and no socket yet; a new network namespace affects nothing else.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        if !Command::new("ip").args(["link", "set", "lo", "up"]).status()?.success() {
            return Err("ip link failed".into());
        }
    }
    let mut last = Pair::Closed;
    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line?;
        let answer = match line.split_once(' ') {
            Some(("pair", kind)) => {
                last = pair(kind)?;
                "ok"
            }
            _ => last.steer(&line)?,
        };
        println!("{answer}");
    }
    Ok(())
}

fn pair(kind: &str) -> Result<Pair, Box<dyn Error>> {
    Ok(match kind {
        "unix" => UnixStream::pair().map(|(one, two)| Pair::Unix(one, two))?,
        "datagram" => UnixDatagram::pair().map(|(one, two)| Pair::Datagram(one, two))?,
        "udp" => {
            let (one, two) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
            one.connect(two.local_addr()?)?;
            Pair::Udp(one, two)
        }
        _ => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let caller = TcpStream::connect(listener.local_addr()?)?;
            if kind == "listener" {
                return Ok(Pair::Listener { _listener: listener, _caller: caller });
            }
            Pair::Tcp(caller, listener.accept()?.0)
        }
    })
}

impl Pair {
    fn steer(&mut self, word: &str) -> Result<&'static str, Box<dyn Error>> {
        let mut byte = [0];
        let count = match (word, &mut *self) {
            ("close", pair) => {
                *pair = Pair::Closed;
                0
            }
            ("send", Pair::Tcp(one, _)) => one.write(b"x")?,
            ("send", Pair::Unix(one, _)) => one.write(b"x")?,
            ("send", Pair::Datagram(one, _)) => one.send(b"x")?,
            ("send", Pair::Udp(one, _)) => one.send(b"x")?,
            ("recv", Pair::Tcp(_, two)) => two.read(&mut byte)?,
            ("recv", Pair::Unix(_, two)) => two.read(&mut byte)?,
            ("recv", Pair::Datagram(_, two)) => two.recv(&mut byte)?,
            ("recv", Pair::Udp(_, two)) => two.recv(&mut byte)?,
            ("shut", Pair::Tcp(one, _)) => one.shutdown(Shutdown::Write).map(|()| 0)?,
            ("shut", Pair::Unix(one, _)) => one.shutdown(Shutdown::Write).map(|()| 0)?,
            // Closes one end permanently, and reports whether the other one sees that.
            ("half", Pair::Tcp(..)) => {
                let Pair::Tcp(one, mut two) = std::mem::replace(self, Pair::Closed) else { return Err("moved".into()) };
                drop(one);
                two.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
                return match two.read(&mut byte) {
                    Ok(0) => Ok("end"),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => Ok("still open"),
                    other => Err(format!("{other:?}").into()),
                };
            }
            _ => return Err(format!("what is '{word}'?").into()),
        };
        Ok(if count > 0 { "one" } else { "ok" })
    }
}

/// As a user without rights: prints the result of a scan of that process, and that of BPF.
pub(crate) fn look_into(pid: &str) -> Result<(), Box<dyn Error>> {
    // SAFETY: takes a number only; this process has one thread.
    if unsafe { libc::setuid(65_534) } != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let mut arrivals = Arrivals::new()?;
    arrivals.watch(1, false)?;
    let scan = arrivals.rescan(1, &[pid.parse()?])?;
    println!("{} {}", scan.refused, scan.problem.map(|p| p.to_string()).unwrap_or_default());
    println!("{}", BpfArrivals::load().err().map(|p| p.to_string()).unwrap_or_default());
    Ok(())
}
