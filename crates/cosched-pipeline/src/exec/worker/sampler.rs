//! What a worker knows about how long stages take, without a look at the clock at each.
//!
//! Problem: a look at the clock takes 20 to 30 ns, as much as a short stage with its hand-off. Rules: of a stage whose rounds
//! take 100 µs or more each is timed, by one look, because the end of one is the beginning of the next. Of shorter ones a
//! round is timed each 100 µs of the stage's time, and all rounds of one buffer in 64. A stage's time is then that of the
//! timed rounds and, for each other round, the mean.
//!
//! From the sampled buffers the worker also tells whether it is worth while to have several workers. A stage that one worker
//! leaves and another enters costs a few cache misses, some 100 ns; if the stages are shorter than that, one worker alone is
//! faster than two.

use std::time::Instant;

/// A stage whose rounds take so long is timed at each.
pub(super) const LONG_NS: u64 = 100_000;
/// After a round that takes so long several workers are worth while at once.
const SEVERAL_AT_ONCE_NS: u64 = 2_000;
/// One buffer in so many is sampled.
const PERIOD: u32 = 64;
/// Several workers from this mean time of a stage on, and one alone below the lower one.
const SEVERAL_NS: u64 = 160;
const ALONE_NS: u64 = 80;

pub(super) struct Sampler {
    /// What two looks at the clock, one directly behind the other, differ by.
    look_ns: u64,
    /// Buffers until the next sampled one.
    left: u32,
    samples: bool,
    /// Of the sampled buffer that is under way.
    sum_ns: u64,
    rounds: u64,
    /// The end of the round before, if that was timed and nothing but the way to the next one has come since.
    end: Option<Instant>,
    /// Mean time of a round; 0 before the first sample.
    mean_ns: u64,
    /// The last sample was far from the mean, and has not been taken into it.
    doubted: bool,
    was_long: bool,
}

impl Sampler {
    pub(super) fn new() -> Sampler {
        let look_ns = (0..8).map(|_| ns_since(Instant::now())).min().unwrap_or(0);
        Sampler {
            look_ns,
            left: 1,
            samples: false,
            sum_ns: 0,
            rounds: 0,
            end: None,
            mean_ns: 0,
            doubted: false,
            was_long: false,
        }
    }

    /// The next buffer.
    #[inline]
    pub(super) fn next_buffer(&mut self) {
        self.end = None;
        self.left -= 1;
        if self.left == 0 {
            self.left = PERIOD;
            self.samples = true;
            (self.sum_ns, self.rounds) = (0, 0);
        }
    }

    /// The next buffer is to be sampled: things may have changed while the worker had none.
    pub(super) fn sample_next(&mut self) {
        self.left = 1;
    }

    /// Whether the present buffer is one that is sampled.
    #[inline]
    pub(super) fn samples(&self) -> bool {
        self.samples
    }

    /// A timed round begins.
    pub(super) fn begin(&mut self, long: bool) -> Instant {
        self.end.take_if(|_| long).unwrap_or_else(Instant::now)
    }

    /// It has ended. Returns what it took.
    pub(super) fn end(&mut self, begin: Instant) -> u64 {
        let end = Instant::now();
        self.end = Some(end);
        let took_ns = ((end - begin).as_nanos() as u64).saturating_sub(self.look_ns);
        self.sum_ns += took_ns;
        self.rounds += 1;
        self.was_long |= took_ns >= SEVERAL_AT_ONCE_NS;
        took_ns
    }

    /// Whether there was a long round since it was asked last.
    pub(super) fn was_long(&mut self) -> bool {
        std::mem::take(&mut self.was_long)
    }

    /// The worker is through with the buffer. Says what it thinks now, if it has learned something: whether several workers
    /// are worth while, given that they are (not).
    #[inline]
    pub(super) fn buffer_done(&mut self, several: bool) -> bool {
        if self.samples { self.sampled(several) } else { several }
    }

    #[cold]
    fn sampled(&mut self, several: bool) -> bool {
        self.samples = false;
        let Some(mean_ns) = self.sum_ns.checked_div(self.rounds) else { return several };
        let far = self.mean_ns > 0 && mean_ns > 8 * self.mean_ns + 1000;
        if far && !self.doubted {
            // Perhaps the worker had lost its CPU: asks the next buffer.
            (self.doubted, self.left) = (true, 1);
            return several;
        }
        let first = self.mean_ns == 0 || far;
        self.doubted = false;
        self.mean_ns = if first { mean_ns.max(1) } else { (7 * self.mean_ns + mean_ns) / 8 };
        if several { self.mean_ns >= ALONE_NS } else { self.mean_ns >= SEVERAL_NS }
    }
}

fn ns_since(then: Instant) -> u64 {
    then.elapsed().as_nanos() as u64
}
