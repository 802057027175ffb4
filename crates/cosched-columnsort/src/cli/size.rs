//! Numbers of bytes, as people write and read them.

/// Units by the letter: powers of 1024 alone and with `iB`, of 1000 with `B`.
const LETTERS: &str = "KMGT";

/// Reads `512M`, `8GB`, `1.5GiB`, `4096`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let trouble =
        || format!("'{text}' is no number of bytes; write 4096, 512M (x 1024 x 1024), 8GB (x 1000^3) or 8GiB");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_uppercase();
    let factor = match unit.as_str() {
        "" | "B" => 1.0,
        _ => {
            let letter = unit.chars().next().ok_or_else(trouble)?;
            let power = LETTERS.find(letter).ok_or_else(trouble)? as i32 + 1;
            match &unit[1..] {
                "" | "IB" => 1024f64.powi(power),
                "B" => 1000f64.powi(power),
                _ => return Err(trouble()),
            }
        }
    };
    let bytes = number.parse::<f64>().map_err(|_| trouble())? * factor;
    if bytes >= 0.0 && bytes < 2f64.powi(63) { Ok(bytes.round() as u64) } else { Err(trouble()) }
}

/// Writes `8.00 GB`, in powers of 1000.
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

/// Writes a size that [`parse`] reads and that is not smaller: `613M`.
pub(crate) fn exact(bytes: u64) -> String {
    match bytes >> 20 {
        0 => bytes.to_string(),
        _ => format!("{}M", bytes.div_ceil(1 << 20)),
    }
}

/// Three digits in all.
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
    fn sizes_that_people_write() {
        let good = [
            ("0", 0),
            ("4096", 4096),
            ("512M", 512 << 20),
            ("8GB", 8_000_000_000),
            ("8GiB", 8 << 30),
            ("1.5k", 1536),
            ("2 KB", 2000),
        ];
        for (text, bytes) in good {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for bad in ["", "M", "-1", "12X", "1GG", "1..2", "nan", "9999999T"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

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
        assert_eq!((exact(5000).as_str(), exact((3 << 20) + 1).as_str()), ("5000", "4M"));
    }
}
