//! The memory of a machine of today: a CPU's cache, which a switch to another job empties, and the bandwidth that the CPUs of a socket share.
//!
//! Rules, and what they leave out: docs/simulator.md, "Memory", and decision 0097. Both parts are absent unless they are given.

use crate::params::ParamsError;

/// Caches, and the bandwidth of sockets; by default neither costs anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Each CPU's cache.
    pub cache: Option<Cache>,
    /// Sockets of equal size.
    pub socket: Option<Socket>,
}

/// A CPU's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Its size.
    pub bytes: u64,
    /// The bandwidth with which one CPU fills it.
    pub bytes_per_s: u64,
}

/// CPUs that share a path to the memory: those with the numbers 0 to `cpus` - 1, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its CPUs; a node has several sockets, or a socket several nodes.
    pub cpus: u32,
    /// The bandwidth of all of them together.
    pub bytes_per_s: u64,
}

/// The unit of parts.
const ONE: u64 = 1 << 48;

/// A cache of 1 TiB, and 1 MB/s to 1 PB/s: beyond them is surely a wrong unit.
const CACHE_BYTES_MAX: u64 = 1 << 40;
const BYTES_PER_S: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000_000_000;
/// The CPUs of the largest socket.
const SOCKET_CPUS_MAX: u32 = 1 << 16;

/// The line of today's caches, in bytes.
const LINE_BYTES: u64 = 64;

impl Cache {
    /// How long a process loads what is missing of its working set, at the bandwidth of one CPU: all that the cache can hold of it, or what did not
    /// survive `brought_bytes` of others.
    pub(super) fn load_ns(&self, working_set_bytes: u64, brought_bytes: Option<u128>) -> u64 {
        let held = u128::from(working_set_bytes.min(self.bytes));
        let survivors = brought_bytes.map_or(0, |bytes| self.survivors(bytes));
        let missing = held * u128::from(ONE - survivors) / u128::from(ONE);
        let rate = u128::from(self.bytes_per_s);
        ((missing * 1_000_000_000 + rate / 2) / rate) as u64
    }

    /// The part of its contents that survives others' data, in parts of [`ONE`]: each of their lines evicts a random one, so of n lines (1 - 1/n)^k
    /// remain after k. Source: Agarwal, Horowitz and Hennessy 1989, "An analytical cache model". In integers, so that it is the same everywhere.
    fn survivors(&self, brought_bytes: u128) -> u64 {
        let lines = self.bytes.div_ceil(LINE_BYTES);
        let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) / u128::from(ONE)) as u64;
        let (mut of_one, mut left, mut all) = (ONE - ONE / lines, brought_bytes / u128::from(LINE_BYTES), ONE);
        while left > 0 {
            if left % 2 == 1 {
                all = times(all, of_one);
            }
            (of_one, left) = (times(of_one, of_one), left / 2);
        }
        all
    }
}

impl Memory {
    pub(super) fn check(&self, cpus_per_node: u32) -> Result<(), ParamsError> {
        if let Some(cache) = self.cache {
            if !(1..=CACHE_BYTES_MAX).contains(&cache.bytes) {
                let what = format!("a cache of {} bytes", cache.bytes);
                return Err(ParamsError::new(what, "no CPU has that", "give 1 byte to 1 TiB, as 1MiB"));
            }
            check_rate("the bandwidth that fills a cache", cache.bytes_per_s)?;
        }
        let Some(Socket { cpus, bytes_per_s }) = self.socket else { return Ok(()) };
        if !(1..=SOCKET_CPUS_MAX).contains(&cpus) {
            let what = format!("a socket of {cpus} CPUs");
            return Err(ParamsError::new(what, "no machine has that", format!("give 1 to {SOCKET_CPUS_MAX} CPUs")));
        }
        if !cpus.is_multiple_of(cpus_per_node) && !cpus_per_node.is_multiple_of(cpus) {
            let what = format!("sockets of {cpus} CPUs, and nodes of {cpus_per_node}");
            return Err(ParamsError::new(
                what,
                "a socket would have a part of a node",
                "let the one be a multiple of the other",
            ));
        }
        check_rate("the bandwidth of a socket", bytes_per_s)
    }
}

fn check_rate(name: &str, bytes_per_s: u64) -> Result<(), ParamsError> {
    if BYTES_PER_S.contains(&bytes_per_s) {
        return Ok(());
    }
    let what = format!("{name} is {bytes_per_s} bytes/s");
    Err(ParamsError::new(what, "that is surely a wrong unit", "give 1 MB/s to 1 PB/s, as 20GB/s"))
}

/// What a process that computes demands of its socket, and gets, in bytes/s. With a demand of 0 it computes at full speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bandwidth {
    pub(super) demand: u64,
    pub(super) granted: u64,
}

impl Bandwidth {
    fn suffices(&self) -> bool {
        self.granted >= self.demand
    }

    /// The computation done in this time. `begun` is what was done of the next nanosecond, in parts of the demand, so that nothing is lost when
    /// rates change.
    pub(super) fn done_ns(&self, elapsed_ns: u64, begun: &mut u64) -> u64 {
        if self.suffices() {
            return elapsed_ns;
        }
        let all = u128::from(elapsed_ns) * u128::from(self.granted) + u128::from(*begun);
        *begun = (all % u128::from(self.demand)) as u64;
        (all / u128::from(self.demand)) as u64
    }

