//! Wakes the threads that wait for buffers, at no cost while none sleeps.
//!
//! Problem: a thread that puts a buffer into a queue must wake the taker if it sleeps, and must not pay for that if it does not.
//! Rule: a sleeper first announces that it sleeps, then checks its queues once more, then sleeps; the putter checks for sleepers
//! after the put. Both sides have a fence in between, so one of them sees the other. A fence at each put costs a tenth to a third
//! of a hand-off; so a single taker that has not slept for a while announces that too ([`Bell::stay_awake`]), and then the putter
//! does nothing more. Before it sleeps again, it withdraws that and makes a fence for both sides (membarrier(2)), once for all
//! consecutive sleeps. (Doing so at each sleep was slower by a fifth with 10 µs of work, because it interrupts the other CPUs.) A
//! putter that finds a sleeper decrements the count of sleepers before it wakes it, so each sleep is ended by one system call and
//! not by one for each buffer until the sleeper runs.

use super::sync::{
    AtomicBool, AtomicU32, AtomicUsize, Futex, Ordering, fence, has_heavy_fence, heavy_fence, light_fence,
};

/// What a sleeper waits for, or what was put: the number of a path, or anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topic(usize);

impl Topic {
    /// Any path.
    pub(crate) const ANY: Topic = Topic(0);

    /// A buffer of one path.
    pub(crate) fn path(index: usize) -> Topic {
        Topic(index + 1)
    }
}

/// The number of threads of the graph that are awake; it decides which may spin. A woken thread counts from the call that wakes it
/// on, because it wants a CPU from then on.
#[derive(Default)]
pub(crate) struct Awake(AtomicU32);

impl Awake {
    /// One more.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub(crate) fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many.
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where one or several threads wait.
#[derive(Default)]
pub(crate) struct Bell {
    /// The single taker is awake and will stay so until it has withdrawn this. Always false if several threads wait here.
    stays_awake: AtomicBool,
    /// Number of threads that sleep, or are about to, and have not been claimed by a caller.
    sleepers: AtomicU32,
    /// What the sleeper waits for. `ANY` if several may sleep.
    topic: AtomicUsize,
    /// Number of sleepers that were claimed and have not resumed yet.
    claimed: Futex,
}

impl Bell {
    /// Something has been put into a queue: wakes one sleeper, if one waits for that topic.
    #[inline]
    pub(crate) fn ring(&self, topic: Topic, awake: &Awake) {
        light_fence();
        if self.stays_awake.load(Ordering::Relaxed) {
            return;
        }
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake(topic, awake);
        }
    }

    /// The single thread that waits here is awake and will not sleep for a while. It may sleep all the same, at the cost of a
    /// heavy fence.
    pub(crate) fn stay_awake(&self) {
        if has_heavy_fence() && !self.stays_awake.load(Ordering::Relaxed) {
            self.stays_awake.store(true, Ordering::Relaxed);
        }
    }

    /// From now on putters check for sleepers; the puts of those that have not seen this came before, and are visible from now on.
    #[inline]
    fn may_sleep(&self) {
        if self.stays_awake.load(Ordering::Relaxed) {
            self.stays_awake.store(false, Ordering::Relaxed);
            heavy_fence();
        }
    }

    /// Wakes all sleepers, whatever they wait for.
    pub(crate) fn ring_all(&self, awake: &Awake) {
        fence(Ordering::SeqCst);
        while self.claim(awake) {
            self.let_go();
        }
    }

    #[cold]
    fn wake(&self, topic: Topic, awake: &Awake) {
        let wanted = Topic(self.topic.load(Ordering::Relaxed));
        if (wanted == Topic::ANY || topic == Topic::ANY || wanted == topic) && self.claim(awake) {
            self.let_go();
        }
    }

    /// Takes one sleeper off the count; the caller then has to wake it.
    fn claim(&self, awake: &Awake) -> bool {
        let claimed = decrement(&self.sleepers);
        if claimed {
            awake.add();
        }
        claimed
    }

    fn let_go(&self) {
        self.claimed.word().fetch_add(1, Ordering::Release);
        self.claimed.wake(1);
    }

    /// Sleeps until `ready` returns something. The caller counts as awake before and after.
    pub(crate) fn sleep<R>(&self, topic: Topic, awake: &Awake, mut ready: impl FnMut() -> Option<R>) -> R {
        loop {
            self.topic.store(topic.0, Ordering::Relaxed);
            awake.sub();
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            self.may_sleep();
            fence(Ordering::SeqCst);
            if let Some(result) = ready() {
                self.stay(awake);
                return result;
            }
            self.until_claimed();
            if let Some(result) = ready() {
                return result;
            }
        }
    }

    /// Cancels an announced sleep.
    fn stay(&self, awake: &Awake) {
        if decrement(&self.sleepers) {
            awake.add();
        } else {
            self.until_claimed();
        }
    }

    fn until_claimed(&self) {
        while !decrement(self.claimed.word()) {
            self.claimed.sleep_while(0);
        }
    }
}

/// Decrements the count, unless it is 0.
fn decrement(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::Acquire, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok()
}
