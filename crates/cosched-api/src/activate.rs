//! Starting a daemon on demand: the client binds the socket and hands it over, so no request can come too early.
//!
//! Only one client starts a daemon: a lock file next to the socket decides which. The listening socket becomes the daemon's standard input
//! (`coschedd --embedded --listen-stdin`); no client keeps it open, so all clients that are connected or connect notice at once when the daemon
//! dies. A text in the lock file marks the socket of such a daemon. The socket of an operator's daemon that died has no such mark, and that daemon
//! is not replaced: its operator restarts it.

use crate::client::Client;
use crate::error::ClientError;
use crate::socket::{is_absent, prepare_directory};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The exit code of a daemon that finds no usable cgroup for its jobs on this machine; its last output has a line with `why:` and one with `hint:`.
pub const NO_PLACE: u8 = 3;
/// How the warning of a daemon begins whose state is beside its socket, because it has no other place.
pub const STATE_BESIDE: &str = "the jobs' journal and history are in ";
/// The longest time that a new daemon has for its first answer, unless the caller has less.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How to start a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The daemon's executable.
    pub daemon: PathBuf,
    /// Put before the daemon's command line: a program that creates a new session and then executes its arguments. If empty, the daemon only gets a
    /// process group of its own.
    pub wrapper: Vec<OsString>,
    /// The longest time that the daemon has for its first answer.
    pub timeout: Duration,
}

impl Activation {
    /// Finds the daemon: `$COSCHED_DAEMON`, else `coschedd` next to this executable, else in `$PATH`.
    ///
    /// # Errors
    /// [`ClientError::NotStarted`] if it is not found.
    pub fn find(wrapper: Vec<OsString>) -> Result<Activation, ClientError> {
        let named = std::env::var_os("COSCHED_DAEMON").filter(|value| !value.is_empty()).map(PathBuf::from);
        let beside = || Some(std::env::current_exe().ok()?.with_file_name("coschedd")).filter(|path| path.is_file());
        let in_path = || {
            let path = std::env::var_os("PATH")?;
            std::env::split_paths(&path).map(|dir| dir.join("coschedd")).find(|path| path.is_file())
        };
        match named.or_else(beside).or_else(in_path) {
            Some(daemon) => Ok(Activation { daemon, wrapper, timeout: START_TIMEOUT }),
            None => Err(ClientError::NotStarted {
                why: "coschedd was found neither beside cosched nor in $PATH".into(),
                hint: "install it, or name it with COSCHED_DAEMON=/path/to/coschedd".into(),
            }),
        }
    }

    fn spawn(&self, socket: &Path, listener: UnixListener, log: &File) -> io::Result<Child> {
        let mut words = self.wrapper.iter().cloned().chain([self.daemon.clone().into_os_string()]);
        let mut command = Command::new(words.next().expect("the daemon's path is known"));
        command.args(words).args(["--embedded", "--listen-stdin", "--socket"]).arg(std::path::absolute(socket)?);
        command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(log.try_clone()?).stderr(log.try_clone()?);
        if self.wrapper.is_empty() {
            command.process_group(0);
        }
        command.current_dir("/").spawn()
    }
}

