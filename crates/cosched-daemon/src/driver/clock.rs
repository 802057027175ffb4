//! The wall clock, from which the slots are computed: whether it is synchronised, whether it was set, and the consequences.
//!
//! On one machine no other clock matters: setting the clock moves the slots, the slot thread computes its next boundary again, and every job
//! continues. Where synchronisation is required (`require_synchronised_clock`), gangs have no slots while the clock is not synchronised, and for a
//! moment after it was set: Linux schedules them.

use super::Driver;
use crate::clock::unix_ms;
use crate::metrics::Snapshot;
use crate::pollable::pollable;
use cosched_linux::clock::ClockWatch;
use cosched_linux::observe::{ClockError, clock_error};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// How often the kernel's estimate of the clock's error is read.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// After the clock was set, gangs have no slots for this time, where it has to be synchronised.
const STEP_REST: Duration = Duration::from_secs(5);
/// The limit on the estimated error as a part of a slot, where the clock has to be synchronised.
const ERROR_SHARE_MAX: f64 = 0.1;

/// The state of the clock.
#[derive(Debug)]
pub(super) struct ClockState {
    watch: Option<(ClockWatch, AsyncFd<OwnedFd>)>,
    error: Option<ClockError>,
    required: bool,
    steps: u64,
    /// The last step: its size in ms, the time that the clock showed then, and when that was.
    last_step: Option<(i64, u64, Instant)>,
    due: Instant,
    holds: Option<String>,
}

impl ClockState {
    pub(super) fn new(required: bool) -> ClockState {
        let watch = ClockWatch::new().and_then(|watch| Ok((pollable(&watch)?, watch)));
        let watch = watch.inspect_err(|e| tracing::warn!("steps of the clock will be noticed late: {e}"));
        ClockState {
            watch: watch.ok().map(|(fd, watch)| (watch, fd)),
            error: None,
            required,
            steps: 0,
            last_step: None,
            due: Instant::now(),
            holds: None,
        }
    }

    /// Resolves when the clock was set, or a check is due.
    pub(super) async fn told(&self) {
        let set = async {
            match &self.watch {
                Some((_, fd)) => drop(fd.readable().await.map(|mut ready| ready.clear_ready())),
                None => std::future::pending().await,
            }
        };
        tokio::select! { () = set => (), () = tokio::time::sleep_until(self.due) => () }
    }

    /// Checks the clock; the size of the step in nanoseconds, if it was set.
    fn look(&mut self, slot_length_ns: u64) -> Option<i64> {
        let step_ns = self.watch.as_mut().and_then(|(watch, _)| watch.look());
        let before = std::mem::replace(&mut self.error, clock_error());
        if let Some(ns) = step_ns {
            self.steps += 1;
            self.last_step = Some((ns / 1_000_000, unix_ms(), Instant::now()));
            tracing::warn!(by_ms = ns / 1_000_000, "the wall clock was set; the slots move with it");
        }
        let synchronised = |error: Option<ClockError>| error.map(|error| error.synchronised);
        if synchronised(before) != synchronised(self.error) {
            tracing::info!(synchronised = ?synchronised(self.error), "the wall clock");
        }
        self.holds = self.reason_to_hold(slot_length_ns);
        self.due = Instant::now() + LOOK_PERIOD;
        if let Some((.., at)) = self.last_step.filter(|_| self.holds.is_some()) {
            self.due = self.due.min((at + STEP_REST).max(Instant::now() + STEP_REST / 10));
        }
        step_ns
    }

    fn reason_to_hold(&self, slot_length_ns: u64) -> Option<String> {
        if !self.required {
            return None;
        }
        if self.last_step.is_some_and(|(.., at)| at.elapsed() < STEP_REST) {
            return Some("the wall clock was set a moment ago".to_owned());
        }
        not_good_enough(self.error, slot_length_ns)
    }

    /// Why gangs have no slots now; `None` when they have.
    pub(super) fn holds(&self) -> Option<&str> {
        self.holds.as_deref()
    }

    /// For `cosched status`.
    pub(super) fn view(&self) -> cosched_api::Clock {
        cosched_api::Clock {
            synchronised: self.error.map(|error| error.synchronised),
            error_estimated_us: self.error.map(|error| error.error_ns_estimated / 1000),
            error_us_max: self.error.map(|error| error.error_ns_max / 1000),
            required: self.required,
            holds_slots: self.holds.clone(),
            steps: self.steps,
            last_step_ms: self.last_step.map(|(ms, ..)| ms),
            last_step_unix_ms: self.last_step.map(|(_, unix_ms, _)| unix_ms),
        }
    }

