//! The driver's sign of life: to the guard, and to systemd (WatchdogSec), which both end a daemon that has hung for too long.

use super::Driver;
use std::time::Duration;
use tokio::time::Instant;

/// What the driver remembers of it.
pub(super) struct Watchdog {
    /// The guard ends the daemon after this; zero: never.
    limit: Duration,
    /// How often somebody has to be told, at least.
    period: Option<Duration>,
    told: Instant,
}

impl Watchdog {
    pub(super) fn new(limit: Duration) -> Watchdog {
        let by_systemd = sd_notify::watchdog_enabled();
        let limits = [Some(limit).filter(|limit| !limit.is_zero()), by_systemd];
        Watchdog { limit, period: limits.into_iter().flatten().min().map(|limit| limit / 4), told: Instant::now() }
    }

    /// When the driver has to go round, although nothing happens.
    pub(super) fn due(&self) -> Option<Instant> {
        self.period.map(|period| self.told + period)
    }
}

impl Driver {
    /// Once in each round.
    pub(super) fn went_round(&mut self) {
        self.machinery.guard.beat().driver_went_round(self.watchdog.limit.as_nanos() as u64);
        if self.watchdog.due().is_some_and(|due| due <= Instant::now()) {
            self.watchdog.told = Instant::now();
            // Without systemd nobody listens, and that is fine.
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        }
    }

    /// It ends in order, which may take its time.
    pub(super) fn goes_round_no_more(&self) {
        self.machinery.guard.beat().driver_went_round(0);
    }
}
