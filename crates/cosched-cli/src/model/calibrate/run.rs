//! Runs one program at a time: in a session of its own, with a limit, and ended with all that it started.

use crate::out::Failure;
use crate::run::SESSION;
use crate::run::signals::{Signals, poll};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A program that takes longer is assumed to hang.
const LIMIT: Duration = Duration::from_secs(120);
/// Between TERM, which mpirun passes on to its ranks, and KILL.
const GRACE: Duration = Duration::from_secs(3);

/// A command line and additions to its environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) words: Vec<OsString>,
    pub(super) environment: Vec<(String, OsString)>,
    /// All its processes share one CPU.
    pub(super) one_cpu: bool,
}

/// Runs it and returns the line of JSON in its output.
///
/// # Errors
/// When it cannot be started, fails, takes longer than the limit, prints no JSON, or when a signal arrived.
pub(super) fn json(signals: &Signals, line: &Line) -> Result<serde_json::Value, Failure> {
    let shown: Vec<_> = line.words.iter().map(|word| word.to_string_lossy()).collect();
    let shown = shown.join(" ");
    let failed = |why: &str, hint: &str| Failure::explained(1, &format!("`{shown}` failed"), why, hint);
    let mut running = Running::start(line)
        .map_err(|e| failed(&format!("it cannot be started: {e}"), "see `cosched model calibrate --help`"))?;
    let status = match running.finish(signals)? {
        Some(status) => status,
        None => {
            let why = format!("it had not ended after {} s", LIMIT.as_secs());
            return Err(failed(&why, "run it alone; --mpirun names another MPI's launcher"));
        }
    };
    let text = running.text().map_err(|e| failed(&format!("its output cannot be read: {e}"), "retry"))?;
    if !status.success() {
        let last: Vec<&str> = text.lines().rev().take(8).collect();
        let said = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
        return Err(failed(&format!("{status}; it said:\n    {said}"), "run it alone"));
    }
    let found =
        text.lines().rev().find_map(|line| serde_json::from_str(line.trim()).ok().filter(serde_json::Value::is_object));
    found.ok_or_else(|| {
        failed(
            "it printed no line of JSON",
            "`make build && make install` from the source has the programs of this version (packages do not)",
        )
    })
}

/// Binds this thread to one CPU until dropped.
struct OneCpu(CpuSet);

impl OneCpu {
    fn bind() -> io::Result<OneCpu> {
        let all = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).unwrap_or(0));
        sched_setaffinity(None, &one)?;
        Ok(OneCpu(all))
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

struct Running {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    output: File,
    ended: bool,
}

impl Running {
    fn start(line: &Line) -> io::Result<Running> {
        let output = File::from(rustix::fs::memfd_create("cosched-calibrate", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new("/proc/self/exe");
        command.arg(SESSION).args(&line.words);
        command.envs(line.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        // Children inherit the CPUs of the thread that starts them.
        let bound = if line.one_cpu { Some(OneCpu::bind()?) } else { None };
        let child = command.spawn()?;
        drop(bound);
        let pid = Pid::from_child(&child);
        Ok(Running { pidfd: pidfd_open(pid, PidfdFlags::empty())?, child, pid, output, ended: false })
    }

    /// Waits for the end; `None` if the limit is reached.
    fn finish(&mut self, signals: &Signals) -> Result<Option<ExitStatus>, Failure> {
        let failed = |e: io::Error| Failure::other(format!("cannot wait for a program: {e}"));
        let started = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let mut places =
                [self.pidfd.as_fd(), signals.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            poll(&mut places, Some(left)).map_err(failed)?;
            if let Some(signal) = signals.next() {
                return Err(Failure::silent(u8::try_from(128 + signal.number).unwrap_or(1)));
            }
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                self.ended = true;
                return Ok(Some(status));
            }
        }
    }

    fn text(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.output.rewind()?;
        self.output.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Running {
    /// Kills all remaining processes.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _ = kill_process_group(self.pid, Signal::TERM);
        let started = Instant::now();
        while started.elapsed() < GRACE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child.wait();
    }
}
