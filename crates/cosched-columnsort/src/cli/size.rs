//! Sizes in bytes, in human-readable form.

/// Formats a size like `8.00 GB`, in powers of 1000.
pub(crate) fn text(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "bytes" {
                format!("{bytes} bytes")
            } else {
                format!("{value:.*} {unit}", digits(value))
            };
        }
        value /= 1000.0;
    }
    format!("{value:.2} TB")
}

/// A size in a form that the command line can parse, rounded up: `613M`.
pub(crate) fn exact(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes}B"),
        _ => format!("{}M", bytes.div_ceil(1 << 20)),
    }
}

/// The number of decimal places for three digits in total.
fn digits(value: f64) -> usize {
    if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_people_read() {
        let texts = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.00 kB"),
            (12_345_678, "12.3 MB"),
            (8_000_000_000, "8.00 GB"),
        ];
        for (bytes, expected) in texts {
            assert_eq!(text(bytes), expected);
        }
        assert_eq!((exact(5000).as_str(), exact((3 << 20) + 1).as_str()), ("5000B", "4M"));
    }
}
