//! The gate: the process that becomes the command, once it is in the job's cgroups.
//!
//! The launcher executes itself again as a gate. The gate waits for one byte in a pipe of the launcher, then
//! executes the command in its place, so the command and all its descendants are in the job from their first
//! instruction on. The end of the pipe without a byte (the launcher died, or the job was refused) means: never.

use super::{EXIT_FAILED, GATE, exit_not_executed};
use crate::out::Failure;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// The launcher's side of a gate.
#[derive(Debug)]
pub(crate) struct Gate {
    child: Child,
    pipe: Pipe,
}

/// The pipe on which the gate waits. It has to be kept while the command runs: the gate may be slow, and open it only
/// after the byte was written.
#[derive(Debug)]
pub(crate) struct Pipe {
    writer: PipeWriter,
    _reader: PipeReader,
}

impl Gate {
    /// Starts a gate for `program`, executed with `argv`. Standard input, output and error are inherited.
    pub(crate) fn spawn(program: &Path, argv: &[OsString]) -> io::Result<Gate> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("cosched").arg(GATE).arg(std::process::id().to_string());
        command.arg(reader.as_raw_fd().to_string()).arg(program).args(argv);
        Ok(Gate { child: command.spawn()?, pipe: Pipe { writer, _reader: reader } })
    }

    /// The process that will be the command.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended before it could be opened (Ctrl-C, for example).
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Lets the command run.
    pub(crate) fn open(mut self) -> (Child, Pipe) {
        // An error means that the gate has died; its exit status will tell.
        let _ = self.pipe.writer.write_all(b"!");
        (self.child, self.pipe)
    }

    /// Ends it without running the command; returns how it ended.
    pub(crate) fn cancel(self) -> io::Result<ExitStatus> {
        let Gate { mut child, pipe } = self;
        drop(pipe);
        child.wait()
    }
}

/// The gate itself: `__gate LAUNCHER-PID FD PROGRAM ARGV0 ARGS…`. Returns only when the command was not executed.
pub(crate) fn gate(mut words: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let silent = || Failure::silent(EXIT_FAILED);
    let mut next = || words.next().ok_or_else(silent);
    let (launcher, fd, program, argv0) = (next()?, next()?, next()?, next()?);
    if !wait_for_byte(&launcher, &fd) {
        return Err(silent());
    }
    let error = Command::new(&program).arg0(&argv0).args(words).exec();
    Err(exit_not_executed(&argv0, &error))
}

/// Opens the launcher's pipe anew instead of inheriting it: a descriptor that is inherited could be closed before the
/// command only by unsafe code.
fn wait_for_byte(launcher: &OsStr, fd: &OsStr) -> bool {
    let path = Path::new("/proc").join(launcher).join("fd").join(fd);
    let Ok(mut pipe) = File::open(path) else { return false };
    loop {
        match pipe.read(&mut [0]) {
            Ok(count) => return count == 1,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}
