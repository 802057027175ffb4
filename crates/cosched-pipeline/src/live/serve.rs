//! The server side: answers clients that connect.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::Shutdown;
use rustix::process::geteuid;

use super::{Snapshot, directory};
use crate::report::Report;

/// The longest time that a client may block the answering thread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// A number that distinguishes the pipelines of one process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A socket that answers until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    path: PathBuf,
    /// A duplicate of the thread's listener, to wake the thread.
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Answers each client with the result of `report` at that time; if it is None, with nothing.
    ///
    /// # Errors
    /// If a directory, a socket or a thread cannot be created.
    pub(crate) fn start(report: impl Fn() -> Option<Report> + Send + 'static) -> io::Result<Served> {
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let directory = directory::own()?;
        let path = directory.join(format!("{name}.sock"));
        let listener = bind(&directory, &name, &path)?;
        let there = listener.try_clone()?;
        let body = move || answer_all(&there, report);
        match std::thread::Builder::new().name("cosched-show".into()).spawn(body) {
            Ok(thread) => Ok(Served { path, listener, thread: Some(thread) }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }
}

/// The socket gets its name only when it has a listener: one without a listener is taken for that of a dead
/// process.
fn bind(directory: &Path, name: &str, path: &Path) -> io::Result<UnixListener> {
    let hidden = directory.join(format!(".{name}"));
    // A leftover of a dead process with the same process ID.
    let _ = std::fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden)?;
    let named = std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600));
    match named.and_then(|()| std::fs::rename(&hidden, path)) {
        Ok(()) => Ok(listener),
        Err(error) => {
            let _ = std::fs::remove_file(&hidden);
            Err(error)
        }
    }
}

fn answer_all(listener: &UnixListener, report: impl Fn() -> Option<Report>) {
    loop {
        match listener.accept() {
            // A client that disconnects while it is answered does not affect the pipeline.
            Ok((stream, _)) => drop(answer(stream, &report)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // No file descriptor is free: a temporary condition. Any other error is the end: the listener was shut
            // down.
            Err(error) if matches!(error.raw_os_error(), Some(23 | 24)) => {
                std::thread::sleep(Duration::from_millis(100))
            }
            Err(_) => return,
        }
    }
}

/// Sends one line of JSON to the same user or root, nothing to others.
fn answer(mut stream: UnixStream, report: &impl Fn() -> Option<Report>) -> io::Result<()> {
    let uid = geteuid().as_raw();
    let asker = rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw();
    let Some(report) = report().filter(|_| asker == uid || asker == 0) else { return Ok(()) };
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let snapshot = Snapshot {
        format: Snapshot::FORMAT.to_owned(),
        pid: std::process::id(),
        uid,
        command: command(),
        report: Report { trace: None, ..report },
    };
    let mut line = serde_json::to_vec(&snapshot)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The process's command line, cut to 1000 characters.
fn command() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ").chars().take(1000).collect()
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // accept() returns at once on a socket that was shut down.
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
