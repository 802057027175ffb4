//! A worker from its start to its end: it initialises stages, looks for work and carries it, sleeps, and cleans stages up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Crew;
use super::carry::Worker;
use super::deque::Stolen;
use super::idle::Woken;
use super::plan::Room;
use crate::buffer::Buffer;
use crate::exec::shared::Shared;
use crate::monitor::{Doing, Tracker};

/// After this number of its own buffers a worker takes what others have for it, so that nothing starves.
const TURN: u32 = 32;
/// Polls of a searching worker before it sleeps: some microseconds, the cost of a wake-up.
const LOOKS: u32 = 100;
/// At most this number of workers search at once.
const SEARCHING_MAX: u32 = 2;
/// How long the worker that keeps watch sleeps at first, and at most, while others work and while none does.
const WATCH: Duration = Duration::from_millis(2);
const WATCH_MAX: Duration = Duration::from_millis(64);
const WATCH_IDLE_MAX: Duration = Duration::from_secs(1);

impl Crew {
    /// The body of a worker's thread.
    pub(crate) fn run(shared: &Shared, number: usize) {
        let crew = &shared.crew;
        {
            let stages: Vec<usize> = crew.stages().map(|(stage, _)| stage).collect();
            let tracker = shared.watch.track(&stages);
            if crew.begin(shared, &tracker) {
                tracker.switch(Doing::Nothing);
                shared.gate.pass();
                Worker::new(shared, number, &tracker).live();
            }
            crew.absent(shared, 1, &tracker);
        }
        shared.awake.sub();
        shared.watch.ended();
    }

    /// The stages that run on the workers, with their rooms.
    fn stages(&self) -> impl Iterator<Item = (usize, &Room)> {
        self.rooms.iter().enumerate().filter_map(|(stage, room)| Some((stage, room.as_ref()?)))
    }

    /// Initialises the stages; each worker takes those that no other has taken. False if one failed.
    fn begin(&self, shared: &Shared, tracker: &Tracker) -> bool {
        let mut all = Vec::new();
        for (stage, room) in self.stages() {
            all.extend(room.cells[..room.at_work].iter().map(|cell| (stage, cell)));
        }
        while let Some((stage, cell)) = all.get(self.to_begin.fetch_add(1, Ordering::Relaxed)) {
            // SAFETY: the count gives each cell to one worker, and no buffer moves before all stages have been initialised.
            if let Err(cause) = unsafe { cell.begin(*stage, tracker) } {
                shared.fail(Some(*stage), cause);
                return false;
            }
        }
        true
    }

    /// Accounts for workers that could not be started.
    pub(crate) fn missing(&self, shared: &Shared, workers: usize) {
        // These may have been the last ones: then the stages have to be cleaned up here.
        self.absent(shared, workers, &shared.watch.track(&[]));
    }

    /// Accounts for workers that have ended, or were never started. The last one cleans up the stages.
    fn absent(&self, shared: &Shared, workers: usize, tracker: &Tracker) {
        if self.present.fetch_sub(workers, Ordering::AcqRel) != workers {
            return;
        }
        for (stage, room) in self.stages() {
            for cell in &room.cells {
                // SAFETY: all other workers have ended.
                if let Err(cause) = unsafe { cell.end(stage, tracker) } {
                    shared.fail(Some(stage), cause);
                }
            }
        }
    }
}

