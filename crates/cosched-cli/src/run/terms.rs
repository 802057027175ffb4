//! When a job may start and its limits: `--time`, `--grace`, `--begin`, `--after`, `--mem-limit`.

use clap::Args;
use cosched_api::{After, JobRequest, parse};
use jiff::civil::{DateTime, Time};
use jiff::{Timestamp, ToSpan, Zoned};
use std::time::Duration;

/// A time of day that has only just passed means now, not tomorrow.
const JUST_PASSED_MIN: i64 = 1;

#[derive(Args, Debug)]
pub(crate) struct Terms {
    /// The longest run time, as 2h or 90s: then TERM, the grace time, and KILL. Time while suspended does not count
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub(crate) time: Option<Duration>,

    /// With --time: how long the job has to end after TERM [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "time")]
    pub(crate) grace: Option<Duration>,

    /// Start no earlier than this: 14:30, 2026-12-31T08:00 (local time), or in 30m
    #[arg(long, value_name = "TIME", value_parser = begin)]
    pub(crate) begin: Option<u64>,

    /// Start when these jobs have ended: 7, 7:any, or 7:ok (only if its exit code is 0; otherwise the job is ended)
    #[arg(long, value_name = "JOB[:ok|any],…", value_delimiter = ',', value_parser = after)]
    pub(crate) after: Vec<After>,

    /// The most memory that the job may use on a node, as 4G; the kernel kills what exceeds it
    #[arg(long, value_name = "SIZE", value_parser = parse::size_bytes)]
    pub(crate) mem_limit: Option<u64>,
}

impl Terms {
    /// Adds the options to the daemon's request.
    pub(super) fn add_to(&self, request: &mut JobRequest) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        request.time_ms_max = self.time.map(ms);
        request.grace_ms = self.grace.map(ms);
        request.begin_unix_ms = self.begin;
        request.after.clone_from(&self.after);
        request.mem_bytes_max = self.mem_limit;
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse::duration(text).map_err(|e| e.to_string())
}

fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("give a time above 0, as 2h".to_owned()),
        time => Ok(time),
    }
}

fn after(text: &str) -> Result<After, String> {
    let (job, ok) = match text.split_once(':') {
        None | Some((_, "any")) => (text.trim_end_matches(":any"), false),
        Some((job, "ok")) => (job, true),
        Some((_, rule)) => return Err(format!("`{rule}` is not a rule: write JOB:ok or JOB:any")),
    };
    let job = job
        .parse()
        .map_err(|_| format!("`{job}` is not a job's number; `cosched run -d` prints it, `cosched ps` lists them"))?;
    Ok(After { job, ok })
}

/// A time as milliseconds since 1970.
fn begin(text: &str) -> Result<u64, String> {
    begin_at(text, &Zoned::now())
}

fn begin_at(text: &str, now: &Zoned) -> Result<u64, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{why}; write 14:30, 2026-12-31T08:00, or 30m for in 30 minutes");
    let at: Timestamp = if let Ok(ahead) = parse::duration(text.strip_prefix('+').unwrap_or(text)) {
        let ahead = jiff::SignedDuration::try_from(ahead).map_err(|e| wrong(&e))?;
        now.timestamp().checked_add(ahead).map_err(|e| wrong(&e))?
    } else if let Ok(at) = text.parse::<Timestamp>() {
        at
    } else if text.contains('-') {
        let at: DateTime = text.parse().map_err(|e| wrong(&e))?;
        at.to_zoned(now.time_zone().clone()).map_err(|e| wrong(&e))?.timestamp()
    } else {
        let time: Time = text.parse().map_err(|_| wrong(&format!("`{text}` is not a time")))?;
        next(time, now).map_err(|e| wrong(&e))?
    };
    u64::try_from(at.as_millisecond()).map_err(|_| wrong(&"it is before 1970"))
}

/// Today at this time, or tomorrow if that has passed.
fn next(time: Time, now: &Zoned) -> Result<Timestamp, jiff::Error> {
    let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone())?;
    if today.checked_add(JUST_PASSED_MIN.minutes())? > *now {
        return Ok(today.timestamp());
    }
    Ok(now.date().tomorrow()?.to_datetime(time).to_zoned(now.time_zone().clone())?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings() {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(1));
        let now = "2026-03-01T11:00:00Z".parse::<Timestamp>().unwrap().to_zoned(zone);
        let of = |text: &str| {
            let ms = begin_at(text, &now).map(|ms| i64::try_from(ms).unwrap())?;
            Ok::<_, String>(
                Timestamp::from_millisecond(ms)
                    .unwrap()
                    .to_zoned(now.time_zone().clone())
                    .strftime("%F %T")
                    .to_string(),
            )
        };
        for (text, at) in [
            ("14:30", "2026-03-01 14:30:00"),
            ("09:00", "2026-03-02 09:00:00"),
            ("12:00", "2026-03-01 12:00:00"),
            ("11:59:30", "2026-03-01 11:59:30"),
            ("30m", "2026-03-01 12:30:00"),
            ("+1.5h", "2026-03-01 13:30:00"),
            ("2026-12-31T08:00", "2026-12-31 08:00:00"),
            ("2026-12-31 08:00:10", "2026-12-31 08:00:10"),
            ("2026-03-01T12:00:00Z", "2026-03-01 13:00:00"),
        ] {
            assert_eq!(of(text).as_deref(), Ok(at), "{text}");
        }
        for bad in ["25:00", "noon", "", "30", "2026-13-01", "1960-01-01"] {
            assert!(of(bad).unwrap_err().contains("write 14:30"), "{bad}");
        }
    }

    #[test]
    fn jobs_that_come_before() {
        assert_eq!(after("7"), Ok(After { job: 7, ok: false }));
        assert_eq!((after("7:any"), after("7:ok")), (Ok(After { job: 7, ok: false }), Ok(After { job: 7, ok: true })));
        assert!(after("7:fine").unwrap_err().contains("JOB:ok"));
        assert!(after("night").unwrap_err().contains("number"));
        assert!(positive("0s").is_err() && positive("2h").is_ok());
    }
}
