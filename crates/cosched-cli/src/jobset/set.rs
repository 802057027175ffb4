//! Running a set of jobs at the same time: begin them together, watch them, take their reports, end what is left.

use super::machine::{Busy, oom_kills};
use super::processes::memory_bytes;
use super::stage::{READY, STAGE, Usage, now_ns};
use crate::out::Failure;
use crate::run::signals::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How often a set is looked at while it goes on.
const TICK: Duration = Duration::from_millis(200);
/// The shortest time between two looks at the jobs' memory.
const SAMPLE_MIN: Duration = Duration::from_millis(50);
/// Looks at memory use less than one part in so many of a CPU.
const SAMPLE_COST: u32 = 100;
/// How long supervisors have to become ready.
const READY_TIME: Duration = Duration::from_secs(20);
/// How long supervisors have to end their jobs: their own grace time, and the kernel's work with large memories.
const END_TIME: Duration = Duration::from_secs(30);
/// How much of the end of a job's output is read.
const OUTPUT_READ_BYTES: u64 = 1 << 20;

/// One job of a set.
#[derive(Debug)]
pub(crate) struct Planned {
    /// What is executed, with a launcher of cosched or another before it.
    pub(crate) command: Vec<OsString>,
    /// Added to the environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// When it begins, after the set's beginning.
    pub(crate) start: Duration,
    /// Takes its standard output and standard error.
    pub(crate) output: File,
    /// Executed when the job is ended early; empty for nothing.
    pub(crate) on_early_end: Vec<OsString>,
}

/// Jobs to run at the same time.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) jobs: Vec<Planned>,
    /// After this all are ended.
    pub(crate) limit: Duration,
}

/// What is seen while a set runs.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) elapsed: Duration,
    /// For each job, after how long it had ended.
    pub(crate) ended: Vec<Option<Duration>>,
}

/// Why a set ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All jobs ended by themselves, with success.
    Done,
    /// This job failed; the others were ended.
    Failed(usize),
    /// The time was over.
    Limit,
    /// A signal of this number came.
    Interrupted(i32),
}

/// What is known of a job at the end.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// From the set's beginning to the command's start, in seconds.
    pub(crate) start_s: f64,
    /// To the end of its last process, in seconds.
    pub(crate) end_s: f64,
    /// None when its supervisor was killed.
    pub(crate) usage: Option<Usage>,
    /// The largest sum of its processes' memory that was seen.
    pub(crate) max_memory_bytes: u64,
    /// The end of its output.
    pub(crate) output: String,
}

/// A set that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    /// From the first job's beginning to the last one's end, in seconds.
    pub(crate) elapsed_s: f64,
    /// In the order of the set; a job that had not begun is missing.
    pub(crate) jobs: Vec<Option<End>>,
    /// The part of all CPUs' time that was used by processes outside of the set; none where it cannot be seen.
    pub(crate) others_cpu_share: Option<f64>,
    /// Processes that the kernel killed meanwhile for want of memory, on the whole machine.
    pub(crate) oom_kills: u64,
}

impl End {
    /// How it ended, for people.
    pub(crate) fn ending(&self) -> String {
        match &self.usage {
            None => "its supervisor was killed".into(),
            Some(Usage { error: Some(error), .. }) => format!("it could not be started: {error}"),
            Some(Usage { code: Some(code), .. }) => format!("exit code {code}"),
            Some(Usage { signal: Some(signal), .. }) => format!("ended by signal {signal}"),
            Some(_) => "it ended in an unknown way".into(),
        }
    }

    /// CPU time of all its processes, in seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.usage.as_ref().map_or(0.0, |usage| (usage.user_us + usage.system_us) as f64 / 1e6)
    }
}

/// A file in memory for output that nobody keeps.
pub(crate) fn unnamed_file() -> Result<File, Failure> {
    let made = rustix::fs::memfd_create("cosched-output", MemfdFlags::CLOEXEC);
    made.map(File::from).map_err(|e| Failure::other(format!("cannot make a file in memory: {e}")))
}

/// The last lines of what a job wrote, indented.
pub(crate) fn output_end(output: &str) -> String {
    let last: Vec<&str> = output.lines().rev().take(8).collect();
    last.into_iter().rev().map(|line| format!("\n    {line}")).collect()
}

/// Runs a set. `tick` is called a few times a second. Whatever happens, nothing of the set runs when this returns.
pub(crate) fn run(
    set: Set,
    signals: &Signals,
    mut tick: impl FnMut(&Look) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let cannot = |e: io::Error| Failure::other(format!("cannot run the jobs: {e}"));
    let mut jobs = set.jobs.into_iter().map(Running::start).collect::<io::Result<Vec<_>>>().map_err(cannot)?;
    for job in &mut jobs {
        job.wait_until_ready().map_err(cannot)?;
    }
    let (busy, kills_before) = (Busy::start(), oom_kills());
    let mut clock = Clock::start();
    let outcome = loop {
        if jobs.iter().all(|job| job.state == State::Ended) {
            break Outcome::Done;
        }
        if clock.started.elapsed() >= set.limit {
            break Outcome::Limit;
        }
        for job in jobs.iter_mut().filter(|job| job.state == State::Ready && clock.started.elapsed() >= job.start) {
            job.begin();
        }
        clock.wait(signals, &jobs, set.limit).map_err(cannot)?;
        jobs.iter_mut().for_each(Running::take_report);
        if let Some(signal) = signals.next() {
            break Outcome::Interrupted(signal.number);
        }
        if let Some(failed) = jobs.iter().position(Running::has_failed) {
            break Outcome::Failed(failed);
        }
        clock.sample(&mut jobs);
        let ended = jobs.iter().map(|job| job.ended_after(clock.start_ns)).collect();
        tick(&Look { elapsed: clock.started.elapsed(), ended })?;
    };
    end_all(&mut jobs);
    let ends: Vec<Option<End>> = jobs.into_iter().map(|job| job.end(clock.start_ns)).collect();
    let last_s = ends.iter().flatten().map(|end| end.end_s).fold(0.0, f64::max);
    let elapsed_s = if outcome == Outcome::Limit { set.limit.as_secs_f64() } else { last_s };
    let cpu_s: f64 = ends.iter().flatten().map(End::cpu_s).sum();
    let others_cpu_share = busy.others_share(cpu_s, last_s);
    let oom_kills = oom_kills().saturating_sub(kills_before);
    Ok(Measured { outcome, elapsed_s, jobs: ends, others_cpu_share, oom_kills })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for its beginning.
    Ready,
    Running,
    Ended,
}