    /// How long that much computation takes.
    pub(super) fn time_ns(&self, left_ns: u64, begun: u64) -> u64 {
        if self.suffices() {
            return left_ns;
        }
        let all = (u128::from(left_ns) * u128::from(self.demand)).saturating_sub(begun.into());
        u64::try_from(all.div_ceil(u128::from(self.granted))).unwrap_or(u64::MAX)
    }
}

/// Shares a bandwidth max-min: those that demand less than an equal part get what they demand, and the others the rest in equal parts.
pub(super) fn share(bytes_per_s: u64, demands: &mut [&mut Bandwidth]) {
    demands.sort_by_key(|one| one.demand);
    let (mut left, count) = (bytes_per_s, demands.len());
    for (place, one) in demands.iter_mut().enumerate() {
        one.granted = one.demand.min(left / (count - place) as u64);
        left -= one.granted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(bytes_per_s: u64, demands: &[u64]) -> Vec<u64> {
        let mut all: Vec<Bandwidth> = demands.iter().map(|demand| Bandwidth { demand: *demand, granted: 0 }).collect();
        share(bytes_per_s, &mut all.iter_mut().collect::<Vec<_>>());
        all.iter().map(|one| one.granted).collect()
    }

    #[test]
    fn small_demands_are_met_and_the_rest_is_shared() {
        assert_eq!(shared(100, &[75, 75]), [50, 50]);
        assert_eq!(shared(100, &[90, 10, 20]), [70, 10, 20]);
        assert_eq!(shared(100, &[90, 10, 60]), [45, 10, 45]);
        assert_eq!(shared(100, &[30, 30]), [30, 30]);
    }

    #[test]
    fn no_computation_is_lost_when_rates_change() {
        let (mut begun, mut left_ns) = (0, 1_000_003);
        for granted in [1, 2, 3, 5, 7] {
            let bandwidth = Bandwidth { demand: 7, granted };
            left_ns -= bandwidth.done_ns(100_001, &mut begun);
        }
        assert_eq!(left_ns * 7 - begun, 1_000_003 * 7 - 100_001 * 11 - 100_001 * 7);
        let slow = Bandwidth { demand: 7, granted: 3 };
        let last_ns = slow.time_ns(left_ns, begun);
        assert_eq!(
            slow.done_ns(last_ns, &mut begun),
            left_ns,
            "its end is when all is done, and no nanosecond more is"
        );
    }

    #[test]
    fn a_working_set_is_loaded_up_to_the_caches_size() {
        let cache = Cache { bytes: 1 << 20, bytes_per_s: 1 << 30 };
        let all = |bytes| cache.load_ns(bytes, None);
        assert_eq!([0, 1 << 19, 1 << 20, u64::MAX].map(all), [0, 488_281, 976_563, 976_563]);
    }

    #[test]
    fn what_others_bring_evicts_what_is_there_at_random() {
        for bytes in [64, 4096, 1 << 20, 1 << 40] {
            let cache = Cache { bytes, bytes_per_s: 1_000_000_000 };
            let part = |brought: u64| cache.survivors(brought.into()) as f64 / ONE as f64;
            assert_eq!((part(0), part(63)), (1.0, 1.0));
            for of in [1, 3, 16] {
                let expected = (1.0 - 64.0 / bytes as f64).powf((of * bytes / 16 / 64) as f64);
                assert!(
                    (part(of * bytes / 16) - expected).abs() < 1e-3,
                    "{bytes} {of}: {} {expected}",
                    part(of * bytes / 16)
                );
            }
            assert!(part(u64::MAX) < 1e-9 || bytes == 1 << 40, "{}", part(u64::MAX));
        }
        let cache = Cache { bytes: 1 << 20, bytes_per_s: 1_000_000_000 };
        let part = cache.load_ns(1 << 18, Some(1 << 20)) as f64 / cache.load_ns(1 << 18, None) as f64;
        assert!((part - (1.0 - (-1.0_f64).exp())).abs() < 1e-3, "{part}");
    }

    #[test]
    fn impossible_memories_are_refused() {
        let cache = Cache { bytes: 1 << 20, bytes_per_s: 1_000_000_000 };
        let socket = Socket { cpus: 4, bytes_per_s: 20_000_000_000 };
        let good = Memory { cache: Some(cache), socket: Some(socket) };
        assert!([1, 2, 4, 8].iter().all(|cpus| good.check(*cpus).is_ok()));
        let of_cache = |cache| Memory { cache: Some(cache), ..good };
        let of_socket = |socket| Memory { socket: Some(socket), ..good };
        for wrong in [
            of_cache(Cache { bytes: 0, ..cache }),
            of_cache(Cache { bytes: u64::MAX, ..cache }),
            of_cache(Cache { bytes_per_s: 0, ..cache }),
            of_socket(Socket { cpus: 0, ..socket }),
            of_socket(Socket { cpus: u32::MAX, ..socket }),
            of_socket(Socket { cpus: 3, ..socket }),
            of_socket(Socket { bytes_per_s: u64::MAX, ..socket }),
        ] {
            assert!(wrong.check(2).is_err(), "{wrong:?}");
        }
    }
}
