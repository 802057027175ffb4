//! Watches a graph while it runs: what its threads do, what waits where, what the kernel counted; and acts on that.
//!
//! Each thread has a [`Seat`], in which it writes what it does ([`Tracker::switch`]), without locks. The monitor's single
//! thread samples seats and queues every few milliseconds, reports a stage that holds a buffer for too long, and runs core's
//! autotune. The results go into the report.

mod complete;
mod doing;
mod facts;
mod helpers;
mod log;
mod occupancy;
mod pace;
mod seat;
mod spans;
mod stall;
mod thread;
mod totals;
mod tracker;
mod tune;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cosched_core::stage::Setting;

use crate::counters::Counters;
use crate::options::Options;
use crate::priority::Priorities;
use crate::report::Stall;

pub(crate) use doing::Doing;
use facts::Facts;
pub(crate) use facts::facts;
pub(crate) use helpers::Helpers;
use log::Log;
use occupancy::Samples;
use seat::{Seat, Spent};
pub use stall::STALL_WARNING;
pub(crate) use thread::{Watched, Watching};
pub(crate) use tracker::Tracker;

/// Locks a mutex under which no code can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watchers' data about a running graph.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) started: Instant,
    facts: Facts,
    counters: Vec<Arc<Counters>>,
    priorities: Priorities,
    is_traced: bool,
    crew: Mutex<Crew>,
    /// Notified when a thread of the executor ends.
    left: Condvar,
    /// The current scheduling of each stage, as far as it was changed.
    settings: Mutex<Vec<Setting>>,
    samples: Mutex<Samples>,
    stalls: Mutex<Vec<Stall>>,
    log: Mutex<Log>,
}

/// The threads of a graph.
#[derive(Debug, Default)]
struct Crew {
    seats: Vec<Arc<Seat>>,
    /// Usage of the threads that have ended, by stage.
    spent: Vec<Spent>,
    /// The maximum number of concurrent threads of each stage.
    most: Vec<u32>,
    /// If a trace is kept, the spans of the threads that have ended.
    spans: Vec<crate::report::Span>,
    dropped: u64,
    /// Number of the executor's threads that have ended.
    ended: usize,
    /// The remaining threads are no longer waited for.
    is_given_up: bool,
}

impl Crew {
    /// Registers a thread that starts.
    fn enter(&mut self, seat: Arc<Seat>) {
        self.seats.push(seat.clone());
        for stage in &seat.stages {
            let living = self.seats.iter().filter(|seat| seat.stages.contains(stage)).count() as u32;
            self.most[*stage] = self.most[*stage].max(living);
        }
    }

    /// Unregisters a thread that ends, and keeps its usage and its spans.
    fn leave(&mut self, seat: &Arc<Seat>) {
        for (stage, spent) in seat.spent() {
            self.spent[stage].add(spent);
        }
        let (spans, dropped) = seat.spans.all();
        self.spans.extend(spans);
        self.dropped += dropped;
        self.seats.retain(|other| !Arc::ptr_eq(other, seat));
    }
}

impl Watch {
    /// For a graph that is about to start.
    pub(crate) fn new(facts: Facts, options: &Options) -> Watch {
        let count = facts.stages.len();
        Watch {
            started: Instant::now(),
            counters: (0..count).map(|_| Arc::default()).collect(),
            facts,
            priorities: options.priorities.clone(),
            is_traced: options.trace,
            crew: Mutex::new(Crew { spent: vec![Spent::default(); count], most: vec![0; count], ..Crew::default() }),
            left: Condvar::new(),
            settings: Mutex::new(vec![Setting::default(); count]),
            samples: Mutex::new(Samples::new(count)),
            stalls: Mutex::default(),
            log: Mutex::new(Log::new(count)),
        }
    }

    /// The counters of a stage, which its threads write.
    pub(crate) fn counters(&self, stage: usize) -> Arc<Counters> {
        self.counters[stage].clone()
    }

    /// Nanoseconds from the start.
    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn now_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Whether every stage has had a thread.
    fn has_begun(&self) -> bool {
        lock(&self.crew).most.iter().all(|most| *most > 0)
    }

    fn seats(&self) -> Vec<Arc<Seat>> {
        lock(&self.crew).seats.clone()
    }

    /// The seats of the threads that work as this stage.
    fn seats_of(&self, stage: usize) -> Vec<Arc<Seat>> {
        lock(&self.crew).seats.iter().filter(|seat| seat.stages.contains(&stage)).cloned().collect()
    }

    /// Called when a thread of the executor has ended, whether it has worked or not.
    pub(crate) fn ended(&self) {
        lock(&self.crew).ended += 1;
        self.left.notify_all();
    }

    /// Waits until this number of the executor's threads have ended, or until the remaining ones have been given up.
    pub(crate) fn wait_for(&self, threads: usize) {
        let crew = lock(&self.crew);
        let waiting = |crew: &mut Crew| crew.ended < threads && !crew.is_given_up;
        drop(self.left.wait_while(crew, waiting).unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the remaining threads are not to be waited for, because one of them is stuck.
    pub(crate) fn is_given_up(&self) -> bool {
        lock(&self.crew).is_given_up
    }

    fn give_up(&self) {
        lock(&self.crew).is_given_up = true;
        self.left.notify_all();
    }
}
