//! `cosched log`: the output of a detached job, or a job's events.

use super::options::Log;
use crate::context::Context;
use crate::out::{Failure, harmless_bytes, plain, print, print_json, say, write};
use crate::{format, jobs};
use cosched_api::{Client, Event, Job, JobState};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

pub(super) const FOLLOW_PAUSE: Duration = Duration::from_millis(200);
/// How much of the output's end is searched for its last lines.
const LAST_BYTES_MAX: u64 = 1 << 20;

/// `cosched log JOB`.
pub(crate) fn log(context: &Context, options: &Log) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let id = jobs::find(&mut client, &options.job)?;
    let socket = client.path().to_owned();
    let job = jobs::patiently(&socket, || client.job(id))?;
    match &job.log_path {
        Some(path) if !options.events => output(&mut client, &job, path, options.follow)?,
        _ => {
            if !options.events {
                say(&format!("the output of job {id} went to its terminal and was not captured; its events:"));
            }
            events(&mut client, id, options.follow, context.json)?;
        }
    }
    Ok(0)
}

fn output(client: &mut Client, job: &Job, path: &str, follow: bool) -> Result<(), Failure> {
    let mut output = Output::open(job, path).map_err(|e| cannot_read(job, path, &e))?;
    if job.state == JobState::Waiting {
        say(&format!("job {} has not started: what is in {path} now is not its output", job.id));
    }
    loop {
        // Checked before reading, so that everything written before the end is read.
        let over = !follow || is_over(client, job.id)?;
        output.copy().map_err(|e| cannot_read(job, path, &e))??;
        if over {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

pub(super) fn cannot_read(job: &Job, path: &str, e: &io::Error) -> Failure {
    let hint = format!("it should belong to {}; it may have been removed or rotated away", job.user);
    Failure::explained(1, &format!("cannot read {path}"), &e.to_string(), &hint)
}

/// The output file of a detached job.
pub(super) struct Output {
    file: File,
    /// A program may write anything to its own user's terminal; control characters do not reach another user's.
    foreign: bool,
}

impl Output {
    /// The job's owner chose the path: only a regular file owned by that user is opened, and without blocking.
    pub(super) fn open(job: &Job, path: &str) -> io::Result<Output> {
        let is_own = job.uid == rustix::process::getuid().as_raw();
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if !is_own && found.uid() != job.uid {
            return Err(io::Error::other(format!("it belongs to uid {}, and the job to uid {}", found.uid(), job.uid)));
        }
        Ok(Output { file, foreign: !is_own && io::stdout().is_terminal() })
    }

    /// Leaves out all but the last `lines` lines, and of very long ones all but the last part.
    pub(super) fn skip_to_last(&mut self, lines: usize) -> io::Result<()> {
        let start = self.file.metadata()?.len().saturating_sub(LAST_BYTES_MAX);
        self.file.seek(SeekFrom::Start(start))?;
        let mut text = Vec::new();
        (&self.file).take(LAST_BYTES_MAX).read_to_end(&mut text)?;
        let ends = text.iter().enumerate().rev().skip(1).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let from = if lines == 0 { text.len() } else { ends.take(lines).nth(lines - 1).unwrap_or(0) };
        self.file.seek(SeekFrom::Start(start + from as u64)).map(drop)
    }

    /// Copies what is new to standard output, as bytes: a program's output need not be text. The inner error is one of standard output.
    pub(super) fn copy(&mut self) -> io::Result<Result<(), Failure>> {
        if self.file.metadata()?.len() < self.file.stream_position()? {
            // The job has started, and its file was emptied.
            self.file.rewind()?;
        }
        let mut piece = [0; 64 << 10];
        loop {
            let count = self.file.read(&mut piece)?;
            if count == 0 {
                return Ok(Ok(()));
            }
            let safe = self.foreign.then(|| harmless_bytes(&piece[..count]));
            let bytes = safe.as_ref().map_or(&piece[..count], String::as_bytes);
            if let Err(failure) = write(bytes) {
                return Ok(Err(failure));
            }
        }
    }
}

fn events(client: &mut Client, id: u64, follow: bool, json: bool) -> Result<(), Failure> {
    let mut shown = Vec::new();
    loop {
        let over = !follow || is_over(client, id)?;
        let events = client.events(id)?.events;
        for event in &events[known(&shown, &events)..] {
            if json { print_json(event)? } else { print(&line(event))? }
        }
        shown = events;
        if over {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

/// How many of the first events were shown before. A daemon keeps a limited number of them, and removes those in the middle for new ones.
fn known(shown: &[Event], events: &[Event]) -> usize {
    if events.starts_with(shown) {
        return shown.len();
    }
    shown.iter().rev().find_map(|last| events.iter().rposition(|event| event == last)).map_or(0, |at| at + 1)
}

fn is_over(client: &mut Client, id: u64) -> Result<bool, Failure> {
    Ok(client.job(id)?.state.has_ended())
}

fn line(event: &Event) -> String {
    format!("{}  {:<18}  {}", format::moment(event.unix_ms), event.what, plain(&event.detail)).trim_end().to_owned()
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found() {
        for (text, lines, left) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\n", 5, "a\nb\n"),
            ("a\nb\n", 0, ""),
            ("\n\n\n", 1, "\n"),
            ("", 3, ""),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let mut output = Output { file: File::open(file.path()).unwrap(), foreign: false };
            output.skip_to_last(lines).unwrap();
            assert_eq!(io::read_to_string(output.file).unwrap(), left, "{text:?}, {lines}");
        }
    }

    #[test]
    fn of_a_line_without_end_the_last_part_is_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'x'; LAST_BYTES_MAX as usize + 10]).unwrap();
        let mut output = Output { file: File::open(file.path()).unwrap(), foreign: false };
        output.skip_to_last(10).unwrap();
        assert_eq!(io::read_to_string(output.file).unwrap().len(), LAST_BYTES_MAX as usize);
    }
}
