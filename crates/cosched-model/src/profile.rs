//! A recorded program: equation 6 applied to a run whose messages were counted.

use crate::cost::{Cost, Term};
use crate::machine::{Link, WORD_BYTES};

/// The totals of a task of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// CPU time outside messages, in s.
    pub compute_s: f64,
    /// Time in input and output, in s.
    pub io_s: f64,
    /// The number of messages that it sent or received one after another, that is, waited for.
    pub messages: f64,
    /// The number of bytes of these.
    pub bytes: f64,
    /// The time of the run, in s, if it is known: then t_1 is this, and the part that the terms do not explain is
    /// waiting.
    pub elapsed_s: Option<f64>,
}

/// Why totals are invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} of a profile must be finite and not negative, not {value}")]
pub struct ProfileError {
    /// The name of the total.
    pub what: &'static str,
    /// Its value.
    pub value: f64,
}

/// t_1 of the task on a machine with this link: computation and I/O as recorded, messages at α + β n, of which
/// α_CPU + β_CPU n is CPU time. [`Cost::shared_cpu_s`] adds the context switches.
///
/// # Errors
/// If a total is negative or not finite, or if t_1 would be 0.
pub fn from_profile(link: &Link, totals: &Totals) -> Result<Cost, ProfileError> {
    let elapsed_s = totals.elapsed_s.unwrap_or(0.0);
    for (what, value) in [
        ("compute_s", totals.compute_s),
        ("io_s", totals.io_s),
        ("messages", totals.messages),
        ("bytes", totals.bytes),
        ("elapsed_s", elapsed_s),
    ] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(ProfileError { what, value });
        }
    }
    let words = totals.bytes / WORD_BYTES as f64;
    let mut terms = vec![
        Term::compute("compute", totals.compute_s),
        Term::wait("input and output", totals.io_s),
        Term::startup("message startups", link, totals.messages),
        Term::volume("message volume", words, link.beta_us_per_word, link.beta_cpu_us_per_word),
    ];
    let explained: f64 = terms.iter().map(|term| term.time_s).sum();
    terms.push(Term::wait("waiting for partners", (elapsed_s - explained).max(0.0)));
    let cost = Cost { terms };
    if cost.time_s() > 0.0 { Ok(cost) } else { Err(ProfileError { what: "the time", value: 0.0 }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::shipped;

    const TOTALS: Totals = Totals { compute_s: 1.0, io_s: 0.5, messages: 1000.0, bytes: 8e6, elapsed_s: None };

    #[test]
    fn adds_up_messages_and_the_rest() {
        let bunyip = shipped("bunyip").unwrap();
        let cost = from_profile(&bunyip.network, &TOTALS).unwrap();
        assert!((cost.time_s() - (1.5 + 0.08 + 0.85)).abs() < 1e-9);
        assert!((cost.cpu_s() - (1.0 + 0.028 + 0.14)).abs() < 1e-9);
        assert!((cost.shared_cpu_s(bunyip.context_switch_us) - (1.168 + 0.0025)).abs() < 1e-9);
        let longer = from_profile(&bunyip.network, &Totals { elapsed_s: Some(10.0), ..TOTALS }).unwrap();
        assert!((longer.time_s() - 10.0).abs() < 1e-9 && longer.cpu_s() == cost.cpu_s());
    }

    #[test]
    fn refuses_what_is_no_total() {
        let link = shipped("bunyip").unwrap().network;
        let what = |totals: Totals| from_profile(&link, &totals).unwrap_err().what;
        assert_eq!(what(Totals { compute_s: -1.0, ..TOTALS }), "compute_s");
        assert_eq!(what(Totals { messages: f64::NAN, ..TOTALS }), "messages");
        assert_eq!(what(Totals { elapsed_s: Some(f64::INFINITY), ..TOTALS }), "elapsed_s");
        assert_eq!(what(Totals { compute_s: 0.0, io_s: 0.0, messages: 0.0, bytes: 0.0, elapsed_s: None }), "the time");
    }
}
