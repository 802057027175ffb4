//! What wakes those who wait for buffers, and costs nothing while nobody sleeps.
//!
//! Problem: who puts a buffer into a queue must wake the taker if it sleeps, and must not pay for that if it does not. Rule:
//! a sleeper first says that it sleeps, then looks at its queues once more, then sleeps; who puts looks for sleepers behind
//! the put. Both sides do so with a fence between, so one of them sees the other. A fence at each put costs a tenth to a
//! third of a hand-off; so a single taker that has not slept for a while says that too ([`Bell::stay_awake`]), and who puts then
//! does nothing more. Before it sleeps again, it takes that back and makes a fence for both sides (membarrier(2)), once for all
//! sleeps that follow each other. (To do so at each sleep was slower by a fifth with 10 µs of work: it interrupts the other CPUs.)
//! Who finds a sleeper takes it off the count before it wakes it, so each sleep is ended by one system call and not by one
//! for each buffer until the sleeper runs.

use super::sync::{
    AtomicBool, AtomicU32, AtomicUsize, Futex, Ordering, fence, has_heavy_fence, heavy_fence, light_fence,
};

/// What a sleeper waits for, or a caller brings: a path's number, or anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topic(usize);

impl Topic {
    /// Whatever comes.
    pub(crate) const ANY: Topic = Topic(0);

    /// A buffer of one path.
    pub(crate) fn path(index: usize) -> Topic {
        Topic(index + 1)
    }
}

/// How many threads of the graph are awake: who may spin is told by it. A thread that is woken counts from the moment of the
/// call, because it wants a CPU from then on.
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
    /// The single taker is awake and will stay so until it has taken this back. Never, where several wait.
    stays_awake: AtomicBool,
    /// Who sleeps, or is about to, and has not been claimed by a caller.
    sleepers: AtomicU32,
    /// What the sleeper waits for. Anything, where several may sleep.
    topic: AtomicUsize,
    /// Sleepers that were claimed and have not gone on yet.
    claimed: Futex,
}

impl Bell {
    /// Something has been put into a queue: wakes one sleeper, if one waits for that.
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

    /// The single thread that waits here, which is awake, will not sleep for a while. It may all the same, and pays for that.
    pub(crate) fn stay_awake(&self) {
        if has_heavy_fence() && !self.stays_awake.load(Ordering::Relaxed) {
            self.stays_awake.store(true, Ordering::Relaxed);
        }
    }

    /// Whoever puts from now on looks for sleepers; whoever has not seen that has put before, and that is seen from now on.
    #[inline]
    fn may_sleep(&self) {
        if self.stays_awake.load(Ordering::Relaxed) {
            self.stays_awake.store(false, Ordering::Relaxed);
            heavy_fence();
        }
    }

    /// Wakes all, whatever they wait for.
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

    /// Takes one sleeper off the count, for whom the caller then answers.
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

    /// Sleeps until `ready` has something. The caller counts as awake before and after.
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

    /// Does not sleep after all.
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

/// One less, if there is one.
fn decrement(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::Acquire, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok()
}
