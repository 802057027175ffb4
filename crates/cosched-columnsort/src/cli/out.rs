//! Output and exit codes: data goes to standard output, messages to standard error.

use std::io::{self, Write};

/// Usage error, or a sort that is not possible as requested.
pub(crate) const EXIT_USAGE: u8 = 2;
/// Something failed, or records are not in order.
pub(crate) const EXIT_FAILED: u8 = 1;

/// Why a command fails.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: u8,
    message: String,
}

impl Problem {
    /// A failure during the work.
    pub(crate) fn failed(message: impl ToString) -> Problem {
        Problem { code: EXIT_FAILED, message: message.to_string() }
    }

    /// A problem with what happened, why, and a hint, in the form of all messages.
    pub(crate) fn explained(code: u8, what: &str, why: impl ToString, hint: &str) -> Problem {
        Problem { code, message: format!("{what}\n  why: {}\n  hint: {hint}", why.to_string()) }
    }

    /// A failure that has been reported already.
    pub(crate) fn silent(code: u8) -> Problem {
        Problem { code, message: String::new() }
    }

    /// Prints the message.
    pub(crate) fn say(&self) {
        if !self.message.is_empty() {
            say(&self.message);
        }
    }
}

/// Prints a message to standard error, at once, so that a launcher passes on all of it or nothing; ignores errors, such as a closed pipe.
pub(crate) fn say(message: &str) {
    let _ = io::stderr().write_all(format!("cosched-columnsort: {message}\n").as_bytes());
}

/// Prints data. If the reader has closed the pipe, the command ends without a message.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Problem::silent(0)),
        Err(e) => Err(Problem::failed(format!("cannot write to standard output: {e}"))),
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Problem> {
    print(&format!("{value}\n"))
}

/// Prints a result, as JSON or as text; returns the exit code for success.
pub(crate) fn give(json: bool, value: &serde_json::Value, text: &str) -> Result<u8, Problem> {
    if json {
        print_json(value)?
    } else {
        print(text)?
    }
    Ok(0)
}
