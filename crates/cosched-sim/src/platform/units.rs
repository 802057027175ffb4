//! Speeds, bandwidths and times as platforms have them: `1Gf`, `125MBps`, `50us`.

use super::PlatformError;

/// The largest values: beyond them is surely a wrong unit.
const FLOPS_MAX: f64 = 1e18;
const BYTES_PER_S_MAX: f64 = 1e15;
const LATENCY_S_MAX: f64 = 3600.0;

/// flop/s, above 0; without a unit it is flop/s.
pub(super) fn flops(text: &str) -> Result<f64, PlatformError> {
    let speed = with_unit(text, &[("f", 1.0), ("flops", 1.0)], true, "speed, as 1Gf")?;
    within(text, speed, f64::MIN_POSITIVE, FLOPS_MAX, "a speed is above 0, and at most 1e18 flop/s")
}

/// bytes/s, above 0; without a unit it is bytes/s.
pub(super) fn bytes_per_s(text: &str) -> Result<f64, PlatformError> {
    let rate = with_unit(text, &[("Bps", 1.0), ("bps", 0.125)], true, "bandwidth, as 125MBps or 1Gbps")?;
    within(text, rate, 1.0, BYTES_PER_S_MAX, "a bandwidth is 1 to 1e15 bytes/s")
}

/// Seconds, not negative; without a unit it is seconds.
pub(super) fn seconds(text: &str) -> Result<f64, PlatformError> {
    let units = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12), ("m", 60.0)];
    let time = with_unit(text, &units, false, "latency, as 50us")?;
    within(text, time, 0.0, LATENCY_S_MAX, "a latency is 0 to 1 hour")
}

fn within(text: &str, value: f64, least: f64, most: f64, why: &str) -> Result<f64, PlatformError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(PlatformError::new(format!("`{}` is out of range", shown(text)), why, "check the number and its unit"))
}

/// A number and a unit, which may have a prefix: k, M, G, T, P, Ki, Mi, Gi, Ti.
fn with_unit(text: &str, units: &[(&str, f64)], prefixed: bool, kind: &str) -> Result<f64, PlatformError> {
    let text = text.trim();
    let failed = || {
        PlatformError::new(
            format!("`{}` is no {kind}", shown(text)),
            "it is a number with a unit",
            "write it as in the example",
        )
    };
    // An e belongs to the number if a digit or a sign follows.
    let is_number = |(at, c): (usize, char)| {
        let next = text[at + c.len_utf8()..].chars().next();
        let exponent =
            c.eq_ignore_ascii_case(&'e') && next.is_some_and(|next| next.is_ascii_digit() || "+-".contains(next));
        c.is_ascii_digit() || ".+-".contains(c) || exponent
    };
    let end = text.char_indices().find(|at| !is_number(*at)).map_or(text.len(), |(at, _)| at);
    let number: f64 = text[..end].parse().map_err(|_| failed())?;
    let unit = text[end..].trim_start();
    if unit.is_empty() {
        return Ok(number);
    }
    let prefixes: &[(&str, f64)] = &[
        ("", 1.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
    ];
    let factor = units.iter().find_map(|(word, unit_is)| {
        let prefix = unit.strip_suffix(word)?;
        let found = prefixes.iter().find(|(name, _)| *name == prefix && (prefixed || name.is_empty()))?;
        Some(found.1 * unit_is)
    });
    factor.map(|factor| number * factor).ok_or_else(failed)
}

/// A text of the file for a message: bounded, on one line.
pub(super) fn shown(text: &str) -> String {
    let safe = |c: char| if c.is_control() { '?' } else { c };
    let mut short: String = text.chars().take(40).map(safe).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_platforms() {
        let speeds = ["98.095Mf", "1e9", "2Gf", "1.5e3kf", "1Tflops"].map(|text| flops(text).unwrap());
        assert_eq!(speeds, [98.095e6, 1e9, 2e9, 1.5e6, 1e12]);
        let rates = ["125MBps", "1Gbps", "2KiBps", "10"].map(|text| bytes_per_s(text).unwrap());
        assert_eq!(rates, [125e6, 125e6, 2048.0, 10.0]);
        let times = ["50us", "0", "1ms", "0.5s", "59.904us"].map(|text| seconds(text).unwrap());
        assert_eq!(times, [50.0 * 1e-6, 0.0, 1e-3, 0.5, 59.904 * 1e-6]);
        for text in ["", "-1Gf", "0", "nan", "inf", "1e99Gf", "1 apple", "Gf", "1e", "--1", "1MBps"] {
            assert!(flops(text).is_err(), "{text}");
        }
        for text in ["-50us", "2h", "1ks", "1e300", "5 µs"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(bytes_per_s("0Bps").is_err() && bytes_per_s("-1").is_err() && bytes_per_s("1Mf").is_err());
    }
}
