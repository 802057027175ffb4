//! The gate: the process that becomes the command, once it is in the job's cgroups.
//!
//! The launcher executes itself again as a gate. The gate waits for a letter in a pipe of the launcher, then executes the command in
//! its place, so the command and all its descendants are in the job from their first instruction on. The letter is its length (4
//! bytes) and the additions to the environment, `NAME=VALUE` with a zero byte after each; three names that are not variables specify
//! the files that become standard input, output and error. If the pipe is closed without a letter (the launcher died, or the job was
//! refused), the command is never executed.

use super::{EXIT_FAILED, GATE, exit_not_executed};
use crate::out::Failure;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// Names in a letter: what becomes standard input, output and error.
pub(super) const INPUT: &str = "<0";
pub(super) const OUTPUT: &str = ">1";
pub(super) const ERROR: &str = ">2";

/// Names in a letter: the program that keeps the job where there are no cgroups, the job's directory, and what happens to leftovers.
const KEEPER: &str = "|keeper";
const DIRECTORY: &str = "|directory";
const LEFTOVERS: &str = "|leftovers";
const PRELOAD: &str = "LD_PRELOAD";

/// What a letter says to a gate whose job has no cgroups: the gate becomes the job's keeper, which starts the command.
pub(super) fn kept(keeper: &str, directory: &str, kills: bool) -> [(String, OsString); 3] {
    let leftovers = if kills { "kill" } else { "wait" };
    [(KEEPER, keeper), (DIRECTORY, directory), (LEFTOVERS, leftovers)]
        .map(|(name, value)| (name.to_owned(), value.into()))
}

/// The launcher's side of a gate.
#[derive(Debug)]
pub(crate) struct Gate {
    child: Child,
    pipe: Pipe,
}

/// The pipe on which the gate waits. It has to be kept open while the command runs: the gate may be slow, and open it only after the
/// letter was written.
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

    /// Lets the command run, with these variables added to its environment.
    pub(crate) fn open(mut self, environment: &[(String, OsString)]) -> (Child, Pipe) {
        // An error means that the gate has died; its exit status will tell.
        let _ = self.pipe.writer.write_all(&letter(environment));
        (self.child, self.pipe)
    }

    /// Ends the gate without running the command; returns how it ended.
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
    let environment = wait_for_letter(&launcher, &fd).ok_or_else(silent)?;
    let (streams, mut environment): (Vec<_>, Vec<_>) =
        environment.into_iter().partition(|(name, _)| [INPUT, OUTPUT, ERROR].iter().any(|stream| name == stream));
    let mut take = |name: &str| environment.extract_if(.., |(other, _)| other == name).next().map(|(_, value)| value);
    let mut command = match take(KEEPER).zip(take(DIRECTORY)) {
        Some((keeper, directory)) => {
            let mut command = Command::new(keeper);
            // For the command, not for its keeper.
            let [leftovers, preload] = [LEFTOVERS, PRELOAD].map(|name| take(name).unwrap_or_default());
            command.arg("keep").arg(directory).arg(leftovers).arg(preload).arg(&program).arg(&argv0);
            command
        }
        None => {
            let mut command = Command::new(&program);
            command.arg0(&argv0);
            command
        }
    };
    command.args(words).envs(environment);
    redirect(&mut command, &streams)?;
    Err(exit_not_executed(&argv0, &command.exec()))
}

/// Opens a command's input and output files, which already exist.
pub(super) fn redirect(command: &mut Command, streams: &[(impl AsRef<OsStr>, OsString)]) -> Result<(), Failure> {
    for (stream, path) in streams {
        let is_input = stream.as_ref() == INPUT;
        let opened = if is_input { File::open(path) } else { OpenOptions::new().append(true).open(path) };
        let file = opened.map_err(|e| super::failed(&format!("cannot open {}", path.to_string_lossy()), &e))?;
        match stream.as_ref().to_str() {
            Some(INPUT) => command.stdin(file),
            Some(OUTPUT) => command.stdout(file),
            _ => command.stderr(file),
        };
    }
    Ok(())
}

fn letter(environment: &[(String, OsString)]) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in environment {
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        text.push(0);
    }
    // A few paths and words: far below 4 GiB.
    let mut letter = (text.len() as u32).to_ne_bytes().to_vec();
    letter.append(&mut text);
    letter
}

/// Opens the launcher's pipe by its path instead of inheriting it: closing an inherited descriptor before the command runs would need
/// unsafe code.
fn wait_for_letter(launcher: &OsStr, fd: &OsStr) -> Option<Vec<(OsString, OsString)>> {
    let path = Path::new("/proc").join(launcher).join("fd").join(fd);
    let mut pipe = File::open(path).ok()?;
    let mut length = [0; 4];
    pipe.read_exact(&mut length).ok()?;
    let mut text = vec![0; u32::from_ne_bytes(length) as usize];
    pipe.read_exact(&mut text).ok()?;
    let pair = |line: &[u8]| {
        let at = line.iter().position(|byte| *byte == b'=')?;
        Some((OsString::from_vec(line[..at].to_vec()), OsString::from_vec(line[at + 1..].to_vec())))
    };
    Some(text.split(|byte| *byte == 0).filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_letter_brings_its_variables_and_an_empty_one_none() {
        let arrives = |environment: &[(String, OsString)]| {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(&letter(environment)).unwrap();
            let own = std::process::id().to_string();
            wait_for_letter(OsStr::new(&own), OsStr::new(&reader.as_raw_fd().to_string()))
        };
        let sent = [("A".to_owned(), OsString::from("x=y z")), ("B".to_owned(), OsString::new())];
        let pair = |(name, value): &(String, OsString)| (OsString::from(name), value.clone());
        assert_eq!(arrives(&sent), Some(sent.iter().map(pair).collect()));
        assert_eq!(arrives(&[]), Some(Vec::new()));
    }
}
