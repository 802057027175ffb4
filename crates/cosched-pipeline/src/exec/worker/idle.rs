//! Workers without work: they sleep, and are woken when there is work for one more.
//!
//! Problem: work may appear while the last worker lies down, and a wake-up costs microseconds. Rules:
//! - A worker that runs out of work first searches for a while, if a CPU is left for that. While one searches, nobody is
//!   woken for new work: it will be found. Who finds some as the last searcher wakes the next if there is more.
//! - A worker that lies down says so first and then looks once more; who adds work looks for sleepers behind that. So one
//!   of the two sees the other. (Who lies down while others are awake may leave the work to them: see `life`.)
//! - Who wakes one counts it as awake and searching, before it runs. So each is woken by one call, not by all who add work
//!   until it runs. Who lay down last is woken first: its cache is the warmest.

use std::sync::PoisonError;
use std::time::Duration;

use super::padded::Padded;
use super::sync::{AtomicU64, Futex, Mutex, MutexGuard, Ordering, fence};
use crate::queue::Awake;

const SLEEPING: u64 = 1;
const SEARCHING: u64 = 1 << 32;

/// How many sleep and how many search, at one moment.
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
    /// Who sleeps, in the order of lying down. The lock is held for a few instructions.
    beds: Mutex<Vec<usize>>,
    /// By worker: 1 if it has been called and has not gone on yet.
    called: Box<[Padded<Futex>]>,
}

/// How a sleep ended.
#[derive(PartialEq, Eq)]
pub(super) enum Woken {
    /// Somebody has work. The worker counts as searching.
    Called,
    /// The time is over. The worker sleeps on, as far as others know.
    TimeOut,
}

impl Idle {
    /// So many workers, all awake.
    pub(super) fn new(workers: usize) -> Idle {
        let called = (0..workers).map(|_| Padded::default()).collect();
        Idle { counts: AtomicU64::new(0), beds: Mutex::default(), called }
    }

    fn counts(&self) -> Counts {
        Counts(self.counts.load(Ordering::Relaxed))
    }

    fn beds(&self) -> MutexGuard<'_, Vec<usize>> {
        // Nothing that can panic runs under the lock.
        self.beds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_all(&self, sleeping: usize) -> bool {
        sleeping >= self.called.len()
    }

    /// Whether all workers sleep.
    pub(super) fn all_sleep(&self) -> bool {
        self.is_all(self.counts().sleeping() as usize)
    }

    /// Whether all but one sleep; the caller is that one.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.is_all(self.counts().sleeping() as usize + 1)
    }

    /// How many search.
    pub(super) fn searching(&self) -> u32 {
        self.counts().searching()
    }

    /// The caller searches from now on.
    pub(super) fn begin_search(&self) {
        self.counts.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// The caller has found work. Whether it was the last that searched.
    pub(super) fn end_search(&self) -> bool {
        Counts(self.counts.fetch_sub(SEARCHING, Ordering::SeqCst)).searching() == 1
    }

    /// Work was added: wakes a sleeper, unless one searches.
    #[inline]
    pub(super) fn notify(&self, awake: &Awake) {
        fence(Ordering::SeqCst);
        let counts = self.counts();
        if counts.searching() == 0 && counts.sleeping() > 0 {
            self.wake(awake, |_| self.searching() == 0);
        }
    }

    /// Work was added: wakes a sleeper if nobody is awake.
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
        // Not a plain store: who is called twice has to see what both callers did before.
        called.word().swap(1, Ordering::AcqRel);
        called.wake();
    }

    /// All workers go on, to see that they have to end. Whoever lies down later sees it by itself.
    pub(super) fn release(&self) {
        for called in &self.called {
            self.ring(called);
        }
    }

    /// A worker that searches lies down. Whether it is the last that was awake.
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

    /// A worker that has work or could have lies down if another one stays awake. Whether it did.
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

    /// A worker does not sleep after all, and searches again. If it has been called meanwhile, that was the call.
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
            // Who lies longest keeps watch. The next one has to be told that it does now.
            beds.remove(0);
            self.rise();
            drop(beds);
            self.call(awake, heir);
        }
    }

    /// Whether of all that sleep this one has slept longest.
    pub(super) fn lies_longest(&self, worker: usize) -> bool {
        self.beds().first() == Some(&worker)
    }

    /// Sleeps until called, or until the time is over.
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
