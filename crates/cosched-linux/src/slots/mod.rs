//! The slot thread: switches gangs on the wall clock.
//!
//! The problem: at every slot boundary the right gangs must stop and start, on time, on a machine whose CPUs are all busy. The rule: one
//! thread of real-time priority sleeps on an absolute timer of the wall clock; everything it writes was opened and formatted before; on
//! the way of a switch it neither allocates nor locks. Tables and mechanisms reach it through an exchange of pointers, and the old ones are
//! dropped by whoever installs the next. A clock that is set makes it look anew. Without a switch or a look ahead it sleeps for good.

mod boost;
mod count;
mod division;
mod handoff;
mod ticks;
mod worker;

pub use boost::{Boost, BoostJob, BoostTiming, Choice, Chooser, Seen};
pub use division::{Divider, Division};

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use crate::beat::{self, Beat};
use crate::mechanism::Mechanism;
use crate::probe::IdleProbe;
use crate::realtime;
use crate::stats::{Counters, SwitchHistograms, SwitchStats};
use crate::switch::JobSwitch;
use handoff::Handoff;
use ticks::{TickState, Ticks};
use worker::Worker;

/// One job of a table, with its open switch.
pub type Entry = cosched_core::Entry<Arc<JobSwitch>>;

/// What runs when.
pub type Table = cosched_core::Table<Arc<JobSwitch>>;

type Prepared = cosched_core::Prepared<Arc<JobSwitch>>;

/// How the slot thread starts.
#[derive(Debug, Clone, Default)]
pub struct SlotConfig {
    /// The SCHED_FIFO priority, 1 to 99; 0 asks for none. A low one (10) is enough against everything fair.
    pub priority: i32,
    /// The page to stamp at least four times per lease.
    pub beat: Option<Arc<Beat>>,
}

/// What the thread and its owner share.
struct Shared {
    tables: Handoff<Prepared>,
    mechanisms: Handoff<Box<dyn Mechanism>>,
    probes: Handoff<IdleProbe>,
    boosts: Handoff<Boost>,
    divisions: Handoff<Division>,
    ticks: Arc<TickState>,
    stop: AtomicBool,
    wake: OwnedFd,
    counters: Counters,
    /// The number of the table that the thread has taken last.
    taken: AtomicU64,
}

/// The running slot thread, with the idle probe. Dropping it stops it, which lets every job run.
pub struct SlotThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    priority: Result<i32, String>,
    tables: AtomicU64,
    /// The last table that was installed.
    last: Mutex<Option<Table>>,
    /// The threads for jobs that want very short turns, once there was one.
    ticks: Mutex<Option<Ticks>>,
}

impl SlotThread {
    /// Starts the thread. It must stay in a cgroup with a real-time budget: the root, where CONFIG_RT_GROUP_SCHED is on.
    /// Real-time priority that is not permitted is no error: see [`SlotThread::realtime_priority`].
    ///
    /// # Errors
    /// When the kernel gives no thread, timer or event descriptor.
    pub fn start(config: SlotConfig, mechanism: Box<dyn Mechanism>) -> io::Result<SlotThread> {
        let shared = Arc::new(Shared {
            tables: Handoff::new(),
            mechanisms: Handoff::new(),
            probes: Handoff::new(),
            boosts: Handoff::new(),
            divisions: Handoff::new(),
            ticks: Arc::default(),
            stop: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            counters: Counters::default(),
            taken: AtomicU64::new(0),
        });
        shared.mechanisms.offer(mechanism);
        beat::heed_nudges();
        let mut worker = Worker::new(Arc::clone(&shared), config.beat)?;
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name("cosched-slots".into()).spawn(move || {
            // The owner waits for this word, so it cannot have gone.
            let _ = tell.send(raise_priority(config.priority));
            worker.run();
        })?;
        let priority = told.recv().unwrap_or_else(|_| Err("the slot thread died at its start".into()));
        Ok(SlotThread {
            shared,
            thread: Some(thread),
            priority,
            tables: AtomicU64::new(0),
            last: Mutex::default(),
            ticks: Mutex::default(),
        })
    }

