//! A soak: several clients send requests to several real daemons on a real etcd, while a third party breaks processes and
//! links. Requests, answers, effects and faults form a history, and `check` says what is wrong with it.
//!
//! The same seed gives the same requests and faults in the same order; how they interleave depends on the machine.

mod beat;
mod check;
#[cfg(test)]
mod check_tests;
mod clients;
mod faults;
mod history;
mod round;

pub use beat::beat;
pub use round::{Outcome, round};

/// A random number generator (SplitMix64) of our own, so that a seed always means the same.
#[derive(Clone, Debug)]
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `from` to `to`, both inclusive.
    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[(self.next() % all.len() as u64) as usize]
    }
}

fn now() -> history::Ms {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn sleep_ms(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}
