//! What wakes those who wait for buffers, and costs nothing while nobody sleeps.
//!
//! Problem: who puts a buffer into a queue must wake the taker if it sleeps, and must not pay for that if it does not. Rule:
//! a sleeper first says that it sleeps, then looks at its queues once more, then sleeps; who puts looks for sleepers behind
//! the put. Both sides do so in an order that all threads agree upon, so one of them sees the other. (The kernel could pass the fence for the other side, by
//! membarrier(2); that saves 5 ns per buffer and costs an interrupt per sleep, and was slower by a fifth with 10 µs of work.)
//! Who finds a sleeper takes it off the count before it wakes it, so each sleep is ended by one system call and not by one
//! for each buffer until the sleeper runs.

use super::sync::{AtomicU32, AtomicUsize, Futex, Ordering, fence, in_one_order};

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
        // The put was `SeqCst` too.
        in_one_order();
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake(topic, awake);
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
