//! The driver's heartbeat: to the guard, and to systemd (WatchdogSec), which both end a daemon that has hung for too long.

use super::Driver;
use std::time::Duration;
use tokio::time::Instant;

/// The state of the heartbeat.
pub(super) struct Watchdog {
    /// The guard ends the daemon after this; zero: never.
    limit: Duration,
    /// The longest interval between two heartbeats.
    period: Option<Duration>,
    told: Instant,
}

impl Watchdog {
    pub(super) fn new(limit: Duration) -> Watchdog {
        let by_systemd = sd_notify::watchdog_enabled();
        let limits = [Some(limit).filter(|limit| !limit.is_zero()), by_systemd];
        Watchdog { limit, period: limits.into_iter().flatten().min().map(|limit| limit / 4), told: Instant::now() }
    }

    /// When the driver's loop has to run once although nothing has happened.
    pub(super) fn due(&self) -> Option<Instant> {
        self.period.map(|period| self.told + period)
    }
}

impl Driver {
    /// To be called once in each round of the driver's loop.
    pub(super) fn went_round(&mut self) {
        self.machinery.guard.beat.driver_went_round(self.watchdog.limit.as_nanos() as u64);
        if self.watchdog.due().is_some_and(|due| due <= Instant::now()) {
            self.watchdog.told = Instant::now();
            // Without systemd there is no listener, and that is no error.
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        }
    }

    /// Stops the watchdog for an orderly end, which may take longer.
    pub(super) fn goes_round_no_more(&self) {
        self.machinery.guard.beat.driver_went_round(0);
    }
}
