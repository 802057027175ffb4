//! The watchers' view of a thread of a running graph.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cosched_linux::thread::{Scheduling, Switches, Thread, Usage};

use super::Doing;
use super::spans::Spans;

/// The kernel's counts for one stage: a thread's usage is divided among its stages in proportion to their work.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    pub(crate) delay_ns: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

impl Spent {
    pub(super) fn add(&mut self, other: Spent) {
        self.cpu_ns += other.cpu_ns;
        self.delay_ns += other.delay_ns;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }
}

/// The usage that has been divided so far.
#[derive(Debug, Default)]
struct Divided {
    usage: Usage,
    switches: Switches,
    work_ns: Vec<u64>,
    spent: Vec<Spent>,
}

/// One thread. Its owner writes without locks, watchers read; aligned to cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Seat {
    pub(super) tid: i32,
    /// None if /proc cannot be read: then the thread's usage is unknown and its scheduling is not changed.
    pub(super) thread: Option<Thread>,
    /// The scheduling that it started with, before any change.
    pub(super) base: Option<Scheduling>,
    /// It helps another thread of its stage; decisions for that thread apply to it as well.
    pub(super) is_helper: bool,
    /// The stages that it works as.
    pub(super) stages: Vec<usize>,
    /// Time at work, by place in `stages`.
    work_ns: Vec<AtomicU64>,
    doing: AtomicU64,
    /// Start of the current activity, in nanoseconds from the graph's start.
    since_ns: AtomicU64,
    /// The block that it works on, and how many it has begun or handed on.
    round: AtomicU64,
    steps: AtomicU64,
    /// For the watchdog: the number of steps that it saw last, and the time at which it first saw that number.
    seen: Mutex<(u64, u64)>,
    /// Buffers that it has accepted and not conveyed.
    pub(super) held: AtomicUsize,
    divided: Mutex<Divided>,
    pub(super) spans: Spans,
}

impl Seat {
    /// The calling thread, which works for these stages.
    pub(super) fn here(stages: &[usize], spans: Spans) -> Seat {
        Seat::of(cosched_linux::thread::current_tid(), stages, spans)
    }

    /// A helper thread, which works for another thread's stage.
    pub(super) fn helper(tid: i32, stage: usize) -> Seat {
        let mut seat = Seat::of(tid, &[stage], Spans::new(false));
        seat.is_helper = true;
        seat
    }

    fn of(tid: i32, stages: &[usize], spans: Spans) -> Seat {
        let thread = Thread::of(tid).ok();
        let base = thread.as_ref().and_then(|thread| thread.scheduling().ok());
        let divided = Divided {
            work_ns: vec![0; stages.len()],
            spent: vec![Spent::default(); stages.len()],
            ..Divided::default()
        };
        Seat {
            tid,
            thread,
            base,
            is_helper: false,
            stages: stages.to_vec(),
            work_ns: stages.iter().map(|_| AtomicU64::new(0)).collect(),
            doing: AtomicU64::new(Doing::Nothing.encode()),
            since_ns: AtomicU64::new(0),
            round: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            seen: Mutex::default(),
            held: AtomicUsize::new(0),
            divided: Mutex::new(divided),
            spans,
        }
    }

    /// The owner starts another activity.
    pub(super) fn switch(&self, doing: Doing, now_ns: u64) {
        self.since_ns.store(now_ns, Relaxed);
        self.doing.store(doing.encode(), Release);
    }

    /// The owner, a worker, is at another stage now. The start time is not recorded: watchers use the number of its
    /// steps.
    #[inline]
    pub(super) fn carries(&self, doing: Doing) {
        self.doing.store(doing.encode(), Relaxed);
    }

    /// The owner begins a block. There is no other writer, so no locked instruction is needed.
    #[inline]
    pub(super) fn begins(&self, round: u64) {
        self.round.store(round, Relaxed);
        self.steps();
    }

    /// The owner has made a step.
    #[inline]
    pub(super) fn steps(&self) {
        self.steps.store(self.steps.load(Relaxed) + 1, Relaxed);
    }

    /// Since when, as far as the watchdog has seen, the owner has made no step; and the block that it works on.
    pub(super) fn unmoved(&self, now_ns: u64) -> (u64, u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = self.steps.load(Relaxed);
        if *seen == (0, 0) || seen.0 != steps {
            *seen = (steps, now_ns);
        }
        (seen.1, self.round.load(Relaxed))
    }

    /// The owner has worked for `time_ns` on a stage.
    pub(super) fn worked(&self, stage: usize, time_ns: u64) {
        // If there is a single stage, everything is accounted to it.
        if self.stages.len() == 1 {
            return;
        }
        if let Some(place) = self.stages.iter().position(|one| *one == stage) {
            let work_ns = &self.work_ns[place];
            work_ns.store(work_ns.load(Relaxed) + time_ns, Relaxed);
        }
    }

    /// The current activity, and its start.
    pub(super) fn doing(&self) -> (Doing, u64) {
        loop {
            let code = self.doing.load(Acquire);
            let since_ns = self.since_ns.load(Relaxed);
            if self.doing.load(Acquire) == code {
                return (Doing::decode(code), since_ns);
            }
        }
    }

    /// Reads the kernel's counters, and divides the increase among the stages in proportion to their work since the last
    /// time.
    pub(super) fn divide(&self) {
        let mut divided = self.divided();
        let Some(thread) = &self.thread else { return };
        let (Ok(usage), Ok(switches)) = (thread.usage(), thread.switches()) else { return };
        let new = usage.since(divided.usage);
        let counts = (
            switches.voluntary.saturating_sub(divided.switches.voluntary),
            switches.involuntary.saturating_sub(divided.switches.involuntary),
        );
        let Some(parts) = self.parts(&mut divided) else { return };
        (divided.usage, divided.switches) = (usage, switches);
        for (spent, part) in divided.spent.iter_mut().zip(parts) {
            let of = |whole: u64| (whole as f64 * part) as u64;
            let (cpu_ns, delay_ns) = (of(new.cpu_ns), of(new.delay_ns));
            spent.add(Spent { cpu_ns, delay_ns, voluntary: of(counts.0), involuntary: of(counts.1) });
        }
    }

    /// Each stage's share of the work since the last time; None if there are several stages and none of them has worked.
    fn parts(&self, divided: &mut Divided) -> Option<Vec<f64>> {
        if self.stages.len() == 1 {
            return Some(vec![1.0]);
        }
        let now: Vec<u64> = self.work_ns.iter().map(|work_ns| work_ns.load(Relaxed)).collect();
        let new: Vec<u64> = now.iter().zip(&divided.work_ns).map(|(now, then)| now - then).collect();
        let sum: u64 = new.iter().sum();
        divided.work_ns = now;
        (sum > 0).then(|| new.iter().map(|one| *one as f64 / sum as f64).collect())
    }

    /// What each of its stages has used until the last division.
    pub(super) fn spent(&self) -> Vec<(usize, Spent)> {
        self.stages.iter().copied().zip(self.divided().spent.iter().copied()).collect()
    }

    fn divided(&self) -> MutexGuard<'_, Divided> {
        self.divided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
