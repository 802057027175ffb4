//! Sizes, durations and nearest spellings, for command lines and the configuration alike.

use std::time::Duration;

/// Why a text is no size or duration; `Display` says it and shows valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

/// Bytes: a number with an optional unit. `K`, `M`, `G`, `T` and `KiB` … `TiB` are powers of 1024, as in Slurm;
/// `kB` … `TB` powers of 1000. `512M`, `1.5G`, `4096`.
///
/// # Errors
/// Not a number, negative, an unknown unit, or more than 2^64 - 1 bytes.
pub fn size_bytes(text: &str) -> Result<u64, ParseError> {
    let examples = "a size is for example 512M, 4G or 1.5GiB";
    let (number, unit) = split(text).ok_or_else(|| ParseError(format!("`{text}` is no size; {examples}")))?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(ParseError(format!("`{unit}` in `{text}` is no unit of size; {examples}"))),
    };
    scaled(number, factor).ok_or_else(|| ParseError(format!("`{text}` is too large; {examples}")))
}

/// A duration: a number and its unit, `us`, `ms`, `s`, `m` (or `min`), `h` or `d`. `100ms`, `2s`, `1.5s`.
///
/// # Errors
/// Not a number, negative, no unit or an unknown one, or more than 2^64 - 1 ns.
pub fn duration(text: &str) -> Result<Duration, ParseError> {
    let examples = "a duration is for example 100ms, 2s or 5m";
    let (number, unit) = split(text).ok_or_else(|| ParseError(format!("`{text}` is no duration; {examples}")))?;
    let factor_ns = match unit {
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        "" => return Err(ParseError(format!("`{text}` has no unit; {examples}"))),
        _ => return Err(ParseError(format!("`{unit}` in `{text}` is no unit of time; {examples}"))),
    };
    let nanoseconds = scaled(number, factor_ns);
    nanoseconds.map(Duration::from_nanos).ok_or_else(|| ParseError(format!("`{text}` is too long; {examples}")))
}

/// The candidate that `word` most likely meant, if one is near: at most one mistake in three letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
    let scored = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    scored.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, c)| c)
}

/// The number and the rest; `None` when it does not begin with a plain non-negative decimal number.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let plain = number.starts_with(|c: char| c.is_ascii_digit()) && number.parse::<f64>().is_ok();
    plain.then(|| (number, unit.trim_start()))
}

/// Whole numbers exactly; fractions rounded down.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    // 2^64 itself is representable as f64, 2^64 - 1 is not.
    (value < 18_446_744_073_709_551_616.0).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("4 GiB", 4 << 30),
            ("1.5G", 3 << 29),
            ("10kB", 10_000),
            ("2T", 2 << 40),
        ] {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "1.2.3", "5 apples", "99999999999T", "1e30", ".5G"] {
            let message = size_bytes(text).unwrap_err().to_string();
            assert!(message.contains("for example 512M"), "{text}: {message}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("100ms", Duration::from_millis(100)),
            ("2s", Duration::from_secs(2)),
            ("1.5s", Duration::from_millis(1500)),
            ("250us", Duration::from_micros(250)),
            ("5m", Duration::from_secs(300)),
            ("1h", Duration::from_secs(3600)),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        assert!(duration("100").unwrap_err().to_string().contains("has no unit"));
        for text in ["", "-1s", "1w", "s", "9999999999h"] {
            assert!(duration(text).unwrap_err().to_string().contains("for example 100ms"), "{text}");
        }
    }

    #[test]
    fn nearest_spelling() {
        let classes = ["express", "interactive", "batch", "standby"];
        assert_eq!(nearest("bacth", classes), Some("batch"));
        assert_eq!(nearest("Interactiv", classes), Some("interactive"));
        assert_eq!(nearest("stanby", classes), Some("standby"));
        assert_eq!(nearest("urgent", classes), None);
        assert_eq!(nearest("", classes), None);
    }
}
