//! Standard output is data, standard error is talk; and the exit codes.

use std::io::{self, Write};

/// Wrong usage, or a sort that cannot be as it was asked for.
pub(crate) const EXIT_USAGE: u8 = 2;
/// Something failed, or records are not in order.
pub(crate) const EXIT_FAILED: u8 = 1;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: u8,
    message: String,
}

impl Problem {
    /// Something failed.
    pub(crate) fn failed(message: impl ToString) -> Problem {
        Problem { code: EXIT_FAILED, message: message.to_string() }
    }

    /// What, why and a hint, in the form of all messages.
    pub(crate) fn explained(code: u8, what: &str, why: impl ToString, hint: &str) -> Problem {
        Problem { code, message: format!("{what}\n  why: {}\n  hint: {hint}", why.to_string()) }
    }

    /// Everything was said already.
    pub(crate) fn silent(code: u8) -> Problem {
        Problem { code, message: String::new() }
    }

    /// Tells the person.
    pub(crate) fn say(&self) {
        if !self.message.is_empty() {
            say(&self.message);
        }
    }
}

/// Talks to the person, if somebody listens.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "cosched-columnsort: {message}");
}

/// Writes data. A reader that went away ends the command quietly.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Problem::silent(0)),
        Err(e) => Err(Problem::failed(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes one value as one line of JSON.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Problem> {
    print(&format!("{value}\n"))
}
