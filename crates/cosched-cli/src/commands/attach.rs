//! `cosched attach`: a detached job as if it had been started in this terminal: its output, signals to it, its exit code.

use super::log::{FOLLOW_PAUSE, Output, cannot_read};
use super::options::Attach;
use super::steer::exit_code;
use crate::context::Context;
use crate::format;
use crate::jobs;
use crate::out::{EXIT_REFUSED, Failure, say, tell};
use crate::run::signals::Signals;
use crate::run::{Follow, wait};
use cosched_api::{Client, Job, JobState, KillRequest};
use rustix::process::Signal;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// `cosched attach JOB`.
pub(crate) fn attach(context: &Context, options: &Attach) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let id = jobs::find(&mut client, &options.job)?;
    let job = client.job(id)?;
    let Some(path) = job.log_path.as_deref() else {
        let what = format!("cannot attach to job {id}");
        let why = "its output was not captured: it goes to where the job was started";
        return Err(Failure::explained(EXIT_REFUSED, &what, why, "`cosched wait` waits for its end and exit code"));
    };
    let cannot = |e: io::Error| Failure::other(format!("cannot wait: {e}"));
    let signals = Signals::take().map_err(cannot)?;
    if io::stderr().is_terminal() {
        let keys = if options.no_signals { "Ctrl-C detaches" } else { "Ctrl-C interrupts it, Ctrl-\\ detaches" };
        say(&format!("attached to job {id}; {keys}"));
    }
    // What is in the file of a job that has not started is another's output; the file is emptied when it starts.
    let lines = if job.state == JobState::Waiting { 0 } else { options.lines };
    let mut output = None;
    let mut follow = Follow::new(&client, &job, Duration::ZERO);
    loop {
        // Taken before reading, so that everything written before the end is read.
        let over = follow.has_ended() || follow.is_over();
        copy(&mut output, &job, path, lines, over)?;
        if over {
            break;
        }
        let ready = wait(&signals, None, &follow, Some(Instant::now() + FOLLOW_PAUSE)).map_err(cannot)?;
        follow.step(ready.daemon);
        while let Some(signal) = signals.next() {
            if options.no_signals || [Signal::QUIT, Signal::HUP].iter().any(|some| some.as_raw() == signal.number) {
                say(&format!("detached; job {id} continues"));
                return Ok(0);
            }
            send(context, &job, signal.number);
        }
    }
    exit_code(&Client::connect(client.path())?.job(id)?)
}

/// Copies what is new. The file of a job that has not started may be missing.
fn copy(output: &mut Option<Output>, job: &Job, path: &str, lines: usize, over: bool) -> Result<(), Failure> {
    let cannot = |e: io::Error| cannot_read(job, path, &e);
    if output.is_none() {
        match Output::open(job, path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !over => return Ok(()),
            opened => output.insert(opened.map_err(cannot)?).skip_to_last(lines).map_err(cannot)?,
        }
    }
    output.as_mut().map_or(Ok(Ok(())), Output::copy).map_err(cannot)?
}

/// On a connection of its own: the daemon may have been restarted.
fn send(context: &Context, job: &Job, number: i32) {
    let request = KillRequest { signal: number, grace_ms: None, here: false };
    match jobs::connect(context).and_then(|mut client| Ok(client.kill(job.id, &request)?)) {
        Ok(_) => say(&format!("sent {} to job {}", format::signal(number), job.id)),
        Err(failure) => tell(&failure),
    }
}
