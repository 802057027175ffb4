//! Strict: the other gangs are frozen for the whole slot.

use rustix::io::Errno;

use super::{Mechanism, Order, Phase};
use crate::switch::{JobSwitch, State};

/// The cgroup v2 freezer. It knows no background: what does not run is frozen.
#[derive(Debug, Clone, Copy)]
pub struct Freezer {
    /// Who comes first at a boundary.
    pub order: Order,
}

impl Default for Freezer {
    fn default() -> Freezer {
        Freezer { order: Order::IncomingFirst }
    }
}

impl Mechanism for Freezer {
    fn name(&self) -> &'static str {
        "freezer"
    }

    fn order(&self) -> Order {
        self.order
    }

    fn apply(&self, job: &JobSwitch, to: State, weight: u32, _phase: Phase) -> Result<(), Errno> {
        match to {
            State::Run => {
                job.set_frozen(false)?;
                // Only after a soft mechanism, or when the file's content is not known.
                job.set_idle(false)?;
                job.set_weight(weight)?;
            }
            State::Background | State::Stop => job.set_frozen(true)?,
        }
        job.set_state(Some(to));
        Ok(())
    }
}
