//! Working hours, in which interactive jobs are more urgent than batch jobs.
//!
//! Source: LLNL, "Gang Scheduler Design": interactive jobs "require rapid response time and very good throughput during
//! working hours. The response time and throughput may be reduced at other times"; batch jobs "should receive very good
//! throughput outside of working hours". The hours are those of the machine's time zone.

use cosched_api::Period;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY_MIN: u16 = 24 * 60;

/// Hours on certain days of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hours {
    /// Starting with Monday.
    days: [bool; 7],
    from_min: u16,
    /// If not later than `from_min`: on the next day.
    to_min: u16,
}

/// The working hours. If empty, all hours are working hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calendar(Vec<Hours>);

impl Calendar {
    /// Parses hours such as `Mon-Fri 08:00-18:00`, `Sat 9:00-12:00` or, for every day, `22:00-06:00`.
    ///
    /// # Errors
    /// Which text is wrong, and why.
    pub(crate) fn parse(texts: &[String]) -> Result<Calendar, String> {
        texts
            .iter()
            .map(|text| hours(text).map_err(|why| format!("`{text}`: {why}")))
            .collect::<Result<_, _>>()
            .map(Calendar)
    }

    /// Whether the period never changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The period at a minute of a day; days are counted from Monday.
    pub(crate) fn period(&self, day: usize, minute: u16) -> Period {
        let works = |hours: &Hours| {
            let over_midnight = hours.to_min <= hours.from_min;
            let to_min = if over_midnight { DAY_MIN } else { hours.to_min };
            let today = hours.days[day % 7] && (hours.from_min..to_min).contains(&minute);
            today || (over_midnight && hours.days[(day + 6) % 7] && minute < hours.to_min)
        };
        if self.0.is_empty() || self.0.iter().any(works) { Period::Working } else { Period::Off }
    }

    /// The period now, and the seconds until the next minute.
    pub(crate) fn now(&self) -> (Period, u64) {
        let now = jiff::Zoned::now();
        let day = now.weekday().to_monday_zero_offset() as usize;
        let minute = now.hour() as u16 * 60 + now.minute() as u16;
        (self.period(day, minute), 60 - now.second().clamp(0, 59) as u64)
    }
}

fn hours(text: &str) -> Result<Hours, String> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let (days, times) = match words[..] {
        [times] if times.starts_with(|c: char| c.is_ascii_digit()) => ([true; 7], times),
        [days, times] => (self::days(days)?, times),
        _ => return Err("write days and hours, as in \"Mon-Fri 08:00-18:00\"".to_owned()),
    };
    let (from, to) = times.split_once('-').ok_or("hours are written as 08:00-18:00")?;
    Ok(Hours { days, from_min: minute(from)?, to_min: minute(to)? })
}

fn days(text: &str) -> Result<[bool; 7], String> {
    let place = |name: &str| {
        let found = DAYS.iter().position(|day| *day == name);
        found.ok_or_else(|| format!("`{name}` is not a day; days are Mon, Tue, Wed, Thu, Fri, Sat, Sun"))
    };
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (place(first)?, place(last)?);
        // Ranges may wrap around the end of the week: Sat-Mon.
        (0..=(last + 7 - first) % 7).for_each(|step| days[(first + step) % 7] = true);
    }
    Ok(days)
}

fn minute(text: &str) -> Result<u16, String> {
    let parsed =
        text.split_once(':').and_then(|(hour, minute)| Some((hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?)));
    match parsed {
        Some((hour @ 0..=23, minute @ 0..=59)) => Ok(hour * 60 + minute),
        Some((24, 0)) => Ok(DAY_MIN),
        _ => Err(format!("`{text}` is not a time of day; write 08:00")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(texts: &[&str]) -> Calendar {
        Calendar::parse(&texts.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn hours_of_days_over_midnight_and_the_end_of_the_week() {
        let office = calendar(&["Mon-Fri 08:00-18:00", "Sat 9:00-12:00"]);
        let at = |day, hour: u16, minute| office.period(day, hour * 60 + minute);
        assert_eq!([at(0, 8, 0), at(4, 17, 59), at(5, 9, 0)], [Period::Working; 3]);
        assert_eq!([at(0, 7, 59), at(4, 18, 0), at(5, 12, 0), at(6, 10, 0)], [Period::Off; 4]);
        let night = calendar(&["Sun,Fri 22:00-06:00"]);
        let at = |day, hour: u16| night.period(day, hour * 60);
        assert_eq!([at(6, 23), at(0, 5), at(4, 22), at(5, 0)], [Period::Working; 4]);
        assert_eq!([at(6, 5), at(0, 22), at(0, 6), at(5, 6)], [Period::Off; 4]);
        assert_eq!(calendar(&["Sat-Mon 0:00-24:00"]).period(0, 1439), Period::Working);
        assert_eq!(calendar(&["Sat-Mon 0:00-24:00"]).period(1, 0), Period::Off);
        assert_eq!(calendar(&["0:00-24:00"]).period(3, 700), Period::Working);
        assert_eq!(Calendar::default().period(6, 0), Period::Working, "no hours: always");
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [
            ("Mon-Fri", "08:00-18:00"),
            ("Mo 8:00-9:00", "is not a day"),
            ("Mon 25:00-26:00", "not a time of day"),
            ("Mon 8-9", "not a time of day"),
            ("Mon Fri 8:00-9:00", "write days and hours"),
            ("", "write days and hours"),
        ] {
            let error = Calendar::parse(&[text.to_owned()]).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