    /// For Prometheus.
    pub(super) fn metrics(&self, all: &mut Snapshot) {
        let flag = |yes: bool| f64::from(u8::from(yes));
        let error = self.error;
        let synchronised = error.map(|error| flag(error.synchronised));
        all.gauge("clock_synchronised", "Whether the kernel says that the wall clock is synchronised", synchronised);
        let estimated_s = error.map(|error| error.error_ns_estimated as f64 / 1e9);
        all.gauge("clock_error_estimated_seconds", "Its estimated error", estimated_s);
        let max_s = error.map(|error| error.error_ns_max as f64 / 1e9);
        all.gauge("clock_error_max_seconds", "The bound of its error", max_s);
        all.count("clock_steps", "How often it was set since the daemon started", self.steps);
        let held = flag(self.holds.is_some());
        all.gauge("clock_holds_slots", "Whether gangs have no slots because of the clock", held);
    }
}

/// Why a clock is not good enough for slots of this length, where it has to be synchronised.
pub(crate) fn not_good_enough(error: Option<ClockError>, slot_length_ns: u64) -> Option<String> {
    match error {
        None => Some("the kernel does not say whether the wall clock is synchronised".to_owned()),
        Some(error) if !error.synchronised => Some("the wall clock is not synchronised".to_owned()),
        Some(error) if error.error_ns_estimated as f64 > ERROR_SHARE_MAX * slot_length_ns as f64 => {
            let ms = error.error_ns_estimated as f64 / 1e6;
            Some(format!("the wall clock may be wrong by {ms:.1} ms, more than a tenth of a slot"))
        }
        Some(_) => None,
    }
}

impl Driver {
    /// The clock was set, or a check is due.
    pub(super) fn on_clock(&mut self) {
        let held_before = self.clock.holds().map(str::to_owned);
        let stepped = self.clock.look(self.plan.slot_length_ns).is_some();
        if stepped {
            self.look_at_calendar(true);
        }
        self.tell_clock();
        if held_before.as_deref() != self.clock.holds() {
            match self.clock.holds() {
                Some(why) => tracing::warn!(why, "gangs have no slots: Linux schedules them"),
                None => tracing::info!("gangs have slots again: the wall clock is synchronised"),
            }
            self.settle(true);
        } else if stepped {
            self.touch_status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT_NS: u64 = 100_000_000;

    fn error(synchronised: bool, error_ns_estimated: u64) -> Option<ClockError> {
        Some(ClockError { synchronised, error_ns_max: 1_000_000, error_ns_estimated })
    }

    #[test]
    fn a_clock_is_good_for_slots_when_it_is_right_to_a_tenth_of_one() {
        assert_eq!(not_good_enough(error(true, SLOT_NS / 10), SLOT_NS), None);
        let why = not_good_enough(error(true, SLOT_NS / 10 + 1), SLOT_NS).unwrap();
        assert!(why.contains("10.0 ms, more than a tenth of a slot"), "{why}");
        assert!(not_good_enough(error(true, SLOT_NS / 10), SLOT_NS / 2).is_some(), "shorter slots ask for more");
        assert!(not_good_enough(error(false, 0), SLOT_NS).unwrap().contains("not synchronised"));
        assert!(not_good_enough(None, SLOT_NS).unwrap().contains("does not say"));
    }

    #[test]
    fn a_clock_holds_slots_up_only_where_it_has_to_be_right_and_for_a_moment_after_it_was_set() {
        let state = |required, error, last_step| ClockState {
            watch: None,
            error,
            required,
            steps: 0,
            last_step,
            due: Instant::now(),
            holds: None,
        };
        let holds = |state: ClockState| state.reason_to_hold(SLOT_NS);
        let just_set = Some((5, 0, Instant::now()));
        assert_eq!(holds(state(false, error(false, 0), just_set)), None, "nobody else's clock matters");
        assert_eq!(holds(state(true, error(true, 0), None)), None);
        assert!(holds(state(true, error(false, 0), None)).is_some());
        assert!(holds(state(true, error(true, 0), just_set)).is_some_and(|why| why.contains("set a moment ago")));
        let before = Some((5, 0, Instant::now() - STEP_REST));
        assert_eq!(holds(state(true, error(true, 0), before)), None);
    }
}
