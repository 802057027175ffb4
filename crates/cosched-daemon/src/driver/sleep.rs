//! Gangs that use no CPU: they fall asleep, wake, or are dropped. The rule is core's (`agent`); this module applies it and tells the user.

use super::Driver;
use crate::clock::unix_ms;
use cosched_core::{JobId, Reason};
use std::time::Duration;

impl Driver {
    /// A gang gives up its slots until it uses CPU time again, or gets them back.
    pub(super) fn sleeps(&mut self, job: JobId, asleep: bool, reason: Reason) {
        let (what, detail) = match asleep {
            false => ("awake", reason.to_string()),
            true => {
                let time = words(self.config.idle_after);
                ("asleep", format!("{reason} for {time}: Linux schedules it until it uses CPU again"))
            }
        };
        if let Some(live) = self.live.get_mut(&job.0) {
            live.dropped = false;
        }
        self.remember(job.0, |record| record.event(unix_ms(), what, detail));
    }

    /// A gang is dropped: Linux schedules it until a user resumes it.
    pub(super) fn dropped(&mut self, job: JobId, reason: Reason) {
        if let Some(live) = self.live.get_mut(&job.0) {
            live.dropped = true;
        }
        let after = words(self.config.drop_after);
        tracing::info!(id = job.0, "dropped: it used no CPU for {after}");
        let detail =
            format!("{reason} ({after}): Linux schedules it from now on; `cosched resume {job}` gives it slots again");
        self.remember(job.0, |record| record.event(unix_ms(), "dropped", detail));
    }
}

/// A length of time in the configuration's form: `2h`, `10m`, `1.5s`.
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