/// Connects to the daemon on `socket`, and starts one if none is running.
///
/// # Errors
/// [`ClientError::NotStarted`] with the end of the daemon's log if it ended early or did not answer in time, and if a daemon has died that was not
/// started by a client; [`ClientError::NoPlace`] if none can run on this machine; [`ClientError::Unreachable`] if this user may not use the socket.
pub fn activate(socket: &Path, activation: &Activation) -> Result<Client, ClientError> {
    let elsewhere = || "choose another place with --socket PATH (or COSCHED_SOCKET)".to_owned();
    let failed = |what: &str, e: &io::Error| ClientError::NotStarted { why: format!("{what}: {e}"), hint: elsewhere() };
    let place = socket.display();
    prepare_directory(socket).map_err(|e| match e.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
            ClientError::NoPlace { why: format!("the directory of {place} cannot be used: {e}"), hint: elsewhere() }
        }
        // Another user's directory, for example: a mistake or an attack.
        _ => failed(&format!("the directory of {place} cannot be used"), &e),
    })?;
    let lock_path = lock_of(socket);
    let mut lock = open_private(&lock_path).map_err(|e| failed(&lock_path.display().to_string(), &e))?;
    // Held until this function returns: concurrent clients wait for the daemon, then find it.
    lock.lock().map_err(|e| failed(&lock_path.display().to_string(), &e))?;
    match Client::connect(socket) {
        Err(ClientError::Unreachable { source, .. })
            if source.kind() == io::ErrorKind::ConnectionRefused && lock.metadata().is_ok_and(|of| of.len() == 0) =>
        {
            return Err(ClientError::NotStarted {
                why: format!(
                    "the daemon of {place} has died, and was not started by a command: a daemon started here would \
                     block its restart"
                ),
                hint: format!(
                    "restart it as before (`systemctl start coschedd`), or remove {place} if it is not needed"
                ),
            });
        }
        Err(ClientError::Unreachable { source, .. }) if is_absent(&source) => {}
        other => return other,
    }
    let marked = lock.set_len(0).and_then(|()| lock.write_all(b"A daemon was started here on demand.\n"));
    marked.map_err(|e| failed(&lock_path.display().to_string(), &e))?;
    let log_path = socket.with_extension("log");
    let mut log = open_private(&log_path).map_err(|e| failed(&log_path.display().to_string(), &e))?;
    let log_start = log.seek(SeekFrom::End(0)).map_err(|e| failed(&log_path.display().to_string(), &e))?;
    let listener = listen(socket).map_err(|e| failed(&format!("cannot listen on {place}"), &e))?;
    let child = activation.spawn(socket, listener, &log);
    let mut child = child.map_err(|e| failed(&format!("cannot execute {}", activation.daemon.display()), &e))?;
    first_answer(socket, activation.timeout, &mut child).map_err(|(what, status)| {
        let said = last_lines(&log_path, log_start);
        let part =
            |name: &str| said.iter().rev().find_map(|line| line.trim_start().strip_prefix(name)).map(str::to_owned);
        match (part("why: "), part("hint: ")) {
            (Some(why), Some(hint)) if status == Some(i32::from(NO_PLACE)) => {
                // This is its whole message; the next attempt prints the same.
                let _ = (fs::remove_file(socket), log.set_len(log_start));
                ClientError::NoPlace { why, hint }
            }
            _ => {
                let what =
                    if said.is_empty() { what } else { format!("{what}; its output:\n    {}", said.join("\n    ")) };
                ClientError::NotStarted { why: what, hint: format!("the whole log is {}", log_path.display()) }
            }
        }
    })
}

