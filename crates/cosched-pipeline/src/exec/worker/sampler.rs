//! A worker's knowledge of how long stages take, without reading the clock at each stage.
//!
//! Problem: reading the clock takes 20 to 30 ns, as much as a short stage with its hand-off. Rules: of a stage whose rounds
//! take 100 µs or more, every round is timed, with a single read, because the end of one round is the beginning of the next.
//! Of a shorter one, one round per 100 µs of the stage's time is timed, and all rounds of one buffer in 64. A stage's time is
//! then the time of the timed rounds plus the mean for each of the others.
//!
//! From the sampled buffers the worker also derives whether several workers are worthwhile. When a stage moves from one
//! worker to another, that costs a few cache misses, some 100 ns; if the stages are shorter than that, one worker alone is
//! faster than two.

use std::time::Instant;

/// Each round of a stage whose rounds take this long is timed.
pub(super) const LONG_NS: u64 = 100_000;
/// After a round that takes this long several workers are worthwhile immediately.
const SEVERAL_AT_ONCE_NS: u64 = 2_000;
/// One buffer in this number is sampled.
const PERIOD: u32 = 64;
/// Several workers from this mean time of a round on, and a single one below the second threshold.
const SEVERAL_NS: u64 = 160;
const ALONE_NS: u64 = 80;

#[derive(Default)]
pub(super) struct Sampler {
    /// The difference between two reads of the clock, one directly after the other.
    look_ns: u64,
    /// Buffers until the next sampled one.
    left: u32,
    /// Whether the current buffer is a sampled one.
    pub(super) samples: bool,
    /// Of the current sampled buffer.
    sum_ns: u64,
    rounds: u64,
    /// The end of the previous round, if that was timed and only the hand-off has come since.
    end: Option<Instant>,
    /// Mean time of a round; 0 before the first sample.
    mean_ns: u64,
    /// The last sample was far from the mean, and has not been added to it.
    doubted: bool,
    was_long: bool,
}

impl Sampler {
    pub(super) fn new() -> Sampler {
        let look_ns = (0..8).map(|_| ns_since(Instant::now())).min().unwrap_or(0);
        Sampler { look_ns, left: 1, ..Sampler::default() }
    }

    /// Starts with the next buffer.
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

    /// Makes the next buffer a sampled one: times may have changed while the worker had no work.
    pub(super) fn sample_next(&mut self) {
        self.left = 1;
    }

    /// Starts the timing of a round.
    pub(super) fn begin(&mut self, long: bool) -> Instant {
        self.end.take_if(|_| long).unwrap_or_else(Instant::now)
    }

    /// Ends the timing of a round. Returns the time that it took.
    pub(super) fn end(&mut self, begin: Instant) -> u64 {
        let end = Instant::now();
        self.end = Some(end);
        let took_ns = ((end - begin).as_nanos() as u64).saturating_sub(self.look_ns);
        self.sum_ns += took_ns;
        self.rounds += 1;
        self.was_long |= took_ns >= SEVERAL_AT_ONCE_NS;
        took_ns
    }

    /// Whether there was a long round since the last call.
    pub(super) fn was_long(&mut self) -> bool {
        std::mem::take(&mut self.was_long)
    }

    /// The worker is done with the buffer. Returns whether several workers are worthwhile, by what it has learned from this
    /// buffer; `several` is the present state.
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
            // Perhaps the worker was preempted: samples the next buffer to decide.
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
