//! Soft: the other gangs may use CPUs that the current one leaves idle.
//!
//! The problem: a gang in the background should run only where and while the current one does not. cpu.idle and weights alone do not achieve that:
//! the scheduler (EEVDF, Linux 6.6 and later) lets every entity that has had less than its share run until the next tick, 4 ms later, and the time
//! that an entity is owed survives each change of its weight. Gangs that change places at every slot therefore carry such a piece on from slot to
//! slot: at slots of 20 ms, 10 to 30 % of the time went to the wrong gang (examples/switch_cost.rs).
//!
//! The rule: at a switch the others are frozen, as in the strict case. When the idle probe (see [`crate::probe`]) finds an idle CPU, one of them is
//! marked as background and thawed. Then it runs on idle CPUs and leaves them at once when the current gang wakes (a waking process pre-empts an idle
//! one). The price: where the current gang is busy on a part of its CPUs only, those may lose one tick per slot to each gang that fills. Measured:
//! 0.08 % in the wrong gang at 20 ms and 0.03 % at 100 ms while the current gang is busy; a slot whose gang sleeps goes to the others for 60 to 80 %
//! of its length.

use rustix::io::Errno;

use super::{Mechanism, Order, Phase};
use crate::switch::JobSwitch;
use cosched_core::Disposition;

/// How a gang is kept in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Low {
    /// cpu.idle = 1 (Linux 5.15).
    Idle,
    /// The least weight.
    Weight,
}

/// Frozen until there are idle CPUs, then background.
#[derive(Debug, Clone, Copy)]
pub struct Soft {
    low: Low,
    /// The order of writes at a boundary.
    pub order: Order,
}

impl Soft {
    /// With cpu.idle.
    pub fn idle() -> Soft {
        Soft { low: Low::Idle, order: Order::IncomingFirst }
    }

    /// With the least weight, for kernels without cpu.idle.
    pub fn shares() -> Soft {
        Soft { low: Low::Weight, ..Soft::idle() }
    }

    fn run(&self, job: &JobSwitch, weight: u32) -> Result<(), Errno> {
        job.set_frozen(false)?;
        job.set_idle(false)?;
        // After cpu.idle: the kernel resets the weight when that is written.
        job.set_weight(weight)
    }

    fn fill(&self, job: &JobSwitch) -> Result<(), Errno> {
        match self.low {
            Low::Idle => job.set_idle(true)?,
            Low::Weight => {
                job.set_idle(false)?;
                job.set_least_weight()?;
            }
        }
        job.set_frozen(false)
    }
}

impl Mechanism for Soft {
    fn name(&self) -> &'static str {
        match self.low {
            Low::Idle => "freeze-idle",
            Low::Weight => "freeze-shares",
        }
    }

    fn order(&self) -> Order {
        self.order
    }

    fn has_background(&self) -> bool {
        true
    }

    fn apply(&self, job: &JobSwitch, to: Disposition, weight: u32, phase: Phase) -> Result<(), Errno> {
        match (to, phase) {
            (Disposition::Run, _) => self.run(job, weight)?,
            (Disposition::Background, Phase::Fill) => self.fill(job)?,
            (Disposition::Background, Phase::Switch) | (Disposition::Stop, _) => job.freeze_for_others()?,
        }
        job.set_state(Some(to));
        Ok(())
    }
}
