//! The fair queue of a node: earliest eligible virtual deadline first.
//!
//! Rule. All processes have the same weight, so virtual time is CPU time. A process's lag is the CPU time that it
//! should have had less what it has had: the mean of the virtual times of all runnable processes, less its own. A
//! process whose lag is not negative is eligible; the eligible process with the earliest deadline (virtual time + slice
//! at its last renewal) runs. A process that sleeps keeps its lag. Source: Stoica and Abdel-Wahab 1995; Linux 6.6 to
//! 6.8, `kernel/sched/fair.c` (`pick_eevdf`, `place_entity`, `update_deadline`, `yield_task_fair`). The queue of a pipeline's CPU is another
//! one (decision 0091). Units: ns.

use super::process::Pid;

#[derive(Clone, Copy, Debug)]
struct Entity {
    pid: Pid,
    virtual_ns: i64,
    deadline_ns: i64,
    /// It has a CPU.
    running: bool,
    /// Its deadline when it got the CPU: as long as that is unchanged, the process is in its slice.
    picked_ns: Option<i64>,
}

/// Runnable processes, including those that have a CPU, in the order in which they came (back).
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    entities: Vec<Entity>,
    /// The mean virtual time when the last process left.
    base_ns: i64,
}

impl Fair {
    fn mean_ns(&self) -> i64 {
        if self.entities.is_empty() {
            return self.base_ns;
        }
        let sum: i128 = self.entities.iter().map(|e| i128::from(e.virtual_ns)).sum();
        sum.div_euclid(self.entities.len() as i128) as i64
    }

    fn eligible(&self, entity: &Entity) -> bool {
        let sum: i128 = self.entities.iter().map(|e| i128::from(e.virtual_ns)).sum();
        i128::from(entity.virtual_ns) * self.entities.len() as i128 <= sum
    }

    fn find(&mut self, pid: Pid) -> Option<&mut Entity> {
        self.entities.iter_mut().find(|e| e.pid == pid)
    }

    fn add(&mut self, pid: Pid, virtual_ns: i64, slice_ns: i64) {
        let deadline_ns = virtual_ns + slice_ns;
        self.entities.push(Entity { pid, virtual_ns, deadline_ns, running: false, picked_ns: None });
    }

    /// Adds a new process: no lag, and half a slice, so that it starts soon.
    pub(super) fn add_new(&mut self, pid: Pid, slice_ns: u64) {
        self.add(pid, self.mean_ns(), slice_ns as i64 / 2);
    }

    /// Adds a process that slept, with the lag that it left with. The others' mean moves when it comes back, so the lag
    /// is scaled so that it is the same afterwards.
    pub(super) fn add_woken(&mut self, pid: Pid, lag_ns: i64, slice_ns: u64) {
        let others = self.entities.len() as i64;
        let scaled_ns = if others == 0 { 0 } else { lag_ns * (others + 1) / others };
        self.add(pid, self.mean_ns() - scaled_ns, slice_ns as i64);
    }

    /// Removes a process that sleeps or ends. Returns its lag, within two slices.
    pub(super) fn remove(&mut self, pid: Pid, slice_ns: u64) -> i64 {
        let mean_ns = self.mean_ns();
        let Some(place) = self.entities.iter().position(|e| e.pid == pid) else { return 0 };
        let lag_ns = mean_ns - self.entities.remove(place).virtual_ns;
        self.base_ns = mean_ns;
        let bound_ns = 2 * slice_ns as i64;
        lag_ns.clamp(-bound_ns, bound_ns)
    }

    /// Accounts for CPU time of a process.
    pub(super) fn charge(&mut self, pid: Pid, ns: u64) {
        if let Some(entity) = self.find(pid) {
            entity.virtual_ns += ns as i64;
        }
    }

    /// Renews the deadline of a process that has reached it; returns whether it had and others wait.
    pub(super) fn renew(&mut self, pid: Pid, slice_ns: u64) -> bool {
        let others = self.entities.iter().any(|e| !e.running);
        let Some(entity) = self.find(pid).filter(|e| e.virtual_ns >= e.deadline_ns) else { return false };
        entity.deadline_ns = entity.virtual_ns + slice_ns as i64;
        others
    }

    /// A process that yields moves its deadline by a slice (`sched_yield`).
    pub(super) fn give_way(&mut self, pid: Pid, slice_ns: u64) {
        if let Some(entity) = self.find(pid) {
            entity.deadline_ns += slice_ns as i64;
        }
    }

