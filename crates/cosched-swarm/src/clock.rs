//! A node's clocks: a steady clock and a wall clock, which drift together; only the wall clock can be set.
//!
//! Linux slews both clocks alike (`CLOCK_MONOTONIC` follows the rate that NTP sets), and a step moves the wall clock
//! alone. While the time is synchronised, the rate is adjusted from time to time so that the error returns to zero.

use cosched_cluster::Moment;
use cosched_core::Time;

/// True wall-clock time at which the world begins, in nanoseconds since the Unix epoch.
pub const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// A node's clocks. Unless stated otherwise, times are true times, in nanoseconds since the world began.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// The true time from which the rate applies.
    since: u64,
    /// The steady clock at that time.
    steady: u64,
    /// How fast it runs, in parts per billion above the true rate.
    fast_ppb: i64,
    /// How far the wall clock is ahead of the steady one.
    ahead: i64,
}

impl HostClock {
    /// A correct wall clock; the steady clock shows `steady` at the beginning.
    pub fn new(steady: u64) -> HostClock {
        HostClock { since: 0, steady, fast_ppb: 0, ahead: (EPOCH_NS - steady) as i64 }
    }

    fn steady_at(&self, now: u64) -> u64 {
        let dt = i128::from(now.saturating_sub(self.since));
        let passed = dt + dt * i128::from(self.fast_ppb) / 1_000_000_000;
        self.steady + passed as u64
    }

    /// The readings of both clocks.
    pub fn at(&self, now: u64) -> Moment {
        let steady = self.steady_at(now);
        Moment { steady: Time(steady), wall: Time(steady.saturating_add_signed(self.ahead)) }
    }

    /// The error of the wall clock, in nanoseconds; positive when it is ahead.
    pub fn error_ns(&self, now: u64) -> i64 {
        self.at(now).wall.0 as i64 - (EPOCH_NS + now) as i64
    }

    /// From now on the clocks run `fast_ppb` parts per billion too fast.
    pub fn set_rate(&mut self, now: u64, fast_ppb: i64) {
        (self.steady, self.since, self.fast_ppb) = (self.steady_at(now), now, fast_ppb);
    }

    /// Steps the wall clock by `ns` nanoseconds.
    pub fn step(&mut self, ns: i64) {
        self.ahead += ns;
    }

    /// Sets the wall clock to the true time.
    pub fn set_right(&mut self, now: u64) {
        self.ahead -= self.error_ns(now);
    }

    /// The earliest true time at which the steady clock shows `steady`.
    pub fn when_steady(&self, steady: Time) -> u64 {
        let wanted = i128::from(steady.0.saturating_sub(self.steady));
        let rate = 1_000_000_000 + i128::from(self.fast_ppb);
        let mut at = self.since + (wanted * 1_000_000_000 / rate) as u64;
        while self.steady_at(at) < steady.0 {
            at += 1;
        }
        at
    }

    /// The earliest true time at which the wall clock shows `wall`, unless it is set.
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
