//! Workers without work: they sleep, and are woken when there is work for one more.
//!
//! Problem: work may appear while the last worker goes to sleep, and a wake-up costs microseconds. Rules:
//! - A worker that runs out of work first searches for a while, if a CPU is free for that. While one searches, no worker
//!   is woken for new work: the searcher will find it. If the last searcher finds work, it wakes another worker if there
//!   is more.
//! - A worker that goes to sleep first announces it and then checks for work once more; a worker that adds work checks for
//!   sleepers after adding. So one of the two sees the other. (A worker that goes to sleep while others are awake may
//!   leave the work to them: see `life`.)
//! - A worker that wakes another counts it as awake and searching before it runs. So each sleeper is woken by one call,
//!   not by all that add work until it runs. The worker that fell asleep last is woken first: its cache is the warmest.

use std::sync::PoisonError;
use std::time::Duration;

use super::padded::Padded;
use super::sync::{AtomicU64, Futex, Mutex, MutexGuard, Ordering, fence};
use crate::queue::Awake;

const SLEEPING: u64 = 1;
const SEARCHING: u64 = 1 << 32;

/// The number of sleeping and of searching workers at one moment.
#[derive(Clone, Copy)]
struct Counts(u64);

impl Counts {
    fn sleeping(self) -> u32 {
        self.0 as u32
    }

    fn searching(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

pub(super) struct Idle {
    counts: AtomicU64,
    /// The sleeping workers, in the order in which they fell asleep. The lock is held for a few instructions.
    beds: Mutex<Vec<usize>>,
    /// By worker: 1 if it has been called and has not resumed yet.
    called: Box<[Padded<Futex>]>,
}

/// How a sleep ended.
#[derive(PartialEq, Eq)]
pub(super) enum Woken {
    /// Another worker called, because there is work. The woken worker counts as searching.
    Called,
    /// The time limit has passed. The worker still counts as sleeping for the others.
    TimeOut,
}

impl Idle {
    /// For `workers` workers, all awake.
    pub(super) fn new(workers: usize) -> Idle {
        let called = (0..workers).map(|_| Padded::default()).collect();
        Idle { counts: AtomicU64::new(0), beds: Mutex::default(), called }
    }

    fn counts(&self) -> Counts {
        Counts(self.counts.load(Ordering::Relaxed))
    }

    fn beds(&self) -> MutexGuard<'_, Vec<usize>> {
        // No code that can panic runs under the lock.
        self.beds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_all(&self, sleeping: usize) -> bool {
        sleeping >= self.called.len()
    }

    /// Whether all workers sleep.
    pub(super) fn all_sleep(&self) -> bool {
        self.is_all(self.counts().sleeping() as usize)
    }

    /// Whether all workers sleep except one, the caller.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.is_all(self.counts().sleeping() as usize + 1)
    }

    /// The number of workers that search.
    pub(super) fn searching(&self) -> u32 {
        self.counts().searching()
    }

    /// The caller starts to search.
    pub(super) fn begin_search(&self) {
        self.counts.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// The caller has found work. True if it was the last searcher.
    pub(super) fn end_search(&self) -> bool {
        Counts(self.counts.fetch_sub(SEARCHING, Ordering::SeqCst)).searching() == 1
    }

    /// Work was added: wakes a sleeper, unless a worker is searching.
    #[inline]
    pub(super) fn notify(&self, awake: &Awake) {
        fence(Ordering::SeqCst);
        let counts = self.counts();
        if counts.searching() == 0 && counts.sleeping() > 0 {
            self.wake(awake, |_| self.searching() == 0);
        }
    }

    /// Work was added: wakes a sleeper if no worker is awake.
    #[inline]
    pub(super) fn notify_if_all_sleep(&self, awake: &Awake) {
        fence(Ordering::SeqCst);
        if self.all_sleep() {
            self.wake(awake, |sleeping| self.is_all(sleeping));
        }
    }

    #[cold]
    fn wake(&self, awake: &Awake, still: impl Fn(usize) -> bool) {
        let mut beds = self.beds();
        if still(beds.len())
            && let Some(worker) = beds.pop()
        {
            self.rise();
            drop(beds);
            self.call(awake, worker);
        }
    }

    fn rise(&self) {
        self.counts.fetch_add(SEARCHING.wrapping_sub(SLEEPING), Ordering::SeqCst);
    }

    fn call(&self, awake: &Awake, worker: usize) {
        awake.add();
        self.ring(&self.called[worker]);
    }

    fn ring(&self, called: &Futex) {
        // Not a plain store: a worker that is called twice has to see the effects of both callers.
        called.word().swap(1, Ordering::AcqRel);
        called.wake();
    }

    /// Wakes all workers, so that they see that they have to end. A worker that falls asleep later checks for that itself.
    pub(super) fn release(&self) {
        for called in &self.called {
            self.ring(called);
        }
    }

    /// A searching worker goes to sleep. True if it was the last one awake.
    pub(super) fn lie_down(&self, awake: &Awake, worker: usize) -> bool {
        awake.sub();
        let mut beds = self.beds();
        beds.push(worker);
        self.counts.fetch_add(SLEEPING.wrapping_sub(SEARCHING), Ordering::SeqCst);
        let last = self.is_all(beds.len());
        drop(beds);
        fence(Ordering::SeqCst);
        last
    }

    /// A worker that has work, or could have some, goes to sleep if another one stays awake. Returns whether it did.
    pub(super) fn lie_down_beside_others(&self, awake: &Awake, worker: usize) -> bool {
        let mut beds = self.beds();
        if self.is_all(beds.len() + 1) {
            return false;
        }
        beds.push(worker);
        self.counts.fetch_add(SLEEPING, Ordering::SeqCst);
        awake.sub();
        true
    }

    /// A worker decides not to sleep, and searches again. If it has been called meanwhile, it consumes that call.
    pub(super) fn get_up(&self, awake: &Awake, worker: usize) {
        let mut beds = self.beds();
        let Some(place) = beds.iter().position(|one| *one == worker) else {
            drop(beds);
            self.sleep(worker, None);
            return;
        };
        beds.remove(place);
        self.rise();
        awake.add();
        let heir = if place == 0 { beds.first().copied() } else { None };
        if let Some(heir) = heir {
            // The longest sleeper keeps watch. The next one has to be told that this is now its task.
            beds.remove(0);
            self.rise();
            drop(beds);
            self.call(awake, heir);
        }
    }

    /// Whether this worker has slept longest of all that sleep.
    pub(super) fn lies_longest(&self, worker: usize) -> bool {
        self.beds().first() == Some(&worker)
    }

    /// Sleeps until called, or until the time limit has passed.
    pub(super) fn sleep(&self, worker: usize, limit: Option<Duration>) -> Woken {
        let called = &self.called[worker];
        loop {
            if called.word().swap(0, Ordering::Acquire) == 1 {
                return Woken::Called;
            }
            if !called.sleep_while(0, limit) {
                return Woken::TimeOut;
            }
        }
    }
}
