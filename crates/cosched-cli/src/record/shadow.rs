//! The command's shadow: passes signals on, samples the processes until a rank begins to record, and waits for the end.

use super::look::Looks;
use crate::out::Failure;
use crate::run::signals::{Received, Signals, poll, send};
use crate::run::{EXIT_FAILED, exit_not_executed, wire_status};
use cosched_api::ExitStatus;
use cosched_study::profile::Observed;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The first interval between two samples: short programs are seen, long ones not disturbed.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(100);

/// The unit of times in /proc/PID/stat: always hundredths of a second, whatever the kernel counts in.
const TICKS_PER_S: f64 = 100.0;

/// What is known about the command after its end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) elapsed_s: f64,
    /// CPU time of the command and of all its children.
    pub(super) cpu_s: f64,
    pub(super) threads: Vec<Observed>,
    pub(super) looks: u64,
}

/// Runs the command until it ends.
pub(super) fn run(
    program: &Path,
    argv: &[OsString],
    environment: &[(&str, OsString)],
    directory: &Path,
) -> Result<Ended, Failure> {
    let cpu_before_s = children_cpu_s();
    let start = Instant::now();
    let mut command = Command::new(program);
    command.arg0(&argv[0]).args(&argv[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
    let mut child = command.spawn().map_err(|e| exit_not_executed(&argv[0], &e))?;
    // After the start, because the command inherits blocked signals.
    let signals = Signals::take().map_err(|e| failed("cannot read signals", &e))?;
    let mut looks = Looks::of(child.id());
    let status =
        follow(&mut child, &signals, &mut looks, directory).map_err(|e| failed("cannot wait for the command", &e))?;
    let elapsed_s = start.elapsed().as_secs_f64();
    let threads = looks.threads();
    let seen_s = threads.iter().map(|thread| thread.cpu_ns as f64 / 1e9).sum::<f64>();
    // The kernel counts children in whole ticks.
    let cpu_s = (children_cpu_s() - cpu_before_s).max(seen_s);
    Ok(Ended { status: wire_status(status), elapsed_s, cpu_s, threads, looks: looks.count() })
}

fn follow(
    child: &mut Child,
    signals: &Signals,
    looks: &mut Looks,
    directory: &Path,
) -> io::Result<std::process::ExitStatus> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let mut pause = LOOK_FIRST;
    let mut observes = true;
    loop {
        let mut places = [PollFd::new(signals, PollFlags::IN), PollFd::new(&pidfd, PollFlags::IN)];
        poll(&mut places, observes.then_some(pause))?;
        if !places[1].revents().is_empty() {
            return child.wait();
        }
        while let Some(signal) = signals.next_for_command() {
            pass_on(signal, pid, child.id());
        }
        if observes {
            looks.look();
            pause = (pause * 5 / 4).min(LOOK_LAST);
            observes = !has_files(directory);
        }
    }
}

/// The terminal itself sends its signals to the whole process group, and the command has already received what it sent to
/// its own group.
fn pass_on(signal: Received, pid: Pid, id: u32) {
    if signal.sender.is_some_and(|sender| sender != id) {
        send(pid, signal.number);
    }
}

/// A rank has begun to record: sampling from outside is no longer needed.
fn has_files(directory: &Path) -> bool {
    directory.read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

/// CPU time of the children that were waited for, theirs included, in seconds.
fn children_cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    (ticks(13) + ticks(14)) as f64 / TICKS_PER_S
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure { code: EXIT_FAILED, message: format!("{what}: {error}") }
}
