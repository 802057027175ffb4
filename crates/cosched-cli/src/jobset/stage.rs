//! The supervisor of one job: an internal stage of cosched, like the gate of `cosched run`.
//!
//! It is the subreaper of the job's processes: processes whose parents have ended become its children, so it can wait
//! for all of them and the kernel adds up what they used. Its standard input is a pipe of the harness: one byte starts
//! the job, closing the pipe (also by the harness's death) ends it. On its standard output it writes one byte when it is
//! ready and one line of JSON at the end. Its standard error is the job's output.

use super::directory::SessionDirectory;
use super::processes::descendants;
use crate::out::Failure;
use crate::run::signals::poll;
use crate::run::{EXIT_FAILED, SESSION};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument of a supervisor; it is followed by the number of words of the command to execute when the job is
/// ended early, these words, and the job's command. Or `alone` and the command, when no harness holds the other ends of
/// the pipes.
pub(crate) const STAGE: &str = "__job";
/// The supervisor is ready to start the job.
pub(super) const READY: u8 = b'r';
/// The time between TERM and KILL for a job that is ended early.
const GRACE: Duration = Duration::from_secs(2);
/// How often remaining processes are searched for while the job is being killed: they may have started children.
const AGAIN: Duration = Duration::from_millis(20);

/// What a job used, according to its supervisor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// When the command was started, in nanoseconds of the monotonic clock.
    pub(crate) start_ns: u64,
    /// When its last process ended.
    pub(crate) end_ns: u64,
    /// The command's exit code.
    pub(crate) code: Option<i32>,
    /// The signal that ended the command.
    pub(crate) signal: Option<i32>,
    /// Why the command could not be started.
    pub(crate) error: Option<String>,
    /// CPU time of all processes in user mode, in microseconds.
    pub(crate) user_us: u64,
    /// CPU time of all processes in kernel mode, in microseconds.
    pub(crate) system_us: u64,
    /// Voluntary context switches: a process gave its CPU up to wait.
    pub(crate) voluntary: u64,
    /// Involuntary context switches: a process lost its CPU to another.
    pub(crate) involuntary: u64,
    /// The largest resident set of one process, in KiB; 0 when none was larger than cosched itself, whose size processes
    /// inherit until they execute something else.
    pub(crate) max_process_kib: u64,
}

/// The monotonic clock, which all processes of the machine share.
pub(super) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs the supervisor.
pub(crate) fn stage(mut words: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let silent = || Failure::silent(EXIT_FAILED);
    let first = words.next().ok_or_else(silent)?;
    let is_alone = first == "alone";
    let count = if is_alone { 0 } else { first.to_str().and_then(|word| word.parse().ok()).ok_or_else(silent)? };
    let on_early_end: Vec<OsString> = words.by_ref().take(count).collect();
    let command: Vec<OsString> = words.collect();
    let usage =
        supervise(&command, &on_early_end, is_alone).map_err(|e| Failure::other(format!("cannot supervise: {e}")))?;
    let Some(usage) = usage else { return Ok(0) };
    let line = serde_json::to_string(&usage).map_err(|_| silent())?;
    // There may be no reader.
    let _ = writeln!(io::stdout(), "{line}");
    Ok(0)
}

/// `None` when the job was never to begin.
fn supervise(command: &[OsString], on_early_end: &[OsString], is_alone: bool) -> io::Result<Option<Usage>> {
    // A session of its own: the harness handles the terminal's signals.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let set: SigSet = [Number::SIGCHLD, Number::SIGTERM].into_iter().collect();
    set.thread_block().map_err(io::Error::from)?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let directory = SessionDirectory::make();
    if !is_alone && !wait_for_beginning()? {
        return Ok(None);
    }
    let start_ns = now_ns();
    let started = Command::new("/proc/self/exe")
        .arg(SESSION)
        .args(command)
        .envs(directory.environment())
        .stdin(Stdio::null())
        .stdout(io::stderr().as_fd().try_clone_to_owned()?)
        .spawn();
    let main = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            let error = Some(error.to_string());
            return Ok(Some(Usage { start_ns, end_ns: now_ns(), error, ..Usage::default() }));
        }
    };
    let mut job = Job { has_harness: !is_alone, main, signals, code: None, signal: None, ending: None };
    job.until_the_last_has_ended(on_early_end)?;
    let end_ns = now_ns();
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let own = getrusage(UsageWho::RUSAGE_SELF)?.max_rss();
    let us = |time: nix::sys::time::TimeVal| (time.tv_sec() * 1_000_000 + time.tv_usec()) as u64;
    Ok(Some(Usage {
        start_ns,
        end_ns,
        code: job.code,
        signal: job.signal,
        error: None,
        user_us: us(used.user_time()),
        system_us: us(used.system_time()),
        voluntary: used.voluntary_context_switches() as u64,
        involuntary: used.involuntary_context_switches() as u64,
        max_process_kib: if used.max_rss() * 2 > own * 3 { used.max_rss() as u64 } else { 0 },
    }))
}

/// False when the harness no longer exists.
fn wait_for_beginning() -> io::Result<bool> {
    io::stdout().write_all(&[READY])?;
    io::stdout().flush()?;
    Ok(io::stdin().read(&mut [0])? > 0)
}

struct Job {
    has_harness: bool,
    main: Pid,
    signals: SignalFd,
    code: Option<i32>,
    signal: Option<i32>,
    /// When the job started to be ended.
    ending: Option<Instant>,
}

impl Job {
    fn until_the_last_has_ended(&mut self, on_early_end: &[OsString]) -> io::Result<()> {
        while self.reap()? {
            let (told, harness_gone) = self.wait()?;
            if (told || harness_gone) && self.ending.is_none() {
                self.ending = Some(Instant::now());
                send_all(Signal::TERM);
                early_end(on_early_end);
            }
            if self.ending.is_some_and(|since| since.elapsed() >= GRACE) {
                send_all(Signal::KILL);
            }
        }
        Ok(())
    }

    /// Collects the statuses of ended children; returns whether there are others.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => return Ok(true),
                Ok(Some((pid, status))) if pid == self.main => {
                    (self.code, self.signal) = (status.exit_status(), status.terminating_signal());
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CHILD) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Sleeps until something happens; returns whether a signal asked to end the job, and whether the harness no longer
    /// exists.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let stdin = io::stdin();
        let mut places = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        // Once the pipe is closed, it would always be ready.
        if self.has_harness && self.ending.is_none() {
            places.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        poll(&mut places, self.ending.map(|_| AGAIN))?;
        let harness_gone = places.get(1).is_some_and(|place| !place.revents().is_empty());
        let mut told = false;
        while let Ok(Some(info)) = self.signals.read_signal() {
            told |= info.ssi_signo == Number::SIGTERM as u32;
        }
        Ok((told, harness_gone))
    }
}

fn send_all(signal: Signal) {
    for pid in descendants(rustix::process::getpid()) {
        let _ = kill_process(pid, signal);
    }
}

/// Executes the command for ending early: work given to another program (Slurm) would continue otherwise.
fn early_end(words: &[OsString]) {
    if let Some((program, arguments)) = words.split_first() {
        let mut command = Command::new(program);
        let _ = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    }
}
