//! SIGSTOP and SIGCONT, the second choice: programs and their parents (shells, mpirun, debuggers) see them.

use std::cell::RefCell;

use rustix::io::Errno;

use super::{Mechanism, Order, Phase};
use crate::switch::{JobSwitch, WEIGHT_DEFAULT};
use cosched_core::Disposition;

/// Stops by SIGSTOP. Like the freezer it has no background state.
#[derive(Debug)]
pub struct Signals {
    /// Room for a part of cgroup.procs, allocated in advance.
    buffer: RefCell<Box<[u8]>>,
}

impl Signals {
    fn signal(&self, job: &JobSwitch, stop: bool) -> Result<(), Errno> {
        job.signal(stop, &mut self.buffer.borrow_mut())
    }
}

impl Default for Signals {
    /// Allocates the buffer.
    fn default() -> Signals {
        Signals { buffer: RefCell::new(vec![0; 16 * 1024].into_boxed_slice()) }
    }
}

impl Mechanism for Signals {
    fn name(&self) -> &'static str {
        "signals"
    }

    fn order(&self) -> Order {
        Order::IncomingFirst
    }

    fn uses_signals(&self) -> bool {
        true
    }

    fn apply(&self, job: &JobSwitch, to: Disposition, weight: u32, _phase: Phase) -> Result<(), Errno> {
        match to {
            Disposition::Run => {
                job.set_frozen(false)?;
                self.signal(job, false)?;
                job.set_idle(false)?;
                job.set_weight(weight)?;
            }
            Disposition::Background | Disposition::Stop => self.signal(job, true)?,
        }
        job.set_state(Some(to));
        Ok(())
    }

    fn release(&self, job: &JobSwitch) -> Result<(), Errno> {
        self.signal(job, false)?;
        job.set_frozen(false)?;
        job.set_idle(false)?;
        job.set_weight(WEIGHT_DEFAULT)?;
        job.set_state(None);
        Ok(())
    }
}
