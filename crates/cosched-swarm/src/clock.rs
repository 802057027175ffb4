//! A node's clocks: a steady one and a wall clock, which drift together, and of which the second may be set.
//!
//! Linux slews both clocks alike (`CLOCK_MONOTONIC` follows the rate that NTP sets), and a step moves the wall clock
//! alone. Where the time is synchronised, the rate is set anew from time to time so that the error goes back to zero.

use cosched_cluster::Moment;
use cosched_core::Time;

/// The world begins then, by true wall-clock time, in nanoseconds since the Unix epoch.
pub const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// A node's clocks. Times without a word beside them are true times, in nanoseconds since the world began.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// Since when the rate holds.
    since: u64,
    /// The steady clock then.
    steady: u64,
    /// By how many billionths it is too fast.
    fast_ppb: i64,
    /// By how much the wall clock is ahead of the steady one.
    ahead: i64,
}

impl HostClock {
    /// A right wall clock; the steady one shows `steady` at the beginning.
    pub fn new(steady: u64) -> HostClock {
        HostClock { since: 0, steady, fast_ppb: 0, ahead: (EPOCH_NS - steady) as i64 }
    }

    fn steady_at(&self, now: u64) -> u64 {
        let dt = i128::from(now.saturating_sub(self.since));
        let passed = dt + dt * i128::from(self.fast_ppb) / 1_000_000_000;
        self.steady + passed as u64
    }

    /// What the clocks show.
    pub fn at(&self, now: u64) -> Moment {
        let steady = self.steady_at(now);
        Moment { steady: Time(steady), wall: Time(steady.saturating_add_signed(self.ahead)) }
    }

    /// By how much the wall clock is wrong, in nanoseconds; more than 0 when it is fast.
    pub fn error_ns(&self, now: u64) -> i64 {
        self.at(now).wall.0 as i64 - (EPOCH_NS + now) as i64
    }

    /// From now on the clocks are too fast by so many billionths.
    pub fn set_rate(&mut self, now: u64, fast_ppb: i64) {
        (self.steady, self.since, self.fast_ppb) = (self.steady_at(now), now, fast_ppb);
    }

    /// Somebody sets the wall clock by so much.
    pub fn step(&mut self, ns: i64) {
        self.ahead += ns;
    }

    /// Somebody sets the wall clock right.
    pub fn set_right(&mut self, now: u64) {
        self.ahead -= self.error_ns(now);
    }

    /// When the steady clock shows `steady`, at the earliest.
    pub fn when_steady(&self, steady: Time) -> u64 {
        let wanted = i128::from(steady.0.saturating_sub(self.steady));
        let rate = 1_000_000_000 + i128::from(self.fast_ppb);
        let mut at = self.since + (wanted * 1_000_000_000 / rate) as u64;
        while self.steady_at(at) < steady.0 {
            at += 1;
        }
        at
    }

    /// When the wall clock shows `wall`, at the earliest, unless it is set.
    pub fn when_wall(&self, wall: Time) -> u64 {
        self.when_steady(Time(wall.0.saturating_add_signed(-self.ahead)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_reached_when_it_is_said_to_be() {
        let mut clock = HostClock::new(77);
        for (now, ppb) in [(1_000, 50_000), (5_000_000, -300_000), (9_000_000_000, 1)] {
            clock.set_rate(now, ppb);
            for later in [1, 999_999, 123_456_789] {
                let wanted = Time(clock.at(now).steady.0 + later);
                let at = clock.when_steady(wanted);
                assert!(clock.at(at).steady >= wanted && clock.at(at - 1).steady < wanted, "{now} {later}");
            }
        }
        clock.set_right(10_000_000_000);
        assert_eq!(clock.error_ns(10_000_000_000), 0);
        clock.step(-5);
        assert_eq!(clock.error_ns(10_000_000_000), -5);
    }
}