impl Worker<'_> {
    /// Carries buffers until there are no more.
    fn live(&mut self) {
        let mut turn = 0;
        let mut next = None;
        loop {
            turn += 1;
            if turn % TURN == 0 {
                self.take_turns(&mut next);
            }
            if next.is_some() && !self.crew.several.load(Ordering::Relaxed) {
                self.leave_it_to_others(&mut next);
            }
            match next.take().or_else(|| self.find()) {
                Some(buffer) => next = self.carry(buffer),
                None => return,
            }
        }
    }

    /// Lets the buffer that has waited longest come before the worker's own next one.
    fn take_turns(&self, next: &mut Option<Buffer>) {
        let waited = self.crew.inlet.take(|rest| self.keep(rest)).or_else(|| match self.desk.deque.steal() {
            Stolen::Buffer(buffer) => Some(buffer),
            _ => None,
        });
        if let Some(waited) = waited
            && let Some(own) = next.replace(waited)
        {
            self.keep(own);
        }
    }

    /// If the stages are short and another worker is awake, leaves the work to that one and sleeps.
    fn leave_it_to_others(&self, next: &mut Option<Buffer>) {
        let idle = &self.crew.idle;
        if idle.is_alone() {
            return;
        }
        if let Some(own) = next.take() {
            // This comes before it sleeps: a worker that stays awake is responsible for everything that is in the lists at that
            // time.
            self.desk.deque.push(own);
        }
        if idle.lie_down_beside_others(&self.shared.awake, self.number) {
            self.sleep();
            *next = self.find_as_searcher();
        }
    }

    /// The next buffer to carry. None if there will be no more.
    fn find(&mut self) -> Option<Buffer> {
        // In a pipeline that flows the first poll succeeds; a search would make other CPUs fetch the cache line of the
        // searchers' counts.
        let steal = || if self.crew.several.load(Ordering::Relaxed) { self.steal() } else { None };
        if let Some(buffer) = self.desk.deque.pop().or_else(|| self.take_inlet()).or_else(steal) {
            return Some(buffer);
        }
        self.crew.idle.begin_search();
        self.sampler.sample_next();
        self.find_as_searcher()
    }

    fn over(&self) -> bool {
        self.crew.ended() || self.shared.stopping()
    }

    fn take_inlet(&self) -> Option<Buffer> {
        self.crew.inlet.take(|rest| self.keep(rest))
    }

    fn find_as_searcher(&self) -> Option<Buffer> {
        loop {
            if self.over() {
                return None;
            }
            if let Some(buffer) = self.search() {
                if self.crew.idle.end_search() && self.crew.several.load(Ordering::Relaxed) && self.crew.is_more() {
                    self.crew.idle.notify(&self.shared.awake);
                }
                return Some(buffer);
            }
            let last = self.crew.idle.lie_down(&self.shared.awake, self.number);
            // The last worker awake is responsible for all remaining work; the others only check where several are to work.
            if self.over() || ((last || self.crew.several.load(Ordering::Relaxed)) && self.crew.is_more()) {
                self.crew.idle.get_up(&self.shared.awake, self.number);
            } else {
                self.sleep();
            }
        }
    }

    /// Searches for a while, if a CPU is free for that.
    fn search(&self) -> Option<Buffer> {
        let crew = self.crew;
        for look in 0..LOOKS {
            let several = crew.several.load(Ordering::Relaxed);
            // If one worker is enough, the one that is awake does what is on its list.
            let steal = || if several || crew.idle.is_alone() { self.steal() } else { None };
            let buffer = self.desk.deque.pop().or_else(|| self.take_inlet()).or_else(steal);
            if buffer.is_some() || self.over() {
                return buffer;
            }
            let enough = crew.idle.searching() > SEARCHING_MAX || !several;
            if look > 0 && (enough || self.shared.awake.count() as usize > crew.cpus) {
                return None;
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Steals from the other workers' lists, starting after its own.
    fn steal(&self) -> Option<Buffer> {
        let desks = &self.crew.desks;
        for place in (self.number + 1..self.number + desks.len()).map(|place| place % desks.len()) {
            loop {
                match desks[place].deque.steal() {
                    Stolen::Buffer(buffer) => return Some(buffer),
                    Stolen::Lost => std::hint::spin_loop(),
                    Stolen::Nothing => break,
                }
            }
        }
        None
    }

    /// Sleeps until called. The longest sleeper keeps watch: from time to time it checks whether the worker that works alone,
    /// because the stages were short, has got into a long round; if so, several work from then on.
    fn sleep(&self) {
        let (idle, awake) = (&self.crew.idle, &self.shared.awake);
        if !idle.lies_longest(self.number) {
            idle.sleep(self.number, None);
            return;
        }
        let mut limit = WATCH;
        let mut seen = self.rounds();
        while idle.sleep(self.number, Some(limit)) == Woken::TimeOut {
            let now = self.rounds();
            let all_sleep = idle.all_sleep();
            if now == seen && !all_sleep && self.crew.is_more() {
                self.crew.several.store(true, Ordering::Relaxed);
                idle.get_up(awake, self.number);
                return;
            }
            seen = now;
            limit = (limit * 2).min(if all_sleep { WATCH_IDLE_MAX } else { WATCH_MAX });
        }
    }

    /// The sum of the rounds of all stages on workers.
    fn rounds(&self) -> u64 {
        self.crew.stages().map(|(stage, _)| self.shared.stages[stage].counters.rounds()).sum()
    }
}
