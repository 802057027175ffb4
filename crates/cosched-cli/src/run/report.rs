//! The outcome of a registration, as a line of JSON for the program that started `cosched run`: the first process of a detached
//! job, or the program that named a file with `--report`.

use super::{EXIT_FAILED, Failure, failed};
use cosched_api::Job;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    /// The command is about to run as this job.
    Registered(Box<Job>),
    /// The command is about to run without a job.
    WithoutDaemon { why: String, hint: String },
    /// cosched itself failed.
    Failed { code: u8, message: String },
}

impl Report {
    pub(super) fn of(failure: &Failure) -> Report {
        Report::Failed { code: failure.code, message: failure.message.clone() }
    }

    /// Writes the line.
    pub(super) fn tell(&self, to: &mut impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        to.write_all(&line)?;
        to.flush()
    }
}

/// Opens the named file, if any. A path, not a descriptor, because a descriptor would be open in the command, too.
pub(super) fn open(path: Option<&Path>) -> Result<Option<File>, Failure> {
    let Some(path) = path else { return Ok(None) };
    OpenOptions::new().write(true).create(true).truncate(true).open(path).map(Some).map_err(|error| {
        Failure::explained(
            EXIT_FAILED,
            &format!("cannot write to {}", path.display()),
            &error.to_string(),
            "name a file that you may write with --report; nothing was run",
        )
    })
}

/// Writes a line, if there is a file.
pub(super) fn tell(file: &mut Option<File>, report: &Report) -> Result<(), Failure> {
    file.as_mut().map_or(Ok(()), |file| report.tell(file)).map_err(|e| failed("cannot write the report", &e))
}