struct Running {
    supervisor: Child,
    /// Its end ends the job.
    lifeline: Option<ChildStdin>,
    report: ChildStdout,
    output: File,
    start: Duration,
    state: State,
    begun: bool,
    usage: Option<Usage>,
    max_memory_bytes: u64,
}

impl Running {
    fn start(planned: Planned) -> io::Result<Running> {
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

    fn wait_until_ready(&mut self) -> io::Result<()> {
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

    fn begin(&mut self) {
        (self.state, self.begun) = (State::Running, true);
        // An error means that the supervisor has died; its report will be missing.
        if let Some(pipe) = &mut self.lifeline {
            let _ = pipe.write_all(b"g");
        }
    }

    /// Takes the report if there is one, or if there will be none.
    fn take_report(&mut self) {
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

    fn has_failed(&self) -> bool {
        self.state == State::Ended && !self.usage.as_ref().is_some_and(|usage| usage.code == Some(0))
    }

    fn ended_after(&self, start_ns: u64) -> Option<Duration> {
        let usage = self.usage.as_ref()?;
        Some(Duration::from_nanos(usage.end_ns.saturating_sub(start_ns)))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.supervisor)
    }

    /// None when it had not begun.
    fn end(mut self, set_start_ns: u64) -> Option<End> {
        if !self.begun {
            return None;
        }
        let after = |ns: u64| ns.saturating_sub(set_start_ns) as f64 / 1e9;
        let (start_s, end_s) = match &self.usage {
            Some(usage) => (after(usage.start_ns), after(usage.end_ns)),
            None => (self.start.as_secs_f64(), after(now_ns())),
        };
        let largest = self.usage.as_ref().map_or(0, |usage| usage.max_process_kib * 1024);
        // Jobs that end before the first look: at least the largest process is known.
        let max_memory_bytes = if self.max_memory_bytes > 0 { self.max_memory_bytes } else { largest };
        let output = read_end(&mut self.output).unwrap_or_default();
        Some(End { start_s, end_s, usage: self.usage.take(), max_memory_bytes, output })
    }
}

impl Drop for Running {
    /// Also on the way out of a failure: the supervisor ends the job when its pipe ends.
    fn drop(&mut self) {
        self.lifeline = None;
        let _ = self.supervisor.wait();
    }
}

/// Ends what still runs, all at the same time.
fn end_all(jobs: &mut [Running]) {
    for job in jobs.iter_mut() {
        job.lifeline = None;
    }
    let started = Instant::now();
    while jobs.iter().any(|job| job.state != State::Ended) && started.elapsed() < END_TIME {
        jobs.iter_mut().for_each(Running::take_report);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn read_end(file: &mut File) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_READ_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_READ_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// When the set began, and when memory is looked at next.
struct Clock {
    started: Instant,
    start_ns: u64,
    next_sample: Instant,
}

impl Clock {
    fn start() -> Clock {
        let started = Instant::now();
        Clock { started, start_ns: now_ns(), next_sample: started + SAMPLE_MIN }
    }

    /// Sleeps until a report or a signal comes, or something is due.
    fn wait(&self, signals: &Signals, jobs: &[Running], limit: Duration) -> io::Result<()> {
        let living = jobs.iter().filter(|job| job.state != State::Ended).map(|job| job.report.as_fd());
        let mut places: Vec<PollFd<'_>> =
            living.chain([signals.as_fd()]).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let starts = jobs.iter().filter(|job| job.state == State::Ready).map(|job| self.started + job.start);
        let now = Instant::now();
        let due = starts.chain([self.next_sample, self.started + limit, now + TICK]).min().unwrap_or(now);
        let left = due.saturating_duration_since(now);
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut places, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Looks at the jobs' memory when it is time, and rests so long afterwards that the looks stay cheap.
    fn sample(&mut self, jobs: &mut [Running]) {
        if Instant::now() < self.next_sample {
            return;
        }
        let before = thread_time();
        for job in jobs.iter_mut().filter(|job| job.state == State::Running) {
            job.max_memory_bytes = job.max_memory_bytes.max(memory_bytes(job.pid()));
        }
        let rest = (thread_time().saturating_sub(before) * SAMPLE_COST).max(SAMPLE_MIN);
        self.next_sample = Instant::now() + rest;
    }
}

/// CPU time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
