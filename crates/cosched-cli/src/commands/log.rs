//! `cosched log`: the output of a detached job, or a job's events.

use super::options::Log;
use crate::context::Context;
use crate::out::{Failure, harmless_bytes, plain, print, print_json, say};
use crate::{format, jobs};
use cosched_api::{Client, Event, Job, JobState};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

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
    let cannot = |e: &io::Error| {
        let hint = format!("it should belong to {}; it may have been removed or rotated away", job.user);
        Failure::explained(1, &format!("cannot read {path}"), &e.to_string(), &hint)
    };
    let mut file = open(job, path).map_err(|e| cannot(&e))?;
    // A program may write anything to its own user's terminal.
    let foreign = !is_own(job) && io::stdout().is_terminal();
    loop {
        // Checked before reading, so that everything written before the end is read.
        let over = !follow || is_over(client, job.id)?;
        copy(&mut file, foreign, &cannot)?;
        if over {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

/// The job's owner chose the path: only a regular file owned by that user is opened, and without blocking.
fn open(job: &Job, path: &str) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if !is_own(job) && found.uid() != job.uid {
        return Err(io::Error::other(format!("it belongs to uid {}, and the job to uid {}", found.uid(), job.uid)));
    }
    Ok(file)
}

fn is_own(job: &Job) -> bool {
    job.uid == rustix::process::getuid().as_raw()
}

/// As bytes: a program's output need not be text. On another user's terminal, without control characters.
fn copy(file: &mut File, foreign: bool, cannot: &impl Fn(&io::Error) -> Failure) -> Result<(), Failure> {
    let mut piece = [0; 64 << 10];
    loop {
        let count = file.read(&mut piece).map_err(|e| cannot(&e))?;
        if count == 0 {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let safe = foreign.then(|| harmless_bytes(&piece[..count]));
        let bytes = safe.as_ref().map_or(&piece[..count], String::as_bytes);
        if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
            return Err(Failure::silent(0));
        }
    }
}

fn events(client: &mut Client, id: u64, follow: bool, json: bool) -> Result<(), Failure> {
    let mut shown = 0;
    loop {
        let over = !follow || is_over(client, id)?;
        let events = client.events(id)?.events;
        for event in events.iter().skip(shown) {
            if json { print_json(event)? } else { print(&line(event))? }
        }
        shown = events.len().max(shown);
        if over {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_PAUSE);
    }
}

fn is_over(client: &mut Client, id: u64) -> Result<bool, Failure> {
    Ok(matches!(client.job(id)?.state, JobState::Ended | JobState::Lost))
}

fn line(event: &Event) -> String {
    format!("{}  {:<18}  {}", format::moment(event.unix_ms), event.what, plain(&event.detail)).trim_end().to_owned()
        + "\n"
}
