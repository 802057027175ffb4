//! Answering who asks.

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

/// Nobody may keep the answering thread for longer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pipelines of one process are told apart by a number.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A socket that answers until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    path: PathBuf,
    /// The thread's listener under a second descriptor, to wake it.
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Answers with what `report` says at the time of asking; none is answered with silence.
    ///
    /// # Errors
    /// When there is no directory, socket or thread to be had.
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

/// The socket gets its name only when somebody listens on it: one without a listener is taken for a dead process's.
fn bind(directory: &Path, name: &str, path: &Path) -> io::Result<UnixListener> {
    let hidden = directory.join(format!(".{name}"));
    // Left over from a process with our number that died in between.
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
            // Who goes away while it is answered is no concern of the pipeline.
            Ok((stream, _)) => drop(answer(stream, &report)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // No descriptor is free: they come back. Anything else is the end: the listener was shut down.
            Err(error) if matches!(error.raw_os_error(), Some(23 | 24)) => {
                std::thread::sleep(Duration::from_millis(100))
            }
            Err(_) => return,
        }
    }
}

/// One line of JSON to the same user or root, nothing to others.
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

/// The process's command line; of a very long one the beginning.
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
