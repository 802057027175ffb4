//! Runs a set of jobs at the same time: starts them together, watches them, takes their reports, ends what is left.

use super::job::{End, Planned, Running, State, end_all};
use super::machine::{Busy, oom_kills};
use super::stage::now_ns;
use crate::out::Failure;
use crate::run::signals::{Signals, poll};
use rustix::event::{PollFd, PollFlags};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How often a set is polled while it runs.
const TICK: Duration = Duration::from_millis(200);
/// The shortest time between two samples of the jobs' memory.
const SAMPLE_MIN: Duration = Duration::from_millis(50);
/// Sampling memory uses less than 1 / `SAMPLE_COST` of a CPU.
const SAMPLE_COST: u32 = 200;

/// Jobs to run at the same time.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) jobs: Vec<Planned>,
    /// When this time is over, all jobs are ended.
    pub(crate) limit: Duration,
}

/// The state of a running set.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) elapsed: Duration,
    /// For each job, the time after which it ended.
    pub(crate) ended: Vec<Option<Duration>>,
}

/// Why a set ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All jobs ended by themselves, successfully.
    Done,
    /// This job failed; the others were ended.
    Failed(usize),
    /// The time limit was reached.
    Limit,
    /// A signal with this number arrived.
    Interrupted(i32),
}

/// A set that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    /// From the first job's beginning to the last one's end, in seconds.
    pub(crate) elapsed_s: f64,
    /// In the order of the set; a job that had not begun is missing.
    pub(crate) jobs: Vec<Option<End>>,
    /// The fraction of all CPUs' time that was used by processes outside the set; `None` where it is unknown.
    pub(crate) others_cpu_share: Option<f64>,
    /// Processes on the whole machine that the kernel killed during the run for lack of memory.
    pub(crate) oom_kills: u64,
}

/// Runs a set. `tick` is called a few times a second. Whatever happens, no process of the set is left when this
/// returns.
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
        if clock.shown.elapsed() >= TICK {
            clock.shown = Instant::now();
            let ended = jobs.iter().map(|job| job.ended_after(clock.start_ns)).collect();
            tick(&Look { elapsed: clock.started.elapsed(), ended })?;
        }
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

/// When the set began, and when memory is sampled next.
struct Clock {
    started: Instant,
    start_ns: u64,
    next_sample: Instant,
    /// When `tick` was called last.
    shown: Instant,
}

impl Clock {
    fn start() -> Clock {
        let started = Instant::now();
        Clock { started, start_ns: now_ns(), next_sample: started + SAMPLE_MIN, shown: started }
    }

    /// Sleeps until a report or a signal arrives, or something is due.
    fn wait(&self, signals: &Signals, jobs: &[Running], limit: Duration) -> io::Result<()> {
        let living = jobs.iter().filter(|job| job.state != State::Ended).map(Running::descriptor);
        let mut places: Vec<PollFd<'_>> =
            living.chain([signals.as_fd()]).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let starts = jobs.iter().filter(|job| job.state == State::Ready).map(|job| self.started + job.start);
        let now = Instant::now();
        let due = starts.chain([self.next_sample, self.started + limit, now + TICK]).min().unwrap_or(now);
        poll(&mut places, Some(due.saturating_duration_since(now)))
    }

    /// Samples the jobs' memory when it is due, then pauses long enough to keep the cost of sampling low.
    fn sample(&mut self, jobs: &mut [Running]) {
        // Also during the pauses: a program that prints fast fills gigabytes in that time.
        jobs.iter().for_each(Running::forget_output);
        if Instant::now() < self.next_sample {
            return;
        }
        let before = thread_time();
        for job in jobs.iter_mut().filter(|job| job.state == State::Running) {
            job.sample();
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
