//! How a thread waits for a buffer: it polls and yields for a while, if that has paid off so far, then it sleeps.
//!
//! To sleep and to be woken costs microseconds, a hand-off less than one. So a thread whose queue is empty first polls it, and
//! between two polls it yields its CPU (`sched_yield`): on a single CPU to the thread that it waits for, which then processes
//! all its buffers before the next switch. If a CPU is free for it, it also pauses between polls: all that arrives in a pause
//! is taken at once, and the cache lines of the queue move only once for it. How often it polls before it sleeps is decided by
//! core's rule ([`SpinRule`]): for as long as would have cost least in the waits seen so far. On one CPU it polls once: a
//! thread that found nothing would only be ahead of the thread that it waits for in the run queue. It sleeps, and the wake-up
//! puts it into the right place.
//!
//! Where more threads are awake than there are CPUs, a sleep costs more than its wake-up: the CPU that it leaves idle stays
//! idle for 100 µs, though other threads wait for a turn on another CPU, because the kernel does not migrate threads that ran
//! a moment ago. So in this case threads yield for longer. (Measured with 5 stages of 10 µs on 2 CPUs: to sleep after 16 polls
//! cost 15 % more than after 200, and 19 % of the CPUs' time was idle. More than 200 gains nothing.)

use cosched_core::wait::spin::{Ended, SpinConfig, SpinRule};

use crate::monitor::{Doing, Tracker};
use crate::queue::{Awake, Bell, Topic};

/// A block and its wake-up cost 5 to 10 µs each to the sleeping thread, to the thread that wakes it, and to those that wait
/// for these in turn.
const SPIN: SpinConfig = SpinConfig { start_ns: 50_000, block_cost_ns: 50_000, max_ns: 50_000 };
/// The part of a sleep that is the wake-up itself: a thread that had kept polling would have continued earlier by this time.
const WAKE_NS: u64 = 5_000;
/// Pauses between two polls where a CPU is free for the waiting thread: about 0.2 µs.
const PAUSES: u32 = 4;
/// The same where more threads of the graph are awake than there are CPUs.
const SPIN_CROWDED: SpinConfig = SpinConfig { start_ns: 100_000, block_cost_ns: 100_000, max_ns: 100_000 };
/// The cost of a poll to the waiting thread, with its pauses and its yield. The time in which others run on the CPU is not
/// included.
const LOOK_NS: u64 = 500;
/// The CPUs that the thread may use are queried again after this number of waits, because its affinity may change while it
/// runs.
const WAITS: u32 = 256;

/// After this number of waits without a sleep a thread announces that it will not sleep for a while.
const AWAKE_AFTER: u32 = 32;

/// The state of one thread's waiting.
pub(crate) struct Waiter {
    roomy: SpinRule,
    crowded: SpinRule,
    cpus: u32,
    waits: u32,
    /// No other thread waits at its bell.
    is_alone: bool,
    /// Number of waits since it last slept.
    without_sleep: u32,
}

impl Waiter {
    /// `is_alone`: no other thread waits at its bell.
    pub(crate) fn new(is_alone: bool) -> Waiter {
        let (roomy, crowded) = (SpinRule::new(SPIN), SpinRule::new(SPIN_CROWDED));
        Waiter { roomy, crowded, cpus: 1, waits: 0, is_alone, without_sleep: 0 }
    }

    /// Waits until `ready` returns something. Accounts the time as waiting, and from the return on as work again.
    pub(super) fn wait<R>(
        &mut self,
        tracker: (&Tracker, Doing, Doing),
        bell: &Bell,
        topic: Topic,
        awake: &Awake,
        mut ready: impl FnMut() -> Option<R>,
    ) -> R {
        if self.waits.is_multiple_of(WAITS) {
            self.cpus = cpus();
        }
        self.waits = self.waits.wrapping_add(1);
        let (tracker, waits, works) = tracker;
        let is_timed = tracker.gives_way(waits);
        let (given, looks) = self.give_way(awake, &mut ready);
        let looked_ns = looks * LOOK_NS;
        let (result, waited_ns) = match given {
            Some(result) => {
                if is_timed {
                    tracker.resumes(works);
                }
                self.without_sleep = self.without_sleep.saturating_add(1);
                if self.is_alone && self.without_sleep > AWAKE_AFTER {
                    bell.stay_awake();
                }
                (result, looked_ns)
            }
            None => {
                self.without_sleep = 0;
                let sleeps_ns = tracker.sleeps(waits);
                let result = bell.sleep(topic, awake, ready);
                (result, looked_ns + tracker.switch(works).saturating_sub(sleeps_ns + WAKE_NS))
            }
        };
        if self.cpus > 1 {
            let rule = if self.is_crowded(awake) { &mut self.crowded } else { &mut self.roomy };
            // Not "blocked": the rule would take half of the block's cost for the wake-up, but here that cost covers three
            // threads.
            rule.waited(waited_ns, Ended::Spinning);
        }
        result
    }

    /// Whether more threads of the graph are awake than there are CPUs.
    fn is_crowded(&self, awake: &Awake) -> bool {
        awake.count() > self.cpus
    }

    fn looks_max(&self, crowded: bool) -> u64 {
        match (self.cpus, crowded) {
            (1, _) => 1,
            (_, true) => self.crowded.spin_ns() / LOOK_NS,
            (_, false) => self.roomy.spin_ns() / LOOK_NS,
        }
    }

    /// Polls for as long as the rule says. Also returns the number of polls.
    fn give_way<R>(&self, awake: &Awake, ready: &mut impl FnMut() -> Option<R>) -> (Option<R>, u64) {
        let mut looks = 0;
        // What it waits for can only come from a thread that is awake.
        while awake.count() > 1 {
            let crowded = self.is_crowded(awake);
            if looks >= self.looks_max(crowded) {
                break;
            }
            looks += 1;
            if !crowded {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
                if let Some(result) = ready() {
                    return (Some(result), looks);
                }
            }
            std::thread::yield_now();
            if let Some(result) = ready() {
                return (Some(result), looks);
            }
        }
        (None, looks)
    }
}

/// The number of CPUs that the calling thread may use; 1 if the kernel does not tell.
fn cpus() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}
