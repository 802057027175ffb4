//! Running jobs side by side and taking their time.

use super::program::{Report, read_report};
use crate::args::{Arm, Cli};
use crate::out::Failure;
use crate::run::SESSION;
use crate::run::signals::Signals;
use cosched_api::{Client, KillRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often a run is looked at while it goes on.
const TICK: Duration = Duration::from_millis(200);
/// What jobs get between TERM and KILL when the demo is interrupted.
const GRACE: Duration = Duration::from_secs(3);
const SIGKILL: i32 = 9;

/// How long a set of jobs took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time {
    /// From the first start to the last end, in seconds; to the limit when not all had ended.
    pub(crate) seconds: f64,
    /// Whether all had ended within the limit.
    pub(crate) finished: bool,
}

/// A set of equal jobs to run at the same time.
#[derive(Debug)]
pub(crate) struct Set<'a> {
    pub(crate) arm: Arm,
    pub(crate) jobs: u32,
    pub(crate) command: Vec<OsString>,
    pub(crate) environment: &'a [(&'static str, &'static str)],
    /// After this it is ended and counts as not finished.
    pub(crate) limit: Duration,
}

/// Which jobs go on, for the display.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) elapsed: Duration,
    /// For each job, whether it has ended and after how long.
    pub(crate) ended: Vec<Option<Duration>>,
}

/// The result of a set: its time, and what all its jobs report.
pub(crate) struct Measured {
    pub(crate) time: Time,
    pub(crate) report: Option<Report>,
}

/// Runs the set. `tick` is called a few times a second; an interruption is a failure, and everything that was started
/// is ended before this returns.
pub(crate) fn run(
    cli: &Cli,
    set: &Set<'_>,
    signals: &Signals,
    client: &mut Client,
    mut tick: impl FnMut(&mut Client, &Progress) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let started = Instant::now();
    let mut running = Running { jobs: Vec::new(), socket: client.path().to_owned(), arm: set.arm };
    for number in 1..=set.jobs {
        running.jobs.push(start(cli, set, number).map_err(|e| Failure::other(format!("cannot start a job: {e}")))?);
    }
    while running.jobs.iter().any(|job| job.ended.is_none()) {
        if started.elapsed() >= set.limit {
            return Ok(Measured { time: Time { seconds: set.limit.as_secs_f64(), finished: false }, report: None });
        }
        wait(signals, &running.jobs).map_err(|e| Failure::other(format!("cannot wait for jobs: {e}")))?;
        collect(&mut running.jobs, started)?;
        if let Some(signal) = signals.next() {
            return Err(Failure::silent(u8::try_from(128 + signal.number).unwrap_or(1)));
        }
        let ended = running.jobs.iter().map(|job| job.ended).collect();
        tick(client, &Progress { elapsed: started.elapsed(), ended })?;
    }
    let last = running.jobs.iter().filter_map(|job| job.ended).max().unwrap_or_default();
    let report = same_report(&running.jobs)?;
    Ok(Measured { time: Time { seconds: last.as_secs_f64(), finished: true }, report })
}

struct Started {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    output: File,
    name: String,
    ended: Option<Duration>,
    text: String,
}

/// Each job gets a session of its own, in all arms: the terminal's signals are the demo's.
fn start(cli: &Cli, set: &Set<'_>, number: u32) -> io::Result<Started> {
    let name = format!("demo-{}-{number}", std::process::id());
    let output = File::from(rustix::fs::memfd_create("cosched-demo", MemfdFlags::CLOEXEC)?);
    let mut command = Command::new("/proc/self/exe");
    command.arg(SESSION);
    if set.arm != Arm::Linux {
        command.arg(std::env::current_exe()?);
        if let Some(socket) = &cli.socket {
            command.arg("--socket").arg(socket);
        }
        command.args(["run", "--name", &name, "--"]);
    }
    command.args(&set.command).envs(set.environment.iter().copied());
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(Started { child, pid, pidfd, output, name, ended: None, text: String::new() })
}

fn wait(signals: &Signals, jobs: &[Started]) -> io::Result<()> {
    let living = jobs.iter().filter(|job| job.ended.is_none()).map(|job| job.pidfd.as_fd());
    let descriptors = living.chain([signals.as_fd()]);
    let mut places: Vec<PollFd<'_>> = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
    match poll(&mut places, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn collect(jobs: &mut [Started], started: Instant) -> Result<(), Failure> {
    for job in jobs.iter_mut().filter(|job| job.ended.is_none()) {
        let failed = |e: io::Error| Failure::other(format!("cannot wait for a job: {e}"));
        let Some(status) = job.child.try_wait().map_err(failed)? else { continue };
        job.ended = Some(started.elapsed());
        job.output.rewind().and_then(|()| job.output.read_to_string(&mut job.text)).map_err(failed)?;
        if !status.success() {
            let last: Vec<&str> = job.text.lines().rev().take(8).collect();
            let said = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
            return Err(Failure::other(format!("a job of the demo failed ({status}); it said:\n    {said}")));
        }
    }
    Ok(())
}

/// What all the jobs report; they must have done the same.
fn same_report(jobs: &[Started]) -> Result<Option<Report>, Failure> {
    let mut reports = jobs.iter().map(|job| read_report(&job.text));
    let first = reports.next().flatten();
    if reports.all(|report| report == first) {
        Ok(first)
    } else {
        Err(Failure::other("the jobs of the demo did not do the same work, so their times cannot be compared"))
    }
}

struct Running {
    jobs: Vec<Started>,
    socket: std::path::PathBuf,
    arm: Arm,
}

impl Drop for Running {
    /// Nothing of a set outlives it.
    fn drop(&mut self) {
        let mut left: Vec<&mut Started> = self.jobs.iter_mut().filter(|job| job.ended.is_none()).collect();
        if left.is_empty() {
            return;
        }
        for job in &left {
            let _ = kill_process_group(job.pid, Signal::TERM);
        }
        let started = Instant::now();
        while started.elapsed() < GRACE && !left.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
            left.retain_mut(|job| matches!(job.child.try_wait(), Ok(None)));
        }
        if self.arm != Arm::Linux && !left.is_empty() {
            let names: Vec<&str> = left.iter().map(|job| job.name.as_str()).collect();
            kill_by_name(&self.socket, &names);
        }
        for job in left {
            let _ = kill_process_group(job.pid, Signal::KILL);
            let _ = job.child.wait();
        }
    }
}

fn kill_by_name(socket: &std::path::Path, names: &[&str]) {
    let Ok(mut client) = Client::connect(socket) else { return };
    let Ok(list) = client.jobs(false) else { return };
    for job in list.jobs.iter().filter(|job| names.contains(&job.name.as_str())) {
        let _ = client.kill(job.id, &KillRequest { signal: SIGKILL, grace_ms: None });
    }
}