    /// Puts a ready process before all others.
    pub(super) fn put_first(&mut self, pid: Pid) {
        let least = |of: fn(&Entity) -> i64| self.entities.iter().map(of).min().unwrap_or(0);
        let (virtual_ns, deadline_ns) = (least(|e| e.virtual_ns), least(|e| e.deadline_ns));
        for entity in &mut self.entities {
            entity.picked_ns = None;
        }
        if let Some(entity) = self.find(pid) {
            // A process that has had the least CPU time of all is eligible.
            entity.virtual_ns = virtual_ns;
            entity.deadline_ns = deadline_ns - 1;
        }
    }

    /// The process that should have a CPU: its current process, if any, or a waiting one.
    pub(super) fn choose(&self, current: Option<Pid>, run_to_parity: bool) -> Option<Pid> {
        let held = current.and_then(|pid| self.entities.iter().find(|e| e.pid == pid)).filter(|e| self.eligible(e));
        if let Some(held) = held.filter(|e| run_to_parity && e.picked_ns == Some(e.deadline_ns)) {
            return Some(held.pid);
        }
        let waiting = || self.entities.iter().filter(|e| !e.running);
        let best = waiting().filter(|e| self.eligible(e)).min_by_key(|e| e.deadline_ns);
        match (held, best) {
            (Some(held), Some(best)) if best.deadline_ns <= held.deadline_ns => Some(best.pid),
            (Some(held), _) => Some(held.pid),
            (None, Some(best)) => Some(best.pid),
            // With several CPUs, all running processes may be behind.
            (None, None) => waiting().min_by_key(|e| e.virtual_ns).map(|e| e.pid).or(current),
        }
    }

    /// A process gets a CPU.
    pub(super) fn begin(&mut self, pid: Pid) {
        if let Some(entity) = self.find(pid) {
            entity.running = true;
            entity.picked_ns = Some(entity.deadline_ns);
        }
    }

    /// A process loses its CPU and remains runnable: it queues again.
    pub(super) fn put_back(&mut self, pid: Pid) {
        if let Some(place) = self.entities.iter().position(|e| e.pid == pid) {
            let entity = self.entities.remove(place);
            self.entities.push(Entity { running: false, picked_ns: None, ..entity });
        }
    }

