//! When a job is restarted, no process of its earlier lives is left on any node, in true time.
//!
//! Why: two lives of a job write to the same files. A job of an earlier life of the store is another job.

use super::{Invariant, Seen};

#[derive(Default)]
pub(super) struct OneLife {
    /// The store was restored or replaced: the planner knows nothing of what began since.
    another: bool,
}

impl Invariant for OneLife {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::AnotherStore => self.another = true,
            Seen::Begun { node, job, attempt, older: Some(on) } if !self.another => {
                return Err(format!(
                    "attempt {attempt} of job {job} begins on node {node} while an earlier one still runs on {on}"
                ));
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::world::{Broken, ROOT, S, World, job, submit, user};
    use cosched_cluster::wire::{Ask, JobAsk, OnNodeLoss};

    /// The violated invariant when a job's node is cut off, with its daemon dead, until the other nodes have restarted
    /// the job.
    fn noticed(broken: Option<Broken>) -> Option<&'static str> {
        let mut world = World::started(18, 3);
        world.broken = broken;
        world.run(12 * S);
        world.job_ns_max = 500_000 * S;
        world.ask(0, ROOT, Ask::NodeDeadAfter { ns: 6 * S });
        world.ask(0, user(1), submit(JobAsk { on_node_loss: OnNodeLoss::Requeue, ..job("a", 2) }));
        world.run(2 * S);
        let [(node, _)] = world.running().into_iter().collect::<Vec<_>>()[..] else { unreachable!() };
        world.crash(node);
        world.run(60 * S);
        assert_eq!(world.jobs()[0].attempt, 1, "it began anew");
        world.violation.map(|violation| violation.invariant)
    }

    #[test]
    fn a_guard_that_does_not_end_what_others_begin_anew_is_noticed() {
        assert_eq!(noticed(None), None);
        assert_eq!(noticed(Some(Broken::NoFence)), Some("one_life"));
    }
}
