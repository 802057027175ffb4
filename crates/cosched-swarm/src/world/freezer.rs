//! Cgroups that are not frozen or thawed at once: the write fails, and the slot thread writes again later.

use super::{MS, S};
use crate::dice::Dice;
use crate::host::Local;
use cosched_core::Disposition;

/// The longest time until the freezer has done what it was told.
const LATE_NS_MAX: u64 = 2 * S;

/// The freezers of a world.
#[derive(Clone, Debug)]
pub(crate) struct Freezers {
    pub(crate) dice: Dice,
    /// One of this many freezes and thaws comes late; 0: none.
    pub(crate) late_one_in: u64,
}

impl Freezers {
    /// What a part does now that is to do `to`.
    pub(crate) fn switch(&mut self, part: &mut Local, to: Disposition, now: u64) -> Disposition {
        let is_due = match part.switch {
            _ if (to == Disposition::Stop) == (part.to == Disposition::Stop) => true,
            Some((of, at)) if of == to => at <= now,
            _ => {
                let is_late = self.late_one_in > 0 && self.dice.one_in(self.late_one_in);
                let late = if is_late { self.dice.between(MS, LATE_NS_MAX) } else { 0 };
                part.switch = Some((to, now + late));
                late == 0
            }
        };
        if !is_due {
            return part.to;
        }
        part.switch = None;
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{ROOT, World, job_on, submit};
    use cosched_cluster::wire::Ask;
    use cosched_core::JobId;

    #[test]
    fn a_late_freezer_freezes_all_the_same() {
        let mut world = World::started(2, 1);
        world.job_ns_max = 1000 * S;
        world.ask(0, ROOT, submit(job_on("a", "n0", 0)));
        world.run(3 * S);
        world.freezers.late_one_in = 1;
        world.ask(0, ROOT, Ask::Suspend { job: 1 });
        let mut was_late = false;
        for _ in 0..60 {
            world.run(50 * MS);
            let suspended = world.hosts[0]
                .node
                .as_ref()
                .is_some_and(|node| node.local().job(JobId(1)).is_some_and(|job| job.suspended));
            was_late |= suspended && world.hosts[0].processes.parts[&JobId(1)].to != Disposition::Stop;
        }
        assert!(was_late);
        assert_eq!(world.hosts[0].processes.parts[&JobId(1)].to, Disposition::Stop);
        world.check();
    }
}
