//! The cost of refilling a CPU's cache, measured in this process: evicted memory is read, then read once more.

use std::hint::black_box;
use std::time::Instant;

/// Bytes between two reads: a line of the cache.
const LINE_BYTES: usize = 64;
/// Used where the size of the cache is unknown: common today, and not too large for any CPU.
const USUAL_BYTES: u64 = 256 * 1024;
/// Reading this evicts what was cached before, from all caches.
const EVICT_BYTES: usize = 64 << 20;
/// Caches larger than this are shared by many CPUs.
const SIZE_BYTES_MAX: u64 = 16 << 20;

/// The size of a CPU's own (level 2) cache in bytes, as the kernel tells it.
pub(super) fn size_bytes() -> u64 {
    let read = |index: usize, what: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok()
    };
    let level2 = (0..8).find(|&index| read(index, "level").is_some_and(|level| level.trim() == "2"));
    let kib = level2.and_then(|index| read(index, "size")?.trim().strip_suffix('K')?.parse::<u64>().ok());
    kib.map_or(USUAL_BYTES, |kib| kib * 1024).clamp(USUAL_BYTES / 8, SIZE_BYTES_MAX)
}

/// The time to read a KiB again, in µs.
#[derive(Debug)]
pub(super) struct Refill {
    /// From memory: the data were evicted from all caches.
    pub(super) far_us_per_kib: f64,
    /// After as much other data as the cache holds: larger caches still have them. Noise may make it negative.
    pub(super) near_us_per_kib: f64,
}

/// Measures it; `None` when the clock is too coarse.
pub(super) fn refill() -> Option<Refill> {
    let size = usize::try_from(size_bytes()).ok()?;
    let cached = vec![1_u8; size];
    let other = vec![1_u8; EVICT_BYTES];
    let after = |bytes: usize| {
        read(&cached);
        read(&other[..bytes]);
        let cold_s = read(&cached);
        let warm_s = read(&cached);
        (cold_s - warm_s) * 1e6 / (size as f64 / 1024.0)
    };
    let (far_us_per_kib, near_us_per_kib) = (after(EVICT_BYTES), after(size));
    (far_us_per_kib > 0.0).then_some(Refill { far_us_per_kib, near_us_per_kib })
}

/// Reads one byte of each line; returns the time in s.
fn read(bytes: &[u8]) -> f64 {
    let started = Instant::now();
    let sum = bytes.iter().step_by(LINE_BYTES).fold(0_u64, |sum, byte| sum + u64::from(*black_box(byte)));
    black_box(sum);
    started.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_cost_that_a_machine_can_have() {
        assert!((32 * 1024..=SIZE_BYTES_MAX).contains(&size_bytes()));
        // A KiB is 16 lines; a line takes more than nothing and, even on a busy machine, less than 10 ms.
        assert!(refill().is_none_or(|of| of.far_us_per_kib < 160_000.0 && of.near_us_per_kib.abs() < 160_000.0));
    }
}
