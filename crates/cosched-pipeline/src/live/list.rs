//! Queries all running pipelines of this machine.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;

use super::{Snapshot, directory};

/// Needed because a stopped process accepts connections and never answers.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// A snapshot has about 100 kB.
const SIZE_MAX: u64 = 16 << 20;

/// A running pipeline.
#[derive(Debug)]
pub struct Listed {
    /// Its process ID, from the socket's name.
    pub pid: u32,
    /// Its socket.
    pub path: PathBuf,
    /// What it answered.
    pub answer: Result<Snapshot, Silence>,
}

/// Why a pipeline does not answer though its process exists.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Silence {
    /// Its process is stopped, frozen, or gets no CPU time.
    #[error("it does not answer within {} s: is it stopped?", READ_TIMEOUT.as_secs())]
    Late,
    /// It closed the connection without an answer: it belongs to another user, or was just ending.
    #[error("it does not answer this user")]
    Refused,
    /// Its answer is not in this version's format.
    #[error("its answer cannot be read: {0}")]
    Foreign(String),
    /// Any other error.
    #[error("{0}")]
    Os(io::Error),
}

/// All running pipelines that this user may see, by process ID. Sockets of this user without a listening process are removed.
pub fn list() -> Vec<Listed> {
    let mut found: Vec<Listed> = directory::readable().iter().flat_map(|directory| in_directory(directory)).collect();
    found.sort_by(|a, b| (a.pid, &a.path).cmp(&(b.pid, &b.path)));
    found
}

fn in_directory(directory: &Path) -> Vec<Listed> {
    // A directory to which others than its owner have access may contain anything.
    let Ok(owner) = fs::symlink_metadata(directory).map(|facts| facts.uid()) else { return Vec::new() };
    if !directory::is_private(directory, owner).unwrap_or(false) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str().filter(|_| entry.file_type().is_ok_and(|kind| kind.is_socket())) else {
            continue;
        };
        let is_own = owner == geteuid().as_raw();
        if let Some(pid) = name.strip_prefix('.').and_then(pid_in) {
            // A socket that was never renamed. One whose process still exists is about to be renamed, and is not touched.
            if is_own && !Path::new(&format!("/proc/{pid}")).exists() {
                let _ = fs::remove_file(path);
            }
        } else if let Some(pid) = name.strip_suffix(".sock").and_then(pid_in) {
            match ask(&path) {
                None if is_own => drop(fs::remove_file(path)),
                None => {}
                Some(answer) => found.push(Listed { pid, path, answer }),
            }
        }
    }
    found
}

/// The process ID in `PID-N`.
fn pid_in(name: &str) -> Option<u32> {
    let (pid, number) = name.split_once('-')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

/// The answer; None if no process listens, because the pipeline's process has ended.
fn ask(path: &Path) -> Option<Result<Snapshot, Silence>> {
    match connect(path) {
        Ok(stream) => Some(read(stream).and_then(|text| parse(&text))),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => None,
            io::ErrorKind::WouldBlock => Some(Err(Silence::Late)),
            _ => Some(Err(Silence::Os(error))),
        },
    }
}

/// Does not block: a stopped process accepts nothing, and its connection backlog may be full.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Reads the whole answer, within the timeout in total.
fn read(mut stream: UnixStream) -> Result<Vec<u8>, Silence> {
    let end = Instant::now() + READ_TIMEOUT;
    let mut text = Vec::new();
    let mut part = [0; 64 * 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Silence::Late);
        }
        stream.set_read_timeout(Some(left)).map_err(Silence::Os)?;
        match stream.read(&mut part) {
            Ok(0) if text.is_empty() => return Err(Silence::Refused),
            Ok(0) => return Ok(text),
            Ok(length) => text.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(Silence::Late);
            }
            Err(error) => return Err(Silence::Os(error)),
        }
        if text.len() as u64 > SIZE_MAX {
            return Err(Silence::Foreign("it is too long".to_owned()));
        }
    }
}

fn parse(text: &[u8]) -> Result<Snapshot, Silence> {
    let snapshot: Snapshot = serde_json::from_slice(text).map_err(|error| Silence::Foreign(error.to_string()))?;
    if snapshot.format == Snapshot::FORMAT {
        Ok(snapshot)
    } else {
        Err(Silence::Foreign(format!("its format is '{}', not '{}'", snapshot.format, Snapshot::FORMAT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sockets_tell_their_process() {
        assert_eq!(pid_in("17-0"), Some(17));
        for other in ["17", "x-0", "17-x", "17-0.", "-0", "notes.txt", ""] {
            assert_eq!(pid_in(other), None, "{other}");
        }
    }

    #[test]
    fn other_words_are_not_taken_for_an_answer() {
        assert!(matches!(parse(b"hello"), Err(Silence::Foreign(_))));
        assert!(matches!(parse(b"{}"), Err(Silence::Foreign(_))));
        let other = r#"{"format":"other-9","pid":1,"uid":0,"command":"x","report":{"format":"","name":"",
            "elapsed_s":0,"memory_bytes":0,"stages":[]}}"#;
        let Err(Silence::Foreign(why)) = parse(other.as_bytes()) else { panic!("taken") };
        assert!(why.contains("other-9"), "{why}");
    }
}
