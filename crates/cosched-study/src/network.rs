//! The costs of messages: from a machine's links, from a recording, or from a text.

use crate::error::Error;
use cosched_model::machine::{Link, WORD_BYTES};
use cosched_sim::general::{Messages, Route};

/// The costs of messages over this link.
///
/// # Errors
/// If a cost is out of the simulator's range.
pub fn of_link(link: &Link) -> Result<Route, Error> {
    Ok(Route {
        latency_ns: ns(link.alpha_us)?,
        byte_ps: byte_ps(link.beta_us_per_word)?,
        cpu_ns: ns(link.alpha_cpu_us)?,
        cpu_byte_ps: byte_ps(link.beta_cpu_us_per_word)?,
        poll_ns: None,
    })
}

/// The costs of recorded messages, from alpha in µs and beta in µs per word: on the machine on which they were recorded, all of their
/// time is CPU time.
///
/// # Errors
/// If a cost is out of the simulator's range.
pub fn of_recording(alpha_us: f64, beta_us_per_word: f64) -> Result<Messages, Error> {
    let (cost, byte) = (ns(alpha_us)?, byte_ps(beta_us_per_word)?);
    let route = Route { latency_ns: cost, byte_ps: byte, cpu_ns: cost, cpu_byte_ps: byte, poll_ns: None };
    Ok(Messages { network: route, memory: route })
}

/// The simulator checks the costs; here they only have to be representable as its integers.
fn whole(value: f64, unit: f64) -> Option<u64> {
    let value = value * unit;
    (value.is_finite() && (0.0..1e18).contains(&value)).then(|| value.round() as u64)
}

/// A time in µs as whole nanoseconds.
///
/// # Errors
/// If it is out of the simulator's range.
pub fn ns(us: f64) -> Result<u64, Error> {
    whole(us, 1e3).ok_or_else(|| too_much(us))
}

/// Picoseconds per byte, from µs per word.
fn byte_ps(us: f64) -> Result<u64, Error> {
    whole(us, 1e6 / WORD_BYTES as f64).ok_or_else(|| too_much(us))
}

fn too_much(us: f64) -> Error {
    Error::subject(format!("a cost of {us} µs"), "it is beyond what can be simulated", "costs are in µs")
}

/// Parses `ALPHA,BETA[,ALPHA_CPU,BETA_CPU]`; without the CPU's part all of the time is CPU time.
///
/// # Errors
/// What is wrong with the text.
pub fn route(text: &str) -> Result<Route, String> {
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(value) if value < 0.0 => Err("a time cannot be negative".to_owned()),
        Ok(value) if whole(value, 1e6).is_some() => Ok(value),
        _ => Err(format!("'{}' is not a number that can be simulated", text.trim())),
    };
    let numbers = text.split(',').map(number).collect::<Result<Vec<f64>, String>>()?;
    let (alpha, beta, alpha_cpu, beta_cpu) = match numbers[..] {
        [alpha, beta] => (alpha, beta, alpha, beta),
        [alpha, beta, alpha_cpu, beta_cpu] => (alpha, beta, alpha_cpu, beta_cpu),
        _ => return Err("two or four numbers: ALPHA,BETA[,ALPHA_CPU,BETA_CPU], such as 80,0.85,28,0.14".to_owned()),
    };
    if alpha_cpu > alpha || beta_cpu > beta {
        return Err("the CPU's part is larger than the whole".to_owned());
    }
    let ps = |us: f64| whole(us, 1e6 / WORD_BYTES as f64).unwrap_or(0);
    let ns = |us: f64| whole(us, 1e3).unwrap_or(0);
    Ok(Route {
        latency_ns: ns(alpha),
        byte_ps: ps(beta),
        cpu_ns: ns(alpha_cpu),
        cpu_byte_ps: ps(beta_cpu),
        poll_ns: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Route =
        Route { latency_ns: 80_000, byte_ps: 106_250, cpu_ns: 28_000, cpu_byte_ps: 17_500, poll_ns: None };

    #[test]
    fn costs_are_read() {
        assert_eq!(route("80,0.85,28,0.14"), Ok(TCP));
        assert_eq!(
            route("42, 0.1"),
            Ok(Route { latency_ns: 42_000, byte_ps: 12_500, cpu_ns: 42_000, cpu_byte_ps: 12_500, poll_ns: None })
        );
        for wrong in ["", "80", "80,0.85,28", "80,x", "80,-1", "80,inf", "1e30,1", "80,0.85,81,0.14", "80,0.85,28,0.9"]
        {
            assert!(route(wrong).is_err(), "{wrong}");
        }
    }
}
