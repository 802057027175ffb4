//! Errors between a client and the daemon.

use crate::types::ErrorBody;
use crate::version::{API_VERSION, ApiVersion};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Why a request failed. `Display` gives what happened, why, and what to do, one line each.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no answer on the socket: no daemon is running, or the connection broke.
    #[error("no cosched daemon answers on {}\n  why: {}\n  hint: {}", path.display(), why_unreachable(path, source), hint_unreachable(path, source))]
    Unreachable {
        /// The socket that was tried.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The daemon started by this client ended or did not answer in time.
    #[error("the daemon could not be started\n  why: {why}\n  hint: {hint}")]
    NotStarted {
        /// The daemon's message, or what was missing.
        why: String,
        /// What to do.
        hint: String,
    },
    /// No daemon can run on this machine, or not for this user: there is no usable cgroup for jobs, or no place for the socket.
    #[error("no daemon can run here\n  why: {why}\n  hint: {hint}")]
    NoPlace {
        /// What is missing.
        why: String,
        /// What to do.
        hint: String,
    },
    /// The daemon refused the request.
    #[error("{}\n  why: {}\n  hint: {}", .0.what, .0.why, .0.hint)]
    Refused(ErrorBody),
    /// Client and daemon are of different versions, and this request needs the same.
    #[error(
        "the daemon speaks version {daemon} of the interface, this program version {}\n  why: {why}\n  hint: {}",
        API_VERSION, hint_version(*daemon)
    )]
    Version {
        /// The daemon's version of the interface.
        daemon: ApiVersion,
        /// The daemon's explanation.
        why: String,
    },
    /// The answer does not follow this version of the interface.
    #[error(
        "the daemon's answer was not understood\n  why: {0}\n  hint: is this cosched's socket, and is the daemon of \
         the same version?"
    )]
    Protocol(String),
}

fn hint_version(daemon: ApiVersion) -> &'static str {
    if daemon < API_VERSION {
        "the daemon is older than this program: install the new one and restart it (`systemctl restart coschedd`); \
         jobs keep running"
    } else {
        "this program is older than the daemon: install the version that came with the daemon, or link with its library"
    }
}

/// Whether the path exists and is something other than a socket.
fn is_no_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| !facts.file_type().is_socket())
}

fn why_unreachable(path: &Path, source: &io::Error) -> String {
    match source.kind() {
        _ if is_no_socket(path) => "this is not a socket".to_owned(),
        io::ErrorKind::NotFound => "the socket does not exist: no daemon was started".to_owned(),
        io::ErrorKind::ConnectionRefused => {
            "the socket exists, but no daemon listens on it (connection refused): the daemon has ended".to_owned()
        }
        io::ErrorKind::PermissionDenied => "this user may not open the socket (permission denied)".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "the connection broke: the daemon has ended".to_owned()
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the daemon did not answer in time".to_owned(),
        _ => source.to_string(),
    }
}

fn hint_unreachable(path: &Path, source: &io::Error) -> &'static str {
    match source.kind() {
        _ if is_no_socket(path) => "give the socket of a daemon with --socket or COSCHED_SOCKET, or neither",
        io::ErrorKind::PermissionDenied => "choose another daemon with --socket, or ask the administrator for access",
        // Another user's directory (`check_directory`).
        io::ErrorKind::Other => "set XDG_RUNTIME_DIR to a directory of your own, or name a socket with --socket",
        _ => "`cosched run -- COMMAND` starts one for you; `systemctl start coschedd` starts the system's",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_why_and_what_to_do() {
        let unreachable =
            ClientError::Unreachable { path: "/x/coschedd.sock".into(), source: io::ErrorKind::NotFound.into() };
        let text = unreachable.to_string();
        assert!(text.starts_with("no cosched daemon answers on /x/coschedd.sock\n  why: the socket does not exist"));
        assert!(text.contains("\n  hint: `cosched run -- COMMAND` starts one"));
        let file =
            ClientError::Unreachable { path: "/proc/version".into(), source: io::ErrorKind::ConnectionRefused.into() };
        assert!(file.to_string().contains("why: this is not a socket\n  hint: give the socket"), "{file}");
        let refused = ClientError::Refused(ErrorBody {
            code: crate::ErrorCode::NotFound,
            what: "no job 7".into(),
            why: "ids go from 1 to 3".into(),
            hint: "`cosched ps --all` lists them".into(),
        });
        assert_eq!(refused.to_string(), "no job 7\n  why: ids go from 1 to 3\n  hint: `cosched ps --all` lists them");
    }
}