/// The file that is locked while a client starts a daemon on this socket. An operator's daemon removes it.
pub fn lock_of(socket: &Path) -> PathBuf {
    socket.with_extension("lock")
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(socket) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    // The peer's uid decides about permissions, so every user who can reach the directory may connect to the daemon.
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// The connection waits in the socket's backlog until the daemon accepts it, and breaks when the daemon ends. On failure returns what happened, and
/// the exit code of a daemon that has ended.
fn first_answer(socket: &Path, timeout: Duration, child: &mut Child) -> Result<Client, (String, Option<i32>)> {
    let answer = Client::connect(socket).and_then(|mut client| {
        client.set_answer_timeout(timeout);
        client.status()?;
        client.set_answer_timeout(crate::client::ANSWER_TIMEOUT);
        Ok(client)
    });
    let error = match answer {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    // The socket closes an instant before the process can be waited for.
    let patience = Instant::now() + Duration::from_secs(1);
    while Instant::now() < patience {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Ok(Some(status)) => return Err((format!("it ended at once ({status})"), status.code())),
            Err(_) => break,
        }
    }
    // A daemon that hangs is not left behind.
    let _ = child.kill();
    let _ = child.wait();
    Err((format!("its answer was not usable: {error}"), None))
}

/// The last ten lines that the daemon wrote since `start`.
fn last_lines(log: &Path, start: u64) -> Vec<String> {
    let mut text = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(start))?;
        file.take(1 << 20).read_to_end(&mut text)
    });
    let text = String::from_utf8_lossy(if read.is_ok() { &text } else { &[] });
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A "daemon" that is a shell script.
    fn script(dir: &Path, body: &str) -> Activation {
        let daemon = dir.join("coschedd");
        fs::write(&daemon, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&daemon, fs::Permissions::from_mode(0o755)).unwrap();
        Activation { daemon, wrapper: Vec::new(), timeout: START_TIMEOUT }
    }

    #[test]
    fn a_daemon_that_ends_early_is_explained_by_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let activation = script(dir.path(), "echo \"args: $*\"; echo 'no cgroups here' >&2; exit 9");
        let error = activate(&dir.path().join("run/coschedd.sock"), &activation).unwrap_err().to_string();
        assert!(error.starts_with("the daemon could not be started\n  why: it ended at once"), "{error}");
        assert!(
            error.contains("args: --embedded --listen-stdin --socket ") && error.contains("\n    no cgroups here"),
            "{error}"
        );
        assert!(error.contains("run/coschedd.log"), "{error}");
        // The error of the next attempt contains only that attempt's output.
        let activation = script(dir.path(), "echo second; exit 1");
        let error = activate(&dir.path().join("run/coschedd.sock"), &activation).unwrap_err().to_string();
        assert!(error.contains("second") && !error.contains("no cgroups"), "{error}");
    }

    #[test]
    fn where_no_daemon_can_run_its_reason_is_told_without_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let say =
            "printf 'INFO begins\\ncoschedd: no daemon can run here\\n  why: no cgroups\\n  hint: ask\\n' >&2; exit";
        let socket = dir.path().join("run/coschedd.sock");
        let error = activate(&socket, &script(dir.path(), &format!("{say} {NO_PLACE}"))).unwrap_err();
        assert!(
            matches!(&error, ClientError::NoPlace { why, hint } if why == "no cgroups" && hint == "ask"),
            "{error}"
        );
        let log = fs::metadata(socket.with_extension("log")).unwrap();
        assert!(!socket.exists() && log.len() == 0, "nothing piles up");
        // Other exit codes are not reported as `NoPlace`, whatever the output is.
        let error = activate(&socket, &script(dir.path(), &format!("{say} 1"))).unwrap_err();
        assert!(matches!(error, ClientError::NotStarted { .. }), "{error}");
    }

    #[test]
    fn a_daemon_that_listens_already_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("run/coschedd.sock");
        prepare_directory(&socket).unwrap();
        let _daemon = UnixListener::bind(&socket).unwrap();
        let activation = script(dir.path(), "touch \"$0.started\"");
        activate(&socket, &activation).unwrap();
        assert!(!dir.path().join("coschedd.started").exists());
    }

    #[test]
    fn only_a_daemon_that_was_started_on_demand_is_started_in_the_place_of_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("run/coschedd.sock");
        prepare_directory(&socket).unwrap();
        drop(UnixListener::bind(&socket).unwrap());
        let activation = script(dir.path(), "touch \"$0.started\"; exit 1");
        let started = dir.path().join("coschedd.started");
        for _ in 0..2 {
            let error = activate(&socket, &activation).unwrap_err().to_string();
            assert!(error.contains("was not started by a command") && !started.exists(), "{error}");
        }
        fs::write(lock_of(&socket), "a daemon was").unwrap();
        activate(&socket, &activation).unwrap_err();
        assert!(started.exists());
    }

    #[test]
    fn a_daemon_that_cannot_be_executed_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let activation = Activation { daemon: dir.path().join("nothing"), wrapper: Vec::new(), timeout: START_TIMEOUT };
        let error = activate(&dir.path().join("run/coschedd.sock"), &activation).unwrap_err().to_string();
        assert!(error.contains("cannot execute") && error.contains("nothing"), "{error}");
    }
}
