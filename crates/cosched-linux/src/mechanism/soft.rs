//! Soft: the other gangs may use what the current one leaves idle.
//!
//! cpu.idle and weights alone act at the scheduler's next tick, up to 4 ms later. So the outgoing gang is frozen for the moment of the
//! switch, which takes it off the CPUs at once, is marked as background meanwhile, and is thawed a moment later: from then on it runs only
//! where nothing of the current gang wants to.

use rustix::io::Errno;

use super::{Mechanism, Order, Phase};
use crate::switch::{JobSwitch, State};

/// How a gang is kept in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Low {
    /// cpu.idle = 1 (Linux 5.15).
    Idle,
    /// The least weight that there is.
    Weight,
}

/// Freeze for the moment of the switch, then background.
#[derive(Debug, Clone, Copy)]
pub struct Soft {
    low: Low,
    /// Who comes first at a boundary.
    pub order: Order,
    /// How long the outgoing gang stays frozen, in nanoseconds.
    pub settle_ns: u64,
}

impl Soft {
    /// With cpu.idle.
    pub fn idle() -> Soft {
        Soft { low: Low::Idle, order: Order::OutgoingFirst, settle_ns: 300_000 }
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

    fn lower(&self, job: &JobSwitch) -> Result<(), Errno> {
        if job.state() == Some(State::Run) {
            job.set_frozen(true)?;
        }
        match self.low {
            Low::Idle => job.set_idle(true),
            Low::Weight => {
                job.set_idle(false)?;
                job.set_least_weight()
            }
        }
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

    fn settle_after_ns(&self) -> Option<u64> {
        Some(self.settle_ns)
    }

    fn apply(&self, job: &JobSwitch, to: State, weight: u32, phase: Phase) -> Result<(), Errno> {
        match (to, phase) {
            (State::Run, _) => self.run(job, weight)?,
            (State::Background, Phase::Boundary) => self.lower(job)?,
            (State::Background, Phase::Settle) => job.set_frozen(false)?,
            (State::Stop, _) => job.set_frozen(true)?,
        }
        job.set_state(Some(to));
        Ok(())
    }
}
