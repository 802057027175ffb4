//! Sizes and durations as people write them, in every option and file: a number and its unit. A number alone is refused: one
//! program's bytes are another's MiB.

use std::fmt;
use std::time::Duration;

/// Why a text is no size or duration; `Display` says it and shows valid ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// Bytes: a number and its unit, in any case. `K`, `M`, `G`, `T` and `KiB` … `TiB` are powers of 1024, as in Slurm;
/// `kB` … `TB` powers of 1000. `512M`, `1.5G`, `4096B`.
///
/// # Errors
/// Not a number, negative, no unit or an unknown one, or more than 2^64 - 1 bytes.
pub fn size_bytes(text: &str) -> Result<u64, ParseError> {
    let unit = |unit: &str| {
        Some(match unit.to_ascii_lowercase().as_str() {
            "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return None,
        })
    };
    measure(text, unit, ("size", ["B", "K", "M"], "512M, 4G or 1.5GiB"))
}

/// A duration: a number and its unit, `ns`, `us`, `ms`, `s`, `m` (or `min`), `h` or `d`. `100ms`, `2s`, `1.5s`.
///
/// # Errors
/// Not a number, negative, no unit or an unknown one, or more than 2^64 - 1 ns.
pub fn duration(text: &str) -> Result<Duration, ParseError> {
    let unit = |unit: &str| {
        Some(match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        })
    };
    measure(text, unit, ("duration", ["ms", "s", "m"], "100ms, 2s or 5m")).map(Duration::from_nanos)
}

/// Reads a number and its unit; the kind of measure has a name, units that a number alone may have meant, and examples.
fn measure(
    text: &str,
    unit_of: impl Fn(&str) -> Option<u64>,
    (kind, likely, examples): (&str, [&str; 3], &str),
) -> Result<u64, ParseError> {
    let failed = |why: &str| ParseError(format!("{why}; a {kind} is for example {examples}"));
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.contains('.') {
        return Err(failed(&format!("`{text}` is no {kind}")));
    }
    if unit.is_empty() {
        let [one, two, three] = likely.map(|unit| format!("{number}{unit}"));
        return Err(ParseError(format!("`{text}` has no unit; write {one}, {two} or {three}")));
    }
    let factor = unit_of(unit).ok_or_else(|| failed(&format!("`{unit}` in `{text}` is no unit of {kind}")))?;
    scaled(whole, fraction, factor).ok_or_else(|| failed(&format!("`{text}` is too much")))
}

/// The number times the factor, rounded to the nearest. Digits after the eighteenth of a fraction are below any rounding.
fn scaled(whole: &str, fraction: &str, factor: u64) -> Option<u64> {
    let fraction = &fraction[..fraction.len().min(18)];
    let divisor = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let value = (digits.checked_mul(factor.into())?.checked_add(divisor / 2)?) / divisor;
    value.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0B", 0),
            ("4096b", 4096),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("4 GiB", 4 << 30),
            ("1.5G", 3 << 29),
            ("1.5k", 1536),
            ("10kB", 10_000),
            ("8GB", 8_000_000_000),
            ("2T", 2 << 40),
        ] {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "1.2.3", "5 apples", "1GG", "nan", "99999999999T", "1.G", "1e30", ".5G"] {
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
            ("309.727us", Duration::from_nanos(309_727)),
            ("1.4ns", Duration::from_nanos(1)),
            ("250us", Duration::from_micros(250)),
            ("5m", Duration::from_secs(300)),
            ("1h", Duration::from_secs(3600)),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in ["", "-1s", "1w", "s", "9999999999h"] {
            assert!(duration(text).unwrap_err().to_string().contains("for example 100ms"), "{text}");
        }
    }

    #[test]
    fn a_number_alone_is_refused_with_what_it_may_mean() {
        assert_eq!(size_bytes("4096").unwrap_err().to_string(), "`4096` has no unit; write 4096B, 4096K or 4096M");
        assert_eq!(duration("1.5").unwrap_err().to_string(), "`1.5` has no unit; write 1.5ms, 1.5s or 1.5m");
        assert!(duration("0").is_err() && size_bytes("0").is_err());
    }
}
