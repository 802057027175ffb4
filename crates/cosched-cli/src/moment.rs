//! Points in time on the command line. The same words everywhere; a duration and a time of day lie ahead or back, as the option means.

use cosched_api::parse;
use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Span, Timestamp, ToSpan, Zoned};

/// A time of day that has just passed still means today where a job is to begin.
const JUST_PASSED_MIN: i64 = 1;

/// A point in time ahead, in milliseconds since the Unix epoch: `14:30` is the next one, `30m` in 30 minutes.
///
/// # Errors
/// Says what can be written.
pub(crate) fn ahead(text: &str) -> Result<u64, String> {
    at(text, Direction::Ahead, &Zoned::now())
}

/// The same, back: `14:30` is the last one, `30m` 30 minutes ago.
///
/// # Errors
/// Says what can be written.
pub(crate) fn back(text: &str) -> Result<u64, String> {
    at(text, Direction::Back, &Zoned::now())
}

#[derive(Clone, Copy)]
enum Direction {
    Ahead,
    Back,
}

impl Direction {
    fn example(self) -> &'static str {
        match self {
            Direction::Ahead => "14:30, tomorrow, 2026-12-31T08:00, or 30m for in 30 minutes",
            Direction::Back => "2026-11-01, '2026-11-01 14:30', today, yesterday, 14:30, or 2h for 2 hours ago",
        }
    }

    fn offset(self, time: SignedDuration, now: &Zoned) -> Result<Zoned, jiff::Error> {
        match self {
            Direction::Ahead => now.checked_add(time),
            Direction::Back => now.checked_sub(time),
        }
    }

    /// Today at this time of day, or on the next or the last day.
    fn daily(self, time: Time, now: &Zoned) -> Result<Zoned, jiff::Error> {
        let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone())?;
        let other = match self {
            Direction::Ahead if today.checked_add(JUST_PASSED_MIN.minutes())? <= *now => now.date().tomorrow()?,
            Direction::Back if today > *now => now.date().yesterday()?,
            _ => return Ok(today),
        };
        other.to_datetime(time).to_zoned(now.time_zone().clone())
    }
}

fn at(text: &str, direction: Direction, now: &Zoned) -> Result<u64, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{why}; write {}", direction.example());
    let day = |span: Span| now.checked_add(span).and_then(|day| day.start_of_day());
    let found = match text {
        "now" => Ok(now.clone()),
        "today" => day(0.days()),
        "yesterday" => day(-1.days()),
        "tomorrow" => day(1.days()),
        _ => match written(text, direction, now) {
            Some(found) => found,
            None => return Err(wrong(&format!("`{text}` is not a time"))),
        },
    };
    let ms = found.map_err(|e| wrong(&e))?.timestamp().as_millisecond();
    u64::try_from(ms).map_err(|_| wrong(&"it is before 1970"))
}

/// A duration, a point of the clock of the world, a local date, or a time of day; `None` when it is none of these.
fn written(text: &str, direction: Direction, now: &Zoned) -> Option<Result<Zoned, jiff::Error>> {
    if let Ok(time) = parse::duration(text.strip_prefix('+').unwrap_or(text)) {
        return Some(SignedDuration::try_from(time).and_then(|time| direction.offset(time, now)));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(Ok(at.to_zoned(now.time_zone().clone())));
    }
    if text.contains('-') {
        return Some(text.parse::<DateTime>().and_then(|at| at.to_zoned(now.time_zone().clone())));
    }
    text.parse::<Time>().ok().map(|time| direction.daily(time, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, direction: Direction) -> Result<String, String> {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(1));
        let now = "2026-03-01T11:00:00Z".parse::<Timestamp>().unwrap().to_zoned(zone);
        let ms = i64::try_from(at(text, direction, &now)?).unwrap();
        let found = Timestamp::from_millisecond(ms).unwrap().to_zoned(now.time_zone().clone());
        Ok(found.strftime("%F %T").to_string())
    }

    #[test]
    fn points_in_time() {
        use Direction::{Ahead, Back};
        for (text, direction, found) in [
            ("14:30", Ahead, "2026-03-01 14:30:00"),
            ("14:30", Back, "2026-02-28 14:30:00"),
            ("09:00", Ahead, "2026-03-02 09:00:00"),
            ("09:00", Back, "2026-03-01 09:00:00"),
            ("12:00", Ahead, "2026-03-01 12:00:00"),
            ("12:00", Back, "2026-03-01 12:00:00"),
            ("11:59:30", Ahead, "2026-03-01 11:59:30"),
            ("30m", Ahead, "2026-03-01 12:30:00"),
            ("30m", Back, "2026-03-01 11:30:00"),
            ("1d", Back, "2026-02-28 12:00:00"),
            ("+1.5h", Ahead, "2026-03-01 13:30:00"),
            ("now", Back, "2026-03-01 12:00:00"),
            ("today", Back, "2026-03-01 00:00:00"),
            ("yesterday", Back, "2026-02-28 00:00:00"),
            ("tomorrow", Ahead, "2026-03-02 00:00:00"),
            ("2026-11-01", Back, "2026-11-01 00:00:00"),
            ("2026-12-31T08:00", Ahead, "2026-12-31 08:00:00"),
            ("2026-12-31 08:00:10", Ahead, "2026-12-31 08:00:10"),
            ("2026-03-01T12:00:00Z", Ahead, "2026-03-01 13:00:00"),
        ] {
            assert_eq!(of(text, direction).as_deref(), Ok(found), "{text}");
        }
        for bad in ["25:00", "noon", "soon", "", "30", "7", "2026-13-01", "1960-01-01", "99999999d"] {
            assert!(of(bad, Ahead).unwrap_err().contains("write 14:30"), "{bad}");
            assert!(of(bad, Back).unwrap_err().contains("2h for 2 hours ago"), "{bad}");
        }
    }
}