    /// The processes that wait for a CPU.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Pid> {
        self.entities.iter().filter(|e| !e.running).map(|e| e.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draws;
    use crate::pipeline::fair::{Attr, Queue};
    use cosched_core::stage;

    const SLICE: u64 = 100;

    fn pid(job: u32) -> Pid {
        Pid { job, task: 0 }
    }

    /// Two processes, the first of which has already run for `ran_ns`.
    fn pair(ran_ns: u64) -> Fair {
        let mut fair = Fair::default();
        fair.add_woken(pid(1), 0, SLICE);
        fair.begin(pid(1));
        fair.add_woken(pid(2), 0, SLICE);
        fair.charge(pid(1), ran_ns);
        fair
    }

    #[test]
    fn one_that_had_more_than_its_part_is_not_eligible() {
        assert_eq!(pair(0).choose(Some(pid(1)), true), Some(pid(1)));
        assert_eq!(pair(1).choose(Some(pid(1)), true), Some(pid(2)), "behind the mean");
        let mut fair = pair(10);
        fair.begin(pid(2));
        fair.put_back(pid(1));
        fair.charge(pid(2), 10);
        assert_eq!(fair.choose(Some(pid(2)), true), Some(pid(2)), "until it is at par, it keeps the CPU");
        assert_eq!(fair.choose(Some(pid(2)), false), Some(pid(1)), "else the earlier of equal deadlines goes first");
    }

    #[test]
    fn deadlines_are_renewed_after_a_slice() {
        assert!(!pair(99).renew(pid(1), SLICE));
        let mut fair = pair(100);
        assert!(fair.renew(pid(1), SLICE));
        assert!(!fair.renew(pid(1), SLICE), "it has a new one");
        let mut alone = Fair::default();
        alone.add_new(pid(1), SLICE);
        alone.begin(pid(1));
        alone.charge(pid(1), 50);
        assert!(!alone.renew(pid(1), SLICE), "nobody waits");
    }

    #[test]
    fn lag_survives_sleep() {
        let mut fair = pair(60);
        assert_eq!(fair.remove(pid(1), SLICE), -30);
        fair.add_woken(pid(1), -30, SLICE);
        assert_eq!(fair.mean_ns() - fair.find(pid(1)).unwrap().virtual_ns, -30);
        let mut fair = pair(10_000);
        assert_eq!(fair.remove(pid(1), SLICE), -200, "within two slices");
    }

    #[test]
    fn the_front_is_before_everybody() {
        let mut fair = pair(0);
        fair.put_first(pid(2));
        assert_eq!(fair.choose(Some(pid(1)), true), Some(pid(2)));
        let mut fair = pair(0);
        fair.give_way(pid(1), SLICE);
        assert_eq!(fair.choose(Some(pid(1)), true), Some(pid(2)));
    }

    /// The same threads on one CPU, here and in the pipelines' queue (decision 0091): equal weights and slices, none of them new.
    struct Both {
        fair: Fair,
        queue: Queue,
        lags_ns: [Option<i64>; 6],
    }

    impl Both {
        fn current(&self) -> Option<Pid> {
            self.queue.current().map(|thread| pid(thread as u32))
        }

        /// What runs next, by both.
        fn choose(&self) -> Option<usize> {
            let here = self.fair.choose(self.current(), true).map(|pid| pid.job as usize);
            let there = self.queue.choose();
            let deadline = |thread: Option<usize>| {
                let entity = self.fair.entities.iter().find(|e| Some(e.pid.job as usize) == thread);
                entity.map(|entity| entity.deadline_ns)
            };
            // Of equal deadlines either may be the first.
            assert!(here == there || deadline(here) == deadline(there), "{here:?} {there:?} {:?}", self.fair);
            here
        }

        fn switch(&mut self) {
            let (Some(next), current) = (self.choose(), self.current()) else { return };
            if current != Some(pid(next as u32)) {
                current.into_iter().for_each(|pid| self.fair.put_back(pid));
                self.fair.begin(pid(next as u32));
                self.queue.begin(next);
            }
        }

        fn run(&mut self, ns: u64) {
            if let Some(current) = self.current() {
                self.fair.charge(current, ns);
                // The kernel renews a deadline when it counts CPU time, as that queue does.
                self.fair.renew(current, SLICE_NS);
                self.queue.charge(ns);
            }
        }

        fn sleep(&mut self) {
            let Some(current) = self.current() else { return };
            let lag_ns = self.fair.remove(current, SLICE_NS);
            assert_eq!(lag_ns, self.queue.remove(current.job as usize));
            self.lags_ns[current.job as usize] = Some(lag_ns);
        }

        /// Wakes a thread that sleeps; returns whether it takes the CPU.
        fn wake(&mut self, thread: usize) -> bool {
            let Some(lag_ns) = self.lags_ns[thread].take() else { return false };
            let attr = Attr {
                nice: 0,
                slice_ns: SLICE_NS as i64,
                class: stage::Class::Normal,
                lag_ns_max: 2 * SLICE_NS as i64,
            };
            self.fair.add_woken(pid(thread as u32), lag_ns, SLICE_NS);
            self.queue.add(thread, attr, lag_ns);
            assert_eq!(self.queue.preempts(thread), self.queue.choose() == Some(thread));
            self.choose() == Some(thread)
        }
    }

    const SLICE_NS: u64 = 2_800_000;

    #[test]
    fn on_one_cpu_threads_of_equal_weight_run_as_in_the_queue_of_pipelines() {
        let draws = Draws::new(1, 2, 3);
        let mut drawn = 0;
        let mut below = |many: u64| {
            drawn += 1;
            (draws.unit(drawn, 0) * many as f64) as u64
        };
        let lags_ns = [0, 1, 2, 3, 4, 5].map(|thread| Some(700_001 * thread - 1_500_000));
        let mut both = Both { fair: Fair::default(), queue: Queue::default(), lags_ns };
        let mut done = [0; 4];
        for _ in 0..20_000 {
            both.run(below(1_000_000) + 1);
            let what = below(4) as usize;
            let switches = match what {
                0 => both.wake(below(6) as usize),
                1 => {
                    both.sleep();
                    true
                }
                // A tick.
                _ => true,
            };
            done[what] += usize::from(switches);
            if switches {
                both.switch();
            }
        }
        assert!(done.iter().all(|times| *times > 100), "wake-ups that preempt, sleeps, ticks: {done:?}");
    }
}
