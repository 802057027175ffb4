//! A job that was killed is gone, and one that was suspended is stopped, within a bound.
//!
//! Why: the state in the store says what is to be, and `obeyed` checks that. What a user sees is processes. The bound counts while
//! nothing keeps the node from it: its daemon runs, and its store and its disk answer. Where a node out of touch has killed a job by itself,
//! only the daemon has to run.

use super::{Invariant, Seen};

pub(crate) const ALIVE: &str = "was killed, and has processes";
pub(crate) const RUNS: &str = "is suspended, and runs";

/// How long a kill or a suspension may take, in nanoseconds. A killed process dies within a moment; a plan waits for the lease of a node that does not
/// answer, and a freezer may be late.
const EFFECT_NS_MAX: [(&str, u64); 2] = [(ALIVE, 6_000_000_000), (RUNS, 12_000_000_000)];

pub(super) struct Effects;

impl Invariant for Effects {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Seen::Lingers { node, job, what, for_ns } = seen else { return Ok(()) };
        match EFFECT_NS_MAX.iter().find(|(of, most_ns)| of == what && for_ns > most_ns) {
            Some((_, most_ns)) => {
                let (s, most_s) = (for_ns / 1_000_000_000, most_ns / 1_000_000_000);
                Err(format!("job {job} {what} on node {node} for {s} s, at most {most_s} s"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn signals_that_reach_nobody_are_noticed() {
        assert!(is_noticed(Broken::NoSignals, "effects"));
    }

    #[test]
    fn freezers_that_stop_nobody_are_noticed() {
        assert!(is_noticed(Broken::NoFreezers, "effects"));
    }
}
