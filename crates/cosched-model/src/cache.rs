//! Cache pollution: what a switch costs because the cache then holds another job's data.
//!
//! Strazdins & Uhlmann 2004 neglect it (section 5.1, assumption 2) and find that it is the larger part of the cost of a
//! switch (section 5.3). Here it is an optional term next to α_c: the amount of data that the process reads again after
//! a switch, times the refill cost per KiB. The whole cache is the upper bound: a process that computes little between
//! two messages has less to lose.

use crate::machine::Cache;

/// The cost of reading `reloaded_bytes` again after a switch, in µs; at most the whole cache is lost.
pub fn pollution_us(cache: &Cache, reloaded_bytes: f64) -> f64 {
    reloaded_bytes.clamp(0.0, cache.size_bytes as f64) / 1024.0 * cache.refill_us_per_kib
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_lost_than_there_is() {
        let cache = Cache { size_bytes: 262_144, refill_us_per_kib: 2.0 };
        assert_eq!(pollution_us(&cache, 1024.0), 2.0);
        assert_eq!(pollution_us(&cache, 1e12), 512.0);
        assert_eq!(pollution_us(&cache, -5.0), 0.0);
    }
}
