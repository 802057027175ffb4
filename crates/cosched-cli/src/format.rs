//! Formats numbers for users.

use cosched_api::Job;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The text if known, else a dash.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// A measured value of a job, for a table: with a plus if other nodes use more of it, a dash if only they do.
pub(crate) fn measured(job: &Job, text: Option<String>) -> String {
    match job.use_of_nodes.as_deref() {
        None => or_dash(text),
        Some([]) => or_dash(None),
        Some(_) => or_dash(text.map(|text| text + "+")),
    }
}

/// Bytes in powers of 1024, three digits: `512K`, `1.5G`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "K", "M", "G", "T", "P", "E"];
    let (mut value, mut unit) = (bytes as f64, 0);
    // 999.5 and more would print four digits.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit > 0 && value < 9.95 { format!("{value:.1}{}", units[unit]) } else { format!("{value:.0}{}", units[unit]) }
}

/// A duration in its two largest units: `340ms`, `12.3s`, `5m12s`, `3h05m`, `2d04h`.
pub(crate) fn duration_ms(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{}.{}s", seconds, ms % 1000 / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A length of a slot: `100ms`, `2s`.
pub(crate) fn slot_ms(ms: u64) -> String {
    if ms >= 1000 && ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

/// A latency: `870ns`, `56.2us`, `1.4ms`.
pub(crate) fn latency_us(us: f64) -> String {
    match us {
        _ if us < 1.0 => format!("{:.0}ns", us * 1e3),
        _ if us < 1e3 => format!("{us:.1}us"),
        _ if us < 1e6 => format!("{:.1}ms", us / 1e3),
        _ => format!("{:.1}s", us / 1e6),
    }
}

/// A whole number in groups of three digits: `77,222`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in seconds in its two largest units, as [`duration_ms`].
pub(crate) fn duration_s(seconds: f64) -> String {
    duration_ms((seconds.max(0.0) * 1e3).round() as u64)
}

/// A number with four digits, without an exponent unless it is very large or small.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || !size.is_finite() => format!("{value}"),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.3e}"),
        size => format!("{value:.*}", (3 - size.log10().floor() as i32).clamp(0, 6) as usize),
    }
}

/// A fraction as a percentage.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

/// The same with tenths, if not 0.
pub(crate) fn exact_percent(part: f64) -> String {
    format!("{}%", (part * 1000.0).round() / 10.0)
}

/// A moment in the local time zone: `2026-03-01 17:04:05.120`.
pub(crate) fn moment(unix_ms: u64) -> String {
    moment_in(unix_ms, &TimeZone::system())
}

/// A moment in the local time zone, without fractions: `2026-03-01 17:04:05`.
pub(crate) fn second(unix_ms: u64) -> String {
    written(unix_ms, &TimeZone::system(), "%Y-%m-%d %H:%M:%S")
}

fn moment_in(unix_ms: u64, zone: &TimeZone) -> String {
    written(unix_ms, zone, "%Y-%m-%d %H:%M:%S.%3f")
}

fn written(unix_ms: u64, zone: &TimeZone, form: &str) -> String {
    match i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
        Some(timestamp) => timestamp.to_zoned(zone.clone()).strftime(form).to_string(),
        None => format!("{unix_ms}ms since 1970"),
    }
}

/// A signal's name: `SIGHUP`, and `SIG42` where it has none.
pub(crate) fn signal(number: i32) -> String {
    let name = nix::sys::signal::Signal::try_from(number).map(|signal| signal.as_str().to_owned());
    name.unwrap_or_else(|_| format!("SIG{number}"))
}

/// The state of a node that has left: `gone 3m12s`.
pub(crate) fn gone(since_unix_ms: Option<u64>, now_unix_ms: u64) -> String {
    let ago = |since| format!("gone {}", duration_ms(now_unix_ms.saturating_sub(since)));
    since_unix_ms.map_or_else(|| "gone".to_owned(), ago)
}

/// Milliseconds since 1970, now.
pub(crate) fn now_unix_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// Whether a shell, and splitting at blanks, leave a text as it is.
pub(crate) fn is_bare(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./:,@%+=-".contains(&byte))
}

/// Words quoted for a shell.
pub(crate) fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+@%".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    // The daemon hides commands from other users (`private_data`).
    if words.is_empty() {
        return "-".to_owned();
    }
    crate::out::plain(&words.iter().map(quote).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases =
            [(0, "0B"), (999, "999B"), (1000, "1.0K"), (512 << 10, "512K"), (3 << 29, "1.5G"), (u64::MAX, "16E")];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn numbers() {
        assert_eq!((grouped(0), grouped(999), grouped(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
        let cases = [(0.0, "0"), (3.3447, "3.345"), (58.0, "58.00"), (15_734.4, "15734"), (0.0123, "0.01230")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!((short(1.5e-5), short(f64::NAN), short(2.5e9)), ("1.500e-5".into(), "NaN".into(), "2.500e9".into()));
    }

    #[test]
    fn times() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (12_345, "12.3s"),
            (59_999, "59.9s"),
            (312_000, "5m12s"),
            (11_100_000, "3h05m"),
            (187_200_000, "2d04h"),
        ] {
            assert_eq!(duration_ms(ms), text);
        }
        assert_eq!((slot_ms(100), slot_ms(2000), slot_ms(1500)), ("100ms".into(), "2s".into(), "1500ms".into()));
        assert_eq!(
            (latency_us(0.87), latency_us(56.21), latency_us(1390.0)),
            ("870ns".into(), "56.2us".into(), "1.4ms".into())
        );
        assert_eq!(moment_in(1_700_000_000_123, &TimeZone::UTC), "2023-11-14 22:13:20.123");
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(command_line(&words(&["mpirun", "-n", "2", "./a.out"])), "mpirun -n 2 ./a.out");
        assert_eq!(command_line(&words(&["sh", "-c", "echo 'a b'", ""])), "sh -c 'echo '\\''a b'\\''' ''");
        assert_eq!(command_line(&words(&["a\nb"])), "'a\\nb'");
    }
}
