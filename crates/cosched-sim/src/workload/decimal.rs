//! Converts decimal seconds to whole nanoseconds and back, exactly: a time in a job list must be the same number for
//! every simulator, so it is never converted to floating point.

/// The longest accepted time: about 31 years. Sums of a few of them stay far from overflow.
pub(crate) const SECONDS_MAX: u64 = 1_000_000_000;

/// Reads `12`, `12.`, `.5` or `12.345678` seconds; digits after the ninth are rounded to the nearest nanosecond (D1).
pub(crate) fn seconds_to_ns(text: &str) -> Result<u64, String> {
    if text.starts_with('-') {
        return Err("is negative".into());
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return Err("is not a decimal number of seconds, as 12.345678".into());
    }
    let too_long = || format!("is more than {SECONDS_MAX} s");
    let significant = whole.trim_start_matches('0');
    let seconds: u64 = if significant.is_empty() { 0 } else { significant.parse().map_err(|_| too_long())? };
    let mut ns: u64 = 0;
    for place in 0..9 {
        ns = ns * 10 + u64::from(fraction.as_bytes().get(place).map_or(0, |digit| digit - b'0'));
    }
    ns += u64::from(fraction.as_bytes().get(9).is_some_and(|digit| *digit >= b'5'));
    if seconds > SECONDS_MAX || (seconds == SECONDS_MAX && ns > 0) {
        return Err(too_long());
    }
    Ok(seconds * 1_000_000_000 + ns)
}

/// Writes nanoseconds as seconds with six decimals (D21), or nine if six would lose precision.
pub(crate) fn ns_to_seconds(ns: u64) -> String {
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    if rest.is_multiple_of(1000) { format!("{seconds}.{:06}", rest / 1000) } else { format!("{seconds}.{rest:09}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_read_exactly() {
        let cases = [
            ("0", 0),
            ("12", 12_000_000_000),
            ("12.", 12_000_000_000),
            (".5", 500_000_000),
            ("0.1", 100_000_000),
            ("4503599.627371", 4_503_599_627_371_000),
            ("00000000000000000000000.000001", 1_000),
            ("0.0000000004", 0),
            ("0.0000000005", 1),
            ("0.9999999999", 1_000_000_000),
            ("1000000000", 1_000_000_000_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(seconds_to_ns(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", ".", "-1", "+1", "1e3", "nan", "inf", "1.2.3", "1,5", " 1", "0x1", "१"] {
            assert!(seconds_to_ns(text).is_err(), "{text}");
        }
        for text in ["1000000000.000000001", "99999999999999999999999", "1000000001"] {
            assert!(seconds_to_ns(text).unwrap_err().contains("more than"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ns in 0..=1_000_000_000_000_000_000_u64) {
            prop_assert_eq!(seconds_to_ns(&ns_to_seconds(ns)), Ok(ns));
            let micros = ns / 1000 * 1000;
            let text = ns_to_seconds(micros);
            prop_assert_eq!(text.split_once('.').unwrap().1.len(), 6);
            prop_assert_eq!(seconds_to_ns(&text), Ok(micros));
        }

        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _ = seconds_to_ns(&text);
        }
    }
}
