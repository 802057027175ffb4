//! One job of a set: its supervisor, its pipes and its output.

use super::processes::memory_bytes;
use super::stage::{READY, STAGE, Usage, now_ns};
use crate::out::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fstat};
use rustix::process::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long supervisors have to become ready.
const READY_TIME: Duration = Duration::from_secs(20);
/// How long supervisors have to end their jobs: their own grace time, and the kernel's work with large memories.
const END_TIME: Duration = Duration::from_secs(30);
/// How much of the end of a job's output is read, in bytes.
const OUTPUT_READ_BYTES: u64 = 1 << 20;

/// One job of a set.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The command line, including the words of a launcher of cosched or another one.
    pub(crate) command: Vec<OsString>,
    /// Added to the environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// When it begins, relative to the set's beginning.
    pub(crate) start: Duration,
    /// Receives its standard output and standard error.
    pub(crate) output: File,
    /// Executed when the job is ended early; empty for nothing.
    pub(crate) on_early_end: Vec<OsString>,
}

/// What is known about a job at the end.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// From the set's beginning to the command's start, in seconds.
    pub(crate) start_s: f64,
    /// To the end of its last process, in seconds.
    pub(crate) end_s: f64,
    /// `None` when its supervisor was killed.
    pub(crate) usage: Option<Usage>,
    /// The largest sum of its processes' memory that was sampled, or its largest process if that was more.
    pub(crate) max_memory_bytes: u64,
    /// The end of its output.
    pub(crate) output: String,
}

impl End {
    /// How it ended, in words.
    pub(crate) fn ending(&self) -> String {
        match &self.usage {
            None => "its supervisor was killed".into(),
            Some(Usage { error: Some(error), .. }) => format!("it could not be started: {error}"),
            Some(Usage { code: Some(code), .. }) => format!("exit code {code}"),
            Some(Usage { signal: Some(signal), .. }) => format!("ended by signal {signal}"),
            Some(_) => "unknown exit status".into(),
        }
    }

    /// CPU time of all its processes, in seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.usage.as_ref().map_or(0.0, |usage| (usage.user_us + usage.system_us) as f64 / 1e6)
    }
}

/// A file in memory for output that is not kept.
pub(crate) fn unnamed_file() -> Result<File, Failure> {
    let made = rustix::fs::memfd_create("cosched-output", MemfdFlags::CLOEXEC);
    made.map(File::from).map_err(|e| Failure::other(format!("cannot make a file in memory: {e}")))
}

/// The last lines of what a job wrote, indented.
pub(crate) fn output_end(output: &str) -> String {
    let last: Vec<&str> = output.lines().rev().take(8).collect();
    last.into_iter().rev().map(|line| format!("\n    {line}")).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The supervisor waits for the job's beginning.
    Ready,
    Running,
    Ended,
}

/// A job whose supervisor runs.
pub(super) struct Running {
    supervisor: Child,
    /// Closing this pipe ends the job.
    lifeline: Option<ChildStdin>,
    report: ChildStdout,
    output: File,
    /// When it begins, relative to the set's beginning.
    pub(super) start: Duration,
    pub(super) state: State,
    begun: bool,
    usage: Option<Usage>,
    max_memory_bytes: u64,
}

impl Running {
    pub(super) fn start(planned: Planned) -> io::Result<Running> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(STAGE).arg(planned.on_early_end.len().to_string()).args(&planned.on_early_end);
        command.args(&planned.command).envs(planned.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(planned.output.try_clone()?);
        let mut supervisor = command.spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let lifeline = Some(supervisor.stdin.take().ok_or_else(missing)?);
        let report = supervisor.stdout.take().ok_or_else(missing)?;
        let (output, start) = (planned.output, planned.start);
        Ok(Running {
            supervisor,
            lifeline,
            report,
            output,
            start,
            state: State::Ready,
            begun: false,
            usage: None,
            max_memory_bytes: 0,
        })
    }

    pub(super) fn wait_until_ready(&mut self) -> io::Result<()> {
        let mut places = [PollFd::from_borrowed_fd(self.report.as_fd(), PollFlags::IN)];
        let time = Timespec { tv_sec: READY_TIME.as_secs() as i64, tv_nsec: 0 };
        let ready =
            poll(&mut places, Some(&time)).or_else(|e| if e == rustix::io::Errno::INTR { Ok(1) } else { Err(e) })?;
        let mut byte = [0];
        if ready == 0 || self.report.read(&mut byte)? == 0 || byte[0] != READY {
            return Err(io::Error::other("a job's supervisor does not start"));
        }
        Ok(())
    }

