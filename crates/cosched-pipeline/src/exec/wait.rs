//! How a thread waits for a buffer: it spins for a while, if there is a CPU for it and if that has paid so far, then sleeps.
//!
//! The spin time is core's rule ([`SpinRule`]): the one that would have cost least in the waits seen. There is a CPU for a
//! spinner as long as no more threads of the graph are awake than the thread has CPUs; on one CPU nobody spins, because who
//! spins keeps from running what it waits for.

use std::time::Instant;

use cosched_core::wait::spin::{Ended, SpinConfig, SpinRule};

use crate::queue::{Awake, Bell, Topic};

/// A block and a wake-up inside one process take about 5 µs where the CPU has become idle, and a hand-off less than 1 µs.
const SPIN: SpinConfig = SpinConfig { start_ns: 5_000, block_cost_ns: 5_000, max_ns: 50_000 };
/// Looks at the queue between two looks at the clock.
const LOOKS: u32 = 8;
/// The CPUs that the thread may use are asked for again after so many waits: its affinity may be changed as it runs.
const WAITS: u32 = 256;

/// The waiting of one thread.
pub(crate) struct Waiter {
    rule: SpinRule,
    cpus: u32,
    waits: u32,
}

impl Waiter {
    pub(crate) fn new() -> Waiter {
        Waiter { rule: SpinRule::new(SPIN), cpus: 1, waits: 0 }
    }

    /// Waits until `ready` has something.
    pub(crate) fn wait<R>(
        &mut self,
        bell: &Bell,
        topic: Topic,
        awake: &Awake,
        mut ready: impl FnMut() -> Option<R>,
    ) -> R {
        if self.waits.is_multiple_of(WAITS) {
            self.cpus = cpus();
        }
        self.waits = self.waits.wrapping_add(1);
        if !self.may_spin(awake) {
            return bell.sleep(topic, awake, ready);
        }
        let begin = Instant::now();
        let waited_ns = |begin: Instant| begin.elapsed().as_nanos() as u64;
        if let Some(result) = self.spin(begin, awake, &mut ready) {
            self.rule.waited(waited_ns(begin), Ended::Spinning);
            return result;
        }
        let result = bell.sleep(topic, awake, ready);
        self.rule.waited(waited_ns(begin), Ended::Blocked);
        result
    }

    fn may_spin(&self, awake: &Awake) -> bool {
        self.cpus > 1 && awake.count() <= self.cpus
    }

    fn spin<R>(&self, begin: Instant, awake: &Awake, ready: &mut impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            for _ in 0..LOOKS {
                std::hint::spin_loop();
                if let Some(result) = ready() {
                    return Some(result);
                }
            }
            if !self.may_spin(awake) || begin.elapsed().as_nanos() as u64 >= self.rule.spin_ns() {
                return None;
            }
        }
    }
}

/// How many CPUs the calling thread may use. One if the kernel does not tell.
fn cpus() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}
