//! Boosting: among the jobs that run without slots, one gets the CPUs for a moment.
//!
//! The problem: local jobs whose processes wait for each other need that the one with a message runs now, and the fair scheduler does not know about
//! messages. The rule (periodic boost, Zhang et al. 2000, §2.4.4): every period the slot thread samples which jobs have unread messages and which
//! wait, calls a [`Chooser`], and gives the named job the CPUs by freezing the other boostable jobs until the next sample. With a bell (demand-based
//! coscheduling, §2.4.3) the arrival of a message triggers a sample, too.
//!
//! Why freezing until the next sample. Measured (examples/boost_cost.rs, 2 CPUs, 2 spinning jobs, a decision every 2 ms): the boosted processes run
//! after 52 µs (99 %: 120 µs) and have 93 % of the CPUs, for two writes of together 32 µs. Freezing the others for only 100 or 300 µs gives as fast a
//! start, but no more than the fair share (37 to 53 %): the thawed processes are owed their time and take the CPU back. cpu.idle, weights and a
//! freeze of the running process act at the next tick (4 ms), if at all.
//!
//! A boosted job that sleeps leaves its CPUs idle while the others are held back, so for such a job the chooser holds them back only for the shorter
//! time that the job needs to wake up. Gangs are not touched: only jobs that run in every turn of their table are frozen and thawed. Whenever the
//! states of all jobs are written again, the boost ends.

mod look;

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::arrivals::{ArrivalBell, JobSockets};
use crate::job::JobCgroup;
use crate::switch::JobSwitch;
use crate::waits::WaitPage;

/// The shortest time between two samples: each costs some ten microseconds of a CPU.
const PERIOD_NS_MIN: u64 = 200_000;

/// A sample of one job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// The job's number.
    pub job: u64,
    /// Its table lets it run now. Other jobs are neither boosted nor held back.
    pub eligible: bool,
    /// One of its sockets has something to read.
    pub unread: bool,
    /// A message arrived for it since the last sample. Only known for jobs that ring.
    pub rang: bool,
    /// Some of its processes spin for a message, and none computes. False when its processes are unknown.
    pub waiting: bool,
    /// All of its processes sleep for a message. False when they are unknown.
    pub blocked: bool,
    /// The number of its processes that are known from their wait page.
    pub processes: u32,
    /// Those of them that spin for a message.
    pub spinning: u32,
    /// Those of them that sleep for a message.
    pub sleeping: u32,
    /// The CPU time that it has used, in nanoseconds; up to 50 ms old.
    pub cpu_ns: u64,
}

/// The job to boost, and for how long the others are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The index of the job.
    pub job: usize,
    /// The others run again after this time, in nanoseconds (at least 50 µs), or at the next sample if that comes first. A job that spins while it
    /// waits is best boosted until the next sample ([`Choice::UNTIL_NEXT_LOOK`]); one that sleeps, for the 100 to 300 µs that it needs to wake up.
    pub hold_ns: u64,
}

impl Choice {
    /// For [`Choice::hold_ns`].
    pub const UNTIL_NEXT_LOOK: u64 = u64::MAX;
}

/// Chooses the job to boost. Implementations neither allocate nor lock: they run on the slot thread.
pub trait Chooser: Send {
    /// The job to boost, as an index into `jobs`; `None` lets all run. `now_ns` is CLOCK_MONOTONIC; `current` is the job that was boosted by the last
    /// sample. An ineligible job counts as `None`.
    fn choose(&mut self, now_ns: u64, current: Option<usize>, jobs: &[Seen]) -> Option<Choice>;
}

/// One job that may be boosted.
#[derive(Debug)]
pub struct BoostJob {
    switch: Arc<JobSwitch>,
    /// Of each of its cgroups.
    cpu_stats: Vec<File>,
    cpu_due_ns: u64,
    sockets: Option<Arc<JobSockets>>,
    page: Option<WaitPage>,
    periodic: bool,
}

impl BoostJob {
    /// A job with the sources of its state. `periodic`: it is sampled every period (PB); otherwise only when a bell rings (DCS).
    ///
    /// # Errors
    /// Its cpu.stat cannot be opened.
    pub fn new(
        job: &JobCgroup,
        sockets: Option<Arc<JobSockets>>,
        page: Option<WaitPage>,
        periodic: bool,
    ) -> io::Result<BoostJob> {
        let open = |job: &JobCgroup| File::open(job.v2_dir().join("cpu.stat"));
        let mut cpu_stats = vec![open(job)?];
        cpu_stats.extend(job.annexes().iter().filter_map(|annex| open(annex).ok()));
        Ok(BoostJob { switch: job.switch_handle(), cpu_stats, cpu_due_ns: 0, sockets, page, periodic })
    }
}

/// The intervals of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoostTiming {
    /// The time between two samples, in nanoseconds; at least 200 µs. A boost lasts at least as long.
    pub period_ns: u64,
    /// The limit up to which that time grows (it doubles) while no job has an unread message, spins for one or is boosted, in nanoseconds.
    pub quiet_period_ns: u64,
    /// The bell triggers at most one sample in this time, in nanoseconds.
    pub ring_pause_ns: u64,
}

impl Default for BoostTiming {
    /// 2 ms, 16 ms and 1 ms.
    fn default() -> BoostTiming {
        BoostTiming { period_ns: 2_000_000, quiet_period_ns: 16_000_000, ring_pause_ns: 1_000_000 }
    }
}

/// The jobs that may be boosted, their chooser, and the intervals. See [`super::SlotThread::set_boost`].
pub struct Boost {
    jobs: Vec<BoostJob>,
    seen: Vec<Seen>,
    chooser: Box<dyn Chooser>,
    bell: Option<Arc<ArrivalBell>>,
    timing: BoostTiming,
    /// The job of the last choice.
    current: Option<usize>,
    /// Since when the others are held back for it (as far as not accounted for), and until when; `None` when they are not.
    held: Option<(u64, u64)>,
    next_look_ns: u64,
    pause_ns: u64,
    /// Rings of the bell before this time are not handled.
    deaf_until_ns: u64,
}

impl Boost {
    /// `jobs` in the order in which `chooser` gets them; `bell` if arriving messages trigger samples, too.
    pub fn new(
        jobs: Vec<BoostJob>,
        chooser: Box<dyn Chooser>,
        bell: Option<Arc<ArrivalBell>>,
        timing: BoostTiming,
    ) -> Boost {
        let seen = jobs.iter().map(|job| Seen { job: job.switch.id(), ..Seen::default() }).collect();
        let timing = BoostTiming { period_ns: timing.period_ns.max(PERIOD_NS_MIN), ..timing };
        Boost {
            jobs,
            seen,
            chooser,
            bell,
            timing,
            current: None,
            held: None,
            next_look_ns: 0,
            pause_ns: timing.period_ns,
            deaf_until_ns: 0,
        }
    }

    /// No boosting: no jobs, and no samples.
    pub fn none() -> Boost {
        struct Nobody;
        impl Chooser for Nobody {
            fn choose(&mut self, _: u64, _: Option<usize>, _: &[Seen]) -> Option<Choice> {
                None
            }
        }
        Boost::new(Vec::new(), Box::new(Nobody), None, BoostTiming::default())
    }
}
