//! The monitor's view of a running graph.

use super::shared::Shared;
use crate::error::Cause;
use crate::monitor::{Watch, Watched};
use crate::report::Report;

impl Watched for Shared {
    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn queue_len(&self, stage: usize) -> usize {
        Shared::queue_len(self, stage)
    }

    fn fail(&self, stage: usize, cause: Cause) {
        Shared::fail(self, Some(stage), cause);
    }

    fn incarnations(&self, stage: usize, count: u32) -> Result<(), String> {
        let got = self.set_incarnations(stage, count as usize);
        if got == count as usize { Ok(()) } else { Err(format!("the stage can have {got}")) }
    }

    fn report(&self) -> Report {
        Shared::report(self)
    }
}
