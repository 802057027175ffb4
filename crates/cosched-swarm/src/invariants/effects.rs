//! A job that was killed is gone, and one that was suspended is stopped, within a bound. One that was told to end is gone, too, if its program obeys, even
//! where it was stopped; otherwise after the time that the user has given it, if any.
//!
//! Why: the state in the store says what is to be, and `obeyed` checks that. What a user sees is processes. The bound counts while
//! nothing keeps the node from it: its daemon runs, and its store and its disk answer. Where a node out of touch has killed a job by itself,
//! only the daemon has to run.

use super::{Invariant, Seen};

pub(crate) const ALIVE: &str = "was killed, and has processes";
pub(crate) const OBEYS: &str = "was told to end, would, and has processes";
pub(crate) const RUNS: &str = "is suspended, and runs";

/// How long a kill or a suspension may take, in nanoseconds. A killed process dies within a moment; a plan waits for the lease of a node that does not
/// answer, and a freezer may be late: a stopped program handles no signal.
const EFFECT_NS_MAX: [(&str, u64); 3] = [(ALIVE, 6_000_000_000), (OBEYS, 12_000_000_000), (RUNS, 12_000_000_000)];

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
    use crate::world::{Broken, ROOT, S, World, job_on, submit};
    use cosched_cluster::wire::{Ask, KillHow};
    use cosched_core::JobId;
    use cosched_node::SIGTERM;

    #[test]
    fn signals_that_reach_nobody_are_noticed() {
        assert!(is_noticed(Broken::NoSignals, "effects"));
    }

    #[test]
    fn freezers_that_stop_nobody_are_noticed() {
        assert!(is_noticed(Broken::NoFreezers, "effects"));
    }

    /// A job whose user has told it to end half a minute ago; whether it is alive, and the invariant that was violated.
    fn told_to_end(
        ignores: bool,
        is_suspended: bool,
        grace_ms: Option<u64>,
        broken: Option<Broken>,
    ) -> (bool, &'static str) {
        let mut world = World::started(3, 2);
        world.job_ns_max = 1_000_000 * S;
        world.ask(0, ROOT, submit(job_on("a", "n0", 0)));
        world.run(3 * S);
        let part = |world: &mut World| {
            world.hosts[0].processes.parts.get_mut(&JobId(1)).map(|part| part.ignores_kill = ignores)
        };
        assert_eq!(part(&mut world), Some(()), "it has begun");
        if is_suspended {
            world.ask(1, ROOT, Ask::Suspend { job: 1 });
            world.run(5 * S);
        }
        world.broken = broken;
        world.ask(1, ROOT, Ask::Kill { job: 1, how: KillHow { signal: SIGTERM, grace_ms } });
        world.run(30 * S);
        (world.running().contains(&(0, JobId(1))), world.violation.map_or("", |violation| violation.invariant))
    }

    #[test]
    fn a_program_that_was_told_to_end_ends_if_it_obeys_and_otherwise_when_its_time_is_over() {
        for is_suspended in [false, true] {
            assert_eq!(told_to_end(false, is_suspended, None, None), (false, ""), "it obeys");
            assert_eq!(told_to_end(true, is_suspended, Some(5_000), None), (false, ""), "it is killed after its time");
        }
        assert_eq!(told_to_end(true, false, None, None), (true, ""), "it has all the time");
        assert_eq!(told_to_end(false, false, None, Some(Broken::DeafToTerm)), (true, "effects"));
        assert_eq!(told_to_end(true, false, Some(5_000), Some(Broken::RestLives)), (true, "effects"));
    }
}
