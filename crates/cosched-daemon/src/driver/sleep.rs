//! Gangs that use no CPU: they fall asleep, wake, or are dropped. The rule is core's (`agent`); here it takes effect and
//! the user is told.

use super::Driver;
use crate::clock::{now, unix_ms};
use cosched_core::{JobId, PlannerInput, Reason};
use std::time::Duration;

impl Driver {
    /// It gives its slots up until it uses CPU again.
    pub(super) fn asleep(&mut self, job: JobId, reason: Reason) {
        let detail =
            format!("{reason} for {}: Linux schedules it until it uses CPU again", words(self.config.idle_after));
        self.sleep_changed(job, PlannerInput::Asleep(job), true, "asleep", detail);
    }

    /// It has slots again.
    pub(super) fn awake(&mut self, job: JobId, why: String) {
        self.sleep_changed(job, PlannerInput::Awake(job), false, "awake", why);
    }

    /// Nobody waits for it any more.
    pub(super) fn dropped(&mut self, job: JobId, reason: Reason) {
        if let Some(live) = self.live.get_mut(&job.0) {
            live.dropped = true;
        }
        self.tell_dropped(job);
        let after = words(self.config.drop_after);
        tracing::info!(id = job.0, "dropped: it used no CPU for {after}");
        let detail =
            format!("{reason} ({after}): Linux schedules it from now on; `cosched resume {job}` gives it slots again");
        self.remember(job.0, |record| record.event(unix_ms(), "dropped", detail));
    }

    fn sleep_changed(&mut self, job: JobId, input: PlannerInput, asleep: bool, what: &str, detail: String) {
        if self.is_own(job.0)
            && let Err(e) = self.planner.handle(now(), input)
        {
            tracing::error!("the planner refused a job's sleep: {e}");
            return;
        }
        self.tell_sleep(job, asleep);
        if let Some(live) = self.live.get_mut(&job.0) {
            live.asleep = asleep;
            live.dropped = false;
        }
        self.remember(job.0, |record| record.event(unix_ms(), what, detail));
    }
}

/// A length of time as the configuration has it: `2h`, `10m`, `1.5s`.
fn words(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        _ if ms > 0 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms > 0 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ => format!("{}s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words() {
        let of = |ms| words(Duration::from_millis(ms));
        assert_eq!([of(7_200_000), of(600_000), of(90_000), of(1500)], ["2h", "10m", "90s", "1.5s"]);
    }
}
