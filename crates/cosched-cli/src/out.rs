//! Standard output is data, standard error is talk; and the exit codes.

use cosched_api::{ClientError, ErrorCode};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// No daemon is reachable.
pub(crate) const EXIT_NO_DAEMON: u8 = 3;
/// There is no such job.
pub(crate) const EXIT_NO_JOB: u8 = 4;
/// Not this user's right.
pub(crate) const EXIT_FORBIDDEN: u8 = 5;
/// Refused in the present state, or invalid.
pub(crate) const EXIT_REFUSED: u8 = 6;

/// Why a command ends without success: its exit code and what to say, if anything.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// Something failed in a way that has no code of its own.
    pub(crate) fn other(message: impl Into<String>) -> Failure {
        Failure { code: 1, message: message.into() }
    }

    /// Everything was said already.
    pub(crate) fn silent(code: u8) -> Failure {
        Failure { code, message: String::new() }
    }

    /// What, why and a hint, in the form of all messages.
    pub(crate) fn explained(code: u8, what: &str, why: &str, hint: &str) -> Failure {
        Failure { code, message: format!("{what}\n  why: {why}\n  hint: {hint}") }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let code = match &error {
            ClientError::Unreachable { .. } | ClientError::NotStarted { .. } => EXIT_NO_DAEMON,
            ClientError::Refused(body) => match body.code {
                ErrorCode::NotFound => EXIT_NO_JOB,
                ErrorCode::Forbidden => EXIT_FORBIDDEN,
                ErrorCode::Invalid | ErrorCode::Conflict | ErrorCode::Limit | ErrorCode::Unsupported => EXIT_REFUSED,
                ErrorCode::Internal => 1,
            },
            ClientError::Protocol(_) | ClientError::Version { .. } => 1,
        };
        Failure { code, message: error.to_string() }
    }
}

/// Writes data. A reader that went away (`cosched ps | head -1`) ends the command quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::silent(0)),
        Err(e) => Err(Failure::other(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes one value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|e| Failure::other(format!("cannot write JSON: {e}")))?;
    print(&format!("{text}\n"))
}

/// Talks to the person, if somebody listens.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "cosched: {message}");
}

/// Colour only for terminals, and not when `NO_COLOR` is set (to anything but nothing).
pub(crate) fn use_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The terminal's width in columns; none when standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}
