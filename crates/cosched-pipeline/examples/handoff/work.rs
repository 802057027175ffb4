//! Work of a given length: a fixed number of steps, not a fixed time, so that a thread that loses its CPU has not worked.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Works for so many microseconds of an undisturbed CPU.
pub(crate) fn work(us: u64) {
    if us > 0 {
        steps(us * steps_per_us());
    }
}

/// Measured once: the fastest of many short loops.
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
    let mut x = black_box(1u64);
    for _ in 0..count {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    }
    black_box(x);
}
