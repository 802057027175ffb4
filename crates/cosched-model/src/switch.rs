//! α_c, the cost of a context switch, from the `yield` program (Strazdins & Uhlmann 2004, section 2.2, equation 3).

/// α_c = (t_2 − 2 t_1) / (2 y) in µs: two programs that yield y times each on one CPU take t_2 − 2 t_1 longer than
/// twice the time of one, and switch 2 y times. Noise can make the result negative; it is returned as it is.
///
/// Times in s; None if `yields` is 0 or a time is not above 0 and finite.
pub fn context_switch_us(one_s: f64, two_s: f64, yields: u64) -> Option<f64> {
    let good = |time: f64| time > 0.0 && time.is_finite();
    (yields > 0 && good(one_s) && good(two_s)).then(|| (two_s - 2.0 * one_s) / (2.0 * yields as f64) * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovers_a_known_cost() {
        // 100 000 yields, 10 µs of work each; a switch costs 2.5 µs.
        let (one, two) = (1.0, 2.0 + 200_000.0 * 2.5e-6);
        assert!((context_switch_us(one, two, 100_000).unwrap() - 2.5).abs() < 1e-9);
        assert!(context_switch_us(1.0, 1.9, 10).unwrap() < 0.0);
        assert_eq!(context_switch_us(1.0, 2.0, 0), None);
        assert_eq!(context_switch_us(f64::NAN, 2.0, 1), None);
    }
}
