//! Work of a given length: a fixed number of steps, not a fixed time, so that time in which a thread has no CPU does not
//! count as work.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Executes this number of steps. The C++ programs of `bench pipeline` execute the same ones.
pub(crate) fn work(count: u64) {
    if count > 0 {
        steps(count);
    }
}

/// Steps in a microsecond of an undisturbed CPU. Measured once: the fastest of many short loops.
pub(crate) fn steps_per_us() -> u64 {
    static STEPS: OnceLock<u64> = OnceLock::new();
    *STEPS.get_or_init(|| {
        let once = || {
            let begin = Instant::now();
            steps(20_000);
            begin.elapsed().as_nanos().max(1) as u64
        };
        20_000 * 1000 / (0..500).map(|_| once()).min().unwrap_or(1)
    })
}

fn steps(count: u64) {
    // Not a linear congruence: compilers merge several steps of those into one.
    let mut x = black_box(1u64);
    for _ in 0..count {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}