    /// Puts a table in force. The thread is woken and applies the present slot's states at once; jobs of the old table that the new
    /// one does not have are let run. Also drops tables that the thread is done with.
    ///
    /// One that says what the last one says wakes nobody: most new plans change nothing here, and the thread takes a CPU from whoever
    /// has just been told of the plan.
    pub fn install(&self, table: Table) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_some_and(|last| last.is_as(&table)) {
            return self.shared.tables.reclaim();
        }
        *last = Some(table.clone());
        let number = self.tables.fetch_add(1, Relaxed) + 1;
        self.shared.tables.offer(Prepared::new(table, number));
        self.shared.wake();
    }

    /// Waits until the thread has taken the last table, so that it touches no job that this one does not have.
    ///
    /// Returns false when that takes longer than `limit`.
    pub fn wait_installed(&self, limit: Duration) -> bool {
        let (start, wanted) = (Instant::now(), self.tables.load(Relaxed));
        while self.shared.taken.load(Acquire) < wanted {
            if start.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        true
    }

    /// Changes the mechanism: every job is released by the old one, and the present states are applied by the new one.
    pub fn set_mechanism(&self, mechanism: Box<dyn Mechanism>) {
        self.shared.mechanisms.offer(mechanism);
        self.shared.wake();
    }

    /// Gives it the idle probe. Until then a soft mechanism switches strictly: nobody tells when a CPU is idle.
    pub fn set_probe(&self, probe: IdleProbe) {
        self.shared.probes.offer(probe);
        self.shared.wake();
    }

    /// Says which jobs may be boosted from now on, in place of those before ([`Boost::none`] ends it). Only those that are in the
    /// table, with [`Disposition::Run`](cosched_core::Disposition::Run) for good, are touched.
    pub fn set_boost(&self, boost: Boost) {
        self.shared.boosts.offer(boost);
        self.shared.wake();
    }

    /// A job's wish for very short turns ([`JobSwitch::want_ticks`]) has changed, or is new: from now on the threads on these CPUs serve it.
    ///
    /// # Errors
    /// The kernel's, where there are no such threads yet and it gives none, or no real-time priority.
    pub fn heed_ticks(&self, cpus: &[u32]) -> io::Result<()> {
        let mut ticks = self.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        if ticks.is_none() {
            *ticks = Some(Ticks::start(Arc::clone(&self.shared.ticks), cpus)?);
        }
        self.shared.wake();
        Ok(())
    }

    /// Says how slots are divided between gangs and neighbours, from any thread. Until then they are not.
    pub fn divider(&self) -> Divider {
        Divider(Arc::clone(&self.shared))
    }

    /// What it has measured.
    pub fn stats(&self) -> SwitchStats {
        self.shared.counters.snapshot()
    }

    /// The distributions that it has measured.
    pub fn histograms(&self) -> SwitchHistograms {
        self.shared.counters.histograms()
    }

    /// How many installed tables it has not taken yet; 0 but for moments.
    pub fn tables_waiting(&self) -> u64 {
        self.tables.load(Relaxed).saturating_sub(self.shared.taken.load(Acquire))
    }

    /// Sets the counters and histograms to zero.
    pub fn reset_stats(&self) {
        self.shared.counters.reset();
    }

    /// The SCHED_FIFO priority that it has; none when that was not permitted.
    pub fn realtime_priority(&self) -> Option<i32> {
        self.priority.as_ref().ok().copied()
    }

    /// Why it has no real-time priority, and what it has instead.
    pub fn priority_note(&self) -> Option<&str> {
        self.priority.as_ref().err().map(String::as_str)
    }

    /// Stops the thread and waits for it. Every job of its table is let run before.
    pub fn stop(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.shared.stop.store(true, Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed, and its jobs were released on the way.
            let _ = thread.join();
        }
    }
}

impl Drop for SlotThread {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    fn wake(&self) {
        // A full counter (it cannot be) would have woken the thread already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

fn raise_priority(priority: i32) -> Result<i32, String> {
    realtime::no_timer_slack();
    if priority <= 0 {
        return Err("no real-time priority was asked for".into());
    }
    realtime::become_realtime(priority).map(|()| priority).map_err(|e| match realtime::become_nice() {
        Ok(()) => format!("real-time priority was refused ({e}); running at nice -20"),
        Err(_) => format!("real-time priority was refused ({e}); running at the ordinary priority"),
    })
}
