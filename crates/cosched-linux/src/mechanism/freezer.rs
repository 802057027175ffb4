//! Strict: the other gangs are frozen for the whole slot.
//!
//! Measured (examples/switch_cost.rs, 2 CPUs, 2 and 4 jobs, slots of 20 ms): whether the new gang is started first or the old one stopped first makes
//! no difference beyond the noise in the median (new gang running after 59 and 58 to 64 µs, old one stopped after 35 and 31 µs); with the new one
//! first the tail is shorter (99th percentile 103 against 124 µs), so that is the order. Known limit: the kernel takes its single cgroup lock for a
//! freeze, so a switch waits while a process is being moved between cgroups. That is why [`crate::kernel_agent`] mounts with `favordynmods`.

use rustix::io::Errno;

use super::{Mechanism, Order, Phase};
use crate::switch::JobSwitch;
use cosched_core::Disposition;

/// The cgroup v2 freezer. It has no background state: a gang that does not run is frozen.
#[derive(Debug, Clone, Copy)]
pub struct Freezer {
    /// The order of writes at a boundary.
    pub order: Order,
    /// `freezer` for the kernel's, `signals` where the jobs' keepers do it.
    pub name: &'static str,
}

impl Default for Freezer {
    fn default() -> Freezer {
        Freezer { order: Order::IncomingFirst, name: "freezer" }
    }
}

impl Freezer {
    /// The same files where there are no cgroups: the jobs' keepers read them.
    pub(crate) fn by_keepers() -> Freezer {
        Freezer { order: Order::OutgoingFirst, name: "signals" }
    }
}

impl Mechanism for Freezer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn order(&self) -> Order {
        self.order
    }

    fn apply(&self, job: &JobSwitch, to: Disposition, weight: u32, _phase: Phase) -> Result<(), Errno> {
        match to {
            Disposition::Run => {
                job.set_frozen(false)?;
                // Writes only for a crowd, after a soft mechanism, or when the file's content is unknown.
                job.set_idle(false)?;
                job.set_weight(weight)?;
            }
            Disposition::Background | Disposition::Stop => job.freeze_for_others()?,
        }
        job.set_state(Some(to));
        Ok(())
    }
}
