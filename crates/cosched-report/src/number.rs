//! Numbers for readers.

/// A number with at most four significant digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        0.0 => 0,
        _ if size >= 1000.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 0.01 => 3,
        _ if size >= 0.001 => 4,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

/// A fraction in per cent, with one decimal and without the sign.
pub fn percent(part: f64) -> String {
    format!("{:.1}", part * 100.0)
}
