//! Signals as data: they are blocked and read from a descriptor, together with their senders.
//!
//! Handlers would tell less, and would undo what `nohup` set. Blocking does not affect the command: its gate is started
//! before.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, Timespec};
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The signals passed on to the command. The terminal's own (SIGTSTP, SIGWINCH) reach it without help.
const FORWARDED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Codes of a signal that a process sent (`kill`, `sigqueue`, `tgkill`); signals of the terminal have a positive code.
const SENT_BY_PROCESS: [i32; 3] = [0, -1, -6];

/// The signals that the launcher received.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: SignalFd,
    before: SigSet,
    /// Those that this process was started to ignore, as bits. They arrive all the same, since they are blocked.
    ignored: u64,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Its number.
    pub(crate) number: i32,
    /// The process that sent it; `None` when the terminal (which sent it to the whole process group) or the kernel did.
    pub(crate) sender: Option<u32>,
}

impl Signals {
    /// Blocks the signals for this thread and the threads that it starts.
    pub(crate) fn take() -> io::Result<Signals> {
        let set: SigSet = FORWARDED.into_iter().collect();
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Signals { fd: SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?, before, ignored })
    }

    /// Unblocks the signals; those that have arrived take effect, too.
    pub(crate) fn give_back(self) {
        let _ = self.before.thread_set_mask();
    }

    /// The next one that has arrived, if any; not one that this process was started to ignore, as by `nohup`.
    pub(crate) fn next(&self) -> Option<Received> {
        std::iter::from_fn(|| self.next_for_command()).find(|signal| (self.ignored >> (signal.number - 1)) & 1 == 0)
    }

    /// The same with those that are ignored here: a command that was started to ignore them may have changed that.
    pub(crate) fn next_for_command(&self) -> Option<Received> {
        let info = self.fd.read_signal().ok().flatten()?;
        let sender = SENT_BY_PROCESS.contains(&info.ssi_code).then_some(info.ssi_pid);
        Some(Received { number: i32::try_from(info.ssi_signo).ok()?, sender })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The ignored signals in a process's status (`proc_pid_status(5)`).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Sends a signal to one process; a process that no longer exists is no error.
pub(crate) fn send(pid: Pid, number: i32) {
    if let Some(signal) = rustix::process::Signal::from_named_raw(number) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Sleeps until a descriptor is ready, a signal handler has run, or the time is over.
pub(crate) fn poll(places: &mut [PollFd<'_>], time: Option<Duration>) -> io::Result<()> {
    let time = time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
    match rustix::event::poll(places, time.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// For a process that was started while signals were blocked and is about to execute something else.
pub(crate) fn unblock_all() {
    let _ = SigSet::empty().thread_set_mask();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_signals_of_a_process() {
        assert_eq!(
            ignored("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001003\nSigCgt:\t00000001800004e8\n"),
            0x1003
        );
        assert_eq!((ignored("SigIgn:\tx\n"), ignored("")), (0, 0));
    }
}