    pub(super) fn begin(&mut self) {
        (self.state, self.begun) = (State::Running, true);
        // An error means that the supervisor has died; its report will be missing.
        if let Some(pipe) = &mut self.lifeline {
            let _ = pipe.write_all(b"g");
        }
    }

    /// Takes the report once there is one, or once there will be none.
    pub(super) fn take_report(&mut self) {
        if self.state == State::Ended {
            return;
        }
        let mut places = [PollFd::from_borrowed_fd(self.report.as_fd(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut places, Some(&now)).unwrap_or(0) > 0 {
            let mut text = String::new();
            let _ = self.report.read_to_string(&mut text);
            self.usage = serde_json::from_str(&text).ok();
            self.state = State::Ended;
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state == State::Ended && self.usage.as_ref().is_none_or(|usage| usage.code != Some(0))
    }

    pub(super) fn ended_after(&self, start_ns: u64) -> Option<Duration> {
        let usage = self.usage.as_ref()?;
        Some(Duration::from_nanos(usage.end_ns.saturating_sub(start_ns)))
    }

    /// Frees the memory of output that will not be read: a program that prints for hours would fill the machine's
    /// memory.
    pub(super) fn forget_output(&self) {
        let _ = forget_all_but_the_end(&self.output);
    }

    /// Samples its memory.
    pub(super) fn sample(&mut self) {
        self.max_memory_bytes = self.max_memory_bytes.max(memory_bytes(Pid::from_child(&self.supervisor)));
    }

    /// Becomes readable when the job ends.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.report.as_fd()
    }

    /// `None` when it had not begun.
    pub(super) fn end(mut self, set_start_ns: u64) -> Option<End> {
        if !self.begun {
            return None;
        }
        let after = |ns: u64| ns.saturating_sub(set_start_ns) as f64 / 1e9;
        let (start_s, end_s) = match &self.usage {
            Some(usage) => (after(usage.start_ns), after(usage.end_ns)),
            None => (self.start.as_secs_f64(), after(now_ns())),
        };
        let largest = self.usage.as_ref().map_or(0, |usage| usage.max_process_kib * 1024);
        // Memory that comes and goes between two samples is missed, but the largest process is known.
        let max_memory_bytes = self.max_memory_bytes.max(largest);
        let output = read_end(&mut self.output).unwrap_or_default();
        Some(End { start_s, end_s, usage: self.usage.take(), max_memory_bytes, output })
    }
}

impl Drop for Running {
    /// Also after a failure: the supervisor ends the job when its pipe is closed.
    fn drop(&mut self) {
        self.lifeline = None;
        let _ = self.supervisor.wait();
    }
}

/// Ends all jobs that still run, all at the same time.
pub(super) fn end_all(jobs: &mut [Running]) {
    for job in jobs.iter_mut() {
        job.lifeline = None;
    }
    let started = Instant::now();
    while jobs.iter().any(|job| job.state != State::Ended) && started.elapsed() < END_TIME {
        jobs.iter_mut().for_each(Running::take_report);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Frees everything before the end that is read, in a file without a name; log files keep all.
fn forget_all_but_the_end(file: &File) -> io::Result<()> {
    let stat = fstat(file)?;
    let before = u64::try_from(stat.st_size).unwrap_or(0).saturating_sub(OUTPUT_READ_BYTES);
    if stat.st_nlink == 0 && before > 0 {
        fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, before)?;
    }
    Ok(())
}

fn read_end(file: &mut File) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_READ_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_READ_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_the_end_of_unnamed_output_takes_memory() {
        let long = b"0123456789abcdef".repeat(1 << 18);
        let mut unnamed = unnamed_file().unwrap();
        let mut log = tempfile::NamedTempFile::new().unwrap();
        for file in [&mut unnamed, log.as_file_mut()] {
            file.write_all(&long).unwrap();
            forget_all_but_the_end(file).unwrap();
            file.write_all(b"the end").unwrap();
        }
        assert!(unnamed.metadata().unwrap().blocks() * 512 < 2 * OUTPUT_READ_BYTES);
        let end = read_end(&mut unnamed).unwrap();
        assert!(end.len() == OUTPUT_READ_BYTES as usize && end.ends_with("abcdefthe end"));
        assert!(!end.contains('\0'));
        assert!(std::fs::read(log.path()).unwrap().starts_with(b"0123"), "a log keeps all");
    }
}
