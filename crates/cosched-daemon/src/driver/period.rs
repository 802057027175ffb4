//! Working hours and off-hours: each has its own shares of the classes.

use super::Driver;
use crate::calendar::Calendar;
use crate::config::Config;
use cosched_api::Period;
use cosched_core::Shares;
use std::time::Duration;
use tokio::time::Instant;

/// The present period, and when to check it again.
#[derive(Debug)]
pub(super) struct PeriodState {
    period: Period,
    due: Instant,
}

impl PeriodState {
    pub(super) fn new(calendar: &Calendar) -> PeriodState {
        PeriodState { period: calendar.now().0, due: Instant::now() }
    }
}

/// The shares in a period.
pub(super) fn shares(config: &Config, period: &PeriodState) -> Shares {
    match period.period {
        Period::Working => config.shares,
        Period::Off => config.off_hours,
    }
}

impl Driver {
    /// When to check the calendar, if there is one.
    pub(super) fn period_due(&self) -> Option<Instant> {
        (!self.config.working_hours.is_empty()).then_some(self.period.due)
    }

    /// For display; `None` where the period never changes.
    pub(super) fn view_period(&self) -> Option<Period> {
        (!self.config.working_hours.is_empty()).then_some(self.period.period)
    }

    /// Checks the calendar when a minute has begun, or the clock was set.
    pub(super) fn look_at_calendar(&mut self, at_once: bool) {
        if self.period_due().is_none_or(|due| due > Instant::now() && !at_once) {
            return;
        }
        let (period, rest_s) = self.config.working_hours.now();
        self.period.due = Instant::now() + Duration::from_secs(rest_s);
        if period == self.period.period {
            return;
        }
        self.period.period = period;
        tracing::info!(?period, "other shares of the classes apply from now on");
        self.tell_period(period);
    }
}
