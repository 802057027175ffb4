//! Waits for everything that can happen to a running job, in one place and without threads.

use super::follow::Follow;
use super::gate::Pipe;
use super::signals::{Received, Signals, poll, send};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a command outside its job gets to end, once the job has ended.
const END_GRACE: Duration = Duration::from_secs(5);

/// The command's process.
#[derive(Debug)]
pub(crate) struct MainProcess {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    _pipe: Pipe,
}

impl MainProcess {
    /// Takes the command's process from an opened gate.
    pub(crate) fn new((child, pipe): (Child, Pipe)) -> io::Result<MainProcess> {
        let pid = Pid::from_child(&child);
        Ok(MainProcess { child, pid, pidfd: pidfd_open(pid, PidfdFlags::empty())?, _pipe: pipe })
    }

    /// Passes on a signal that a process sent. The terminal itself sends its signals to the whole process group, and
    /// the command has already received what it sent to its own group.
    fn pass_on(&self, signal: Received) {
        if signal.sender.is_some_and(|sender| sender != self.child.id()) {
            send(self.pid, signal.number);
        }
    }
}

/// Waits for the command's end, passing signals on and following the daemon. No daemon can end a command that runs
/// outside its job, on a node where the job has no part: when its job has been ended, the command is ended here.
pub(crate) fn until_exit(
    main: &mut MainProcess,
    signals: &Signals,
    follow: &mut Follow<'_>,
    outside: bool,
) -> io::Result<ExitStatus> {
    let mut end = [Signal::TERM, Signal::KILL].into_iter();
    let mut end_at = None;
    loop {
        let ready = wait(signals, Some(main.pidfd.as_fd()), follow, end_at)?;
        if ready.process {
            return main.child.wait();
        }
        while let Some(signal) = signals.next_for_command() {
            main.pass_on(signal);
        }
        follow.step(ready.daemon);
        if outside && follow.has_ended() && end_at.is_none_or(|at| at <= Instant::now()) {
            // After KILL there is nothing left to send.
            end_at = end.next().map(|signal| {
                send(main.pid, signal.as_raw());
                Instant::now() + END_GRACE
            });
        }
    }
}

/// What is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) process: bool,
    pub(crate) daemon: bool,
}

/// Sleeps until something is ready or due, or `until`.
pub(crate) fn wait(
    signals: &Signals,
    process: Option<BorrowedFd<'_>>,
    follow: &Follow<'_>,
    until: Option<Instant>,
) -> io::Result<Ready> {
    let mut places = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
    let process_place = process.map(|fd| push(&mut places, fd));
    let daemon_place = follow.descriptor().map(|fd| push(&mut places, fd));
    let due = follow.due().into_iter().chain(until).min();
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    poll(&mut places, left)?;
    let ready = |place: Option<usize>| place.is_some_and(|place| !places[place].revents().is_empty());
    Ok(Ready { process: ready(process_place), daemon: ready(daemon_place) })
}

fn push<'a>(places: &mut Vec<PollFd<'a>>, fd: BorrowedFd<'a>) -> usize {
    places.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    places.len() - 1
}

/// How a process ended, in the type of the API.
pub(crate) fn wire_status(status: ExitStatus) -> cosched_api::ExitStatus {
    cosched_api::ExitStatus { code: status.code(), signal: status.signal() }
}

/// The exit code for how a command ended, as a shell gives it.
pub(crate) fn shell_code(exit: cosched_api::ExitStatus) -> u8 {
    let code = exit.code.or(exit.signal.map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}
