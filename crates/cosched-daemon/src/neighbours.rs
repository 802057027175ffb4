//! Keeps slots fair to neighbours: a thread that finds out which processes outside of jobs want a CPU, applies core's rule (`policy/neighbours.rs`),
//! and tells the slot thread which part of the slots is held back for them.
//!
//! It is a separate thread because sampling reads /proc, which the driver must not wait for. It sleeps while no gang has slots, and samples processes
//! only while others than jobs use CPU time.

use cosched_core::{Held, HeldPart, Ours};
use cosched_linux::neighbours::Census;
use cosched_linux::observe::thread_cpu_ns;
use cosched_linux::{Divider, Division, SlotThread, Tree, TreeWeight, Weights};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time between two samples.
const PERIOD: Duration = Duration::from_millis(50);
/// The inverse of the part of one CPU's time that sampling may use.
const COST_SHARE_MAX: u64 = 50;
/// If others use less than this part of one CPU's time, there is no neighbour to divide slots with.
const USED_MIN: f64 = 0.1;

/// The thread's input about the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Jobs {
    /// The jobs that have slots, and all others.
    pub(crate) ours: Ours,
    /// The number of jobs without slots.
    pub(crate) local: u32,
}

#[derive(Default)]
struct Shared {
    told: Mutex<Told>,
    changed: Condvar,
    /// The part in force, as the bits of an `f64`.
    part: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct Told {
    jobs: Jobs,
    ended: bool,
}

/// The running thread; it ends with its owner.
pub(crate) struct Neighbours(Arc<Shared>);

impl Neighbours {
    /// Starts the thread. `None` where we may not set the weight of our subtree: then its parent's owner decides about the shares.
    ///
    /// # Errors
    /// The files of the subtree cannot be opened, or the thread cannot be started.
    pub(crate) fn start(tree: &Tree, slots: &SlotThread) -> anyhow::Result<Option<Neighbours>> {
        let Some(weight) = tree.open_weight()? else { return Ok(None) };
        let shared = Arc::new(Shared::default());
        let watcher = Watcher {
            census: Census::new(tree),
            tree: tree.clone(),
            weight: Arc::new(weight),
            divider: slots.divider(),
            held: HeldPart::default(),
            said: None,
            shared: Arc::clone(&shared),
        };
        spawn(watcher)?;
        Ok(Some(Neighbours(shared)))
    }

    /// Replaces the jobs.
    pub(crate) fn tell(&self, jobs: Jobs) {
        let mut told = lock(&self.0.told);
        if told.jobs != jobs {
            told.jobs = jobs;
            self.0.changed.notify_one();
        }
    }

    /// The part of the slots that is held back now.
    pub(crate) fn part(&self) -> f64 {
        f64::from_bits(self.0.part.load(Relaxed))
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        lock(&self.0.told).ended = true;
        self.0.changed.notify_one();
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(mut watcher: Watcher) -> io::Result<()> {
    std::thread::Builder::new().name("cosched-looks".into()).spawn(move || watcher.run()).map(drop)
}

/// The state of the thread.
struct Watcher {
    census: Census,
    tree: Tree,
    weight: Arc<TreeWeight>,
    divider: Divider,
    held: HeldPart,
    /// The last message to the slot thread.
    said: Option<(Held, Weights)>,
    shared: Arc<Shared>,
}

impl Watcher {
    fn run(&mut self) {
        let mut jobs = Jobs::default();
        let mut pause = PERIOD;
        loop {
            let told = self.wait(jobs, pause);
            if told.ended {
                return;
            }
            jobs = told.jobs;
            let began_ns = thread_cpu_ns();
            let held = if jobs.ours.held == 0 { Held::default() } else { self.look(jobs.ours) };
            self.say(held, jobs);
            pause = PERIOD.max(Duration::from_nanos((thread_cpu_ns() - began_ns) * COST_SHARE_MAX));
        }
    }

    /// Waits until the jobs have changed or the pause is over; without gangs there is nothing to sample.
    fn wait(&self, before: Jobs, pause: Duration) -> Told {
        let told = lock(&self.shared.told);
        let same = |told: &mut Told| !told.ended && told.jobs == before;
        if before.ours.held == 0 {
            return *self.shared.changed.wait_while(told, same).unwrap_or_else(PoisonError::into_inner);
        }
        let waited = self.shared.changed.wait_timeout_while(told, pause, same);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn look(&mut self, ours: Ours) -> Held {
        let used = self.census.used_by_others();
        let quiet = self.held.is_quiet() && used.is_some_and(|cpus| cpus < USED_MIN);
        let neighbours = if quiet { Vec::new() } else { self.census.look() };
        self.held.look(ours, &neighbours, used)
    }

    fn say(&mut self, held: Held, jobs: Jobs) {
        let now = (held, self.tree.fair_weights(jobs.ours.jobs, jobs.local));
        if self.said == Some(now) {
            return;
        }
        if self.said.map(|(before, _)| before) != Some(held) {
            tracing::debug!(held.part, held.fill, "how slots are divided with processes outside jobs");
        }
        self.said = Some(now);
        self.shared.part.store(held.part.to_bits(), Relaxed);
        self.divider.set(Division { held, weights: now.1, tree: Arc::clone(&self.weight) });
    }
}
