//! The slot thread: switches gangs on the wall clock.
//!
//! The problem: at every slot boundary the right gangs must stop and start, on time, on a machine whose CPUs are all busy. The rule: one thread of
//! real-time priority sleeps on an absolute timer of the wall clock; everything it writes was opened and formatted before; on the way of a switch it
//! neither allocates nor locks. Tables and mechanisms reach it through an exchange of pointers, and the old ones are dropped by the thread that
//! installs the next. When the clock is set, it computes its times again. With no switch or sample due it sleeps indefinitely.

mod boost;
mod count;
mod division;
mod handoff;
mod idle;
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
use crate::realtime::{self, Ahead};
use crate::stats::{Counters, SwitchHistograms, SwitchStats};
use crate::switch::JobSwitch;
use handoff::Handoff;
use ticks::{TickState, Ticks};
use worker::Worker;

/// One job of a table, with its open switch.
pub type Entry = cosched_core::Entry<Arc<JobSwitch>>;

/// The table of when which job runs.
pub type Table = cosched_core::Table<Arc<JobSwitch>>;

type Prepared = cosched_core::Prepared<Arc<JobSwitch>>;

/// The options of the slot thread.
#[derive(Debug, Clone, Default)]
pub struct SlotConfig {
    /// The SCHED_FIFO priority, 1 to 99; 0 requests none. A low one (10) is enough against everything fair.
    pub priority: i32,
    /// The page to stamp at least four times per lease.
    pub beat: Option<Arc<Beat>>,
}

/// The state shared by the thread and its owner.
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
    /// The number of the last table that the thread has taken.
    taken: AtomicU64,
}

/// The running slot thread, with the idle probe. Dropping it stops it, which releases every job.
pub struct SlotThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    priority: Result<i32, String>,
    tables: AtomicU64,
    /// The last table that was installed.
    last: Mutex<Option<Table>>,
    /// The threads for jobs that need very short turns, once there was such a job.
    ticks: Mutex<Option<Ticks>>,
}

impl SlotThread {
    /// Starts the thread. It must stay in a cgroup with a real-time budget: the root, where CONFIG_RT_GROUP_SCHED is on. Missing permission for
    /// real-time priority is no error: see [`SlotThread::realtime_priority`].
    ///
    /// # Errors
    /// The kernel gives no thread, timer or event descriptor.
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
        let worker = Worker::new(Arc::clone(&shared), config.beat)?;
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name("cosched-slots".into()).spawn(move || {
            // Dropped last, at ordinary priority.
            let mut worker = worker;
            let ahead = raise_priority(config.priority);
            // The owner waits for this message, so the receiver exists.
            let _ = tell.send(ahead.as_ref().map(|_| config.priority).map_err(String::clone));
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

    /// Puts a table in force. The thread is woken and applies the present slot's states at once; jobs that are only in the old table are released.
    /// Also drops tables that the thread no longer uses.
    ///
    /// A table that equals the last one does not wake the thread: most new plans change nothing here, and the thread would take a CPU from a process
    /// that has just been told of the plan.
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

    /// Waits until the thread has taken the last table, so that it touches no job that is not in it.
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

    /// Sets the idle probe. Until then a soft mechanism switches strictly, because idle CPUs are unknown.
    pub fn set_probe(&self, probe: IdleProbe) {
        self.shared.probes.offer(probe);
        self.shared.wake();
    }

    /// Sets the jobs that may be boosted from now on ([`Boost::none`]: none). Only those that are in the table, with
    /// [`Disposition::Run`](cosched_core::Disposition::Run) permanently, are touched.
    pub fn set_boost(&self, boost: Boost) {
        self.shared.boosts.offer(boost);
        self.shared.wake();
    }

    /// To be called when a job's setting for very short turns ([`JobSwitch::want_ticks`]) has changed: from now on the threads on these CPUs follow
    /// it.
    ///
    /// # Errors
    /// The kernel's, if the threads do not exist yet and it gives none, or no real-time priority.
    pub fn heed_ticks(&self, cpus: &[u32]) -> io::Result<()> {
        let mut ticks = self.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        if ticks.is_none() {
            *ticks = Some(Ticks::start(Arc::clone(&self.shared.ticks), cpus)?);
        }
        self.shared.wake();
        Ok(())
    }

    /// The handle that sets the division of slots between gangs and neighbours, from any thread. Until it is set they are not divided.
    pub fn divider(&self) -> Divider {
        Divider(Arc::clone(&self.shared))
    }

    /// Its measurements.
    pub fn stats(&self) -> SwitchStats {
        self.shared.counters.snapshot()
    }

    /// The distributions of its measurements.
    pub fn histograms(&self) -> SwitchHistograms {
        self.shared.counters.histograms()
    }

    /// The number of installed tables that it has not taken yet; 0 except for moments.
    pub fn tables_waiting(&self) -> u64 {
        self.tables.load(Relaxed).saturating_sub(self.shared.taken.load(Acquire))
    }

    /// Sets the counters and histograms to zero.
    pub fn reset_stats(&self) {
        self.shared.counters.reset();
    }

    /// Its SCHED_FIFO priority; `None` when that was not permitted.
    pub fn realtime_priority(&self) -> Option<i32> {
        self.priority.as_ref().ok().copied()
    }

    /// Why it has no real-time priority, and what it has instead.
    pub fn priority_note(&self) -> Option<&str> {
        self.priority.as_ref().err().map(String::as_str)
    }

    /// Stops the thread and waits for it. Every job of its table is released before.
    pub fn stop(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.shared.stop.store(true, Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed, and its jobs were released while unwinding.
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
        // A full counter, which does not happen, would have woken the thread already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

fn raise_priority(priority: i32) -> Result<Ahead, String> {
    realtime::no_timer_slack();
    if priority <= 0 {
        return Err("no real-time priority was requested".into());
    }
    Ahead::at(priority).map_err(|e| match realtime::become_nice() {
        Ok(()) => format!("real-time priority was refused ({e}); running at nice -20"),
        Err(_) => format!("real-time priority was refused ({e}); running at the ordinary priority"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::{Order, Phase};
    use crate::switch::{JobSwitch, SwitchFiles};
    use cosched_core::Disposition;
    use rustix::io::Errno;
    use std::sync::atomic::AtomicU32;

    fn is_ordinary() -> bool {
        // SAFETY: takes a number only.
        unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK == libc::SCHED_OTHER }
    }

    /// Tells whether it is dropped at ordinary priority.
    struct Told(mpsc::Sender<bool>);

    impl Mechanism for Told {
        fn name(&self) -> &'static str {
            "none"
        }

        fn order(&self) -> Order {
            Order::OutgoingFirst
        }

        fn apply(&self, _: &JobSwitch, _: Disposition, _: u32, _: Phase) -> Result<(), Errno> {
            Ok(())
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(is_ordinary()).unwrap();
        }
    }

    #[test]
    fn the_thread_ends_at_ordinary_priority() {
        let (tell, told) = mpsc::channel();
        let slots = SlotThread::start(SlotConfig { priority: 10, beat: None }, Box::new(Told(tell))).unwrap();
        if slots.realtime_priority().is_none() {
            println!("SKIPPED: real-time priority is not permitted");
            return;
        }
        slots.install(Table::empty());
        assert!(slots.wait_installed(Duration::from_secs(10)));
        slots.stop();
        assert_eq!(told.recv(), Ok(true));
    }

    /// Fails this many times.
    struct Failing(Arc<AtomicU32>);

    impl Mechanism for Failing {
        fn name(&self) -> &'static str {
            "failing"
        }

        fn order(&self) -> Order {
            Order::OutgoingFirst
        }

        fn apply(&self, job: &JobSwitch, to: Disposition, _: u32, _: Phase) -> Result<(), Errno> {
            match self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
                Ok(_) => Err(Errno::BUSY),
                Err(_) => job.set_frozen(to == Disposition::Stop),
            }
        }
    }

    #[test]
    fn a_suspended_job_whose_freezer_failed_is_stopped_nevertheless() {
        let dir = tempfile::tempdir().unwrap();
        let freeze = dir.path().join("cgroup.freeze");
        std::fs::write(&freeze, "0").unwrap();
        let (weight, procs) = (None, None);
        let files = SwitchFiles { adopted: false, freeze, idle: None, weight, procs, usage: None, tasks: None };
        let switch = Arc::new(JobSwitch::open(1, &files).unwrap());
        let left = Arc::new(AtomicU32::new(3));
        let slots = SlotThread::start(SlotConfig::default(), Box::new(Failing(Arc::clone(&left)))).unwrap();
        let entry = Entry { switch: Arc::clone(&switch), weight: 100, otherwise: Disposition::Stop };
        slots.install(Table { jobs: vec![entry], ..Table::empty() });
        let begin = Instant::now();
        while !switch.is_frozen() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(switch.is_frozen(), "{:?}, {} more would fail", slots.stats(), left.load(Relaxed));
        assert!(slots.stats().errors >= 3);
    }
}
